"""The settings of the published server of this API start here unchanged: every name of its
template, with the value that stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from memservice.domain.errors import ConfigurationError
from memservice.plugins import load_plugins
from memservice.settings import Settings, load_settings

MODELS = {
    "MODEL": "gpt-5.4-mini",
    "TRANSPORT": "openai",
    "TEMPERATURE": "0.2",
    "TOP_P": "1.0",
    "TOP_K": "40",
    "FREQUENCY_PENALTY": "0.0",
    "PRESENCE_PENALTY": "0.0",
    "SEED": "42",
    "THINKING_EFFORT": "minimal",
    "THINKING_BUDGET_TOKENS": "1024",
    "STRUCTURED_OUTPUT_MODE": "json_schema",
    "MAX_OUTPUT_TOKENS": "2500",
    "STOP_SEQUENCES": '["END"]',
    "CACHE_POLICY__MODE": "auto",
    "CACHE_POLICY__TTL_SECONDS": "300",
    "CACHE_POLICY__KEY_VERSION": "v1",
    "OVERRIDES__API_KEY": "key",
    "OVERRIDES__BASE_URL": "http://127.0.0.1:11434/v1",
    "OVERRIDES__PROVIDER_PARAMS": '{"extra_body": {}, "timeout": 60}',
    "FALLBACK__MODEL": "gpt-5.4-nano",
    "FALLBACK__TRANSPORT": "openai",
}
"""One choice of a model. `FALLBACK__` has the same names."""

USED = {
    "": {
        "LOG_LEVEL": "INFO",
        "SESSION_OBSERVERS_LIMIT": "10",
        "MAX_FILE_SIZE": "5242880",
        "GET_CONTEXT_MAX_TOKENS": "100000",
        "MAX_MESSAGE_SIZE": "25000",
        "EMBED_MESSAGES": "true",
        "CORS_ORIGINS": '["http://localhost", "http://127.0.0.1:8000"]',
        "NAMESPACE": "honcho",
        "REASONING_TRACES_FILE": "traces.jsonl",
    },
    "DB_": {
        "CONNECTION_URI": "postgresql+psycopg://postgres:postgres@localhost:5432/postgres",
        "SCHEMA": "public",
        "POOL_CLASS": "default",
        "POOL_PRE_PING": "true",
        "POOL_SIZE": "10",
        "MAX_OVERFLOW": "20",
        "POOL_TIMEOUT": "5",
        "POOL_RECYCLE": "300",
        "POOL_USE_LIFO": "true",
        "SQL_DEBUG": "false",
        "CONNECT_TIMEOUT_SECONDS": "2",
    },
    "AUTH_": {"USE_AUTH": "false", "JWT_SECRET": "a-secret-of-thirty-two-bytes-or-so"},
    "LLM_": {
        "ANTHROPIC_API_KEY": "key",
        "OPENAI_API_KEY": "key",
        "GEMINI_API_KEY": "key",
        "ANTHROPIC_BASE_URL": "https://127.0.0.1/a",
        "OPENAI_BASE_URL": "https://127.0.0.1/o",
        "GEMINI_BASE_URL": "https://127.0.0.1/g",
        "DEFAULT_MAX_TOKENS": "2500",
        "MAX_TOOL_OUTPUT_CHARS": "10000",
        "MAX_MESSAGE_CONTENT_CHARS": "2000",
    },
    "EMBEDDING_": {
        "MODEL_CONFIG__TRANSPORT": "openai",
        "MODEL_CONFIG__MODEL": "text-embedding-3-small",
        "MODEL_CONFIG__DIMENSIONS_MODE": "auto",
        "MODEL_CONFIG__ENCODING_FORMAT_MODE": "auto",
        "MODEL_CONFIG__MAX_BATCH_SIZE": "100",
        "MODEL_CONFIG__TIMEOUT": "30",
        "VECTOR_DIMENSIONS": "1536",
        "MAX_INPUT_TOKENS": "8192",
        "MAX_TOKENS_PER_REQUEST": "300000",
        "MAX_CONCURRENT_EMBEDDINGS": "10",
        "MAX_PENDING_EMBED_TASKS": "50",
    },
    "DERIVER_": {
        "ENABLED": "true",
        "WORKERS": "1",
        "POLLING_SLEEP_INTERVAL_SECONDS": "1",
        "POLLING_BACKOFF_ENABLED": "true",
        "POLLING_SLEEP_MAX_INTERVAL_SECONDS": "30",
        "POLLING_BACKOFF_MULTIPLIER": "2",
        "POLLING_STARTUP_JITTER_SECONDS": "30",
        "POLLING_JITTER_RATIO": "0.5",
        "STALE_SESSION_TIMEOUT_MINUTES": "5",
        "STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS": "60",
        "QUEUE_ERROR_RETENTION_SECONDS": "2592000",
        "DEDUPLICATE": "true",
        "MAX_INPUT_TOKENS": "25000",
        "MAX_CUSTOM_INSTRUCTIONS_TOKENS": "2000",
        "WORKING_REPRESENTATION_MAX_OBSERVATIONS": "100",
        "REPRESENTATION_BATCH_WORK_UNIT_TARGET_TOKENS": "512",
        "REPRESENTATION_BATCH_TARGET_INPUT_TOKENS": "1024",
        "REPRESENTATION_BATCH_MAX_AGE_SECONDS": "1800",
        "FLUSH_ENABLED": "false",
        **{f"MODEL_CONFIG__{name}": value for name, value in MODELS.items()},
    },
    "PEER_CARD_": {"ENABLED": "true"},
    "DIALECTIC_": {
        **{
            f"LEVELS__{level}__{name}": value
            for level in ("minimal", "low", "medium", "high", "max")
            for name, value in {
                "MODEL_CONFIG__MODEL": "gpt-5.4-mini",
                "MAX_TOOL_ITERATIONS": "5",
                "MAX_OUTPUT_TOKENS": "250",
                "TOOL_CHOICE": "any",
            }.items()
        },
        "MAX_OUTPUT_TOKENS": "8192",
        "MAX_INPUT_TOKENS": "100000",
        "HISTORY_TOKEN_LIMIT": "8192",
        "SESSION_HISTORY_MAX_TOKENS": "4096",
    },
    "SUMMARY_": {
        "ENABLED": "true",
        "MESSAGES_PER_SHORT_SUMMARY": "20",
        "MESSAGES_PER_LONG_SUMMARY": "60",
        "MAX_TOKENS_SHORT": "1000",
        "MAX_TOKENS_LONG": "4000",
        "MODEL_CONFIG__MODEL": "gpt-5.4-mini",
    },
    "DREAM_": {
        "ENABLED": "true",
        "DOCUMENT_THRESHOLD": "50",
        "IDLE_TIMEOUT_MINUTES": "60",
        "MIN_HOURS_BETWEEN_DREAMS": "8",
        "ENABLED_TYPES": '["omni"]',
        "MAX_TOOL_ITERATIONS": "20",
        "HISTORY_TOKEN_LIMIT": "16384",
        "DEDUCTION_MODEL_CONFIG__MODEL": "gpt-5.4-mini",
        "INDUCTION_MODEL_CONFIG__MODEL": "gpt-5.4-mini",
        "SURPRISAL__ENABLED": "false",
        "SURPRISAL__TREE_TYPE": "kdtree",
        "SURPRISAL__TREE_K": "5",
        "SURPRISAL__SAMPLING_STRATEGY": "recent",
        "SURPRISAL__SAMPLE_SIZE": "200",
        "SURPRISAL__TOP_PERCENT_SURPRISAL": "0.10",
        "SURPRISAL__MIN_HIGH_SURPRISAL_FOR_REPLACE": "10",
        "SURPRISAL__INCLUDE_LEVELS": '["explicit", "deductive"]',
    },
    "WEBHOOK_": {"SECRET": "a-secret", "MAX_WORKSPACE_LIMIT": "10"},
    "METRICS_": {"ENABLED": "false", "NAMESPACE": "honcho"},
    "TELEMETRY_": {
        "ENABLED": "false",
        "ENDPOINT": "https://127.0.0.1/events",
        "HEADERS": '{"Authorization": "key"}',
        "BATCH_SIZE": "100",
        "FLUSH_INTERVAL_SECONDS": "1.0",
        "FLUSH_THRESHOLD": "50",
        "MAX_RETRIES": "3",
        "MAX_BUFFER_SIZE": "10000",
        "NAMESPACE": "honcho",
        "HIGH_VOLUME_SAMPLE_RATE": "1.0",
        "TRACE_PAYLOADS_ENABLED": "false",
        "TRACE_MAX_BYTES": "262144",
        "TRACE_PURPOSES": "[]",
    },
    "VECTOR_STORE_": {
        "TYPE": "pgvector",
        "NAMESPACE": "honcho",
        "RECONCILIATION_INTERVAL_SECONDS": "300",
    },
}
WITHOUT_EFFECT = {
    "": {
        "PERFORMANCE_LOG_FORMAT": "compact",
        "COLLECT_METRICS_LOCAL": "false",
        "LOCAL_METRICS_FILE": "metrics.jsonl",
        "LANGFUSE_HOST": "https://127.0.0.1",
        "LANGFUSE_PUBLIC_KEY": "key",
        "LANGFUSE_EXPORTER_MODE": "exporter",
    },
    "DB_": {"TRACING": "false"},
    "SENTRY_": {
        "ENABLED": "false",
        "DSN": "https://127.0.0.1",
        "RELEASE": "1",
        "ENVIRONMENT": "development",
        "TRACES_SAMPLE_RATE": "0.1",
        "PROFILES_SAMPLE_RATE": "0.1",
    },
    "DERIVER_": {"LOG_OBSERVATIONS": "false"},
    "CACHE_": {
        "ENABLED": "false",
        "URL": "redis://localhost:6379/0?suppress=true",
        "CLUSTER": "false",
        "NAMESPACE": "honcho",
        "DEFAULT_TTL_SECONDS": "300",
        "DEFAULT_LOCK_TTL_SECONDS": "5",
        "LOCK_WAIT_CHECK_INTERVAL_SECONDS": "0.1",
    },
    "VECTOR_STORE_": {
        "MIGRATED": "false",
        "DIMENSIONS": "1536",
        "TURBOPUFFER_API_KEY": "key",
        "TURBOPUFFER_REGION": "region",
        "LANCEDB_PATH": "./lancedb_data",
    },
    "TRACE_VIEWER_": {
        "ENABLED": "false",
        "HOST": "127.0.0.1",
        "PORT": "8002",
        "STORAGE_DIR": "./traces",
        "MAX_REQUEST_BYTES": "10485760",
        "VENDOR_CDN_BASE": "https://127.0.0.1",
    },
}


def both(prefix: str) -> dict[str, str]:
    return {**USED.get(prefix, {}), **WITHOUT_EFFECT.get(prefix, {})}


PREFIXES = (*USED, *(prefix for prefix in WITHOUT_EFFECT if prefix not in USED))
VARIABLES = {
    f"{prefix}{name}": value for prefix in PREFIXES for name, value in both(prefix).items()
}


def toml_file() -> str:
    """All of them as a TOML file: each section has the name of the prefix, `[app]` those without
    one; keys are upper case."""
    lines = []
    for prefix in PREFIXES:
        lines.append(f"[{prefix.rstrip('_').lower() or 'app'}]")
        nested: dict[str, list[str]] = {}
        for name, value in both(prefix).items():
            *groups, last = name.split("__")
            nested.setdefault(".".join(groups), []).append(f"{last} = {literal(value)}")
        lines += nested.pop("", [])
        for groups_of, settings in nested.items():
            section = prefix.rstrip("_")
            lines += [f"[{section}.{groups_of}]".lower(), *settings]
    return "\n".join(lines)


def literal(value: str) -> str:
    """A value of an `.env` file in TOML."""
    if value[0] == "{":
        return value.replace('": ', '" = ')
    is_bare = value in ("true", "false") or value[0] == "[" or value.replace(".", "", 1).isdigit()
    return value if is_bare else f"'{value}'"


def without_effect(settings: Settings) -> int:
    """Number of names that the notes list; all notes must be about names without effect."""
    assert all(note.startswith("without effect here: ") for note in settings.notes)
    return sum(note.count(", ") + 1 for note in settings.notes)


def test_every_variable_is_accepted_with_its_value(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("\n".join(f"{k}={v}" for k, v in VARIABLES.items()))
    settings = load_settings(environ={}, cwd=tmp_path)
    used = {f"{prefix}{name}".upper() for prefix in USED for name in USED[prefix]}
    accepted = {row.name for row in settings.rows(everything=True) if row.source.startswith("/")}
    assert {name for name in used if "PROVIDER_PARAMS" not in name} - accepted == set()
    assert without_effect(settings) == sum(map(len, WITHOUT_EFFECT.values()))


def test_every_line_of_its_toml_file_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(toml_file(), encoding="utf-8")
    settings = load_settings(file, environ={}, cwd=tmp_path)
    assert settings.db.pool_size == 10
    assert settings.dialectic.levels.max.max_output_tokens == 250
    assert settings.deriver.model_config.fallback is not None
    # A section without any effect is one entry.
    sections = {"SENTRY_", "CACHE_", "TRACE_VIEWER_"}
    single = sum(len(names) for prefix, names in WITHOUT_EFFECT.items() if prefix not in sections)
    assert without_effect(settings) == single + len(sections)


def test_in_the_environment_names_without_effect_are_not_mentioned(tmp_path: Path) -> None:
    assert load_settings(environ=VARIABLES, cwd=tmp_path).notes == ()


def test_its_vector_store_is_that_of_the_storage() -> None:
    from memservice_postgres import memservice_vector_indexes

    (provider,) = memservice_vector_indexes()
    plugins = load_plugins()
    assert plugins.vector_index("pgvector").name == provider.name == "pgvector"
    assert provider.needs_storage == plugins.storage(VARIABLES["DB_CONNECTION_URI"]).name


@pytest.mark.parametrize("name", ["lancedb", "turbopuffer"])
def test_its_other_vector_stores_are_answered_with_what_to_use(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_plugins().vector_index(name)
    message = str(caught.value)
    assert f"no plugin offers a vector index called '{name}' (VECTOR_STORE_TYPE)" in message
    assert "known: pgvector, qdrant, redis" in message
    assert message.endswith("unset VECTOR_STORE_TYPE to keep vectors in the storage")
