"""Plain tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table. Columns are as wide as their widest cell, except the last. A row is always one
    line."""
    table = [tuple(head), *(tuple(_printable(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head) - 1)]
    for row in table:
        click.echo(
            "  ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
            ).rstrip()
        )


def _printable(cell: str) -> str:
    """The cell without control characters."""
    return (
        cell
        if cell.isprintable()
        else "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cell)
    )


def show_rest(number: int, total: int) -> None:
    """Tell on standard error that a table does not show all rows."""
    if total > number:
        click.echo(f"{number} of {total}; --limit shows more", err=True)
