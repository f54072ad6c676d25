"""Plugins: loading them, finding what they offer, and the sentences when something is wrong with
one."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import pluggy
import pytest
from flask import Blueprint, Flask
from marshmallow import Schema, fields, validate
from msgspec import Struct

from memservice import hookspecs
from memservice.domain.errors import ConfigurationError
from memservice.hookspecs import hookimpl
from memservice.plugins import KINDS, Plugins, load_plugins, loading
from memservice.settings import Settings, load_settings
from memservice.spi import providers as p
from memservice.spi.web import ADMIN, OPEN, Access, declared

CONTEXT = p.Context(
    clock=lambda: datetime(2026, 1, 1, tzinfo=UTC), logger=logging.getLogger("test")
)
HOOKS = [name for name in vars(hookspecs) if name.startswith("memservice_")]

Distributions = Callable[..., None]


def example(hook: str) -> types.ModuleType:
    """The example in a hook's docstring, executed as a plugin of its own."""
    text = getattr(hookspecs, hook).__doc__
    code = re.search(r"```python\n(.*?)```", text, flags=re.S)
    assert code is not None, f"{hook} has no example"
    module = types.ModuleType(f"example_{hook}")
    lines = code.group(1).split("\n")
    source = "\n".join(line.removeprefix("    ") for line in lines)
    exec(compile(source, module.__name__, "exec", dont_inherit=True), module.__dict__)
    plugin: types.ModuleType = getattr(module, "plugin", module)
    return plugin


def plugin(name: str, **hooks: Callable[..., Any]) -> types.ModuleType:
    """A plugin with these hooks."""
    module = types.ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, hook, hookimpl(function))
    return module


def only(extra: object, *more: object) -> Plugins:
    """Nothing but the given plugins."""
    return load_plugins(settings_with(only=()), (extra, *more))


def settings_with(only: tuple[str, ...] | None = None, **switches: Any) -> Settings:
    settings = Settings()
    return replace(settings, plugins=replace(settings.plugins, only=only, **switches))


def open_nothing(settings: p.Settings, context: p.Context) -> Any:
    return settings


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Distributions]:
    """Installs distributions:
    `installed("dist", module_source, entry_name, module_name, extras)`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    # As in a folder of packages: the first module that is compiled there would change the folder,
    # after which it is searched again.
    (tmp_path / "__pycache__").mkdir()
    before = set(sys.modules)

    def install(dist: str, source: str, entry: str, module: str, extras: str = "") -> None:
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
        info = tmp_path / f"{dist.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        provides = "".join(f"Provides-Extra: {extra}\n" for extra in extras.split())
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {dist}\nVersion: 1.2\n{provides}", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(
            f"[memservice]\n{entry} = {module}\n", encoding="utf-8"
        )

    yield install
    for name in set(sys.modules) - before:
        if name.startswith("stranger"):
            del sys.modules[name]


STORAGE = """
from memservice.hookspecs import hookimpl
from memservice.spi.providers import StorageProvider

@hookimpl
def memservice_storages():
    yield StorageProvider(name="attic", open=lambda settings, context: "opened")
