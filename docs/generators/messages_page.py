"""A page of the messages in the code that stop a command, a start or a request."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import memservice
import memservice.cli  # which imports every module that defines an error
from memservice.domain.errors import MemserviceError

PACKAGES = Path(memservice.__file__).parents[1]
SECTIONS = {
    "The settings": ("settings",),
    "The start": ("ConfigurationError", "SchemaVersionError", "NoStore", "UnsupportedSchema"),
    "The store, Redis and vectors": ("Unavailable", "Busy", "Damaged", "IndexUnavailable"),
    "Files, export and import": (
        *("UnreadableExport", "CopyMismatch", "Unwritable", "ReadOnly", "RemoteFailed"),
    ),
    "Requests": (
        *("Unauthorised", "Disabled", "Refused", "Conflict", "TooLarge", "UnsupportedMedia"),
        *("NotFound", "AnswerFailed", "AnswerUnavailable", "AnswerTimedOut"),
    ),
}
HEAD = """\
# Messages

The messages that stop a command, a start or a request, from the code of this release. An ellipsis
(…) stands for a name or a value. [Troubleshooting](../troubleshooting.md) explains the most
frequent ones.
"""
LEAST_LETTERS = 12
"""Shorter messages say nothing by themselves."""


@dataclass(frozen=True, order=True)
class Message:
    text: str
    kind: str
    """The class of the error; `settings` for one line of a list of mistakes in the settings."""
    module: str


def pages() -> Iterator[tuple[str, str]]:
    found = messages()
    parts = [HEAD]
    for title, kinds in SECTIONS.items():
        parts.append(f"## {title}\n")
        for kind in kinds:
            rows = [message for message in found if message.kind == kind]
            parts += [f"{_meaning(kind)}\n"] if rows else []
            parts += [_entry(message) for message in rows]
    yield "messages", "\n".join(parts)


def _entry(message: Message) -> str:
    """A list item: what happened, and on a line of its own what to do."""
    cause, remedy = split(message.text)
    lines = [f"- **{_escaped(cause)}**"]
    lines += [f"  \\\n  {_escaped(remedy)}"] if remedy else []
    return "\n".join([*lines, f"  <small>`{message.module}`</small>\n"])


def split(text: str) -> tuple[str, str]:
    """The cause in a message, and what to do."""
    found = re.match(r"(.+?)(?:: |\. |; )(?=(?:[A-Z]?[a-z]+ |[A-Z]{2,}).*)(.*)", text, re.S)
    if found is None:
        return text, ""
    remedy = found[2]
    return found[1], remedy[0].upper() + remedy[1:]


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _meaning(kind: str) -> str:
    if kind == "settings":
        return "All mistakes are reported at once, under `the settings cannot be used:`."
    docstring = _errors()[kind].__doc__ or ""
    return f"`{kind}`: {_escaped(docstring.split('.')[0])}."


@cache
def messages() -> list[Message]:
    """Every message that the code of this release contains, each once."""
    found: dict[str, Message] = {}
    for root in ("memservice", "backends", "plugins"):
        for file in sorted((PACKAGES / root).rglob("*.py")):
            for message in _of_file(file):
                found.setdefault(message.text, message)
    return sorted(found.values())


def _of_file(file: Path) -> Iterator[Message]:
    parts = file.relative_to(PACKAGES).with_suffix("").parts
    module = ".".join(parts if parts[0] == "memservice" else parts[1:])
    if module.startswith("memservice.testing"):
        return
    source = file.read_text(encoding="utf-8")
    in_settings = module.startswith("memservice.settings")
    if not in_settings and "raise " not in source:
        return
    tree = ast.parse(source)
    for node in ast.walk(tree) if in_settings else _statements(tree):
        kind, argument = None, None
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            kind = getattr(node.exc.func, "id", getattr(node.exc.func, "attr", None))
            argument = node.exc.args[0]
        elif in_settings:
            if isinstance(node, ast.Yield):
                kind, argument = "settings", node.value
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("problems.append"):
                kind, argument = "settings", node.args[0]
        if kind is None or argument is None or (kind != "settings" and kind not in _errors()):
            continue
        text = _text(argument, module)
        if len(re.sub("[^A-Za-z]", "", text)) >= LEAST_LETTERS:
            yield Message(text, kind, module)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node. Expressions are nine tenths of the nodes, and raise nothing."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from _statements(child)


def _text(node: ast.expr, module: str) -> str:
    """The message that an expression gives, with … for what is known only when it runs."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return re.sub("…(…|(, )…)+", "…", "".join(_text(value, module) for value in values))
        case ast.FormattedValue(value=ast.Name(id=name)) if name.isupper():
            value = getattr(importlib.import_module(module), name, None)
            return value if isinstance(value, str) else "…"
    return "…"


@cache
def _errors() -> dict[str, type[MemserviceError]]:
    """The classes of errors by name, of those modules that are loaded."""

    def below(parent: type[MemserviceError]) -> Iterator[type[MemserviceError]]:
        yield parent
        for child in parent.__subclasses__():
            yield from below(child)

    return {error.__name__: error for error in below(MemserviceError)}
