"""The store that a command works on, whether the server runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memservice.cli.options import State
from memservice.compose import Role, open_runtime
from memservice.domain.errors import ConfigurationError, NoStore
from memservice.runtime import Runtime
from memservice.services import store_compatibility
from memservice.spi.capabilities import Capability


@contextmanager
def opened(state: State, role: Role = "command") -> Iterator[Runtime]:
    """A runtime on the configured store, which wakes workers as the server does. Refuses a storage
    that lives inside one process."""
    runtime = open_runtime(state.settings, role, plugins=state.plugins)
    try:
        if Capability.SHARED not in runtime.storage.capabilities:
            raise ConfigurationError(
                f"The storage {runtime.storage.name!r} lives inside one process, so it "
                "cannot be worked on from here."
            )
        yield runtime
    finally:
        runtime.close()


@contextmanager
def sound(state: State) -> Iterator[Runtime]:
    """`opened`, if the store's schema and its counts are those of this release; else the command
    ends here."""
    with opened(state) as runtime:
        runtime.storage.check()
        store_compatibility.check(runtime)
        yield runtime


def schema_of(runtime: Runtime) -> str | None:
    """The revision of the store's schema; None if it has none yet, or if there is no store yet."""
    try:
        return runtime.storage.schema_version()
    except NoStore:
        return None


@contextmanager
def prepared(state: State) -> Iterator[Runtime]:
    """`opened`, with the schema of this release, which is made if there is none."""
    with opened(state) as runtime:
        runtime.storage.migrate()
        store_compatibility.initialise(runtime)
        yield runtime