"""


# --- every hook, by its name


def test_every_hook_has_a_test_of_its_name() -> None:
    assert [hook for hook in HOOKS if f"test_{hook}" not in globals()] == []


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented_with_a_working_example(hook: str) -> None:
    text = getattr(hookspecs, hook).__doc__
    assert re.search(r"Called (once|before|after)", text), "says when it is called"
    loaded = only(example(hook))
    assert loaded.failures == ()
    assert hook in {
        caller.name
        for caller in loaded._manager.get_hookcallers(next(iter(loaded._manager.get_plugins())))
        or []
    }


def test_memservice_storages() -> None:
    provider = only(example("memservice_storages")).storage("shelf:///somewhere")
    assert (type(provider), provider.name, provider.spi) == (
        p.StorageProvider,
        "shelf",
        p.SPI_VERSION,
    )


def test_memservice_vector_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = only(example("memservice_vector_indexes"))
    engine: Any = types.ModuleType("my_engine")
    engine.Index = lambda url: ("index at", url)
    monkeypatch.setitem(sys.modules, "my_engine", engine)
    assert loaded.open_provider(loaded.vector_index("my-engine"), {"url": "here"}, CONTEXT) == (
        "index at",
        "here",
    )


def test_memservice_llms() -> None:
    from memservice.spi.llm import Completion, CompletionRequest, Turn

    loaded = only(example("memservice_llms"))
    model = loaded.open_provider(loaded.language_model("parrot"), {}, CONTEXT)
    request = CompletionRequest(model="any", turns=[Turn("user", "hello")], max_output_tokens=5)
    assert model.complete(request) == Completion(content="hello")
    assert list(model.stream(request)) == ["hello", Completion(content="hello")]


def test_memservice_embedders() -> None:
    loaded = only(example("memservice_embedders"))
    embedder = loaded.open_provider(loaded.embedder("lengths"), {}, CONTEXT)
    (vector,) = embedder.embed(["abc"])
    assert vector.dtype == "float32"
    assert float(vector @ vector) == pytest.approx(1)
    assert len(vector) == embedder.dimension


def test_memservice_reasoners() -> None:
    loaded = only(example("memservice_reasoners"))
    reasoner = loaded.open_provider(loaded.reasoner("verbatim"), {}, CONTEXT)
    message = types.SimpleNamespace(new=True, author="a", content="I like tea.", key=7)
    (statement,) = reasoner.derive(
        types.SimpleNamespace(messages=[message], observed="a")
    ).statements
    assert statement.content == "I like tea."
    assert list(
        reasoner.answer(types.SimpleNamespace(evidence=[types.SimpleNamespace(content="x")]))
    ) == ["x\n"]


def test_memservice_webhook_transports(capsys: pytest.CaptureFixture[str]) -> None:
    loaded = only(example("memservice_webhook_transports"))
    transport = loaded.open_provider(loaded.webhook_transport("print://anywhere"), {}, CONTEXT)
    assert transport.check("print://anywhere") is None
    assert transport.deliver("print://anywhere", b"{}", {}).status == 200
    assert capsys.readouterr().out == "print://anywhere {}\n"


def test_memservice_plugin_settings() -> None:
    options = {"masking": {"word": "tulip"}}
    loaded = load_plugins(
        settings_with(only=(), options=options), [example("memservice_plugin_settings")]
    )
    loaded.check()
    message = Note("my tulip")
    (changed,) = loaded.hook.memservice_message_storing(message=message)
    assert changed.content == "my [masked]"


def test_memservice_app_started(caplog: pytest.LogCaptureFixture) -> None:
    app = Flask("test")
    with caplog.at_level(logging.INFO, logger="test"):
        only(example("memservice_app_started")).hook.memservice_app_started(app=app)
    assert "hello" in caplog.messages


def test_memservice_cli_commands() -> None:
    ((command,),) = [
        list(answer)
        for answer in only(example("memservice_cli_commands")).hook.memservice_cli_commands()
    ]
    assert isinstance(command, click.Command)
    assert command.name == "hello"


def test_memservice_blueprints() -> None:
    app = Flask("test")
    for answer in only(example("memservice_blueprints")).hook.memservice_blueprints(
        settings=None, pages=[]
    ):
        for blueprint in answer:
            assert isinstance(blueprint, Blueprint)
            app.register_blueprint(blueprint)
    assert app.test_client().get("/extra").get_json() == {"extra": True}
    assert declared(app.view_functions["extra.answer"]) == OPEN
    assert declared(app.view_functions["extra.answer_keys_of"]) == Access(workspace="workspace_id")


def test_memservice_console_pages(tmp_path: Path) -> None:
    module = example("memservice_console_pages")
    module.__file__ = str(tmp_path / "plugin.py")
    (page,) = next(iter(only(module).hook.memservice_console_pages()))
    assert (page.name, page.path, page.access) == ("Storage", "storage", ADMIN)
    assert page.template == tmp_path / "storage.html"


class Note(Struct, frozen=True):
    """As much of a message as the examples use."""

    content: str


def test_memservice_message_storing() -> None:
    answers = only(example("memservice_message_storing")).hook.memservice_message_storing(
        message=Note("pay 4111 1111")
    )
    assert answers == [Note("pay [card]")]


def test_memservice_conclusion_storing() -> None:
    hook = only(example("memservice_conclusion_storing")).hook.memservice_conclusion_storing
    texts = ("his Password is x", "likes tea")
    assert [hook(conclusion=types.SimpleNamespace(content=text)) for text in texts] == [
        [False],
        [True],
    ]


def test_memservice_event_emitted(capsys: pytest.CaptureFixture[str]) -> None:
    only(example("memservice_event_emitted")).hook.memservice_event_emitted(
        type="queue.empty", data={}
    )
    assert capsys.readouterr().out == "queue.empty\n"


# --- loading


class Proxy:
    """Part of a module that runs code of its own when it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} was looked at")


