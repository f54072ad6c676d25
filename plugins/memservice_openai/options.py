"""What both protocols of OpenAI have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from memservice.spi.llm import CompletionRequest
from memservice_http.chat import HttpModel

SAME_NAME = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed")
"""Options that memservice and the protocols call the same."""
EFFORTS = {"max": "xhigh"}
"""Our name of an effort → OpenAI's, where it differs."""
CACHED_A_DAY = 3600
"""Seconds. A prompt that should be cached for longer is cached for a day, the only longer time that
OpenAI offers."""


class OpenAiProtocol(HttpModel):
    """A protocol of OpenAI."""

    def documents_schema_with_tools(self, model: str) -> bool:
        return self.is_official

    @property
    def is_official(self) -> bool:
        return is_official(self.endpoint.url("").host)

    def shared_options(self, request: CompletionRequest) -> dict[str, Any]:
        """The fields that both protocols have, and that a server may lack. A value None is not
        sent."""
        options = request.options
        return {
            **{name: options.get(name) for name in SAME_NAME},
            "temperature": request.temperature,
            "stop": list(options.get("stop_sequences") or ()) or None,
            **cache_options(
                options.get("cache_policy") or {}, request.cache_key if self.is_official else None
            ),
        }


def effort_of(request: CompletionRequest) -> str | None:
    """The effort of reasoning, in the words of OpenAI; None if it is not set."""
    effort: str | None = request.options.get("thinking_effort")
    return EFFORTS.get(effort, effort) if effort else None


def sent(options: Mapping[str, Any], lacking: Collection[str]) -> dict[str, Any]:
    """The options that are set, and that the server has."""
    return {
        name: value for name, value in options.items() if value is not None and name not in lacking
    }


def tool_choice(name: str | None, of_function: Callable[[str], Any]) -> Any:
    """The field for a tool choice. `of_function`: the field that demands one function."""
    if name in (None, "auto", "none", "required"):
        return name
    return "required" if name == "any" else of_function(name or "")


def is_official(host: str) -> bool:
    """Whether this is a service of OpenAI or Azure. These support the whole protocol."""
    return host == "api.openai.com" or host.endswith(
        (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
    )


def cache_options(policy: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """The fields for a cache policy; `key` is the cache key where the policy has none. A value None
    is not sent."""
    if policy.get("mode") in ("none", "off"):
        return {}
    return {
        "prompt_cache_key": policy.get("key_version") or key,
        "prompt_cache_retention": "24h"
        if (policy.get("ttl_seconds") or 0) > CACHED_A_DAY
        else None,
    }


def is_strict(schema: object) -> bool:
    """Whether OpenAI can guarantee a schema: all its objects are closed, and all their properties
    required."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    kinds = schema.get("type")
    is_object = (
        properties is not None
        or kinds == "object"
        or (isinstance(kinds, list) and "object" in kinds)
    )
    is_open = schema.get("additionalProperties") is not False or set(
        schema.get("required") or ()
    ) != set(properties or ())
    if is_object and is_open:
        return False
    return all(
        is_strict(value)
        for name, value in schema.items()
        if name not in ("enum", "const", "default", "examples", "required")
    )
