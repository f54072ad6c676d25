"""`memservice plugins`: what is offered, by whom, and what failed to load; and whether one provider keeps its contract."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

import click

from memservice.cli.options import State
from memservice.cli.tables import show_table
from memservice.plugins import KINDS, Row
from memservice.spi.capabilities import Capability

QUESTIONS: Mapping[str, tuple[tuple[Capability, str], ...]] = {
    "storage": ((Capability.SHARED, "May several processes open the same store at once?"),),
    "vector index": ((Capability.TRANSACTIONAL, "Does it live in the storage and commit with it?"),),
    "embedder": (
        (Capability.INLINE, "Is it local and fast enough to run inside a write?"),
        (Capability.SEMANTIC, "Do vectors of paraphrases lie near each other?"),
    ),
    "reasoner": (
        (Capability.REMOTE, "Does it wait on a network?"),
        (Capability.COSTLY, "Does each call cost money or seconds?"),
    ),
}
SUITES = {"storage": "TestStorage", "vector index": "TestVectorIndex", "embedder": "TestEmbedder", "reasoner": "TestReasoner"}
"""Kinds whose suites need nothing but the provider; those of the others need a scripted server to talk to."""
KEEPING = ("storage", "vector index")
"""Kinds that keep something, and so need a place for it."""
SUITE_SECONDS = 1_800


@click.group(invoke_without_command=True)
@click.pass_context
def plugins(context: click.Context) -> None:
    """List what the installed plugins offer. Ends with 1 if one of them failed to load."""
    if context.invoked_subcommand is not None:
        return
    state: State = context.obj
    rows = state.plugins.listing()
    show_table(
        ("KIND", "NAME", "PLUGIN", "FROM", "DETAIL"), [(row.kind, row.name, row.plugin, row.distribution, row.detail) for row in rows]
    )
    if state.plugins.failures:
        sys.exit(1)


@plugins.command()
@click.argument("name")
@click.option(
    "--scratch", metavar="PLACE", help="A place to try a storage or an index in: a URI or URL; {path} in it is new for each test."
)
@click.option("--kind", type=click.Choice([kind.words for kind in KINDS]), help="Only the provider of this kind.")
@click.option("--costly", is_flag=True, help="Also try what may ask a model that costs something.")
@click.pass_obj
def check(state: State, name: str, scratch: str | None, kind: str | None, costly: bool) -> None:
    """Tell what the providers called NAME can do, and put them to their contract suites (needs the extra `testing`).

    An embedder or a reasoner is opened as the settings say. A storage or a vector index is tried only in the place that --scratch names,
    for instance `--scratch 'sqlite:///{path}'`; what the settings name is left alone. Ends with 1 if something failed.
    """
    offered = [row for row in state.plugins.listing() if row.kind not in ("hook", "failed") and kind in (None, row.kind)]
    found = [row for row in offered if row.name == name.strip().lower()]
    if not found:
        raise click.ClickException(_unknown(state, name, sorted({row.name for row in offered})))
    outcomes = [_checked(state, row, scratch, costly) for row in found]
    sys.exit(int(not all(outcomes)))


def _unknown(state: State, name: str, known: list[str]) -> str:
    for failure in state.plugins.failures:
        if name in (failure.provider, failure.origin.name):
            return f"{name} cannot be used: {failure.reason}"
    near = get_close_matches(name, known, n=2)
    return f"no plugin offers {name!r}; known: {', '.join(known)}" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _checked(state: State, row: Row, scratch: str | None, costly: bool) -> bool:
    """Prints the report on one provider; whether nothing failed."""
    click.echo(f"{row.kind} {row.name}, of plugin {row.plugin} from {row.distribution}")
    declared = set(row.detail.split(", "))
    for capability, question in QUESTIONS.get(row.kind, ()):
        click.echo(f"  {question:<60} {'yes' if capability in declared else 'no':<4} ({capability})")
    reason = _left_out(row, declared, scratch, costly)
    if reason is not None:
        click.echo(f"  suite: not run: {reason}")
        return True
    return _suite(state, row, scratch)


def _left_out(row: Row, declared: set[str], scratch: str | None, costly: bool) -> str | None:
    """Why the suite of a provider is not run."""
    if row.kind not in SUITES:
        return "it needs a server to talk to: see docs/plugins.md, the testing kit"
    if importlib.util.find_spec("pytest") is None or importlib.util.find_spec("hypothesis") is None:
        return "install the extra: pip install 'memservice[testing]'"
    if row.kind in KEEPING:
        return None if scratch else "name a place that may be filled and thrown away with --scratch"
    local = Capability.INLINE in declared if row.kind == "embedder" else not declared & {Capability.REMOTE, Capability.COSTLY}
    return None if local or costly else "it may ask a model that costs something: --costly asks all the same"


def _suites() -> str:
    """The file of the suites, which only pytest imports: they need the extra."""
    found = importlib.util.find_spec("memservice.testing.configured")
    assert found is not None
    assert found.origin is not None
    return found.origin


def _suite(state: State, row: Row, scratch: str | None) -> bool:
    config = state.settings.file
    wanted = {"name": row.name, "scratch": scratch, "config": str(config.resolve()) if config else None, "cwd": os.getcwd()}
    with tempfile.TemporaryDirectory(prefix="memservice-check-") as folder:
        (Path(folder) / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        quiet = ("-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", "-p", "memservice.testing.report", "--rootdir", folder)
        (Path(folder) / "provider.json").write_text(json.dumps(wanted), encoding="utf-8")
        node = f"{_suites()}::{SUITES[row.kind]}"
        command = [sys.executable, "-m", "pytest", *quiet, "-c", f"{folder}/pytest.ini", "--basetemp", f"{folder}/tests", node]
        given = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=SUITE_SECONDS, check=False)
    lines = done.stdout.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("=")), 0)
    for line in lines if done.returncode > 1 else lines[first:]:
        click.echo(f"  {line}")
    if done.returncode > 1:
        click.echo(done.stderr, err=True)
    return done.returncode == 0