class OfObject:
    @hookimpl
    def memservice_vector_indexes(self) -> list[p.VectorIndexProvider]:
        return []

    @staticmethod
    @hookimpl
    def memservice_storages() -> list[p.StorageProvider]:
        return []

    @classmethod
    @hookimpl
    def memservice_llms(cls) -> list[p.LanguageModelProvider]:
        return []


def test_hooks_of_modules_are_those_that_pluggy_finds() -> None:
    own, plain = loading.HookManager("memservice"), pluggy.PluginManager("memservice")
    module = types.ModuleType("named")
    vars(module).update(
        proxy=Proxy(),
        function=vars(OfObject)["memservice_vector_indexes"],
        static=vars(OfObject)["memservice_storages"],
        bound=OfObject.memservice_llms,
    )
    entries = [entry.load() for entry in metadata.entry_points(group="memservice")]
    plugins: tuple[Any, ...] = (hookspecs, module, OfObject, OfObject(), *entries)
    for plugin in plugins:
        for name in dir(plugin):
            options = own.parse_hookimpl_opts(plugin, name)
            assert options == plain.parse_hookimpl_opts(plugin, name), (plugin, name)
            specified = own.parse_hookspec_opts(plugin, name)
            assert specified == plain.parse_hookspec_opts(plugin, name), (plugin, name)
    hooks = {name for name in dir(module) if own.parse_hookimpl_opts(module, name)}
    assert hooks == {"function", "static", "bound"}


def test_built_in_plugins_load_through_entry_points() -> None:
    loaded = load_plugins()
    assert loaded.failures == ()
    assert loaded.embedder("hashed").name == "hashed"


