"""The store that a command uses. The server may be running or stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from memservice.cli.options import State
from memservice.compose import Role, open_runtime
from memservice.domain.errors import ConfigurationError, NoStore
from memservice.runtime import Runtime
from memservice.services import store_compatibility
from memservice.settings import Settings, data_directory
from memservice.spi.capabilities import Capability


class CommandState(State):
    """What commands get with `click.pass_obj`, those of plugins too."""

    @contextmanager
    def open_store(self, role: Role = "command") -> Iterator[Runtime]:
        """A runtime on the configured store, upgraded to the schema of this release, until the end
        of the context. Raises `ConfigurationError`."""
        with prepared(self, role) as runtime:
            yield runtime


@contextmanager
def opened(state: State, role: Role = "command") -> Iterator[Runtime]:
    """A runtime on the configured store, which wakes workers like the server. Raises
    `ConfigurationError` for a storage that exists in one process only. Prints which variables
    resemble a setting and are ignored: one of them may name the store that was meant."""
    with place_explained(state.settings), _runtime(state, role) as runtime:
        yield runtime


@contextmanager
def place_explained(settings: Settings) -> Iterator[None]:
    """Print which variables are mistyped, and say of a store that is not there why it was looked
    for in that place."""
    for sentence in settings.mistyped:
        click.echo(f"WARNING     {sentence}", err=True)
    try:
        yield
    except NoStore as error:
        hint = default_place(settings)
        if not hint:
            raise
        raise NoStore(f"{error}. {hint}") from error


def default_place(settings: Settings) -> str:
    """For a store that is not there: why it was looked for in that place, and what to do. Empty if
    a setting names the place."""
    if settings.data_directory is not None:
        reason = (
            f"{Path.cwd()} holds neither a store nor memservice.toml or .env with settings, so the "
            "user's data directory was looked at"
        )
    elif settings.is_set("DB_CONNECTION_URI"):
        return ""
    else:
        reason = f"DB_CONNECTION_URI is not set, so {Path.cwd()} was looked at"
    return (
        f"{reason}. Run the command in the directory that the server was started in, or name its "
        "settings with --config or its store with DB_CONNECTION_URI"
    )


@contextmanager
def _runtime(state: State, role: Role) -> Iterator[Runtime]:
    runtime = open_runtime(state.settings, role, plugins=state.plugins)
    try:
        if Capability.SHARED not in runtime.storage.capabilities:
            raise ConfigurationError(
                f"The storage {runtime.storage.name!r} exists in one process only, so this "
                "command cannot open it."
            )
        yield runtime
    finally:
        runtime.close()


@contextmanager
def checked_store(state: State, role: Role = "command") -> Iterator[Runtime]:
    """`opened`, for a store with the schema, tokenizer and text analyser of this release. Raises
    `SchemaVersionError` or `ConfigurationError` for another store."""
    with opened(state, role) as runtime:
        runtime.storage.check()
        store_compatibility.check(runtime)
        yield runtime


def schema_of(runtime: Runtime) -> str | None:
    """The schema version of the store; None without a schema or without a store."""
    try:
        return runtime.storage.schema_version()
    except NoStore:
        return None


@contextmanager
def prepared(state: State, role: Role = "command") -> Iterator[Runtime]:
    """`opened`, after an upgrade to the schema of this release."""
    data_directory.create(state.settings.data_directory)
    with opened(state, role) as runtime:
        runtime.storage.migrate()
        store_compatibility.initialise(runtime)
        yield runtime
