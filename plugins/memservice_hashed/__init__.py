"""The hashed n-gram embedder: vectors without a model, a key or a download. It finds restatements,
not paraphrases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, EmbedderProvider, Settings

if TYPE_CHECKING:
    from memservice.spi.embedding import Embedder


def _open(settings: Settings, context: Context) -> Embedder:
    from memservice_hashed.embedder import HashedEmbedder

    return HashedEmbedder()


@hookimpl
def memservice_embedders() -> Iterable[EmbedderProvider]:
    """`EMBEDDER=hashed`, the default."""
    yield EmbedderProvider(name="hashed", open=_open, capabilities=frozenset({Capability.INLINE}))
