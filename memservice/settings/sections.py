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
    default_max_tokens: int = setting(2500, "default maximum length of an answer, in tokens", low=1)
    max_attempts: int = setting(
        3,
        "attempts for one call; the last one uses the fallback model, if there is one",
        low=1,
        high=20,
    )
    retry_pause_seconds: float = setting(
        4.0, "pause after the first failed attempt; doubles after each further one", low=0
    )
    retry_longest_pause_seconds: float = setting(
        10.0, "maximum pause between attempts; a provider may request up to a minute", low=0
    )
    max_tool_output_chars: int = setting(
        10000, "maximum length of a tool result, in characters", low=100
    )
    max_message_content_chars: int = setting(
        2000, "maximum length of one message in a tool result, in characters", low=100
    )


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(Group):
    """Turning texts into vectors."""

    model_config: EmbeddingModelConfig = group(EmbeddingModelConfig())
    vector_dimensions: int = setting(
        1536, "dimension of the vectors that the embedding model is asked for", low=1, high=16000
    )
    max_input_tokens: int = setting(
        8192, "maximum length of an embedded text, in tokens; longer texts are truncated", low=1
    )
    max_tokens_per_request: int = setting(300000, "maximum number of tokens in one call", low=1)
    max_concurrent_embeddings: int = setting(
        10, "maximum number of concurrent calls of one process", low=1, high=1000
    )
    max_pending_embed_tasks: int = setting(
        50,
        ("accepted for compatibility, without effect: no write waits for a remote embedder"),
        low=0,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Deriver(Group):
    """Turning messages into conclusions, and the worker that does it."""

    enabled: bool = setting(
        True, "derive conclusions, unless a workspace, session or message overrides it"
    )
    workers: int = setting(
        1,
        "work units that one worker processes concurrently; more for a reasoner that waits on a "
        "network (WORKER_REMOTE_UNITS)",
        low=1,
        high=1000,
    )
    polling_sleep_interval_seconds: float = setting(
        1.0, "polling interval of `memservice worker`", low=0.01
    )
    polling_backoff_enabled: bool = setting(
        True, "increase the polling interval while there is no work"
    )
    polling_sleep_max_interval_seconds: float = setting(30.0, "longest pause", low=0.01)
    polling_backoff_multiplier: float = setting(
        2.0, "factor by which the polling interval grows", low=1
    )
    polling_startup_jitter_seconds: float = setting(
        30.0, "`memservice worker` starts after a random part of this; 0 starts at once", low=0
    )
    polling_jitter_ratio: float = setting(
        0.5, "random share by which the polling interval varies; 0 for none", low=0, high=1
    )
    stale_session_timeout_minutes: float = setting(
        5.0, "a claim without heartbeat for this long is free again", low=0.01
    )
    stale_work_unit_cleanup_interval_seconds: float = setting(
        60.0,
        "minimum time between clean-ups of stale claims; 0 cleans up at every poll",
        low=0,
        aliases=["STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS"],
    )
    queue_error_retention_seconds: float = setting(
        2_592_000.0, "how long failed tasks are kept", low=0
    )
    model_config: ModelConfig = group(ModelConfig())
    deduplicate: bool = setting(True, "merge duplicate conclusions")
    max_input_tokens: int = setting(
        25000,
        "maximum number of tokens in one request to the model",
        low=1,
        aliases=["MAX_INPUT_TOKENS"],
    )
    max_custom_instructions_tokens: int = setting(
        2000,
        "maximum length of custom instructions, in tokens; 0 forbids them",
        low=0,
        aliases=["MAX_CUSTOM_INSTRUCTIONS_TOKENS"],
    )
    working_representation_max_observations: int = setting(
        100,
        "default maximum number of conclusions in a representation or a context",
        low=1,
    )
    representation_batch_work_unit_target_tokens: int = setting(
        512, "a costly reasoner waits until this many tokens are pending; 0 never waits", low=0
    )
    representation_batch_target_input_tokens: int = setting(
        1024, "maximum number of message tokens in one batch", low=1
    )
    representation_batch_max_age_seconds: float = setting(
        1800.0, "… or until the oldest message is this old; 0 for never", low=0
    )
    representation_batch_quiet_seconds: float = setting(
        120.0,
        "… or until the peer has not written in the session for this long; 0 for never",
        low=0,
    )
    flush_enabled: bool = setting(
        False, "never wait for further messages, neither to derive nor for a summary"
    )
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
        True, "maintain and use peer cards, unless a workspace or session overrides it"
    )
    refresh: bool = setting(
        True, "refresh the card of a peer about itself after each batch that may change it"
    )


