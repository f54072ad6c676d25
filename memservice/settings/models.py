"""How one language model, or one embedding model, is reached: the groups named `MODEL_CONFIG`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memservice.settings.declare import Group, group, setting

DEFAULT_TRANSPORT = "openai"
DEFAULT_MODEL = "gpt-5.4-mini"
"""Of `DEFAULT_TRANSPORT`; a model of no other one."""

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, eq=False, repr=False)
class Connection(Group):
    """Where the models of one transport are."""

    api_key: str | None = None
    base_url: str | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True, eq=False, repr=False)
class ProviderParams(Group):
    """Extras of each call to a provider."""

    extra_body: Mapping[str, Any] = setting({}, "merged into the body of each call (JSON object)")
    extra_headers: Mapping[str, Any] = setting(
        {}, "sent with each call (JSON object)", secrecy="secret"
    )
    extra_query: Mapping[str, Any] = setting(
        {}, "added to the URL of each call (JSON object)", secrecy="secret"
    )
    timeout: float | None = setting(None, "seconds that one call may take", low=0.1)


@dataclass(frozen=True, eq=False, repr=False)
class Overrides(Group):
    """Where this one model is, if not where the `LLM_` section says."""

    api_key: str | None = setting(None, "key for this model only", secrecy="secret")
    api_key_env: str | None = setting(
        None, "name of the variable that holds the key", secrecy="public"
    )
    base_url: str | None = setting(None, "URL for this model only", secrecy="uri")
    provider_params: ProviderParams = group(ProviderParams())


@dataclass(frozen=True, eq=False, repr=False)
class CachePolicy(Group):
    """Prompt caching, where the provider has it."""

    mode: str | None = setting(None, "prompt caching, in the provider's words", secrecy="public")
    ttl_seconds: int | None = setting(None, "lifetime of a cached prompt, in seconds", low=1)
    key_version: str | None = setting(
        None, "part of the cache key; change it to start with an empty cache", secrecy="public"
    )


@dataclass(frozen=True, eq=False, repr=False)
class ModelChoice(Group):
    """A model and how to call it. None: the provider's own default."""

    model: str = setting(
        DEFAULT_MODEL,
        "the model's name; `transport/name` names both while no transport and no base URL is set",
        secrecy="public",
    )
    transport: str = setting(
        DEFAULT_TRANSPORT,
        "the protocol: the name of a language-model plugin (see `memservice plugins`)",
        secrecy="public",
    )
    temperature: float | None = setting(None, "sampling temperature", low=0, high=2)
    top_p: float | None = setting(None, "nucleus sampling", low=0, high=1)
    top_k: int | None = setting(None, "sample among this many tokens", low=1)
    frequency_penalty: float | None = setting(None, "frequency penalty", low=-2, high=2)
    presence_penalty: float | None = setting(None, "presence penalty", low=-2, high=2)
    seed: int | None = setting(
        None, "seed for sampling, where the provider has one", secrecy="public"
    )
    thinking_effort: str | None = setting(
        None, "reasoning effort of a reasoning model", choices=EFFORTS, also=["reasoning_effort"]
    )
    thinking_budget_tokens: int | None = setting(
        None, "maximum number of reasoning tokens, for models that have such a limit", low=0
    )
    structured_output_mode: str | None = setting(
        None,
        "how structured answers are asked for (default: the best that works)",
        choices=("json_schema", "json_object"),
    )
    max_output_tokens: int | None = setting(None, "longest answer, in tokens", low=1)
    stop_sequences: tuple[str, ...] = setting((), "texts that end an answer", secrecy="public")
    cache_policy: CachePolicy = group(CachePolicy())
    overrides: Overrides = group(Overrides())


@dataclass(frozen=True, eq=False, repr=False)
class ModelConfig(ModelChoice):
    """A model, and the one to fall back on."""

    fallback: ModelChoice | None = group(None)
    """Tried last when the first choice keeps failing; inherits nothing from it, but what
    `LLM_FALLBACK` says."""


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingModelConfig(Group):
    """Setting the transport, or a base URL, chooses that transport's embedder unless `EMBEDDER`
    says otherwise."""

    transport: str = setting(
        DEFAULT_TRANSPORT,
        "the protocol: the name of an embedder plugin (see `memservice plugins`)",
        secrecy="public",
    )
    model: str | None = setting(
        None,
        (
            "the embedding model's name, or for a local embedder the directory with its files "
            "(default: the plugin's own)"
        ),
        secrecy="public",
    )
    dimensions_mode: str = setting(
        "auto", "whether the dimension is sent to the provider", choices=("auto", "always", "never")
    )
    encoding_format_mode: str = setting(
        "auto", "encoding of vectors in responses", choices=("auto", "float", "base64")
    )
    max_batch_size: int | None = setting(None, "maximum number of texts in one call", low=1)
    timeout: float | None = setting(None, "seconds that one call may take", low=0.1)
    overrides: Overrides = group(Overrides())
