"""What both protocols of OpenAI call alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SAME_NAME = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed")
"""Options that memservice and the protocols call the same."""
EFFORTS = {"max": "xhigh"}
"""Efforts that OpenAI calls otherwise."""
CACHED_A_DAY = 3600
"""A prompt that is to be kept for longer than this many seconds is asked to be kept for a day, the
only longer time there is."""


def is_official(host: str) -> bool:
    """Is this OpenAI's own service, or Microsoft's copy of it, which know all of the protocol?"""
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
    """Does a schema keep the rules under which OpenAI guarantees it: closed objects, all of whose
    properties are required?"""
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
