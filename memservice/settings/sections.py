"""The sections of the settings that concern memory and its pipelines. Times are in the unit that
the name ends with, else seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from memservice.settings.declare import Group, group, open_mapping, setting
from memservice.settings.models import (
    DEFAULT_MODEL,
    DEFAULT_TRANSPORT,
    Connection,
    EmbeddingModelConfig,
    ModelChoice,
    ModelConfig,
)


@dataclass(frozen=True, eq=False, repr=False)
class Llm(Group):
    """The language models of all tasks, and where they are. `LLM_<NAME>_API_KEY` and
    `LLM_<NAME>_BASE_URL` are the key and the URL of the transport NAME, for instance
    `LLM_OPENAI_API_KEY`; a transport with a `-` in its name has a `_` there. A base URL without a
    key counts as configured: local servers need none. Each `MODEL_CONFIG` inherits the model, the
    transport and the fallback, field by field, unless it names another transport."""

    model: str | None = setting(
        None,
        (
            f"the model of every task that names none (default: `{DEFAULT_MODEL}` of the transport "
            f"`{DEFAULT_TRANSPORT}`); `transport/name` names both"
        ),
        secrecy="public",
    )
    small_model: str | None = setting(
        None, "the model of the deriver and of summaries (default: LLM_MODEL)", secrecy="public"
    )
    large_model: str | None = setting(
        None,
        "the model of dreams and of chat at `high` and `max` (default: LLM_MODEL)",
        secrecy="public",
    )
    transport: str | None = setting(
        None,
        (
            "the transport of every task that names none (default: the only one that has a key or "
            f"a base URL, if a model is named; else `{DEFAULT_TRANSPORT}`)"
        ),
        secrecy="public",
    )
    fallback: ModelChoice | None = group(None)
    prices: Mapping[str, Any] = setting(
        {},
        (
            "prices for `memservice usage --cost`, per million tokens in any currency, by model, "
            "by `transport/model`, or by a pattern such as `gpt-*` (JSON object): "
            '`{"gpt-5.4-mini": {"input": 0.25, "output": 2, "cache_read": 0.025}}`'
        ),
        secrecy="public",
    )
    connections: Mapping[str, Connection] = open_mapping()
    """By transport, as variables spell it (`families.transport_key`)."""
    default_max_tokens: int = setting(
        2500, "longest answer where nothing else says, in tokens", low=1
    )
    max_attempts: int = setting(
        3,
        "tries of one call; the last is made with the fallback model, where there is one",
        low=1,
        high=20,
    )
    retry_pause_seconds: float = setting(
        4.0, "pause after the first failed try; doubles with each further one", low=0
    )
    retry_longest_pause_seconds: float = setting(
        10.0, "longest such pause; a provider may ask for up to a minute", low=0
    )
    max_tool_output_chars: int = setting(10000, "most characters of one tool result", low=100)
    max_message_content_chars: int = setting(
        2000, "most characters of one message inside a tool result", low=100
    )


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(Group):
    """Turning texts into vectors."""

    model_config: EmbeddingModelConfig = group(EmbeddingModelConfig())
    vector_dimensions: int = setting(
        1536, "dimension asked of the embedding model", low=1, high=16000
    )
    max_input_tokens: int = setting(
        8192, "longest text embedded, in tokens; longer ones are cut", low=1
    )
    max_tokens_per_request: int = setting(300000, "most tokens in one call", low=1)
    max_concurrent_embeddings: int = setting(
        10, "most calls in flight in one process", low=1, high=1000
    )
    max_pending_embed_tasks: int = setting(
        50,
        (
            "accepted for the sake of older settings: no write waits for a remote embedder, so "
            "there is nothing to bound"
        ),
        low=0,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Deriver(Group):
    """Turning messages into conclusions, and the worker that does it."""

    enabled: bool = setting(
        True, "derive conclusions, unless a workspace, session or message says otherwise"
    )
    workers: int = setting(
        1,
        "units that one worker works on at once; a reasoner that waits on a network may have more",
        low=1,
        high=1000,
    )
    polling_sleep_interval_seconds: float = setting(
        1.0, "pause of `memservice worker` between looks for work", low=0.01
    )
    polling_backoff_enabled: bool = setting(True, "lengthen the pause while there is nothing to do")
    polling_sleep_max_interval_seconds: float = setting(30.0, "longest pause", low=0.01)
    polling_backoff_multiplier: float = setting(2.0, "factor by which the pause grows", low=1)
    polling_startup_jitter_seconds: float = setting(
        30.0, "`memservice worker` starts after a random part of this; 0 starts at once", low=0
    )
    polling_jitter_ratio: float = setting(
        0.5, "random share by which a pause varies; 0 for none", low=0, high=1
    )
    stale_session_timeout_minutes: float = setting(
        5.0, "a claim without heartbeat for this long is free again", low=0.01
    )
    stale_work_unit_cleanup_interval_seconds: float = setting(
        60.0,
        "least time between clean-ups of stale claims; 0 cleans on every look",
        low=0,
        aliases=["STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS"],
    )
    queue_error_retention_seconds: float = setting(
        2_592_000.0, "how long failed tasks are kept", low=0
    )
    model_config: ModelConfig = group(ModelConfig())
    deduplicate: bool = setting(True, "merge conclusions that say the same")
    max_input_tokens: int = setting(
        25000, "most tokens given to the model at once", low=1, aliases=["MAX_INPUT_TOKENS"]
    )
    max_custom_instructions_tokens: int = setting(
        2000,
        "longest custom instructions, in tokens; 0 forbids any",
        low=0,
        aliases=["MAX_CUSTOM_INSTRUCTIONS_TOKENS"],
    )
    working_representation_max_observations: int = setting(
        100,
        "most conclusions in a representation or a context where the request does not say",
        low=1,
    )
    representation_batch_work_unit_target_tokens: int = setting(
        512, "a costly reasoner waits until this many tokens are pending; 0 never waits", low=0
    )
    representation_batch_target_input_tokens: int = setting(
        1024, "most tokens of messages in one batch", low=1
    )
    representation_batch_max_age_seconds: float = setting(
        1800.0, "… or until the oldest message is this old; 0 for never", low=0
    )
    representation_batch_quiet_seconds: float = setting(
        120.0,
        "… or until the peer has not written in the session for this long; 0 for never",
        low=0,
    )
    flush_enabled: bool = setting(False, "never wait for a batch to fill")
    timezone: str | None = setting(
        None,
        "time zone of messages whose metadata, or whose author's metadata, has no `timezone`: a "
        "name or a UTC offset (default: UTC)",
        secrecy="public",
    )
    context_across_sessions: bool = setting(
        True,
        "show the model the peer card, and related conclusions from other sessions; false: from "
        "the same session only",
    )


@dataclass(frozen=True, eq=False, repr=False)
class PeerCard(Group):
    """The short list of facts about a peer."""

    enabled: bool = setting(
        True, "keep and use peer cards, unless a workspace or session says otherwise"
    )
    refresh: bool = setting(
        True, "refresh the card of a peer about itself after each batch that may change it"
    )


@dataclass(frozen=True, eq=False, repr=False)
class DialecticLevel(Group):
    """One level of reasoning."""

    model_config: ModelConfig = group(ModelConfig())
    max_tool_iterations: int = setting(5, "most rounds of tool calls", low=1, high=100)
    max_output_tokens: int | None = setting(
        None, "longest answer at this level (default: DIALECTIC_MAX_OUTPUT_TOKENS)", low=1
    )
    tool_choice: str | None = setting(
        None, "what the model is told about tools", choices=("auto", "any", "required", "none")
    )


_LEVEL = DialecticLevel()


@dataclass(frozen=True, eq=False, repr=False)
class DialecticLevels(Group):
    """The five levels of reasoning."""

    minimal: DialecticLevel = group(
        replace(_LEVEL, max_tool_iterations=1, max_output_tokens=250, tool_choice="auto")
    )
    low: DialecticLevel = group(replace(_LEVEL, max_tool_iterations=5, tool_choice="auto"))
    medium: DialecticLevel = group(replace(_LEVEL, max_tool_iterations=2))
    high: DialecticLevel = group(replace(_LEVEL, max_tool_iterations=4))
    max: DialecticLevel = group(replace(_LEVEL, max_tool_iterations=10))


@dataclass(frozen=True, eq=False, repr=False)
class Dialectic(Group):
    """Chat: answering questions about a peer."""

    levels: DialecticLevels = group(DialecticLevels())
    deadline_seconds: float = setting(
        50.0,
        "longest time until the answer, or the first piece of a stream, in all calls of models",
        low=0.1,
    )
    on_failure: str = setting(
        "extractive",
        (
            "if a model does not answer: `extractive` answers without it, and the header "
            "X-Memservice-Notice says why; `error` returns 502, 503 or 504"
        ),
        choices=("extractive", "error"),
    )
    max_output_tokens: int = setting(8192, "longest answer, in tokens", low=1)
    max_input_tokens: int = setting(
        100000, "most tokens given to the model; the oldest are dropped first", low=1
    )
    history_token_limit: int = setting(8192, "most tokens of tool history kept", low=1)
    session_history_max_tokens: int = setting(
        4096, "tokens of the session's latest messages given along; 0 for none", low=0
    )


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Group):
    """Summaries of sessions."""

    enabled: bool = setting(True, "write summaries, unless a workspace or session says otherwise")
    messages_per_short_summary: int = setting(20, "a short summary every so many messages", low=10)
    messages_per_long_summary: int = setting(60, "a long summary every so many messages", low=20)
    model_config: ModelConfig = group(ModelConfig())
    max_tokens_short: int = setting(1000, "longest short summary, in tokens", low=1)
    max_tokens_long: int = setting(4000, "longest long summary, in tokens", low=1)


@dataclass(frozen=True, eq=False, repr=False)
class Surprisal(Group):
    """Finding what does not fit, before a dream."""

    enabled: bool = setting(
        False,
        (
            "look for surprising conclusions before a dream: those whose nearest neighbours "
            "are farthest away"
        ),
    )
    tree_type: str = setting(
        "kdtree",
        (
            "accepted for the sake of older settings: a sample is compared all with all, so "
            "every kind gives the same"
        ),
        choices=("kdtree", "balltree", "rptree", "covertree", "lsh", "graph", "prototype"),
    )
    tree_k: int = setting(5, "neighbours compared with", low=1)
    sampling_strategy: str = setting(
        "recent", "which conclusions are looked at", choices=("recent", "random", "all")
    )
    sample_size: int = setting(200, "how many", low=1)
    top_percent_surprisal: float = setting(0.10, "share that counts as surprising", low=0, high=1)
    min_high_surprisal_for_replace: int = setting(
        10,
        (
            "so many surprising ones are shown instead of the newest conclusions, fewer are "
            "shown besides them"
        ),
        low=0,
    )
    include_levels: tuple[str, ...] = setting(
        ("explicit", "deductive"),
        "levels looked at",
        choices=("explicit", "deductive", "inductive", "contradiction"),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Dream(Group):
    """Consolidating what is remembered."""

    enabled: bool = setting(True, "consolidate, unless a workspace or session says otherwise")
    document_threshold: int = setting(50, "new explicit conclusions before a dream", low=1)
    first_document_threshold: int = setting(
        15, "the same before the first dream of a collection, if it is fewer", low=1
    )
    idle_timeout_minutes: float = setting(60.0, "quiet time before a dream", low=0)
    min_hours_between_dreams: float = setting(
        8.0, "least time between dreams of one collection", low=0
    )
    enabled_types: tuple[str, ...] = setting(
        ("omni",), "kinds of dream that run by themselves", choices=("omni", "card_refresh")
    )
    max_tool_iterations: int = setting(20, "most rounds of tool calls", low=1, high=1000)
    history_token_limit: int = setting(
        16384,
        "most tokens of tool history kept, and of the conclusions that a dream begins with",
        low=1,
    )
    deduction_model_config: ModelConfig = group(ModelConfig())
    induction_model_config: ModelConfig = group(ModelConfig())
    surprisal: Surprisal = group(Surprisal())


@dataclass(frozen=True, eq=False, repr=False)
class Search(Group):
    """How the two ranked lists of recall, text and vectors, are made and joined."""

    fusion_k: int = setting(
        20,
        "k of reciprocal rank fusion: the smaller, the more the first places count",
        low=1,
        high=10000,
    )
    depth: int = setting(100, "candidates taken from each list", low=1, high=1000)
    name_boost: float = setting(
        0.2, "added, in each list, if the author is the one peer named in the query", low=0, high=10
    )
    date_boost: float = setting(
        0.1, "added, in each list, if the message is of a day named in the query", low=0, high=10
    )
    neighbour_weight: float = setting(
        0.5,
        "share of a hit's words that its neighbouring messages get; a long hit shares less",
        low=0,
        high=1,
    )
    embed_timeout_seconds: float = setting(
        2.0, "longest wait for a query's vector; then text alone answers", low=0.01
    )


@dataclass(frozen=True, eq=False, repr=False)
class Representation(Group):
    """What is known of a peer, as text."""

    max_tokens: int = setting(
        2000, "most tokens of a representation that is made for a query", low=1
    )


@dataclass(frozen=True, eq=False, repr=False)
class VectorStore(Group):
    """Where vectors are kept. Unset: in the chosen storage."""

    type: str | None = setting(
        None,
        "the name of a vector-index plugin (see `memservice plugins`); unset: the storage's own",
        secrecy="public",
    )
    url: str | None = setting(None, "where it is", secrecy="uri")
    api_key: str | None = setting(None, "its key, if it asks for one", secrecy="secret")
    namespace: str | None = setting(
        None, "prefix of everything it stores (default: NAMESPACE)", secrecy="public"
    )
    query_timeout_seconds: float = setting(
        2.0,
        "longest wait of a search for an index outside the storage; then text answers",
        low=0.05,
    )
    reconciliation_interval_seconds: float = setting(
        300.0, "time between comparisons with the storage", low=1
    )
    options: Mapping[str, Any] = setting(
        {}, "settings of that plugin alone (JSON object)", secrecy="secret"
    )
