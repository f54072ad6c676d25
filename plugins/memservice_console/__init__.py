"""The console: pages at `/console` for operators, over `memservice.spi.web`. It calls services, and
shows and changes only what they let its visitor see and change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memservice.hookspecs import hookimpl

if TYPE_CHECKING:
    from flask import Blueprint

    from memservice.spi.web import ConsolePage


@hookimpl
def memservice_blueprints(settings: Any, pages: Sequence[ConsolePage]) -> Iterable[Blueprint]:
    if settings.console.enabled:
        from memservice_console.blueprint import console

        yield console(pages)
