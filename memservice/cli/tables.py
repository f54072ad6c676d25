"""Plain tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell, the last one free. A row is one line, whatever callers
    put into it."""
    table = [tuple(head), *(tuple(_printable(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head) - 1)]
    for row in table:
        click.echo(
            "  ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
            ).rstrip()
        )


def _printable(cell: str) -> str:
    """Without what moves the cursor, breaks the line or colours it."""
    return (
        cell
        if cell.isprintable()
        else "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cell)
    )
