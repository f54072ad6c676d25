"""Which reasoner does which task, and where its model is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError
from memservice.plugins import load_plugins
from memservice.reasoning import choice
from memservice.reasoning.models import is_configured, target
from memservice.reasoning.warnings import warnings
from memservice.settings import Settings, load_settings
from support.reasoning.model import ScriptedModel


def choose(settings: Settings) -> Mapping[str, str]:
    return choice.choose(settings, load_plugins(settings))


def loaded(folder: Path, **settings: str) -> Settings:
    return load_settings(environ=settings, cwd=folder)


def test_without_any_model_everything_is_extractive(tmp_path: Path) -> None:
    chosen = choose(loaded(tmp_path))
    assert set(chosen.values()) == {"extractive"}
    assert set(chosen) == {
        "derive",
        "summarize",
        "consolidate",
        *(f"answer.{level}" for level in choice.ANSWER_LEVELS),
    }
    assert choice.shown(chosen) == "extractive"


@pytest.mark.parametrize("name", ["LLM_OPENAI_API_KEY", "LLM_OPENAI_BASE_URL"])
def test_a_key_or_a_url_configures_every_task_of_that_transport(tmp_path: Path, name: str) -> None:
    assert choice.shown(choose(loaded(tmp_path, **{name: "http://localhost:11434/v1"}))) == "llm"


def test_another_transports_key_configures_nothing(tmp_path: Path) -> None:
    assert choice.shown(choose(loaded(tmp_path, LLM_ANTHROPIC_API_KEY="k"))) == "extractive"


def test_each_task_has_its_own_choice(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        LLM_ANTHROPIC_API_KEY="k",
        DERIVER_MODEL_CONFIG__MODEL="anthropic/claude-x",
        SUMMARY_MODEL_CONFIG__OVERRIDES__BASE_URL="http://localhost:1234/v1",
        DIALECTIC_LEVELS__HIGH__MODEL_CONFIG__OVERRIDES__API_KEY="k2",
    )
    chosen = choose(settings)
    assert [task for task, name in chosen.items() if name == "llm"] == [
        "derive",
        "summarize",
        "answer.high",
    ]
    assert choice.shown(chosen).startswith("derive llm, summarize llm, consolidate extractive, ")


def test_a_transport_of_a_third_party_plugin_counts_as_configured(tmp_path: Path) -> None:
    assert choose(loaded(tmp_path, DERIVER_MODEL_CONFIG__TRANSPORT="scripted"))["derive"] == "llm"


def test_llm_for_everything_needs_every_model(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"summarize.*LLM_OPENAI_API_KEY or LLM_OPENAI_BASE_URL"
    ):
        choose(loaded(tmp_path, REASONER="llm", DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY="k"))
    assert choice.shown(choose(loaded(tmp_path, REASONER="llm", LLM_OPENAI_API_KEY="k"))) == "llm"


def test_a_configured_reasoner_does_every_task_despite_a_model(tmp_path: Path) -> None:
    assert (
        choice.shown(choose(loaded(tmp_path, REASONER="extractive", LLM_OPENAI_API_KEY="k")))
        == "extractive"
    )


def test_a_models_own_url_overrides_that_of_its_transport(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        LLM_OPENAI_API_KEY="common",
        LLM_OPENAI_BASE_URL="http://common",
        DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY="own",
        DERIVER_MODEL_CONFIG__OVERRIDES__PROVIDER_PARAMS=(
            '{"timeout": 7, "extra_body": {"a": 1}, "extra_headers": {"X-B": "2"}}'
        ),
        DERIVER_MODEL_CONFIG__SEED="5",
        DERIVER_MODEL_CONFIG__REASONING_EFFORT="low",
        DERIVER_MODEL_CONFIG__CACHE_POLICY__TTL_SECONDS="60",
    )
    plugins = load_plugins(settings)
    own, common = (
        target(settings.llm, settings.deriver.model_config, plugins),
        target(settings.llm, settings.summary.model_config, plugins),
    )
    assert own.connection == {
        "api_key": "own",
        "base_url": "http://common",
        "timeout": 7,
        "extra_body": {"a": 1},
        "extra_headers": {"X-B": "2"},
        "extra_query": {},
    }
    assert own.options == {"seed": 5, "thinking_effort": "low", "cache_policy": {"ttl_seconds": 60}}
    assert (common.connection["api_key"], common.options) == ("common", {})
    assert "own" not in repr(own)


def test_a_key_may_be_in_another_variable(tmp_path: Path) -> None:
    name = {"DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY_ENV": "MY_KEY"}
    settings = loaded(tmp_path, **name, MY_KEY="s3cret")
    plugins = load_plugins(settings)
    assert (
        target(settings.llm, settings.deriver.model_config, plugins).connection["api_key"]
        == "s3cret"
    )
    row = next(
        row for row in settings.rows() if row.name == "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY"
    )
    assert (row.source, "s3cret" in row.value_text) == ("the variable MY_KEY", False)
    (tmp_path / ".env").write_text("MY_KEY=from-the-file\n")
    settings = loaded(tmp_path, **name)
    assert (
        target(settings.llm, settings.deriver.model_config, plugins).connection["api_key"]
        == "from-the-file"
    )
    assert is_configured(settings.llm, settings.deriver.model_config, load_plugins(settings))


def test_an_unset_variable_contains_no_key(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError,
        match="DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY_ENV = MY_KEY: that variable is not set",
    ):
        loaded(tmp_path, DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY_ENV="MY_KEY")


def test_the_runtime_returns_the_reasoner_of_each_task(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path, DB_CONNECTION_URI="memory://", DERIVER_MODEL_CONFIG__TRANSPORT="scripted"
    )
    runtime = open_runtime(settings, plugins=load_plugins(settings, extra=[ScriptedModel()]))
    try:
        assert runtime.reasoner_for(choice.DERIVE).name == "llm"
        assert runtime.reasoner_for(choice.DERIVE) is runtime.reasoner_for(choice.DERIVE)
        assert runtime.reasoner_for(choice.SUMMARIZE).name == "extractive"
    finally:
        runtime.close()


def warned(folder: Path, **variables: str) -> str:
    settings = loaded(folder, **variables)
    return "\n".join(warnings(settings, load_plugins(settings)))


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"LLM_ANTHROPIC_API_KEY": "hunter2"},
            "LLM_ANTHROPIC_API_KEY is set, but no task uses it: every task asks openai. "
            "To use it, set LLM_MODEL to one of its models and LLM_TRANSPORT to its name",
        ),
        (
            {"LLM_OPENAI_API_KEY": "hunter2", "LLM_MINE_BASE_URL": "http://h"},
            "LLM_MINE_BASE_URL is set, but no task uses it",
        ),
        (
            {"LLM_OPENAI_API_KEY": "hunter2", "REASONER": "extractive"},
            "LLM_OPENAI_API_KEY is set, but no task uses it: "
            "REASONER = extractive asks no language model",
        ),
        (
            {"LLM_OPENAI_BASE_URL": "http://u:hunter2@127.0.0.1:11434/v1"},
            "answer.max, consolidate.induction: 127.0.0.1:11434 is asked for gpt-5.4-mini, "
            "because no model is named. Set LLM_MODEL",
        ),
        (
            {"LLM_ANTHROPIC_API_KEY": "hunter2", "LLM_TRANSPORT": "anthropic"},
            "the transport anthropic is asked for gpt-5.4-mini",
        ),
    ],
)
def test_likely_mistakes_cause_a_warning(
    tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    text = warned(tmp_path, **variables)
    assert message in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"LLM_OPENAI_API_KEY": "k"},
        {"LLM_OPENAI_API_KEY": "k", "LLM_OPENAI_BASE_URL": "https://api.openai.com/v1"},
        {"LLM_OPENAI_BASE_URL": "http://h/v1", "LLM_MODEL": "m"},
        {"LLM_GEMINI_API_KEY": "k", "EMBEDDER": "gemini"},
        {"LLM_OPENAI_API_KEY": "k", "LLM_GEMINI_API_KEY": "k", "LLM_FALLBACK__MODEL": "gemini/m"},
    ],
)
def test_settings_that_fit_cause_no_warning(tmp_path: Path, variables: dict[str, str]) -> None:
    assert warned(tmp_path, **variables) == ""
