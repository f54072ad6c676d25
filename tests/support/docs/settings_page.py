"""Writes docs/settings.md from the code:
`PYTHONPATH=tests python -m docs.settings_page > docs/settings.md`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

from memservice.settings import Settings
from memservice.settings.declare import Leaf, hints, optional, tree
from memservice.settings.families import FAMILIES, Family
from memservice.settings.values import allowed, show
from support.project.sources import nodes, parsed

ROOT = Path(__file__).resolve().parents[3]

HEAD = """\
# Settings

Every setting, made from the code by `PYTHONPATH=tests python -m docs.settings_page > \
docs/settings.md`; a test compares them.

Each has three places, the later ones winning: a TOML file, `.env` in the working directory, the \
environment. The name below is that of the
variable. In TOML it is the section's table and the rest of the name in lower case, `__` being a \
table in a table: `DB_POOL_TIMEOUT` is
`pool_timeout` in `[db]`, `DIALECTIC_LEVELS__LOW__TOOL_CHOICE` is `tool_choice` in \
`[dialectic.levels.low]`. Other names that mean the same
stand after *also*. A nested group may be given as a JSON object in the variable of its name.

Times are in the unit that the name ends with, else in seconds. A list is written as JSON (`["a", \
"b"]`) or `a,b`, an object as JSON.
What is wrong is told at start-up, all of it at once, and nothing is opened. A secret is never \
shown, logged or repeated in an error.

† Accepted and checked, so that a file written for other servers of this API can be used as it is; \
nothing reads it.
"""

READS = ("__init__.py", "connections.py", "inheritance.py")
"""Files of the settings that read settings, instead of declaring them."""

ANY_TEXT = "a text that is not empty"

MODELS = """\
## Models

Every group whose name ends in `MODEL_CONFIG` says how one language model is reached; \
`LLM_FALLBACK` says it of the second model of
every task, which is tried last. There are:

{groups}

Each has these settings, to be put after its name and two underscores \
(`DERIVER_MODEL_CONFIG__MODEL`). All of those of a `MODEL_CONFIG` exist once more under
`FALLBACK__` (`DERIVER_MODEL_CONFIG__FALLBACK__MODEL`): the task's own second model, which \
inherits from `LLM_FALLBACK`, not from the first.
"""


@cache  # the code is read for three seconds
def page() -> str:
    """The whole page."""
    leaves = tree(Settings).leaves
    read = _words_of_the_code()
    parts = [HEAD]
    for section in fields(Settings):
        mine = [
            leaf for leaf in leaves if leaf.path[0] == section.name and not _group_of_model(leaf)
        ]
        if not mine:
            continue
        kind, _ = optional(hints(Settings)[section.name])
        parts.append(f"## `[{section.name}]`\n\n{_sentence(kind.__doc__)}\n")
        parts.append(_table((leaf.name, leaf, _unread(leaf, read)) for leaf in mine))
        parts += [_family(family) for family in FAMILIES if family.path[0] == section.name]
    parts.append(_models(leaves, read))
    return "\n".join(parts)


def _family(family: Family) -> str:
    """The settings with a free part in their names."""
    name = family.template
    if family.fields is None:
        rows = [f"| `{name}<FIELD>` |  | {family.help}{_former(family)} |"]
    else:
        rows = [
            f"| `{name}{part.upper()}` |  | {_cell(meta.help)} |"
            for part, meta in family.fields.items()
        ]
    return "\n".join(["| Setting | Default | What it is |", "| --- | --- | --- |", *rows]) + "\n"


def _former(family: Family) -> str:
    return "".join(
        f"; `{variable}` is another name of `{leaf.name}`"
        for variable in family.aliases
        if (leaf := family.of_variable(variable))
    )


def _models(leaves: tuple[Leaf, ...], read: tuple[set[str], set[str]]) -> str:
    groups = list(dict.fromkeys(group for leaf in leaves if (group := _group_of_model(leaf))))
    first = [
        leaf
        for leaf in leaves
        if _group_of_model(leaf) == groups[1] and "fallback" not in leaf.path
    ]
    text = MODELS.format(groups="\n".join(f"- `{group}`" for group in groups))
    rows = (
        (leaf.name.removeprefix(groups[1] + "__"), leaf, "llm" not in read[0]) for leaf in first
    )
    return f"{text}\n{_table(rows)}"


def _group_of_model(leaf: Leaf) -> str | None:
    """`DERIVER_MODEL_CONFIG`, for a setting of a language model."""
    if leaf.path[:2] == ("llm", "fallback"):
        return "LLM_FALLBACK"
    if leaf.path[0] == "embedding":
        return None
    before, marker, _ = leaf.name.partition("MODEL_CONFIG__")
    return before + "MODEL_CONFIG" if marker else None


def _table(rows: Iterator[tuple[str, Leaf, bool]]) -> str:
    lines = ["| Setting | Default | What it is |", "| --- | --- | --- |"]
    for name, leaf, unread in rows:
        also = (
            f"; *also* {', '.join(f'`{alias}`' for alias in leaf.aliases)}"
            if leaf.aliases and name == leaf.name
            else ""
        )
        default = show(leaf.default, "public")
        mark = " †" if unread else ""
        value = f"`{default}`" if default else ""
        bounds = allowed(leaf)
        may_be = "" if bounds == ANY_TEXT else f" ({bounds})"
        lines.append(f"| `{name}`{mark} | {value} | {_cell(leaf.meta.help + may_be)}{also} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _sentence(doc: str | None) -> str:
    return " ".join((doc or "").split())


def _words_of_the_code() -> tuple[set[str], set[str]]:
    """What the code outside the settings names: attributes, and every word (attributes, names,
    texts)."""
    attributes: set[str] = set()
    words: set[str] = set()
    for shelf in ("memservice", "backends", "plugins"):
        for file in (ROOT / shelf).rglob("*.py"):
            declares = file.parent == ROOT / "memservice" / "settings" and file.name not in READS
            if declares or file.is_relative_to(ROOT / "memservice" / "testing"):
                continue
            for node in nodes(parsed(file)):
                if isinstance(node, ast.Attribute):
                    attributes.add(node.attr)
                elif isinstance(node, ast.Name):
                    words.add(node.id)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    words.add(node.value)
                elif isinstance(node, ast.keyword) and node.arg:
                    words.add(node.arg)
    return attributes, attributes | words


def _unread(leaf: Leaf, read: tuple[set[str], set[str]]) -> bool:
    """Whether nothing reads its section, or its name."""
    attributes, words = read
    name = leaf.path[-1]
    return leaf.path[0] not in attributes or name not in words


if __name__ == "__main__":
    print(page(), end="")
