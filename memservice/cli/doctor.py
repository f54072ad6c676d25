"""`memservice doctor`: checks of the installation, with advice."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import click
from msgspec.structs import asdict, replace

from memservice.cli.options import State
from memservice.cli.stores import default_place
from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError, MemserviceError, NoStore
from memservice.operations import doctor as service
from memservice.operations.doctor import BROKEN, Check
from memservice.reasoning import probe
from memservice.reasoning import warnings as model_warnings
from memservice.reasoning.models import Models
from memservice.runtime import Runtime, log
from memservice.spi.providers import Context

_MARKS = {service.OK: "ok", service.DEGRADED: "degraded", service.BROKEN: "FAILED"}


@click.command("doctor")
@click.option(
    "--ask-models",
    is_flag=True,
    help="Also ask each configured language model for one word. This costs a few tokens.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def doctor(state: State, ask_models: bool, as_json: bool) -> None:
    """Check all parts of this installation: store, indexes, Redis, workers, pending work, plugins.

    Exits with 1 if a part has failed, and with 0 if all parts are ok or degraded.
    """
    checks = _checks(state, ask_models)
    if as_json:
        click.echo(
            json.dumps(
                {"state": service.overall(checks), "checks": [asdict(check) for check in checks]},
                indent=2,
            )
        )
    else:
        for check in checks:
            click.echo(f"{_MARKS[check.state]:<9} {check.name:<10} {check.found}")
            if check.advice:
                click.echo(f"{'':<20} -> {check.advice}")
    sys.exit(int(service.overall(checks) == BROKEN))


def _checks(state: State, ask_models: bool) -> list[Check]:
    return [*_names(state), *_parts(state, ask_models)]


def _names(state: State) -> Iterator[Check]:
    """Names in the environment and in files that are no settings."""
    try:
        settings = state.settings
    except ConfigurationError:
        return  # the next check reports it
    for note in settings.notes:
        if note in settings.mistyped:
            yield Check(
                "settings",
                service.DEGRADED,
                note,
                "correct the name, or remove it; `memservice config show --all` lists all settings",
            )
        else:
            yield Check("settings", service.OK, note)


def _parts(state: State, ask_models: bool) -> list[Check]:
    try:
        runtime = open_runtime(state.settings, plugins=state.plugins)
    except ConfigurationError as error:
        problem = Check(
            "settings",
            BROKEN,
            str(error),
            "correct them; `memservice config show` shows the source of each",
        )
    except NoStore as error:
        problem = Check("storage", BROKEN, str(error), default_place(state.settings))
    except MemserviceError as error:
        problem = Check(
            "storage",
            BROKEN,
            str(error),
            "check that the database is running and that `DB_CONNECTION_URI` is correct",
        )
    else:
        return _checks_of_runtime(state, runtime, ask_models)
    return [problem, *service.look_outside(state.settings, state.plugins)]


def _checks_of_runtime(state: State, runtime: Runtime, ask_models: bool) -> list[Check]:
    try:
        checks = service.look(runtime, thorough=True)
        hint = default_place(state.settings)
        if hint and _is_missing(runtime):
            checks = [
                replace(check, advice=hint) if check.name == "storage" else check
                for check in checks
            ]
        checks += [
            Check("models", service.DEGRADED, warning, "`memservice config show` has the sources")
            for warning in model_warnings.warnings(state.settings, state.plugins)
        ]
        if ask_models:
            context = Context(runtime.clock, log, called=runtime.events.called)
            models = Models(state.settings, state.plugins, context)
            answers = probe.ask(models, runtime.reasoners)
            checks += [
                Check("models", service.OK if answer.ok else BROKEN, answer.text, answer.advice)
                for answer in answers
            ]
        return checks
    finally:
        runtime.close()


def _is_missing(runtime: Runtime) -> bool:
    try:
        runtime.storage.schema_version()
    except NoStore:
        return True
    except MemserviceError:
        return False
    return False
