"""Prints every published command with its options, as JSON: `python command_options.py` in the
commands' environment.

Of an option with several names the first one stands for all; of a switch, both ways.
"""

from __future__ import annotations

import json
from typing import Any

from honcho_cli.main import app  # type: ignore[import-not-found]  # installed in the commands' own environment only
from typer.main import get_command  # type: ignore[import-not-found]


def options_of(command: Any) -> list[list[str]]:
    """Every option as its names, which all do the same."""
    options = [
        names
        for parameter in command.params
        for names in (parameter.opts, parameter.secondary_opts)
        if names
    ]
    return [names for names in options if names[0].startswith("-")]


def commands(command: Any, path: tuple[str, ...] = ()) -> dict[str, list[list[str]]]:
    if not hasattr(command, "commands"):
        return {" ".join(path): options_of(command)}
    return {
        name: options
        for word, inner in command.commands.items()
        for name, options in commands(inner, (*path, word)).items()
    }


if __name__ == "__main__":
    print(json.dumps(commands(get_command(app))))