@dataclass(frozen=True, eq=False, repr=False)
class DialecticLevel(Group):
    """One level of reasoning."""

    model_config: ModelConfig = group(ModelConfig())
    max_tool_iterations: int = setting(5, "maximum number of rounds of tool calls", low=1, high=100)
    max_output_tokens: int | None = setting(
        None,
        "maximum length of an answer at this level (default: DIALECTIC_MAX_OUTPUT_TOKENS)",
        low=1,
    )
    tool_choice: str | None = setting(
        None, "`tool_choice` of requests to the model", choices=("auto", "any", "required", "none")
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
        "maximum time until the answer, or the first piece of a stream, over all model calls",
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
        100000, "maximum number of input tokens; the oldest are dropped first", low=1
    )
    history_token_limit: int = setting(8192, "maximum number of tokens of tool history", low=1)
    session_history_max_tokens: int = setting(
        4096, "number of tokens of the session's latest messages in the prompt; 0 for none", low=0
    )


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Group):
    """Summaries of sessions."""

    enabled: bool = setting(True, "write summaries, unless a workspace or session overrides it")
    messages_per_short_summary: int = setting(
        20, "number of messages between short summaries", low=10
    )
    messages_per_long_summary: int = setting(
        60, "number of messages between long summaries", low=20
    )
    model_config: ModelConfig = group(ModelConfig())
    max_tokens_short: int = setting(1000, "maximum length of a short summary, in tokens", low=1)
    max_tokens_long: int = setting(4000, "maximum length of a long summary, in tokens", low=1)


@dataclass(frozen=True, eq=False, repr=False)
class Surprisal(Group):
    """Finding what does not fit, before a dream."""

    enabled: bool = setting(
        False,
        (
            "find surprising conclusions before a dream: those farthest from their nearest "
            "neighbours"
        ),
    )
    tree_type: str = setting(
        "kdtree",
        (
            "accepted for compatibility, without effect: each pair of a sample is compared, so "
            "every kind gives the same result"
        ),
        choices=("kdtree", "balltree", "rptree", "covertree", "lsh", "graph", "prototype"),
    )
    tree_k: int = setting(5, "number of neighbours to compare with", low=1)
    sampling_strategy: str = setting(
        "recent", "which conclusions are sampled", choices=("recent", "random", "all")
    )
    sample_size: int = setting(200, "how many", low=1)
    top_percent_surprisal: float = setting(
        0.10, "percentage that counts as surprising", low=0, high=1
    )
    min_high_surprisal_for_replace: int = setting(
        10,
        (
            "from this number on, surprising conclusions replace the newest ones; fewer are "
            "added to them"
        ),
        low=0,
    )
    include_levels: tuple[str, ...] = setting(
        ("explicit", "deductive"),
        "levels that are sampled",
        choices=("explicit", "deductive", "inductive", "contradiction"),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Dream(Group):
    """Consolidating what is remembered."""

    enabled: bool = setting(True, "run dreams, unless a workspace or session overrides it")
    document_threshold: int = setting(50, "new explicit conclusions before a dream", low=1)
    first_document_threshold: int = setting(
        15, "the same before the first dream of a collection, if it is fewer", low=1
    )
    idle_timeout_minutes: float = setting(60.0, "time without new messages before a dream", low=0)
    min_hours_between_dreams: float = setting(
        8.0, "minimum time between dreams of one collection", low=0
    )
    enabled_types: tuple[str, ...] = setting(
        ("omni",),
        "kinds of dream that are scheduled automatically",
        choices=("omni", "card_refresh"),
    )
    max_tool_iterations: int = setting(
        20, "maximum number of rounds of tool calls", low=1, high=1000
    )
    history_token_limit: int = setting(
        16384,
        "maximum number of tokens of tool history, and of the conclusions that a dream starts with",
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
        "k of reciprocal rank fusion: the smaller, the more the first ranks count",
        low=1,
        high=10000,
    )
    depth: int = setting(100, "candidates taken from each list", low=1, high=1000)
    name_boost: float = setting(
        0.2,
        "added, in each list, if the author is the one peer named in the query, or may have asked "
        "it in the first person",
        low=0,
        high=10,
    )
    date_boost: float = setting(
        0.1,
        "added, in each list, if the message is of a day named in the query; twice that if it "
        "mentions the day",
        low=0,
        high=10,
    )
    neighbour_weight: float = setting(
        0.5,
        "share of a hit's words that counts for the messages beside it too, and of that share for "
        "those two away; smaller for a long hit",
        low=0,
        high=1,
    )
    embed_timeout_seconds: float = setting(
        2.0, "maximum wait for a query's vector; then the search uses text alone", low=0.01
    )


@dataclass(frozen=True, eq=False, repr=False)
class Representation(Group):
    """What is known of a peer, as text."""

    max_tokens: int = setting(
        2000, "maximum number of tokens of a representation for a query", low=1
    )


@dataclass(frozen=True, eq=False, repr=False)
class VectorStore(Group):
    """Where vectors are kept. Unset: in the chosen storage."""

    type: str | None = setting(
        None,
        "the name of a vector-index plugin (see `memservice plugins`); unset: the storage's own",
        secrecy="public",
    )
    url: str | None = setting(None, "its URL", secrecy="uri")
    api_key: str | None = setting(None, "its API key, if it requires one", secrecy="secret")
    namespace: str | None = setting(
        None, "prefix of everything it stores (default: NAMESPACE)", secrecy="public"
    )
    query_timeout_seconds: float = setting(
        2.0,
        "maximum wait of a search for an external vector index; then the search uses text alone",
        low=0.05,
    )
    reconciliation_interval_seconds: float = setting(
        300.0, "time between comparisons with the storage", low=1
    )
    options: Mapping[str, Any] = setting(
        {}, "settings of that plugin alone (JSON object)", secrecy="secret"
    )