def test_installed_distributions_are_searched_once_until_one_is_added(
    installed: Distributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[str] = []

    def counted(*, group: str) -> metadata.EntryPoints:
        searches.append(group)
        return metadata.entry_points(group=group)

    monkeypatch.setattr(loading, "entry_points", counted)
    installed("stranger", STORAGE, "attic", "stranger_attic")
    names = [load_plugins().names("storage"), load_plugins().names("storage")]
    assert len(searches) == 1
    assert all("attic" in named for named in names)
    installed("stranger-two", STORAGE.replace("attic", "cellar"), "cellar", "stranger_cellar")
    assert {"attic", "cellar"} <= set(load_plugins().names("storage"))


def test_a_third_party_plugin_is_found(installed: Distributions) -> None:
    installed("stranger", STORAGE, "attic", "stranger_attic")
    loaded = load_plugins()
    assert loaded.open_provider(loaded.storage("attic+driver://x"), {}, CONTEXT) == "opened"
    assert ("storage", "attic", "attic", "stranger 1.2", "") in {
        (row.kind, row.name, row.plugin, row.distribution, row.detail) for row in loaded.listing()
    }


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "import a_module_that_is_not_there",
            "cannot be imported: ModuleNotFoundError: No module named 'a_module_that_is_not_there'",
        ),
        ("1/0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("def (:", "cannot be imported: SyntaxError"),
    ],
)
def test_a_broken_plugin_is_recorded_and_stops_no_other(
    installed: Distributions, source: str, reason: str
) -> None:
    installed("stranger", source, "attic", "stranger_attic")
    loaded = load_plugins()
    (failure,) = loaded.failures
    assert failure.origin.distribution == "stranger 1.2"
    assert failure.reason.startswith(reason)
    assert loaded.embedder("hashed").name == "hashed"
    assert [(row.kind, row.plugin) for row in loaded.listing() if row.kind == "failed"] == [
        ("failed", "attic")
    ]
    with pytest.raises(
        ConfigurationError,
        match=(
            r"storage 'attic' cannot be used \(plugin 'attic' of stranger 1\.2\): cannot be "
            r"imported"
        ),
    ):
        loaded.storage("attic://x")
    with pytest.raises(ConfigurationError, match="failed to load: attic"):
        loaded.storage("cellar://x")


def test_a_hook_that_raises_is_recorded(installed: Distributions) -> None:
    installed("stranger", STORAGE.replace("yield", "1/0; yield"), "attic", "stranger_attic")
    loaded = load_plugins()
    assert [failure.reason for failure in loaded.failures] == [
        "memservice_storages failed: ZeroDivisionError: division by zero"
    ]
    with pytest.raises(ConfigurationError, match="memservice_storages failed"):
        loaded.storage("attic")


def test_a_misspelt_hook_is_reported(installed: Distributions) -> None:
    installed(
        "stranger",
        STORAGE.replace("memservice_storages", "memservice_storage"),
        "attic",
        "stranger_attic",
    )
    (failure,) = load_plugins().failures
    assert failure.reason == (
        "implements hooks that do not exist: memservice_storage; did you mean memservice_storages?"
    )


def test_an_unknown_argument_of_a_hook_is_reported() -> None:
    loaded = only(
        plugin("wrong", memservice_event_emitted=lambda kind: None), example("memservice_embedders")
    )
    (failure,) = loaded.failures
    assert "kind" in failure.reason
    assert loaded.embedder("lengths").name == "lengths"
    assert loaded.hook.memservice_event_emitted(type="t", data={}) == []


@pytest.mark.parametrize(
    ("offer", "reason"),
    [
        (lambda: ["text"], "memservice_storages returns str, not StorageProvider"),
        (
            lambda: [p.EmbedderProvider("x", open_nothing)],
            "memservice_storages returns EmbedderProvider, not StorageProvider",
        ),
        (
            lambda: [p.StorageProvider(" ", open_nothing)],
            "memservice_storages returns a storage without a name",
        ),
        (lambda: 3, "memservice_storages failed: TypeError: 'int' object is not iterable"),
    ],
)
def test_a_provider_of_the_wrong_type_is_reported(offer: Callable[[], Any], reason: str) -> None:
    assert [
        failure.reason for failure in only(plugin("odd", memservice_storages=offer)).failures
    ] == [reason]


def test_a_plugin_for_another_version_of_the_seam_is_refused_with_both_numbers() -> None:
    loaded = only(
        plugin(
            "old", memservice_storages=lambda: [p.StorageProvider("attic", open_nothing, spi=41)]
        )
    )
    with pytest.raises(
        ConfigurationError,
        match=rf"written for version 41 of memservice\.spi, this is version {p.SPI_VERSION}",
    ):
        loaded.storage("attic://")


