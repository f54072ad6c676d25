"""Settings of plugins: `[plugins.NAME]`, `PLUGIN_NAME__FIELD`, and what `config show` prints."""

from __future__ import annotations

import dataclasses
import logging
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from marshmallow import Schema, fields, validate

from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError
from memservice.hookspecs import hookimpl
from memservice.plugins import Plugins, load_plugins, setting_rows
from memservice.settings import Settings, load_settings
from memservice.spi import providers as p

CONTEXT = p.Context(
    clock=lambda: datetime(2026, 1, 1, tzinfo=UTC), logger=logging.getLogger("test")
)


def plugin(name: str, **hooks: Callable[..., Any]) -> types.ModuleType:
    """A plugin with these hooks."""
    module = types.ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, hook, hookimpl(function))
    return module


def settings_with(**switches: Any) -> Settings:
    settings = Settings()
    return replace(settings, plugins=replace(settings.plugins, **switches))


def open_nothing(settings: p.Settings, context: p.Context) -> Any:
    return settings


class Depths(Schema):
    depth = fields.Integer(load_default=1, validate=validate.Range(min=1))
    names = fields.List(fields.String(), load_default=list)
    token = fields.String(load_default=None)


PROVIDERS: dict[str, tuple[type, str]] = {
    "memservice_storages": (p.StorageProvider, "storage"),
    "memservice_vector_indexes": (p.VectorIndexProvider, "vector_index"),
    "memservice_llms": (p.LanguageModelProvider, "language_model"),
    "memservice_embedders": (p.EmbedderProvider, "embedder"),
    "memservice_reasoners": (p.ReasonerProvider, "reasoner"),
    "memservice_webhook_transports": (p.WebhookTransportProvider, "webhook_transport"),
}


def with_options(hook: str, options: dict[str, dict[str, Any]]) -> Plugins:
    """A plugin with one provider `my-own` of a kind, beside the installed ones."""
    record, _ = PROVIDERS[hook]
    offer = record(name="my-own", open=open_nothing, settings=Depths)
    settings = settings_with()
    settings = replace(settings, plugins=replace(settings.plugins, options=options))
    return load_plugins(settings, [plugin("mine", **{hook: lambda: [offer]})])


