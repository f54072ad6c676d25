"""The extractive reasoner: conclusions, summaries and answers without a model, in the peers' own
words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, ReasonerProvider, Settings

if TYPE_CHECKING:
    from memservice.spi.reasoner import Reasoner


def open_reasoner(settings: Settings, context: Context) -> Reasoner:
    from memservice_extractive.reasoner import ExtractiveReasoner

    return ExtractiveReasoner()


@hookimpl
def memservice_reasoners() -> Iterable[ReasonerProvider]:
    """`REASONER=extractive`, and `REASONER=auto` if no model is configured."""
    yield ReasonerProvider(
        name="extractive", open=open_reasoner, capabilities=frozenset({Capability.COMPUTES})
    )
