"""Google's Gemini API, for chat and for embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.domain.errors import ConfigurationError
from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, EmbedderProvider, LanguageModelProvider, Settings
from memservice_http.connection import ConnectionSettings, EmbeddingSettings

if TYPE_CHECKING:
    from memservice.spi.embedding import Embedder
    from memservice.spi.llm import LanguageModel
    from memservice_http.client import Endpoint

NAME = "gemini"
BASE_URL = "https://generativelanguage.googleapis.com"


def _endpoint(settings: Settings, context: Context, max_answer: int | None = None) -> Endpoint:
    from memservice_http.client import MAX_ANSWER, Endpoint

    if not settings["api_key"] and not settings["base_url"] and not settings["extra_headers"]:
        raise ConfigurationError(
            f"{NAME}: no model is configured: set LLM_GEMINI_API_KEY (or "
            "LLM_GEMINI_BASE_URL for a proxy)"
        )
    base = (settings["base_url"] or BASE_URL).rstrip("/")
    # In a header, not in the URL, where the API would take the key as well, and every log on the
    # way with it.
    headers = {"x-goog-api-key": settings["api_key"]} if settings["api_key"] else {}
    versioned = base if base.rsplit("/", 1)[-1].startswith("v1") else f"{base}/v1beta"
    return Endpoint(
        NAME, versioned, headers, settings, context.clock, max_answer=max_answer or MAX_ANSWER
    )


def _open_model(settings: Settings, context: Context) -> LanguageModel:
    from memservice_gemini.chat import GeminiModel

    return GeminiModel(_endpoint(settings, context), context)


def _open_embedder(settings: Settings, context: Context) -> Embedder:
    from memservice_gemini.embedding import GeminiEmbedder
    from memservice_http.embedder import MAX_VECTORS

    return GeminiEmbedder(_endpoint(settings, context, MAX_VECTORS), settings, context)


@hookimpl
def memservice_llms() -> Iterable[LanguageModelProvider]:
    """`…MODEL_CONFIG__TRANSPORT=gemini`."""
    yield LanguageModelProvider(
        name=NAME, open=_open_model, settings=ConnectionSettings, base_url=BASE_URL
    )


@hookimpl
def memservice_embedders() -> Iterable[EmbedderProvider]:
    """`EMBEDDER=gemini`, or `EMBEDDING_MODEL_CONFIG__TRANSPORT=gemini`."""
    can = frozenset({Capability.SEMANTIC, Capability.REMOTE})
    yield EmbedderProvider(
        name=NAME, open=_open_embedder, settings=EmbeddingSettings, capabilities=can
    )
