"""The report on one provider: its capabilities, whether it can be opened, and its contract tests in
a separate pytest process."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from memservice.cli.options import State
from memservice.domain.errors import ConfigurationError
from memservice.domain.installation import install_command
from memservice.plugins import Row
from memservice.reasoning.choice import models_of
from memservice.reasoning.models import is_configured
from memservice.settings import connections
from memservice.settings.models import ModelChoice, Overrides
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context

STORAGE, INDEX, PROTOCOL, EMBEDDER, REASONER, TRANSPORT = (
    *("storage", "vector index", "language-model protocol"),
    *("embedder", "reasoner", "webhook transport"),
)
QUESTIONS: Mapping[str, tuple[tuple[Capability, str], ...]] = {
    STORAGE: ((Capability.SHARED, "Can several processes open the same store at once?"),),
    INDEX: (
        (Capability.SHARED, "Can several processes open the same index at once?"),
        (Capability.TRANSACTIONAL, "Is it part of the storage, and commits with it?"),
    ),
    EMBEDDER: (
        (Capability.INLINE, "Is it local and fast enough to run inside a write?"),
        (Capability.SEMANTIC, "Do paraphrases have similar vectors?"),
        (Capability.REMOTE, "Does it wait on a network?"),
        (Capability.TIMED, "Does a call for a query always end in time?"),
    ),
    REASONER: (
        (Capability.REMOTE, "Does it wait on a network?"),
        (Capability.COSTLY, "Does each call cost money or seconds?"),
    ),
    PROTOCOL: (),
    TRANSPORT: (),
}
SUITES = {
    STORAGE: "TestStorage",
    INDEX: "TestVectorIndex",
    PROTOCOL: "TestLanguageModel",
    EMBEDDER: "TestEmbedder",
    REASONER: "TestReasoner",
    TRANSPORT: "TestWebhookTransport",
}
SUITE_SECONDS = 1_800
FAULT = "fault.txt"
"""The file in which `memservice.testing.configured` writes why a provider cannot be tested."""

_silent = logging.Logger("memservice.check")
_silent.addHandler(logging.NullHandler())
"""Errors are reported once, in the output of the command."""


def checked(state: State, row: Row, scratch: str | None, costly: bool) -> bool:
    """Print the report on one provider. True if nothing failed."""
    click.echo(f"{row.kind} {row.name}, of plugin {row.plugin} from {row.distribution}")
    declared = set(row.detail.split(", "))
    for capability, question in QUESTIONS[row.kind]:
        click.echo(
            f"  {question:<60} {'yes' if capability in declared else 'no':<4} ({capability})"
        )
    if not QUESTIONS[row.kind]:
        click.echo(f"  A {row.kind} has no optional capabilities.")
    reason = _skip_reason(state, row, declared, scratch, costly)
    missing_setting = (
        _missing_setting(state, row) if reason is None and row.kind == PROTOCOL else None
    )
    if reason or missing_setting:
        click.echo(f"  suite: not run: {reason or missing_setting}")
        return not missing_setting
    return _suite(state, row, scratch)


def _skip_reason(
    state: State, row: Row, declared: set[str], scratch: str | None, costly: bool
) -> str | None:
    """Why the tests of a provider are skipped, without an error; None if they are run."""
    if importlib.util.find_spec("pytest") is None or importlib.util.find_spec("hypothesis") is None:
        return f"install the extra: {install_command('memservice[testing]')}"
    if row.kind in (STORAGE, INDEX):
        return None if scratch else "name a URI for temporary data with --scratch"
    if row.kind == TRANSPORT and state.plugins.webhook_transport(row.name).world is None:
        return (
            "it provides no test endpoints (see `world` of WebhookTransportProvider): run its "
            "author's tests"
        )
    if costly or not (row.kind == PROTOCOL or declared & {Capability.REMOTE, Capability.COSTLY}):
        return None
    missing_setting = _missing_setting(state, row)
    if missing_setting:
        return f"{missing_setting}; then --costly runs the tests, which may cost money"
    return "it calls a model, which may cost money: --costly runs the tests"


def _missing_setting(state: State, row: Row) -> str | None:
    """The settings that are missing to call the model; None if there are none. Opens the provider
    without a call."""
    plugins, settings = state.plugins, state.settings
    model = _configured_model(state, row.name) if row.kind == PROTOCOL else None
    missing = (
        f"name one of its models, for instance in DERIVER_MODEL_CONFIG__TRANSPORT={row.name} "
        "and DERIVER_MODEL_CONFIG__MODEL"
    )
    try:
        if row.kind == EMBEDDER:
            plugins.open_provider(
                plugins.embedder(row.name), connections.of_embedder(settings, row.name), _context()
            )
        elif row.kind == REASONER:
            plugins.open_provider(plugins.reasoner(row.name), {}, _context())
        else:
            connection = connections.connection(
                settings.llm,
                row.name,
                model.overrides if model else Overrides(),
                plugins.language_model(row.name).connection_of,
            )
            plugins.open_provider(plugins.language_model(row.name), connection, _context())
    except ConfigurationError as error:
        return f"{error}; and {missing}" if row.kind == PROTOCOL and model is None else str(error)
    return (
        f"no task has a model of this protocol: {missing}"
        if row.kind == PROTOCOL and model is None
        else None
    )


def _configured_model(state: State, protocol: str) -> ModelChoice | None:
    """A configured model of any task that uses this protocol."""
    llm = state.settings.llm
    models = (
        model
        for model in models_of(state.settings).values()
        if model.transport == protocol and is_configured(llm, model, state.plugins)
    )
    return next(models, None)


def _context() -> Context:
    return Context(lambda: datetime.now(UTC), _silent)


def _suites() -> str:
    """The file with the test suites. Only pytest imports it: it needs the extra."""
    spec = importlib.util.find_spec("memservice.testing.configured")
    assert spec is not None
    assert spec.origin is not None
    return spec.origin


def _suite(state: State, row: Row, scratch: str | None) -> bool:
    config = state.settings.file
    model = _configured_model(state, row.name) if row.kind == PROTOCOL else None
    parameters = {
        "name": row.name,
        "scratch": scratch,
        "model": model.model if model else None,
        "config": str(config.resolve()) if config else None,
        "cwd": os.getcwd(),
    }
    with tempfile.TemporaryDirectory(prefix="memservice-check-") as folder:
        (Path(folder) / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        quiet = (
            "-q",
            "--tb=short",
            "--no-header",
            "-p",
            "no:cacheprovider",
            "-p",
            "memservice.testing.report",
            "--rootdir",
            folder,
        )
        (Path(folder) / "provider.json").write_text(json.dumps(parameters), encoding="utf-8")
        node = f"{_suites()}::{SUITES[row.kind]}"
        options = (*quiet, "-c", f"{folder}/pytest.ini", "--basetemp", f"{folder}/tests")
        result = _run_pytest((*options, node), folder)
        fault_file = Path(folder) / FAULT
        if fault_file.exists():
            click.echo(f"  suite: not run: {fault_file.read_text(encoding='utf-8')}")
            return False
    lines = result.stdout.splitlines()
    first_line = next((number for number, line in enumerate(lines) if line.startswith("=")), 0)
    for line in lines if result.returncode > 1 else lines[first_line:]:
        click.echo(f"  {line}")
    if result.returncode > 1:
        click.echo(result.stderr, err=True)
    return result.returncode == 0


def _run_pytest(arguments: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    """pytest in the folder, with none of the plugins that happen to be installed beside it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=folder,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=SUITE_SECONDS,
        check=False,
    )
