"""`memservice doctor`: is everything there, and if not, what to do."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from memservice.cli.options import State
from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError, MemserviceError
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
    help="Ask each configured language model for one word as well. It costs a few tokens.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def doctor(state: State, ask_models: bool, as_json: bool) -> None:
    """Look at everything this installation is made of: store, indexes, Redis, workers, waiting
    work, plugins.

    Ends with 1 if a part has failed, with 0 if all is well or something is merely not as good as it
    could be.
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
    try:
        runtime = open_runtime(state.settings, plugins=state.plugins)
    except ConfigurationError as error:
        wrong = Check(
            "settings",
            BROKEN,
            str(error),
            "correct them; `memservice config show` tells where each comes from",
        )
    except MemserviceError as error:
        wrong = Check(
            "storage",
            BROKEN,
            str(error),
            "see that the database is there and that `DB_CONNECTION_URI` is right",
        )
    else:
        return _looked(state, runtime, ask_models)
    return [wrong, *service.look_outside(state.settings, state.plugins)]


def _looked(state: State, runtime: Runtime, ask_models: bool) -> list[Check]:
    try:
        checks = service.look(runtime, thorough=True)
        checks += [
            Check("models", service.DEGRADED, warning, "`memservice config show` has the sources")
            for warning in model_warnings.warnings(state.settings, state.plugins)
        ]
        if ask_models:
            context = Context(runtime.clock, log, called=runtime.events.called)
            models = Models(state.settings, state.plugins, context)
            answers = probe.ask(models, runtime.reasoners)
            checks += [
                Check("models", service.OK if answer.ok else BROKEN, answer.said, answer.advice)
                for answer in answers
            ]
        return checks
    finally:
        runtime.close()
