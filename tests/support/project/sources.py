"""The modules of the product, parsed once for all tests of a process that look at its source.

Mark the files of these tests with `xdist_group("sources")`.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


@cache
def modules(folder: Path) -> list[tuple[Path, ast.Module]]:
    """The modules below a folder, in the order of their paths."""
    with _no_garbage_collection():
        return [(file, parsed(file)) for file in sorted(folder.rglob("*.py"))]


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree, as `ast.walk` yields them."""
    with _no_garbage_collection():
        return list(ast.walk(tree))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Parsing creates half a million objects that stay, and collections would look at them again
    and again: two thirds of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.freeze()
            gc.enable()