@pytest.mark.parametrize("hook", PROVIDERS)
def test_every_kind_of_provider_gets_its_own_settings(hook: str) -> None:
    loaded = with_options(hook, {"my_own": {"depth": "5", "names": '["a", "b"]'}})
    loaded.check_options()
    provider = getattr(loaded, PROVIDERS[hook][1])("my-own")
    opened = loaded.open_provider(provider, {"depth": 2, "other": True}, CONTEXT)
    assert opened == {"depth": 5, "names": ["a", "b"], "token": None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"my_owm": {"depth": 5}}, r"\[plugins.my_owm\].*did you mean my_own\?"),
        ({"xyz": {"depth": 5}}, r"\[plugins.xyz\].*known: .*jsonl.*my_own"),
        ({"my_own": {"dept": 5}}, r"\[plugins.my_own\] dept: .*did you mean depth\?"),
        ({"my_own": {"zzz": 5}}, r"\[plugins.my_own\] zzz: .*known: depth, names, token"),
        ({"hashed": {"depth": 5}}, r"\[plugins.hashed\] depth: .*known: none"),
    ],
)
def test_errors_for_unknown_plugins_and_fields_list_the_known_ones(
    options: dict[str, dict[str, Any]], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        with_options("memservice_reasoners", options).check_options()


def test_the_error_for_a_wrong_plugin_setting_names_it_without_its_value() -> None:
    options = {"my_own": {"depth": "hunter2", "names": "hunter2"}}
    loaded = with_options("memservice_reasoners", options)
    with pytest.raises(ConfigurationError) as caught:
        loaded.open_provider(loaded.reasoner("my-own"), {}, CONTEXT)
    assert "plugins.my_own.depth: Not a valid integer." in str(caught.value)
    assert "plugins.my_own.names: Not a valid list." in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_unknown_plugin_setting_prevents_the_start(tmp_path: Path) -> None:
    environ = {"DB_CONNECTION_URI": "memory://", "PLUGIN_JSONL__DIRECTRY": "/d"}
    settings = load_settings(environ=environ, cwd=tmp_path)
    with pytest.raises(ConfigurationError, match="did you mean directory"):
        open_runtime(settings)


# --- settings of hooks


@dataclass(frozen=True)
class Window:
    hours: int = 1


@dataclass(frozen=True)
class Masking:
    word: str
    mark: str = field(default="[masked]", metadata={"secrecy": "public", "help": "written instead"})
    limit: int | None = field(default=None, metadata={"validate": validate.Range(min=1)})
    roles: tuple[str, ...] = ()
    mode: Literal["mask", "refuse"] = "mask"
    folder: Path | None = None
    window: Window = Window()

    def __post_init__(self) -> None:
        if self.word == self.mark:
            raise ValueError("mark must differ from word")


class Words(Schema):
    word = fields.String(required=True)


class Recorder:
    """What `use` was called with."""

    def __init__(self) -> None:
        self.settings: list[Any] = []

    def use(self, settings: Any) -> None:
        self.settings.append(settings)


def with_hooks(
    options: dict[str, dict[str, Any]],
    declared: type[Any] = Masking,
    use: Callable[[Any], None] | None = None,
) -> tuple[Plugins, Recorder]:
    """A plugin `masking` that redacts and declares settings, alone."""
    recorder = Recorder()
    record = p.PluginSettings("Masking", declared, use or recorder.use)
    module = plugin(
        "redact",
        memservice_plugin_settings=lambda: [record],
        memservice_message_storing=lambda message: None,
    )
    return load_plugins(settings_with(only=(), options=options), [module]), recorder


def test_hooks_get_an_instance_of_their_dataclass() -> None:
    table = {"word": "tulip", "limit": "7", "roles": '["a", "b"]', "folder": "/d"}
    loaded, recorder = with_hooks({"masking": {**table, "window": '{"hours": 2}'}})
    loaded.check()
    assert recorder.settings == [
        Masking("tulip", limit=7, roles=("a", "b"), folder=Path("/d"), window=Window(2))
    ]


def test_hooks_get_what_their_schema_makes() -> None:
    loaded, recorder = with_hooks({"masking": {"word": "tulip"}}, Words)
    loaded.check()
    assert recorder.settings == [{"word": "tulip"}]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, r"plugins\.masking\.word: Missing data.*PLUGIN_MASKING__WORD"),
        ({"word": "x", "limit": "0"}, r"plugins\.masking\.limit: Must be greater"),
        ({"word": "x", "limit": 2.5}, r"plugins\.masking\.limit: Not a valid integer"),
        ({"word": "x", "limit": True}, r"plugins\.masking\.limit: Not a valid integer"),
        ({"word": "x", "mode": "drop"}, r"plugins\.masking\.mode: Must be one of: mask, refuse"),
        ({"word": "x", "window": {"hours": "y"}}, r"plugins\.masking\.window\.hours: Not a valid"),
        ({"word": "x", "mark": "x"}, r"plugins\.masking: mark must differ from word"),
        ({"word": "x", "limt": 2}, r"\[plugins\.masking\] limt: .*did you mean limit\?"),
        ({"word": "x", "zzz": 2}, r"zzz: .*known: folder, limit, mark, mode, roles, window, word"),
    ],
)
def test_wrong_settings_of_hooks_prevent_the_start(table: dict[str, Any], message: str) -> None:
    loaded, _ = with_hooks({"masking": table})
    with pytest.raises(ConfigurationError, match=message):
        loaded.check()


def test_a_value_that_no_opened_provider_uses_is_checked_too() -> None:
    with pytest.raises(ConfigurationError, match=r"plugins\.my_own\.depth: Must be greater"):
        with_options("memservice_reasoners", {"my_own": {"depth": "0"}}).check()


def test_a_plugin_may_refuse_its_settings() -> None:
    def use(masking: Masking) -> None:
        raise ConfigurationError("the word is too common")

    loaded, _ = with_hooks({"masking": {"word": "the"}}, use=use)
    with pytest.raises(ConfigurationError, match="the word is too common"):
        loaded.check()


