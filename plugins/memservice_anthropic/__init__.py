"""Anthropic's Messages API, for chat. Anthropic has no embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl
from memservice.spi.providers import Context, LanguageModelProvider, Settings
from memservice_http.connection import ConnectionSettings

if TYPE_CHECKING:
    from memservice.spi.llm import LanguageModel

NAME = "anthropic"
BASE_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"


def _open(settings: Settings, context: Context) -> LanguageModel:
    from memservice_anthropic.chat import AnthropicModel
    from memservice_http.opening import open_endpoint

    key = settings["api_key"]
    endpoint = open_endpoint(
        NAME,
        settings,
        context,
        base_url=settings["base_url"] or BASE_URL,
        missing="LLM_ANTHROPIC_API_KEY (or LLM_ANTHROPIC_BASE_URL for a proxy)",
        headers={"anthropic-version": VERSION} | ({"x-api-key": key} if key else {}),
    )
    return AnthropicModel(endpoint, context)


@hookimpl
def memservice_llms() -> Iterable[LanguageModelProvider]:
    """`…MODEL_CONFIG__TRANSPORT=anthropic`."""
    yield LanguageModelProvider(
        name=NAME, open=_open, settings=ConnectionSettings, base_url=BASE_URL
    )
