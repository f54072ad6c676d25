"""Whoever changes stored messages gives their session a new revision: totals that processes
remember rest on it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.project.sources import modules, nodes

pytestmark = pytest.mark.xdist_group("sources")

CODE = Path(__file__).resolve().parents[3] / "memservice"
WRITES = {"change", "increase", "delete"}
"""Primitives that name the record. Messages are put by `Messages.save`, and where they are new."""


def _calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """The calls of functions and methods with these names."""
    return [
        call
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and getattr(call.func, "attr", getattr(call.func, "id", "")) in names
    ]


def _is_message(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name == "Message"


def _writers(tree: ast.Module) -> dict[str, bool]:
    """The functions that change or delete messages by the primitives, and whether they, or a
    function of the module that calls them, give a revision."""
    functions = [node for node in nodes(tree) if isinstance(node, ast.FunctionDef)]
    return {
        function.name: any(
            _calls(other, "revise")
            for other in functions
            if other is function or _calls(other, function.name)
        )
        for function in functions
        if any(call.args and _is_message(call.args[0]) for call in _calls(function, *WRITES))
    }


@pytest.mark.slow
def test_a_change_of_stored_messages_gives_a_revision() -> None:
    writers = {
        f"{path.stem}.{name}": revises
        for path, tree in modules(CODE)
        if "testing" not in path.parts
        for name, revises in _writers(tree).items()
    }
    assert writers == {"message_rows._erase_rows": True, "redaction._message": True}
