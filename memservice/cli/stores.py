"""The store that a command uses. The server may be running or stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memservice.cli.options import State
from memservice.compose import Role, open_runtime
from memservice.domain.errors import ConfigurationError, NoStore
from memservice.runtime import Runtime
from memservice.services import store_compatibility
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
    `ConfigurationError` for a storage that exists in one process only."""
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
def checked_store(state: State) -> Iterator[Runtime]:
    """`opened`, for a store with the schema, tokenizer and text analyser of this release. Raises
    `SchemaVersionError` or `ConfigurationError` for another store."""
    with opened(state) as runtime:
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
    with opened(state, role) as runtime:
        runtime.storage.migrate()
        store_compatibility.initialise(runtime)
        yield runtime
