"""Google's Gemini API, for chat and for embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

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
    from memservice_http.opening import open_endpoint

    base = (settings["base_url"] or BASE_URL).rstrip("/")
    key = settings["api_key"]
    return open_endpoint(
        NAME,
        settings,
        context,
        base_url=base if base.rsplit("/", 1)[-1].startswith("v1") else f"{base}/v1beta",
        missing="LLM_GEMINI_API_KEY (or LLM_GEMINI_BASE_URL for a proxy)",
        # The API also takes the key in the URL, but URLs appear in logs of proxies.
        headers={"x-goog-api-key": key} if key else {},
        max_answer=max_answer,
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
    can = frozenset({Capability.SEMANTIC, Capability.REMOTE, Capability.TIMED})
    yield EmbedderProvider(
        name=NAME, open=_open_embedder, settings=EmbeddingSettings, capabilities=can
    )
