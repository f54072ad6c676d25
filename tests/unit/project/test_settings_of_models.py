"""Settings of models: transports, tasks, keys and plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from memservice.reasoning.choice import all_models_of
from memservice.settings import Settings
from memservice.settings.connections import connection
from memservice.settings.models import Overrides
from memservice.settings.values import MASK
from support.project.settings_sources import load, refusal, row


def choices(settings: Settings) -> dict[str, tuple[str, str]]:
    """Transport and model of every task."""
    return {task: (model.transport, model.model) for task, model in all_models_of(settings).items()}


def test_one_model_serves_every_task(tmp_path: Path) -> None:
    settings = load(tmp_path, LLM_OPENAI_BASE_URL="http://h/v1", LLM_MODEL="qwen3:8b")
    assert set(choices(settings).values()) == {("openai", "qwen3:8b")}
    assert row(settings, "SUMMARY_MODEL_CONFIG__MODEL").source == "follows LLM_MODEL"


@pytest.mark.slow
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
    ("variables", "transport"),
    [
        ({"LLM_ANTHROPIC_API_KEY": "k"}, "anthropic"),
        ({"LLM_MINE_BASE_URL": "http://h"}, "mine"),
        ({"LLM_ANTHROPIC_API_KEY": "k", "LLM_OPENAI_API_KEY": "k"}, "openai"),
        ({"LLM_ANTHROPIC_API_KEY": "k", "LLM_TRANSPORT": "gemini"}, "gemini"),
        ({"LLM_ANTHROPIC_API_KEY": "k", "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY": "o"}, "openai"),
    ],
)
def test_the_only_transport_with_a_key_or_a_url_is_used(
    tmp_path: Path, variables: dict[str, str], transport: str
) -> None:
    assert load(tmp_path, LLM_MODEL="m", **variables).deriver.model_config.transport == transport


def test_a_key_alone_chooses_no_transport_for_the_default_model(tmp_path: Path) -> None:
    settings = load(tmp_path, LLM_ANTHROPIC_API_KEY="k")
    assert set(choices(settings).values()) == {("openai", "gpt-5.4-mini")}


@pytest.mark.slow
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


@pytest.mark.slow
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
