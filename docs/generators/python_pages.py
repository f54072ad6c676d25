"""Reference pages of the modules that plugins are written with, from their docstrings."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

from memservice.spi.providers import SPI_VERSION

PACKAGES = {
    "memservice.hookspecs": "Hooks",
    "memservice.spi": "Interfaces",
    "memservice.spi.repositories": "Data access of storages",
    "memservice.testing": "Contract tests",
}
INDEX = """\
# Python reference

What plugins are written with, from the docstrings of this release. The version of the interfaces is
{version}. [Plugins](../../plugins.md) is the guide.

```{{toctree}}
{pages}
```
"""
MODULE = """\
## `{module}`

```{{eval-rst}}
.. automodule:: {module}
   :members:
   :show-inheritance:
   :member-order: bysource
```
"""
_LITERAL = re.compile(r"(`+[^`]+`+)")


def pages() -> Iterator[tuple[str, str]]:
    """The names and texts of the pages."""
    yield "index", INDEX.format(version=SPI_VERSION, pages="\n".join(PACKAGES))
    for package, title in PACKAGES.items():
        sections = [MODULE.format(module=module) for module in _modules(package)]
        yield package, "\n".join([f"# {title}\n", *sections])


def convert_docstring(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings are Markdown and autodoc expects reStructuredText: convert paragraphs, lists,
    literals and blocks of code in place (the event `autodoc-process-docstring`)."""
    lines[:] = converted("\n".join(lines)).split("\n")


def converted(text: str) -> str:
    parts = re.split(r"^( *)```(\w*)\n(.*?)^ *```$", text, flags=re.M | re.S)
    done = [_prose(parts[0])]
    for start in range(1, len(parts), 4):
        _, language, code, prose = parts[start : start + 4]
        indented = "".join(f"   {line}" for line in code.splitlines(keepends=True))
        done.append(f"\n.. code-block:: {language or 'text'}\n\n{indented}\n\n{_prose(prose)}")
    return "".join(done)


def _prose(text: str) -> str:
    # A list needs an empty line before it.
    text = re.sub(r"(^(?! *[-*] |\s*$).*\n)(?= *[-*] )", r"\1\n", text, flags=re.M)
    parts = _LITERAL.split(text)
    return "".join(
        f"``{part.strip('`')}``" if number % 2 else re.sub(r"(?<! )([*|]|_\b)", r"\\\1", part)
        for number, part in enumerate(parts)
    )


def _modules(package: str) -> list[str]:
    """The package and its public modules, without those of a package that has its own page."""
    found = importlib.import_module(package)
    inner = pkgutil.walk_packages(getattr(found, "__path__", []), f"{package}.")
    others = tuple(other for other in PACKAGES if other.startswith(f"{package}."))
    names = (info.name for info in inner)
    return [package, *(name for name in names if "._" not in name and not name.startswith(others))]


def is_skipped(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out single tests: a contract is its class, and its report names what failed (the event
    `autodoc-skip-member`)."""
    return True if name.startswith("test_") else None
