"""One provider: what it says that it can do, whether it can be had at all, and its contract suite
in a pytest of its own."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from memservice.cli.options import State
from memservice.domain.errors import ConfigurationError
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
    STORAGE: ((Capability.SHARED, "May several processes open the same store at once?"),),
    INDEX: (
        (Capability.SHARED, "May several processes open the same index at once?"),
        (Capability.TRANSACTIONAL, "Does it live in the storage and commit with it?"),
    ),
    EMBEDDER: (
        (Capability.INLINE, "Is it local and fast enough to run inside a write?"),
        (Capability.SEMANTIC, "Do vectors of paraphrases lie near each other?"),
        (Capability.REMOTE, "Does it wait on a network?"),
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
"""Where `memservice.testing.configured` says why a provider cannot be tried."""

_silent = logging.Logger("memservice.check")
_silent.addHandler(logging.NullHandler())
"""What goes wrong is told once, by us."""


def checked(state: State, row: Row, scratch: str | None, costly: bool) -> bool:
    """Prints the report on one provider; whether nothing failed."""
    click.echo(f"{row.kind} {row.name}, of plugin {row.plugin} from {row.distribution}")
    declared = set(row.detail.split(", "))
    for capability, question in QUESTIONS[row.kind]:
        click.echo(
            f"  {question:<60} {'yes' if capability in declared else 'no':<4} ({capability})"
        )
    if not QUESTIONS[row.kind]:
        click.echo(f"  Of a {row.kind} no capabilities are asked: each can do all of its contract.")
    reason = _left_out(state, row, declared, scratch, costly)
    wants = _wants(state, row) if reason is None and row.kind == PROTOCOL else None
    if reason or wants:
        click.echo(f"  suite: not run: {reason or wants}")
        return not wants
    return _suite(state, row, scratch)


def _left_out(
    state: State, row: Row, declared: set[str], scratch: str | None, costly: bool
) -> str | None:
    """Why the suite of a provider is not run, though nothing is wrong."""
    if importlib.util.find_spec("pytest") is None or importlib.util.find_spec("hypothesis") is None:
        return "install the extra: pip install 'memservice[testing]'"
    if row.kind in (STORAGE, INDEX):
        return None if scratch else "name a place that may be filled and thrown away with --scratch"
    if row.kind == TRANSPORT and state.plugins.webhook_transport(row.name).world is None:
        return (
            "it brings no endpoints that could be delivered to (see `world` of "
            "WebhookTransportProvider): its author's tests have them"
        )
    if costly or not (row.kind == PROTOCOL or declared & {Capability.REMOTE, Capability.COSTLY}):
        return None
    wants = _wants(state, row)
    if wants:
        return f"{wants}; --costly then asks it, which may cost something"
    return "it asks a model, which may cost something: --costly asks all the same"


def _wants(state: State, row: Row) -> str | None:
    """What the settings have to say before a model can be asked; None if they say it. Opens the
    provider, and asks nothing."""
    plugins, settings = state.plugins, state.settings
    model = _model(state, row.name) if row.kind == PROTOCOL else None
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
                settings.llm, row.name, model.overrides if model else Overrides()
            )
            plugins.open_provider(plugins.language_model(row.name), connection, _context())
    except ConfigurationError as error:
        return f"{error}; and {missing}" if row.kind == PROTOCOL and model is None else str(error)
    return (
        f"no task has a model of this protocol: {missing}"
        if row.kind == PROTOCOL and model is None
        else None
    )


def _model(state: State, protocol: str) -> ModelChoice | None:
    """The model of some task that is reached by this protocol, and is configured."""
    llm = state.settings.llm
    found = (
        model
        for model in models_of(state.settings).values()
        if model.transport == protocol and is_configured(llm, model, state.plugins)
    )
    return next(found, None)


def _context() -> Context:
    return Context(lambda: datetime.now(UTC), _silent)


def _suites() -> str:
    """The file of the suites, which only pytest imports: they need the extra."""
    found = importlib.util.find_spec("memservice.testing.configured")
    assert found is not None
    assert found.origin is not None
    return found.origin


def _suite(state: State, row: Row, scratch: str | None) -> bool:
    config = state.settings.file
    model = _model(state, row.name) if row.kind == PROTOCOL else None
    wanted = {
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
        (Path(folder) / "provider.json").write_text(json.dumps(wanted), encoding="utf-8")
        node = f"{_suites()}::{SUITES[row.kind]}"
        command = [
            sys.executable,
            "-m",
            "pytest",
            *quiet,
            "-c",
            f"{folder}/pytest.ini",
            "--basetemp",
            f"{folder}/tests",
            node,
        ]
        given = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
        }
        done = subprocess.run(
            command,
            cwd=folder,
            env=given,
            capture_output=True,
            text=True,
            timeout=SUITE_SECONDS,
            check=False,
        )
        fault = Path(folder) / FAULT
        if fault.exists():
            click.echo(f"  suite: not run: {fault.read_text(encoding='utf-8')}")
            return False
    lines = done.stdout.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("=")), 0)
    for line in lines if done.returncode > 1 else lines[first:]:
        click.echo(f"  {line}")
    if done.returncode > 1:
        click.echo(done.stderr, err=True)
    return done.returncode == 0