def test_the_error_for_two_providers_of_one_name_names_both(installed: Distributions) -> None:
    installed("stranger-one", STORAGE, "attic", "stranger_one")
    installed("stranger-two", STORAGE.replace('"attic"', '"Attic "'), "loft", "stranger_two")
    loaded = load_plugins()
    with pytest.raises(ConfigurationError) as caught:
        loaded.storage("attic://")
    assert (
        "stranger-one 1.2 (attic = stranger_one) and stranger-two 1.2 (loft = stranger_two)"
        in str(caught.value)
    )
    assert loaded.embedder("hashed").name == "hashed"
    only_one = load_settings(
        environ={"MEMSERVICE_PLUGINS": "loft,hashed"}, cwd=Path("/nonexistent")
    )
    assert load_plugins(only_one).storage("attic").name == "attic"


def test_two_storages_of_one_scheme_are_an_error() -> None:
    first = plugin(
        "first", memservice_storages=lambda: [p.StorageProvider("a", open_nothing, schemes=("x",))]
    )
    second = plugin(
        "second", memservice_storages=lambda: [p.StorageProvider("b", open_nothing, schemes=("X",))]
    )
    with pytest.raises(
        ConfigurationError,
        match=r"'x' is offered by code \(first = first\) and code \(second = second\)",
    ):
        only(first, second).storage("x://")


def test_a_setting_restricts_the_loaded_plugins(installed: Distributions) -> None:
    installed("stranger", STORAGE, "attic", "stranger_attic")
    assert [
        row.name for row in load_plugins(settings_with(only=("stranger_attic",))).listing()
    ] == ["attic"]
    with pytest.raises(
        ConfigurationError,
        match=r"MEMSERVICE_PLUGINS names atic, but the plugins installed are .*attic",
    ):
        load_plugins(settings_with(only=("atic",)))


def test_a_setting_logs_hook_calls(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(type: str) -> None:
        raise RuntimeError("no")

    loaded = load_plugins(
        settings_with(only=(), trace=True), [plugin("one", memservice_event_emitted=fail)]
    )
    with pytest.raises(RuntimeError):
        loaded.hook.memservice_event_emitted(type="t", data={})
    shown = capsys.readouterr().err
    assert "memservice_event_emitted(type, data) -> code: one\n" in shown
    assert "memservice_event_emitted raised RuntimeError: no" in shown


def test_listeners_are_listed() -> None:
    rows = only(example("memservice_event_emitted")).listing()
    assert [(row.kind, row.name) for row in rows] == [("hook", "memservice_event_emitted")]


# --- finding


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.words)
def test_the_error_for_an_unknown_name_lists_the_known_ones(kind: Any) -> None:
    find = {
        p.StorageProvider: "storage",
        p.VectorIndexProvider: "vector_index",
        p.LanguageModelProvider: "language_model",
        p.EmbedderProvider: "embedder",
        p.ReasonerProvider: "reasoner",
        p.WebhookTransportProvider: "webhook_transport",
    }[kind.record]
    loaded = only(
        plugin(
            "one",
            **{
                kind.hook: lambda: [
                    kind.record("alpha", open_nothing),
                    kind.record("beta", open_nothing),
                ]
            },
        )
    )
    assert getattr(loaded, find)(" ALPHA").name == "alpha"
    assert {provider.name for provider in loaded.providers_of(kind.record)} == {"alpha", "beta"}
    with pytest.raises(ConfigurationError) as caught:
        getattr(loaded, find)("alpa")
    message = str(caught.value)
    article = "an" if kind.words == "embedder" else "a"
    assert message.startswith(
        f"no plugin offers {article} {kind.words} called 'alpa' ({kind.setting}); known: "
        "alpha, beta"
    )
    assert message.endswith("did you mean alpha?")


def test_the_error_for_a_wrong_uri_hides_its_password() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_plugins().storage("oracle://user:hunter2@host")
    assert "hunter2" not in str(caught.value)


# --- opening


