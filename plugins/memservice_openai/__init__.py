"""The OpenAI protocols, for chat and for embeddings: OpenAI itself and other servers that support
them, at any base URL."""

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

NAME = "openai"
RESPONSES = "openai-responses"
BASE_URL = "https://api.openai.com/v1"


def _endpoint(
    settings: Settings, context: Context, name: str = NAME, max_answer: int | None = None
) -> Endpoint:
    from memservice_http.opening import open_endpoint

    key = settings["api_key"]
    return open_endpoint(
        name,
        settings,
        context,
        base_url=settings["base_url"] or BASE_URL,
        missing=(
            "LLM_OPENAI_API_KEY, or LLM_OPENAI_BASE_URL for a server of your own (its key is "
            "optional)"
        ),
        headers={"authorization": f"Bearer {key}"} if key else {},
        max_answer=max_answer,
    )


def _open_model(settings: Settings, context: Context) -> LanguageModel:
    from memservice_openai.chat import OpenAiModel
    from memservice_openai.responses import ResponsesModel
    from memservice_openai.routing import RoutedModel

    endpoint = _endpoint(settings, context)
    chat = OpenAiModel(endpoint, context)
    # Other servers may not have the newer protocol, and an extra body is written for the older one.
    if settings["base_url"] or settings["extra_body"]:
        return chat
    return RoutedModel(chat, ResponsesModel(endpoint, context))


def _open_responses(settings: Settings, context: Context) -> LanguageModel:
    from memservice_openai.responses import ResponsesModel

    return ResponsesModel(_endpoint(settings, context, RESPONSES), context)


def _open_embedder(settings: Settings, context: Context) -> Embedder:
    from memservice_http.embedder import MAX_VECTORS
    from memservice_openai.embedding import OpenAiEmbedder

    return OpenAiEmbedder(_endpoint(settings, context, max_answer=MAX_VECTORS), settings, context)


@hookimpl
def memservice_llms() -> Iterable[LanguageModelProvider]:
    """`…MODEL_CONFIG__TRANSPORT=openai`, the default, and `openai-responses`."""
    yield LanguageModelProvider(
        name=NAME, open=_open_model, settings=ConnectionSettings, base_url=BASE_URL
    )
    yield LanguageModelProvider(
        name=RESPONSES,
        open=_open_responses,
        settings=ConnectionSettings,
        base_url=BASE_URL,
        connection_of=NAME,
    )


@hookimpl
def memservice_embedders() -> Iterable[EmbedderProvider]:
    """`EMBEDDER=openai`, which setting `EMBEDDING_MODEL_CONFIG__TRANSPORT` or its base URL
    chooses."""
    can = frozenset({Capability.SEMANTIC, Capability.REMOTE, Capability.TIMED})
    yield EmbedderProvider(
        name=NAME, open=_open_embedder, settings=EmbeddingSettings, capabilities=can
    )