def test_a_plugin_that_fails_on_its_settings_is_not_used() -> None:
    def use(masking: Masking) -> None:
        raise RuntimeError("no")

    loaded, _ = with_hooks({"masking": {"word": "x"}}, use=use)
    assert [failure.reason for failure in loaded.failures] == [
        "cannot use its settings: RuntimeError: no"
    ]
    assert loaded.hook.memservice_message_storing(message=None) == []
    with pytest.raises(ConfigurationError, match="can change or reject what is stored"):
        loaded.check()


def test_a_wrong_declaration_of_settings_is_a_failure() -> None:
    module = plugin("odd", memservice_plugin_settings=lambda: ["text"])
    (failure,) = load_plugins(settings_with(only=()), [module]).failures
    assert failure.reason == (
        "memservice_plugin_settings failed: TypeError: returns str, not PluginSettings"
    )


def test_a_field_of_a_type_that_settings_cannot_have_is_a_failure() -> None:
    @dataclass
    class Odd:
        when: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    loaded, _ = with_hooks({}, Odd)
    (failure,) = loaded.failures
    assert failure.reason == (
        "cannot use its settings: TypeError: a setting cannot be <class 'datetime.datetime'>"
    )


def test_a_provider_gets_an_instance_of_its_dataclass() -> None:
    offer = p.EmbedderProvider("masking", open_nothing, settings=Masking)
    module = plugin("one", memservice_embedders=lambda: [offer])
    options = {"masking": {"word": "tulip"}}
    loaded = load_plugins(settings_with(only=(), options=options), [module])
    opened = loaded.open_provider(loaded.embedder("masking"), {"limit": 3, "other": 1}, CONTEXT)
    assert opened == Masking("tulip", limit=3)
    with pytest.raises(ConfigurationError, match=r"embedding\.model_config: mark must differ"):
        loaded.open_provider(offer, {"mark": "tulip"}, CONTEXT)


def test_settings_of_hooks_come_from_file_and_environment(tmp_path: Path) -> None:
    (tmp_path / "memservice.toml").write_text(
        '[plugins.masking]\nword = "tulip"\nroles = ["a"]\n', encoding="utf-8"
    )
    environ = {"PLUGIN_MASKING__WORD": "rose", "MEMSERVICE_PLUGINS": "hashed"}
    settings = load_settings(environ=environ, cwd=tmp_path)
    recorder = Recorder()
    record = p.PluginSettings("masking", Masking, recorder.use)
    load_plugins(settings, [plugin("redact", memservice_plugin_settings=lambda: [record])]).check()
    assert recorder.settings == [Masking("rose", roles=("a",))]


# --- config show


def shown(options: dict[str, Any], everything: bool = False) -> dict[str, tuple[str, str]]:
    sources = {f"PLUGIN_MASKING__{name.upper()}": "environment" for name in options}
    settings = dataclasses.replace(
        settings_with(only=(), options={"masking": options}), sources=sources
    )
    record = p.PluginSettings("masking", Masking, lambda masking: None)
    module = plugin("redact", memservice_plugin_settings=lambda: [record])
    rows = setting_rows(settings, load_plugins(settings, [module]), everything)
    return {
        row.name.removeprefix("PLUGIN_MASKING__"): (row.value_text, row.source)
        for row in rows
        if row.name.startswith("PLUGIN_")
    }


def test_the_settings_of_plugins_are_shown_without_secrets() -> None:
    values = {"word": "hunter2", "mark": "[gone]", "limit": "7", "mode": "refuse"}
    assert shown(values) == {
        "WORD": ("********", "environment"),
        "MARK": ("[gone]", "environment"),
        "LIMIT": ("7", "environment"),
        "MODE": ("refuse", "environment"),
    }


def test_all_settings_of_plugins_can_be_shown() -> None:
    rows = shown({"word": "hunter2"}, everything=True)
    assert rows["MARK"] == ("[masked]", "default")
    assert rows["MODE"] == ("mask", "default")
    assert rows["LIMIT"] == ("", "default")


def test_settings_of_a_plugin_that_is_not_loaded_are_masked() -> None:
    settings = load_settings(environ={"PLUGIN_GONE__NAME": "hunter2"}, cwd=Path("/nonexistent"))
    rows = setting_rows(settings, load_plugins(settings))
    (row,) = [row for row in rows if row.name.startswith("PLUGIN_")]
    assert (row.name, row.value_text) == ("PLUGIN_GONE__NAME", "********")