class Tuning(Schema):
    uri = fields.String(required=True)
    pool_timeout = fields.Float(load_default=5.0)
    journal = fields.String(validate=validate.OneOf(["wal", "delete"]))
    sizes = fields.Dict(keys=fields.String(), values=fields.Integer())


def tuned() -> tuple[Plugins, p.StorageProvider]:
    loaded = only(
        plugin(
            "one",
            memservice_storages=lambda: [p.StorageProvider("attic", open_nothing, settings=Tuning)],
        )
    )
    return loaded, loaded.storage("attic")


def test_settings_are_loaded_by_the_providers_schema() -> None:
    loaded, provider = tuned()
    values = {
        "uri": "attic://",
        "pool_timeout": "3",
        "schema": "public",
        "options": {"journal": "wal"},
    }
    assert loaded.open_provider(provider, values, CONTEXT) == {
        "uri": "attic://",
        "pool_timeout": 3.0,
        "journal": "wal",
    }


def test_wrong_settings_are_reported_with_their_path_before_opening() -> None:
    loaded, provider = tuned()
    values = {"pool_timeout": "x", "options": {"journel": "wal", "sizes": {"a": "b"}}}
    with pytest.raises(ConfigurationError) as caught:
        loaded.open_provider(provider, values, CONTEXT)
    message = str(caught.value)
    assert "db.uri: Missing data for required field." in message
    assert "db.pool_timeout: Not a valid number." in message
    assert "db.options.journel: there is no such setting; did you mean journal" in message
    assert "db.options.sizes.a.value: Not a valid integer." in message


def test_a_missing_driver_names_the_extra_to_install(installed: Distributions) -> None:
    source = STORAGE.replace('lambda settings, context: "opened"', "opens")
    source = source.replace("@hookimpl", "def opens(s, c):\n    import no_driver.x\n\n@hookimpl")
    installed("stranger-attic", source, "attic", "stranger_attic", extras="attic other")
    loaded = load_plugins()
    with pytest.raises(ConfigurationError) as caught:
        loaded.open_provider(loaded.storage("attic"), {}, CONTEXT)
    assert str(caught.value) == (
        "storage 'attic' needs no_driver, which is not installed: "
        f"{sys.executable} -m pip install 'stranger-attic[attic]'"
    )
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_missing_driver_without_an_extra_names_the_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = only(example("memservice_vector_indexes"))
    with pytest.raises(
        ConfigurationError,
        match=(
            r"vector index 'my-engine' needs my_engine, which is not installed: \S+ -m pip "
            r"install my_engine"
        ),
    ):
        loaded.open_provider(loaded.vector_index("my-engine"), {"url": ""}, CONTEXT)


def test_an_index_of_another_storage_is_refused() -> None:
    provider = p.VectorIndexProvider("inner", open_nothing, needs_storage="attic")
    loaded = only(plugin("one", memservice_vector_indexes=lambda: [provider]))
    with pytest.raises(
        ConfigurationError,
        match="vector index 'inner' needs the storage 'attic', but none is open",
    ):
        loaded.open_provider(provider, {}, CONTEXT)
    wrong: Any = types.SimpleNamespace(name="cellar")
    with pytest.raises(ConfigurationError, match="'cellar' is open: change VECTOR_STORE_TYPE"):
        loaded.open_provider(provider, {}, p.Context(CONTEXT.clock, CONTEXT.logger, wrong))
    right: Any = types.SimpleNamespace(name="attic")
    assert loaded.open_provider(
        provider, {"a": 1}, p.Context(CONTEXT.clock, CONTEXT.logger, right)
    ) == {"a": 1}


@pytest.mark.slow
def test_an_unused_plugin_is_not_imported() -> None:
    code = (
        "import sys; from memservice.plugins import load_plugins; load_plugins(); "
        "print(*sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert {"sqlalchemy", "numpy", "flask", "httpx", "redis", "pysbd", "rapidfuzz"} & set(
        result.stdout.split()
    ) == set()
