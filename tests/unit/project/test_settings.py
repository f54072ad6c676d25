"""Settings: layers, names, checks, masks."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.errors import ConfigurationError
from memservice.reasoning.choice import all_models_of
from memservice.settings import Settings, families, load_settings, mask_uri
from memservice.settings.connections import connection
from memservice.settings.declare import setting, tree
from memservice.settings.models import Overrides
from memservice.settings.values import MASK


def load(tmp_path: Path, toml: str = "", dotenv: str = "", **environ: str) -> Settings:
    if toml:
        (tmp_path / "memservice.toml").write_text(toml, encoding="utf-8")
    if dotenv:
        (tmp_path / ".env").write_text(dotenv, encoding="utf-8")
    return load_settings(environ=environ, cwd=tmp_path)


def refusal(tmp_path: Path, **sources: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **sources)
    return str(caught.value)


def row(settings: Settings, name: str) -> Any:
    (found,) = [row for row in settings.rows(everything=True) if row.name == name]
    return found


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
    found: Any = settings
    for part in path.split("."):
        found = getattr(found, part)
    assert found == value
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


def choices(settings: Settings) -> dict[str, tuple[str, str]]:
    """Transport and model of every task."""
    return {task: (model.transport, model.model) for task, model in all_models_of(settings).items()}


def test_one_model_serves_every_task(tmp_path: Path) -> None:
    settings = load(tmp_path, LLM_OPENAI_BASE_URL="http://h/v1", LLM_MODEL="qwen3:8b")
    assert set(choices(settings).values()) == {("openai", "qwen3:8b")}
    assert row(settings, "SUMMARY_MODEL_CONFIG__MODEL").source == "follows LLM_MODEL"


def test_small_and_large_models_serve_their_tasks(tmp_path: Path) -> None:
    settings = load(tmp_path, LLM_MODEL="m", LLM_SMALL_MODEL="s", LLM_LARGE_MODEL="anthropic/l")
    by_model = {
        model: {task for task, choice in choices(settings).items() if choice == model}
        for model in set(choices(settings).values())
    }
    assert by_model == {
        ("openai", "s"): {"derive", "summarize"},
        ("openai", "m"): {"answer.minimal", "answer.low", "answer.medium"},
        ("anthropic", "l"): {
            "consolidate",
            "consolidate.induction",
            "answer.high",
            "answer.max",
        },
    }


def test_a_task_inherits_what_it_does_not_set(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        LLM_TRANSPORT="gemini",
        LLM_MODEL="common",
        LLM_FALLBACK__MODEL="second",
        LLM_FALLBACK__OVERRIDES__API_KEY="hunter2",
        DERIVER_MODEL_CONFIG__TEMPERATURE="0.5",
        SUMMARY_MODEL_CONFIG__MODEL="own",
        SUMMARY_MODEL_CONFIG__FALLBACK__MODEL="own second",
        DREAM_DEDUCTION_MODEL_CONFIG__TRANSPORT="anthropic",
        DREAM_DEDUCTION_MODEL_CONFIG__FALLBACK__TRANSPORT="anthropic",
    )
    deriver, summary = settings.deriver.model_config, settings.summary.model_config
    assert (deriver.transport, deriver.model, deriver.temperature) == ("gemini", "common", 0.5)
    assert (summary.transport, summary.model) == ("gemini", "own")
    assert deriver.fallback is not None
    assert summary.fallback is not None
    assert (deriver.fallback.transport, deriver.fallback.model) == ("gemini", "second")
    assert (summary.fallback.model, summary.fallback.overrides.api_key) == ("own second", "hunter2")
    dream = settings.dream.deduction_model_config
    assert (dream.transport, dream.model) == ("anthropic", "gpt-5.4-mini"), "of its own transport"
    assert dream.fallback is not None
    assert dream.fallback.overrides.api_key is None, "a key goes to no other transport"
    assert "hunter2" not in "".join(shown.value_text for shown in settings.rows())


@pytest.mark.parametrize(
    ("given", "transport"),
    [
        ({"LLM_ANTHROPIC_API_KEY": "k"}, "anthropic"),
        ({"LLM_MINE_BASE_URL": "http://h"}, "mine"),
        ({"LLM_ANTHROPIC_API_KEY": "k", "LLM_OPENAI_API_KEY": "k"}, "openai"),
        ({"LLM_ANTHROPIC_API_KEY": "k", "LLM_TRANSPORT": "gemini"}, "gemini"),
        ({"LLM_ANTHROPIC_API_KEY": "k", "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY": "o"}, "openai"),
    ],
)
def test_the_only_transport_with_a_key_or_a_url_is_used(
    tmp_path: Path, given: dict[str, str], transport: str
) -> None:
    assert load(tmp_path, LLM_MODEL="m", **given).deriver.model_config.transport == transport


def test_a_key_alone_chooses_no_transport_for_the_default_model(tmp_path: Path) -> None:
    settings = load(tmp_path, LLM_ANTHROPIC_API_KEY="k")
    assert set(choices(settings).values()) == {("openai", "gpt-5.4-mini")}


def test_a_model_name_may_contain_its_transport(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        DERIVER_MODEL_CONFIG__MODEL="anthropic/m",
        SUMMARY_MODEL_CONFIG__MODEL="openai/m",
        SUMMARY_MODEL_CONFIG__OVERRIDES__BASE_URL="http://router",
        DREAM_INDUCTION_MODEL_CONFIG__MODEL="someone/m",
    )
    assert (settings.deriver.model_config.transport, settings.deriver.model_config.model) == (
        "anthropic",
        "m",
    )
    assert (
        row(settings, "DERIVER_MODEL_CONFIG__TRANSPORT").source
        == "follows DERIVER_MODEL_CONFIG__MODEL"
    )
    assert settings.summary.model_config.model == "openai/m"
    assert settings.dream.induction_model_config.model == "someone/m"


@pytest.mark.parametrize(
    ("model", "more", "choice"),
    [
        ("openai/gpt-oss-20b", {}, ("openai", "openai/gpt-oss-20b")),
        ("anthropic/m", {}, ("openai", "anthropic/m")),
        ("anthropic/m", {"LLM_ANTHROPIC_API_KEY": "k"}, ("anthropic", "m")),
    ],
)
def test_with_a_base_url_names_with_a_slash_are_models(
    tmp_path: Path, model: str, more: dict[str, str], choice: tuple[str, str]
) -> None:
    settings = load(tmp_path, LLM_OPENAI_BASE_URL="http://router", LLM_MODEL=model, **more)
    assert set(choices(settings).values()) == {choice}


def test_every_transport_may_have_a_key_and_a_url(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        toml='[llm]\nbedrock_base_url = "https://u:hunter2@h"\nmy_own_api_key = "hunter2"',
        LLM_MY_OWN_BASE_URL="http://h",
    )
    assert settings.llm.connections["my_own"].api_key == "hunter2"
    assert connection(settings.llm, "my-own", Overrides())["base_url"] == "http://h"
    assert row(settings, "LLM_MY_OWN_API_KEY").value_text == MASK
    assert row(settings, "LLM_BEDROCK_BASE_URL").value_text == f"https://u:{MASK}@h"
    assert "hunter2" not in repr(settings)


def test_a_mistyped_key_of_a_transport_is_reported(tmp_path: Path) -> None:
    settings = load(tmp_path, LLM_OPENAI_API_KYE="k")
    assert "did you mean LLM_OPENAI_API_KEY" in "\n".join(settings.notes)
    message = refusal(tmp_path, toml='[llm]\nopenai_api_kye = "k"')
    assert "did you mean openai_api_key" in message


def test_settings_of_a_plugin(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        toml="[plugins.my-own]\ndepth = 5\n[plugins.my-own.deep]\na = 1",
        PLUGIN_MY_OWN__TOKEN="hunter2",
    )
    assert settings.plugins.options == {
        "my_own": {"depth": 5, "deep": {"a": 1}, "token": "hunter2"}
    }
    shown = row(settings, "PLUGIN_MY_OWN__TOKEN")
    assert (shown.value_text, shown.source) == (MASK, "environment")
    assert "hunter2" not in repr(settings)
    assert "must be a table" in refusal(tmp_path, toml="[plugins]\nmine = 5")


@pytest.mark.parametrize(
    "sources",
    [
        {"WEBHOOK_JSONL_DIRECTORY": "/d"},
        {"toml": '[webhook]\njsonl_directory = "/d"'},
        {"toml": '[plugins.jsonl]\ndirectory = "/d"'},
    ],
)
def test_the_former_name_of_a_plugin_s_setting(tmp_path: Path, sources: dict[str, str]) -> None:
    settings = load(tmp_path, **sources)
    assert settings.plugins.options == {"jsonl": {"directory": "/d"}}
    assert row(settings, "PLUGIN_JSONL__DIRECTORY").aliases == ("WEBHOOK_JSONL_DIRECTORY",)
    assert "are one setting" in refusal(
        tmp_path, WEBHOOK_JSONL_DIRECTORY="/d", PLUGIN_JSONL__DIRECTORY="/e"
    )


def test_the_embedder_follows_how_the_embedding_model_is_reached(tmp_path: Path) -> None:
    assert (
        load(tmp_path, LLM_OPENAI_API_KEY="k", EMBEDDING_MODEL_CONFIG__MODEL="m").app.embedder
        == "hashed"
    )
    assert load(tmp_path, EMBEDDING_MODEL_CONFIG__TRANSPORT="gemini").app.embedder == "gemini"
    by_url = load(tmp_path, EMBEDDING_MODEL_CONFIG__OVERRIDES__BASE_URL="http://h")
    assert by_url.app.embedder == "openai"
    assert row(by_url, "EMBEDDER").source == "follows EMBEDDING_MODEL_CONFIG__OVERRIDES__BASE_URL"
    assert (
        load(tmp_path, EMBEDDING_MODEL_CONFIG__TRANSPORT="gemini", EMBEDDER="hashed").app.embedder
        == "hashed"
    )


@pytest.mark.parametrize(
    ("variable", "raw", "allowed"),
    [
        ("DB_POOL_SIZE", "many", "a whole number from 1 to 10000"),
        ("DB_POOL_SIZE", "0", "a whole number from 1 to 10000"),
        ("DB_POOL_SIZE", "1.5", "a whole number from 1 to 10000"),
        ("DB_POOL_TIMEOUT", "nan", "a number of 0 or more"),
        ("DB_POOL_TIMEOUT", "inf", "a number of 0 or more"),
        ("AUTH_USE_AUTH", "maybe", "true or false"),
        ("LOG_LEVEL", "loud", "one of debug, info, warning, error, critical"),
        ("GET_CONTEXT_MAX_TOKENS", "250001", "a whole number from 1 to 250000"),
        ("DREAM_ENABLED_TYPES", '["nightmare"]', "a list of any of omni, card_refresh"),
        ("CORS_ORIGINS", "[1]", "a list of texts"),
        ("TELEMETRY_HEADERS", "[]", "an object (as a variable: JSON)"),
    ],
)
def test_a_wrong_value_names_setting_source_and_what_is_allowed(
    tmp_path: Path, variable: str, raw: str, allowed: str
) -> None:
    message = refusal(tmp_path, **{variable: raw})
    assert f"{variable} = " in message
    assert "(environment): must be " + allowed in message


def test_every_mistake_is_reported_at_once_with_its_source(tmp_path: Path) -> None:
    toml = (
        '[db]\npool_size = "many"\nconnection_urn = "x"\n[sever]\nport = '
        "1\n[deriver]\nmodel_config = 3"
    )
    message = refusal(
        tmp_path, toml=toml, dotenv="AUTH_USE_AUTH=perhaps\nMEMSERVICE_PLUGIN=a", POOL_TIMEOUT="-1"
    )
    file, env = str(tmp_path / "memservice.toml"), str(tmp_path / ".env")
    assert f"DB_POOL_SIZE = many ({file}, as [db] pool_size): must be" in message
    assert (
        f"there is no setting [db] connection_urn ({file}); did you mean connection_uri" in message
    )
    assert f"{file} has no section or setting called sever; did you mean server" in message
    assert f"[deriver] model_config in {file} must be a table" in message
    assert f"AUTH_USE_AUTH = perhaps ({env})" in message
    assert (
        f"there is no setting MEMSERVICE_PLUGIN ({env}); did you mean MEMSERVICE_PLUGINS" in message
    )
    assert (
        "DB_POOL_TIMEOUT = -1 (environment, as POOL_TIMEOUT): must be a number of 0 or more"
        in message
    )


def test_the_error_for_a_setting_outside_its_section_names_the_section(tmp_path: Path) -> None:
    assert "write it as [db] pool_timeout" in refusal(tmp_path, toml="pool_timeout = 3")


def test_two_names_of_one_setting_must_agree(tmp_path: Path) -> None:
    assert load(tmp_path, POOL_TIMEOUT="3", DB_POOL_TIMEOUT="3").db.pool_timeout == 3
    assert "are one setting, but have different values in environment" in refusal(
        tmp_path, POOL_TIMEOUT="3", DB_POOL_TIMEOUT="4"
    )
    assert load(tmp_path, toml="[db]\npool_timeout = 1", POOL_TIMEOUT="3").db.pool_timeout == 3


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"AUTH_USE_AUTH": "true"}, "AUTH_USE_AUTH = true needs AUTH_JWT_SECRET"),
        (
            {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "x" * 15},
            "AUTH_JWT_SECRET is only 15 bytes long, and must be 16 or more",
        ),
        (
            {
                "AUTH_USE_AUTH": "true",
                "AUTH_JWT_SECRET": "x" * 16,
                "AUTH_JWT_SECRET_PREVIOUS": "ä" * 7,
            },
            "AUTH_JWT_SECRET_PREVIOUS is only 14 bytes long, and must be 16 or more",
        ),
        (
            {"SUMMARY_MESSAGES_PER_SHORT_SUMMARY": "60"},
            "must be less than SUMMARY_MESSAGES_PER_LONG_SUMMARY = 60",
        ),
        (
            {"DERIVER_POLLING_SLEEP_INTERVAL_SECONDS": "31"},
            "must not exceed DERIVER_POLLING_SLEEP_MAX_INTERVAL_SECONDS",
        ),
        ({"TELEMETRY_ENABLED": "1"}, "needs TELEMETRY_ENDPOINT"),
        ({"LLM_PRICES": '{"m": 5}'}, "LLM_PRICES: write the prices of 'm' as"),
        (
            {"LLM_PRICES": '{"m": {"inputs": 5}}'},
            "'inputs' of 'm' is 5; known prices are input, output, cache_read, cache_write",
        ),
        ({"LLM_PRICES": '{"m": {"input": -1}}'}, "each a number of 0 or more"),
        (
            {"WEBHOOK_ALLOW_NETWORKS": '["10.0.0.0/8", "10.0.0.0/33"]'},
            "WEBHOOK_ALLOW_NETWORKS: '10.0.0.0/33' is no network",
        ),
    ],
)
def test_contradicting_settings_are_an_error(
    tmp_path: Path, sources: dict[str, str], message: str
) -> None:
    assert message in refusal(tmp_path, **sources)


@pytest.mark.parametrize("text", ["[db", "a = ", "\x00"])
def test_an_unreadable_file_is_an_error(tmp_path: Path, text: str) -> None:
    assert f"cannot read the settings in {tmp_path / 'memservice.toml'}" in refusal(
        tmp_path, toml=text
    )


def test_a_dotenv_file_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"HOST=\xff\xfe")
    assert "cannot read the settings in" in refusal(tmp_path)


def test_dotenv_has_comments_quotes_and_export(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        dotenv=(
            "# a comment\nexport HOST='::1'\nPORT=9000 # not "
            'this\nLLM_OPENAI_API_KEY=\nNAMESPACE="a $b"\n'
        ),
    )
    assert (settings.server.host, settings.server.port, settings.app.namespace) == (
        "::1",
        9000,
        "a $b",
    )
    assert settings.llm.connections == {}
    assert not settings.is_set("LLM_OPENAI_API_KEY")


def test_obsolete_settings_are_noted_and_foreign_variables_ignored(tmp_path: Path) -> None:
    dotenv = "SENTRY_ENABLED=true\nDERIVER_WORKRES=3\nDB_PORT_MAPPING=5432:5432"
    settings = load(
        tmp_path,
        "[cache]\nenabled = true",
        dotenv,
        SENTRY_DSN="x",
        DB_HOST="y",
        DB_POOL_SIZES="3",
        MEMSERVICE_TEST_X="1",
    )
    toml_file, dotenv_file = tmp_path / "memservice.toml", tmp_path / ".env"
    assert settings.notes == (
        f"without effect here: [cache] ({toml_file})",
        (
            f"there is no setting DERIVER_WORKRES ({dotenv_file}): ignored; did you mean "
            "DERIVER_WORKERS?"
        ),
        f"no settings of memservice, ignored: DB_PORT_MAPPING ({dotenv_file})",
        f"without effect here: SENTRY_ENABLED ({dotenv_file})",
        "there is no setting DB_POOL_SIZES (environment): ignored; did you mean DB_POOL_SIZE?",
        "no settings of memservice, ignored: DB_HOST (environment)",
    )
    assert [note for note in settings.notes if note in settings.mistyped] == [
        note for note in settings.notes if "did you mean" in note
    ]


@pytest.mark.parametrize(
    ("variable", "rest"),
    [
        ("DB_CONECTION_URI", "; did you mean DB_CONNECTION_URI?"),
        ("DATABASE_URL", "; the setting is DB_CONNECTION_URI"),
        ("REDIS_URI", "; did you mean REDIS_URL?"),
        ("LOGLEVEL", "; did you mean LOG_LEVEL?"),
        ("CORS_ORIGIN", "; did you mean CORS_ORIGINS?"),
        ("DERIVER_MODEL_CONFIG__MODLE", "; did you mean DERIVER_MODEL_CONFIG__MODEL?"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_a_mistyped_variable_is_named_with_the_nearest_setting(
    tmp_path: Path, variable: str, rest: str, in_file: bool
) -> None:
    given = {"dotenv": f"{variable}=x"} if in_file else {variable: "x"}
    (sentence,) = load(tmp_path, **given).mistyped
    source = tmp_path / ".env" if in_file else "environment"
    assert sentence.startswith(f"there is no setting {variable} ({source}): ignored; ")
    assert rest.rstrip("?") in sentence


def test_a_variable_of_another_program_is_no_mistake_beside_the_setting(tmp_path: Path) -> None:
    both = load(tmp_path, DATABASE_URL="postgres://h/d", DB_CONNECTION_URI="sqlite:///x.db")
    assert both.notes == ()


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HOME": "/home/u"}, "/home/u/.local/share/memservice"),
        ({"HOME": "/home/u", "XDG_DATA_HOME": "/data"}, "/data/memservice"),
        ({"HOME": "/home/u", "XDG_DATA_HOME": "relative"}, "/home/u/.local/share/memservice"),
        ({"HOME": "/home/u", "AUTH_USE_AUTH": "false"}, "/home/u/.local/share/memservice"),
        ({}, None),
        ({"HOME": "/home/u", "DB_CONNECTION_URI": "sqlite:///memservice.db"}, None),
    ],
)
def test_without_a_store_or_configuration_here_the_data_directory_is_used(
    tmp_path: Path, variables: dict[str, str], folder: str | None
) -> None:
    settings = load(tmp_path, **variables)
    assert settings.data_directory == (None if folder is None else Path(folder))
    uri = f"sqlite:///{folder}/memservice.db" if folder else "sqlite:///memservice.db"
    assert settings.db.connection_uri == uri
    if folder:
        assert row(settings, "DB_CONNECTION_URI").source == "the data directory"


@pytest.mark.parametrize(
    ("name", "text", "is_used"),
    [
        ("memservice.db", "", False),
        ("memservice.toml", "", False),
        (".env", "LOG_LEVEL=info", False),
        (".env", "OTHER=1", True),
    ],
)
def test_a_store_or_configuration_here_keeps_the_store_here(
    tmp_path: Path, name: str, text: str, is_used: bool
) -> None:
    (tmp_path / name).write_text(text)
    settings = load(tmp_path, HOME="/home/u")
    assert (settings.data_directory is not None) == is_used


def test_names_in_lower_case_are_mistakes_in_the_dotenv_file_only(tmp_path: Path) -> None:
    (sentence,) = load(tmp_path, dotenv="db_connection_uri=sqlite:///x.db").notes
    assert sentence.endswith("ignored; write DB_CONNECTION_URI")
    (tmp_path / ".env").unlink()
    assert load(tmp_path, db_connection_uri="sqlite:///x.db").notes == ()


def test_variables_that_kubernetes_sets_for_each_service_are_not_reported(tmp_path: Path) -> None:
    links = {
        "DB_SERVICE_HOST": "10.0.0.1",
        "DB_SERVICE_PORT": "5432",
        "DB_SERVICE_PORT_SQL": "5432",
        "DB_PORT_5432_TCP": "tcp://10.0.0.1:5432",
        "DB_PORT_5432_TCP_ADDR": "10.0.0.1",
    }
    assert load(tmp_path, **links).notes == ()


SECRETS = {
    "AUTH_JWT_SECRET": "hunter2-jwt",
    "AUTH_JWT_SECRET_PREVIOUS": "hunter2-jwt-before",
    "LLM_OPENAI_API_KEY": "hunter2-openai",
    "WEBHOOK_SECRET": "hunter2-hook",
    "DB_CONNECTION_URI": "postgresql+psycopg://app:hunter2@db:5432/memory?sslpassword=hunter2&x=1",
    "REDIS_URL": "redis://:hunter2/@/x@cache/0",
    "TELEMETRY_HEADERS": '{"Authorization": "hunter2"}',
    "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY": "hunter2-model",
    "VECTOR_STORE_OPTIONS": '{"password": "hunter2"}',
    "DERIVER_MODEL_CONFIG__OVERRIDES__PROVIDER_PARAMS__EXTRA_BODY": '{"token": "hunter2"}',
}


def test_secrets_are_shown_nowhere(tmp_path: Path) -> None:
    settings = load(tmp_path, **SECRETS)
    rows = settings.rows()
    assert {name for name in SECRETS if name in {row.name for row in rows}} == set(SECRETS)
    assert "hunter2" not in "\n".join(row.value_text for row in rows)
    assert "hunter2" not in repr(settings)
    assert row(settings, "AUTH_JWT_SECRET").value_text == MASK
    assert row(settings, "AUTH_JWT_SECRET").secret
    assert row(settings, "AUTH_JWT_SECRET_PREVIOUS").value_text == MASK
    assert (
        row(settings, "DB_CONNECTION_URI").value_text
        == f"postgresql+psycopg://app:{MASK}@db:5432/memory?sslpassword={MASK}&x=1"
    )


def test_secrets_are_masked_in_errors(tmp_path: Path) -> None:
    message = refusal(
        tmp_path,
        TELEMETRY_HEADERS="hunter2",
        toml='[auth]\njwt_secret = ["hunter2"]\njwt_secret_previous = ["hunter2"]',
    )
    assert "hunter2" not in message
    assert "AUTH_JWT_SECRET" in message
    assert "AUTH_JWT_SECRET_PREVIOUS" in message
    short = refusal(
        tmp_path,
        AUTH_USE_AUTH="true",
        AUTH_JWT_SECRET="hunter2",
        AUTH_JWT_SECRET_PREVIOUS="hunter2",
    )
    assert "hunter2" not in short
    assert short.count('python -c "import secrets; print(secrets.token_urlsafe(32))"') == 2


PUBLIC_TEXTS = {
    "allowed_hosts", "api_key_env", "cors_origins", "embedder", "host",
    "key_version",
    "mode", "model", "peer", "small_model", "large_model", "namespace", "only",
    "optional", "required",
    "proxies",
    "prices",
    "reasoner", "reasoning_traces_file", "schema", "stop_sequences", "trace_purposes", "transport",
    "timezone", "type",
    "v1_deprecated_since", "v2_deprecated_since", "workspace", "workspaces", "allow_networks",
}  # fmt: skip
"""Settings of any text that are shown. Add one only if no secret belongs there."""


def test_free_text_settings_are_masked_unless_listed() -> None:
    shown: set[str] = set()
    masked: set[str] = set()
    for leaf in tree(Settings).leaves:
        kind = str(leaf.type)
        if (
            leaf.meta.choices
            or kind in ("int | None", "float | None")
            or isinstance(leaf.default, (bool, int, float))
        ):
            assert leaf.meta.secrecy == "public", leaf.name
        else:
            (shown if leaf.meta.secrecy == "public" else masked).add(leaf.path[-1])
    assert shown == PUBLIC_TEXTS
    assert masked >= {
        "extra_body",
        "extra_headers",
        "extra_query",
        "options",
        "jwt_secret",
        "api_key",
        "headers",
    }


def test_a_new_setting_is_masked_by_default() -> None:
    def meta(default: Any, **declared: Any) -> Any:
        return setting(default, "help", **declared).metadata["memservice"].secrecy

    assert [meta("text"), meta(None), meta({}), meta(())] == ["secret"] * 4
    assert [meta(5), meta(False), meta(None, low=0), meta("a", choices=("a", "b"))] == [
        "public"
    ] * 4
    assert [meta("x", secrecy="public"), meta(5, secrecy="secret")] == ["public", "secret"]


def test_a_key_in_place_of_a_variable_s_name_is_not_shown(tmp_path: Path) -> None:
    name = "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY_ENV"
    message = refusal(tmp_path, **{name: "sk-proj-hunter2"})
    assert f"{name} = {MASK}: that variable is not set" in message
    assert "hunter2" not in message


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
        lambda text: text.strip("*") == text
    )
)
def test_masking_removes_every_password(password: str) -> None:
    if len(password) < 4:
        password = f"<<{password}>>"
    masked = mask_uri(f"scheme://user:{password}@host/db")
    assert masked == f"scheme://user:{MASK}@host/db"


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
        known = name in tree(Settings).by_variable or families.of_variable(name)
        assert known or name == "MEMSERVICE_CONFIG", name


def test_every_setting_has_help_and_round_trips(tmp_path: Path) -> None:
    rows = Settings().rows(everything=True)
    assert all(row.help for row in rows)
    assert len({row.name for row in rows}) == len(rows)
    given = {
        row.name: row.value_text for row in rows if row.value_text and "FALLBACK" not in row.name
    }
    assert load_settings(environ=given, cwd=tmp_path) == Settings()


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().db.pool_size = 3  # type: ignore[misc]


def test_groups_become_plain_values() -> None:
    mapping = Settings().embedding.model_config.as_mapping()
    assert mapping["overrides"]["provider_params"]["extra_body"] == {}
    assert (mapping["model"], mapping["transport"]) == (None, "openai")


def test_importing_the_settings_imports_little() -> None:
    code = "import memservice.settings, sys; print(*sys.modules)"
    done = subprocess.run(
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
    assert heavy & set(done.stdout.split()) == set()
