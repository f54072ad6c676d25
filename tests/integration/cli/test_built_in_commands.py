"""The table of built-in commands, whose modules are imported when they are called."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from memservice.cli import COMMANDS, cli


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_found_by_its_name(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name


def test_a_mistyped_command_is_answered_with_those_that_resemble_it() -> None:
    result = CliRunner().invoke(cli, ["serv"])
    assert result.exit_code == 2
    assert "Did you mean one of: 'search', 'serve'?" in result.output


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        (
            ["memservice.cli", "memservice.cli.serve"],
            ["memservice.compose", "memservice.runtime", "memservice.services", "sqlalchemy"],
        ),
    ],
)
def test_a_call_imports_little_that_it_does_not_need(modules: list[str], absent: list[str]) -> None:
    code = f"import sys, {', '.join(modules)}; print([m for m in {absent} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
