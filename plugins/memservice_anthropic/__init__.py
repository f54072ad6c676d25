"""Anthropic's Messages API, for chat. Anthropic has no embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.domain.errors import ConfigurationError
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
    from memservice_http.client import Endpoint

    if not settings["api_key"] and not settings["base_url"] and not settings["extra_headers"]:
        raise ConfigurationError(
            f"{NAME}: no model is configured: set LLM_ANTHROPIC_API_KEY (or "
            "LLM_ANTHROPIC_BASE_URL for a proxy)"
        )
    headers = {"anthropic-version": VERSION} | (
        {"x-api-key": settings["api_key"]} if settings["api_key"] else {}
    )
    return AnthropicModel(
        Endpoint(NAME, settings["base_url"] or BASE_URL, headers, settings, context.clock), context
    )


@hookimpl
def memservice_llms() -> Iterable[LanguageModelProvider]:
    """`…MODEL_CONFIG__TRANSPORT=anthropic`."""
    yield LanguageModelProvider(
        name=NAME, open=_open, settings=ConnectionSettings, base_url=BASE_URL
    )
