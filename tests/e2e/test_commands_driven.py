"""The tests of the published commands leave out no command and no option: what the commands declare
is looked for in what is run."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clients.runs import CLIENTS

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.xdist_group("served"),
]

FILES = (
    "test_commands.py",
    "test_commands_setup.py",
    "test_commands_options.py",
    "test_clients_with_keys.py",
)
EVERYWHERE = {"--json", "--workspace"}
"""Output is JSON wherever it goes to no terminal; the workspace is said by the environment, or
where this does not look."""
OF_DOCKER = {
    "start": {"--db-port", "--redis-port", "--setup", "--image", "--timeout"},
    "stop": {"--wipe"},
}
"""What the commands say to Docker, which is not here."""


def words_run() -> Iterator[list[str]]:
    """The words of every call and every tuple that begins with words."""
    for file in FILES:
        for node in ast.walk(ast.parse((Path(__file__).parent / file).read_text(encoding="utf-8"))):
            parts = (
                node.args
                if isinstance(node, ast.Call)
                else node.elts
                if isinstance(node, ast.Tuple)
                else []
            )
            yield [
                part.value
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]


def test_every_command_and_option_is_tested(commands: Path) -> None:
    script = str(CLIENTS / "command_options.py")
    result = subprocess.run(
        [str(commands), script], capture_output=True, text=True, timeout=60, check=True
    )
    declared: dict[str, list[list[str]]] = json.loads(result.stdout)
    assert len(declared) > 50
    options_by_command: dict[str, set[str]] = {}
    for words in words_run():
        for name in (" ".join(words[:2]), *words[:1]):
            if name in declared:
                options_by_command.setdefault(name, set()).update(words)
                break
    del declared["help"]  # it asks nobody
    covered = {
        name: options_by_command.get(name, set()) | EVERYWHERE | OF_DOCKER.get(name, set())
        for name in declared
    }
    left = {
        name: [each for each in options if not {*each} & covered[name]]
        for name, options in declared.items()
    }
    assert {
        name: options for name, options in left.items() if options or name not in options_by_command
    } == {}
