"""Settings: layers, names, checks, masks."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from memservice.domain.errors import ConfigurationError
from memservice.settings import Settings, families, load_settings
from memservice.settings.declare import tree
from support.project.settings_sources import load, row


def test_without_any_source_everything_is_default(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings == Settings()
    assert settings.db.connection_uri == "sqlite:///memservice.db"
    assert (
        settings.db.pool_timeout,
        settings.db.connect_timeout_seconds,
        settings.db.synchronous,
    ) == (5.0, 2.0, "full")
    assert (settings.app.reasoner, settings.app.embedder, settings.app.redis_url) == (
        "auto",
        "hashed",
        None,
    )
    assert (settings.server.host, settings.server.port, settings.server.threads) == (
        "127.0.0.1",
        8000,
        32,
    )
    assert (settings.search.fusion_k, settings.search.depth, settings.search.neighbour_weight) == (
        20,
        100,
        0.5,
    )
    assert settings.representation.max_tokens == 2000
    assert {row.source for row in settings.rows(everything=True)} == {"default"}


def test_levels_of_chat_have_the_defaults_of_the_contract() -> None:
    levels = Settings().dialectic.levels
    assert [
        getattr(levels, name).max_tool_iterations
        for name in ("minimal", "low", "medium", "high", "max")
    ] == [1, 5, 2, 4, 10]
    assert (
        levels.minimal.max_output_tokens,
        levels.low.tool_choice,
        levels.medium.tool_choice,
    ) == (250, "auto", None)


def test_each_layer_overrides_the_one_below(tmp_path: Path) -> None:
    toml = "[db]\npool_size = 1\nmax_overflow = 1\npool_recycle = 1\npool_timeout = 1"
    dotenv = "DB_MAX_OVERFLOW=2\nDB_POOL_RECYCLE=2\nDB_POOL_TIMEOUT=2"
    (tmp_path / "memservice.toml").write_text(toml)
    (tmp_path / ".env").write_text(dotenv)
    environ = {"DB_POOL_RECYCLE": "3", "DB_POOL_TIMEOUT": "3"}
    settings = load_settings(
        environ=environ, cwd=tmp_path, overrides={"DB_POOL_TIMEOUT": 4, "DB_POOL_SIZE": None}
    )
    db = settings.db
    assert (db.pool_size, db.max_overflow, db.pool_recycle, db.pool_timeout) == (1, 2, 3, 4)
    toml_path, env_path = str(tmp_path / "memservice.toml"), str(tmp_path / ".env")
    sources = [
        row(settings, f"DB_{name}").source
        for name in ("POOL_SIZE", "MAX_OVERFLOW", "POOL_RECYCLE", "POOL_TIMEOUT", "SCHEMA")
    ]
    assert sources == [toml_path, env_path, "environment", "command line", "default"]


def test_the_file_is_named_by_argument_then_variable(tmp_path: Path) -> None:
    for name, port in (("memservice.toml", 1), ("a.toml", 2), ("b.toml", 3)):
        (tmp_path / name).write_text(f"[server]\nport = {port}")
    assert load_settings(environ={}, cwd=tmp_path).server.port == 1
    assert load_settings(environ={"MEMSERVICE_CONFIG": "a.toml"}, cwd=tmp_path).server.port == 2
    assert (
        load_settings(tmp_path / "b.toml", {"MEMSERVICE_CONFIG": "a.toml"}, tmp_path).server.port
        == 3
    )
    with pytest.raises(ConfigurationError, match=r"no\.toml, which MEMSERVICE_CONFIG names"):
        load_settings(environ={"MEMSERVICE_CONFIG": "no.toml"}, cwd=tmp_path)


@pytest.mark.parametrize(
    ("bare", "canonical", "path", "raw", "value"),
    [
        ("POOL_TIMEOUT", "DB_POOL_TIMEOUT", "db.pool_timeout", "7.5", 7.5),
        ("MAX_INPUT_TOKENS", "DERIVER_MAX_INPUT_TOKENS", "deriver.max_input_tokens", "1234", 1234),
        (
            "DB_CONNECT_TIMEOUT_SECONDS",
            "DB_CONNECT_TIMEOUT_SECONDS",
            "db.connect_timeout_seconds",
            "3",
            3.0,
        ),
        (
            "STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS",
            "DERIVER_STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS",
            "deriver.stale_work_unit_cleanup_interval_seconds",
            "0.0",
            0.0,
        ),
        (
            "MAX_CUSTOM_INSTRUCTIONS_TOKENS",
            "DERIVER_MAX_CUSTOM_INSTRUCTIONS_TOKENS",
            "deriver.max_custom_instructions_tokens",
            "0",
            0,
        ),
        (
            "CORS_ORIGINS",
            "CORS_ORIGINS",
            "app.cors_origins",
            '["https://a.example"]',
            ("https://a.example",),
        ),
        (
            "DERIVER_POLLING_JITTER_RATIO",
            "DERIVER_POLLING_JITTER_RATIO",
            "deriver.polling_jitter_ratio",
            "0.0",
            0.0,
        ),
        ("DERIVER_POLLING_STARTUP_JITTER_SECONDS",) * 2
        + ("deriver.polling_startup_jitter_seconds", "1", 1.0),
        ("REDIS_URL", "REDIS_URL", "app.redis_url", "redis://h", "redis://h"),
        (
            "REPRESENTATION_MAX_TOKENS",
            "REPRESENTATION_MAX_TOKENS",
            "representation.max_tokens",
            "9",
            9,
        ),
    ],
)
def test_the_names_of_the_spec_are_accepted(
    tmp_path: Path, bare: str, canonical: str, path: str, raw: str, value: object
) -> None:
    settings = load(tmp_path, **{bare: raw})
    value_found: Any = settings
    for part in path.split("."):
        value_found = getattr(value_found, part)
    assert value_found == value
    shown = row(settings, canonical)
    assert shown.source == ("environment" if bare == canonical else f"environment, as {bare}")
    assert bare in (shown.name, *shown.aliases)


def test_nested_names_of_models(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        DIALECTIC_LEVELS__low__MODEL_CONFIG__MODEL="small",
        DIALECTIC_LEVELS__LOW__MODEL_CONFIG__FALLBACK__MODEL="smaller",
        DERIVER_MODEL_CONFIG__REASONING_EFFORT="HIGH",
        SUMMARY_MODEL_CONFIG='{"model": "s", "overrides": {"base_url": "http://h"}}',
        SUMMARY_MODEL_CONFIG__MODEL="t",
        DREAM_DEDUCTION_MODEL_CONFIG__OVERRIDES__PROVIDER_PARAMS__EXTRA_BODY='{"a": 1}',
    )
    low = settings.dialectic.levels.low
    assert (low.model_config.model, low.max_tool_iterations, low.model_config.transport) == (
        "small",
        5,
        "openai",
    )
    assert low.model_config.fallback is not None
    assert low.model_config.fallback.model == "smaller"
    assert settings.dialectic.levels.high.model_config.fallback is None
    assert settings.deriver.model_config.thinking_effort == "high"
    assert (
        settings.summary.model_config.model,
        settings.summary.model_config.overrides.base_url,
    ) == ("t", "http://h")
    assert settings.dream.deduction_model_config.overrides.provider_params.extra_body == {"a": 1}


def test_the_example_loads_and_is_the_defaults(root: Path, tmp_path: Path) -> None:
    example = root / "config" / "memservice_deployment" / "memservice.example.toml"
    settings = load_settings(example, {}, tmp_path)
    assert settings.notes == ()
    assert replace(settings, file=None) == Settings()
    commented = re.sub(r"^# (?=[a-z_.]+ = )", "", example.read_text(encoding="utf-8"), flags=re.M)
    (tmp_path / "all.toml").write_text(commented, encoding="utf-8")
    everything = load_settings(tmp_path / "all.toml", {}, tmp_path)
    assert everything.deriver.model_config.overrides.base_url == "http://127.0.0.1:11434/v1"
    for name in re.findall(r"(?<=# )([A-Z]+(?:_[A-Z_]+))", commented):
        is_declared = name in tree(Settings).by_variable or families.of_variable(name)
        assert is_declared or name == "MEMSERVICE_CONFIG", name


def test_every_setting_has_help_and_round_trips(tmp_path: Path) -> None:
    rows = Settings().rows(everything=True)
    assert all(row.help for row in rows)
    assert len({row.name for row in rows}) == len(rows)
    environ = {
        row.name: row.value_text for row in rows if row.value_text and "FALLBACK" not in row.name
    }
    assert load_settings(environ=environ, cwd=tmp_path) == Settings()


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().db.pool_size = 3  # type: ignore[misc]


def test_groups_become_plain_values() -> None:
    mapping = Settings().embedding.model_config.as_mapping()
    assert mapping["overrides"]["provider_params"]["extra_body"] == {}
    assert (mapping["model"], mapping["transport"]) == (None, "openai")


@pytest.mark.slow
def test_importing_the_settings_imports_little() -> None:
    code = "import memservice.settings, sys; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    heavy = {
        "marshmallow",
        "flask",
        "sqlalchemy",
        "numpy",
        "dotenv",
        "tomllib",
        "pluggy",
        "importlib.metadata",
    }
    assert heavy & set(result.stdout.split()) == set()
