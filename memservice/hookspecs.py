"""The hooks of plugins.

A plugin is an installed distribution with an entry point in the group `memservice` that names a
module (or object) with some of these hooks, each marked with `hookimpl`. Hooks are called at
startup, never at import. Registration hooks are called once, in no particular order. The records
that they yield are collected by name; two records of one kind with the same name are an error. An
implementation may take fewer arguments than its specification. Within one SPI version, only
optional arguments are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import click
    from flask import Blueprint, Flask

    from memservice.domain.records import Conclusion, Message
    from memservice.spi import providers
    from memservice.spi.web import ConsolePage

PROJECT = "memservice"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def memservice_storages() -> Iterable[providers.StorageProvider]:
    """Register storages. Called once, at startup.

    Example:

    ```python
    from memservice.hookspecs import hookimpl
    from memservice.spi.providers import StorageProvider

    def open_shelf(settings, context):
        from memservice_memory.storage import MemoryStorage
        return MemoryStorage()

    @hookimpl
    def memservice_storages():
        yield StorageProvider(name="shelf", open=open_shelf)
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_vector_indexes() -> Iterable[providers.VectorIndexProvider]:
    """Register vector indexes. Called once, at startup.

    Example:

    ```python
    from memservice.hookspecs import hookimpl
    from memservice.spi.providers import VectorIndexProvider

    def open_index(settings, context):
        import my_engine
        return my_engine.Index(settings["url"])

    @hookimpl
    def memservice_vector_indexes():
        yield VectorIndexProvider(name="my-engine", open=open_index)
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_llms() -> Iterable[providers.LanguageModelProvider]:
    """Register protocols for language models. Called once, at startup.

    Example:

    ```python
    from memservice.hookspecs import hookimpl
    from memservice.spi.llm import Completion
    from memservice.spi.providers import LanguageModelProvider

    class Parrot:
        def complete(self, request):
            return Completion(content=request.turns[-1].content)

        def stream(self, request):
            done = self.complete(request)
            yield done.content
            yield done

    @hookimpl
    def memservice_llms():
        yield LanguageModelProvider(name="parrot", open=lambda settings, context: Parrot())
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_embedders() -> Iterable[providers.EmbedderProvider]:
    """Register embedders. Called once, at startup.

    Example:

    ```python
    import numpy as np

    from memservice.hookspecs import hookimpl
    from memservice.spi.providers import EmbedderProvider

    class Lengths:
        id, dimension, capabilities, duplicate_distance = "lengths-1", 2, frozenset(), None

        def embed(self, texts, purpose="document"):
            rows = [np.array([1.0, len(text)], np.float32) for text in texts]
            return [row / np.linalg.norm(row) for row in rows]

    @hookimpl
    def memservice_embedders():
        yield EmbedderProvider(name="lengths", open=lambda settings, context: Lengths())
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_reasoners() -> Iterable[providers.ReasonerProvider]:
    """Register reasoners. Called once, at startup.

    Example:

    ```python
    from memservice.hookspecs import hookimpl
    from memservice.spi.providers import ReasonerProvider
    from memservice.spi.reasoner import Consolidated, Derived, Statement, Summarized

    class Verbatim:
        name, capabilities = "verbatim", frozenset()

        def derive(self, request):
            own = [m for m in request.messages if m.new and m.author == request.observed]
            return Derived([Statement(m.content, (m.key,)) for m in own if m.content.strip()])

        def summarize(self, request):
            return Summarized(content="")

        def consolidate(self, request):
            return Consolidated()

        def answer(self, request):
            for piece in request.evidence[:3]:
                yield piece.content + "\\n"

    @hookimpl
    def memservice_reasoners():
        yield ReasonerProvider(name="verbatim", open=lambda settings, context: Verbatim())
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_webhook_transports() -> Iterable[providers.WebhookTransportProvider]:
    """Register transports for webhook events. Called once, at startup.

    Example:

    ```python
    from memservice.hookspecs import hookimpl
    from memservice.spi.providers import WebhookTransportProvider
    from memservice.spi.webhooks import Outcome

    class Printer:
        def check(self, url):
            return None

        def deliver(self, url, body, headers):
            print(url, body.decode())
            return Outcome(status=200)

    @hookimpl
    def memservice_webhook_transports():
        yield WebhookTransportProvider(
            name="printer", schemes=("print",), open=lambda settings, context: Printer()
        )
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_plugin_settings() -> Iterable[providers.PluginSettings]:
    """Declare the settings of a plugin's hooks, which users give in `[plugins.NAME]` or as
    `PLUGIN_NAME__FIELD`. Called once, when plugins are loaded and before any event hook.

    Example:

    ```python
    import dataclasses

    from msgspec.structs import replace

    from memservice.hookspecs import hookimpl
    from memservice.spi.providers import PluginSettings

    @dataclasses.dataclass(frozen=True)
    class Mask:
        word: str = dataclasses.field(metadata={"secrecy": "public"})
        mark: str = "[masked]"

    class Masking:
        @hookimpl
        def memservice_plugin_settings(self):
            yield PluginSettings("masking", Mask, self.use)

        def use(self, mask):
            self.mask = mask

        @hookimpl
        def memservice_message_storing(self, message):
            content = message.content.replace(self.mask.word, self.mask.mark)
            return replace(message, content=content)

    plugin = Masking()  # the entry point is `masking = "memservice_masking:plugin"`
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_app_started(app: Flask) -> None:
    """Called once per process, after the application is built and before it serves requests.

    Example:

    ```python
    from memservice.hookspecs import hookimpl

    @hookimpl
    def memservice_app_started(app):
        app.logger.info("hello")
    ```
    """


@hookspec
def memservice_cli_commands() -> Iterable[click.Command]:
    """Add commands to `memservice`. Called once, when a command is not built in or all commands are
    listed.

    Example:

    ```python
    import click

    from memservice.hookspecs import hookimpl

    @click.command("hello")
    def hello():
        click.echo("hello")

    @hookimpl
    def memservice_cli_commands():
        yield hello
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_blueprints(settings: Any, pages: Sequence[ConsolePage]) -> Iterable[Blueprint]:
    """Add routes. Called once, when the application is built, with the effective settings and the
    console pages of all plugins. A route cannot replace one of memservice's own paths. An
    implementation may omit arguments that it does not need.

    With authentication, a route requires an admin key, unless it or its blueprint declares another
    access with `memservice.spi.web.access`. Requests from pages of other origins that change data
    and do not send JSON are rejected. A view gets the opened parts of the process from
    `memservice.spi.web.runtime()` and its caller from `memservice.spi.web.principal()`; services
    take both.

    Example:

    ```python
    from flask import Blueprint

    from memservice.hookspecs import hookimpl
    from memservice.spi.web import OPEN, Access, access

    extra = Blueprint("extra", __name__)

    @extra.get("/extra")
    @access(OPEN)
    def answer():
        return {"extra": True}

    @extra.get("/extra/<workspace_id>")
    @access(Access(workspace="workspace_id"))
    def answer_keys_of(workspace_id):
        return {"workspace": workspace_id}

    @hookimpl
    def memservice_blueprints():
        yield extra
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_console_pages() -> Iterable[ConsolePage]:
    """Add pages to the console. Called once, when the application is built.

    Example:

    ```python
    from pathlib import Path

    from memservice.hookspecs import hookimpl
    from memservice.spi import web

    def values():
        return {"storage": web.runtime().storage.name}

    @hookimpl
    def memservice_console_pages():
        template = Path(__file__).with_name("storage.html")  # for instance: <p>{{ storage }}</p>
        yield web.ConsolePage("Storage", "storage", template, values)
    ```
    """
    raise NotImplementedError


@hookspec
def memservice_message_storing(message: Message) -> Message | None:
    """Called before a message is stored, once per message, outside the transaction. Return a
    changed copy (for instance a redacted one), or None to leave the message unchanged. Raise
    `memservice.domain.errors.Refused` to reject the whole request. Each plugin gets the result of
    the previous one.

    Example:

    ```python
    from msgspec.structs import replace

    from memservice.hookspecs import hookimpl

    @hookimpl
    def memservice_message_storing(message):
        return replace(message, content=message.content.replace("4111 1111", "[card]"))
    ```
    """


@hookspec
def memservice_conclusion_storing(conclusion: Conclusion) -> bool | None:
    """Called before a conclusion is stored, outside the transaction. Return False to reject the
    conclusion; any other value accepts it.

    Example:

    ```python
    from memservice.hookspecs import hookimpl

    @hookimpl
    def memservice_conclusion_storing(conclusion):
        return "password" not in conclusion.content.lower()
    ```
    """


@hookspec
def memservice_event_emitted(type: str, data: dict[str, Any]) -> None:
    """Called after the commit for each event (the same events as for webhooks and telemetry), in
    the thread that emitted it. Return quickly. The result is ignored.

    Example:

    ```python
    from memservice.hookspecs import hookimpl

    @hookimpl
    def memservice_event_emitted(type, data):
        print(type)
    ```
    """
