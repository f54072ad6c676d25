"""Fail-points: a wrapper of a storage that ends, stops or fails a process at commits.

Authors of storages, runners and plugins can test with it that nothing is lost and nothing is done
twice, whenever a process ends. It is a plugin. A process that a test starts finds it through
`announce`:

```python
from memservice.testing import failpoints

site = failpoints.announce(tmp_path / "site", failpoints="memservice.testing.failpoints")
environment = {
    "PYTHONPATH": str(site),
    "DB_CONNECTION_URI": "failpoint+" + uri,  # any storage that an installed plugin offers
    "MEMSERVICE_TEST_FAILPOINTS": "kill:before:3@worker",
    "MEMSERVICE_TEST_FAILPOINTS_LOG": str(tmp_path / "reached"),
}
```

`MEMSERVICE_TEST_FAILPOINTS` lists points, separated by blanks, each `action:location:number`. With
`@word` at the end a point applies only to processes whose command line contains the word. `number`
counts the writes of one process from 1. Locations:

* `begin`: before the transaction begins,
* `before`: when all of it is written, just before the commit,
* `after`: just after the commit, before any listener is called.

Actions: `kill` (SIGKILL to this process), `stop` (SIGSTOP; the test has to send SIGCONT), and
`refuse` (the write raises `Unavailable`, as if the disk were full; not `after`). With
`MEMSERVICE_TEST_FAILPOINTS_LOG` each point that is reached is first written to that file, one line
each, and a point that is in the file already is skipped: a process that a supervisor restarts then
continues beyond it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from memservice.domain.errors import ConfigurationError, Unavailable
from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, Settings, StorageProvider
from memservice.spi.storage import Finding, Storage, Transaction

T = TypeVar("T")

POINTS, LOG = "MEMSERVICE_TEST_FAILPOINTS", "MEMSERVICE_TEST_FAILPOINTS_LOG"
KILL, STOP, REFUSE = "kill", "stop", "refuse"
BEGIN, BEFORE, AFTER = "begin", "before", "after"
LOCATIONS = (BEGIN, BEFORE, AFTER)


class Failpoint(Struct, frozen=True):
    """One point. Written as `kill:before:3`, or `kill:before:3@word`."""

    action: str
    location: str
    number: int
    word: str = ""

    def __str__(self) -> str:
        return f"{self.action}:{self.location}:{self.number}" + (
            f"@{self.word}" if self.word else ""
        )

    @classmethod
    def read(cls, text: str) -> Failpoint:
        """Parse a point. Raises `ConfigurationError` for an invalid one."""
        what, _, word = text.partition("@")
        action, _, remainder = what.partition(":")
        location, _, number = remainder.partition(":")
        is_valid = (
            action in (KILL, STOP, REFUSE)
            and location in LOCATIONS
            and number.isdecimal()
            and int(number) > 0
        )
        if not is_valid or (action == REFUSE and location == AFTER):
            raise ConfigurationError(
                f"{text!r} is not a fail-point: write kill, stop or refuse, then :begin, "
                ":before or :after, then :number"
            )
        return cls(action, location, int(number), word)


def chosen(environ: Mapping[str, str], command: Sequence[str]) -> list[Failpoint]:
    """The points that the environment sets for a process with this command line."""
    points = [Failpoint.read(text) for text in environ.get(POINTS, "").split()]
    return [point for point in points if point.word in " ".join(command)]


class FailpointStorage:
    """`memservice.spi.storage.Storage` around `inner`, with these points in its writes."""

    def __init__(
        self, inner: Storage, points: Sequence[Failpoint], log: Path | None = None
    ) -> None:
        self.name = inner.name
        self.capabilities = inner.capabilities
        self.text = inner.text
        self.vectors = inner.vectors
        self._inner = inner
        self._points = {(point.location, point.number): point for point in points}
        self._log = log
        self._lock = threading.Lock()
        self._writes = 0
        self._listeners: list[Callable[[Collection[str]], None]] = []
        self._committed = threading.local()

    @property
    def writes(self) -> int:
        """Number of writes that began."""
        return self._writes

    def write(self, fn: Callable[[Transaction], T]) -> T:
        with self._lock:
            self._writes += 1
            number = self._writes

        def then(tx: Transaction) -> T:
            result = fn(tx)
            self._reached(BEFORE, number)
            return result

        self._reached(BEGIN, number)
        self._committed.units = ()
        result = self._inner.write(then)
        self._reached(AFTER, number)
        if self._committed.units:
            for listener in self._listeners:
                listener(self._committed.units)
        return result

    def _remember(self, units: Collection[str]) -> None:
        self._committed.units = units

    def on_commit(self, listener: Callable[[Collection[str]], None]) -> None:
        """As the storage does, but after the point `AFTER`."""
        if not self._listeners:
            self._inner.on_commit(self._remember)
        self._listeners.append(listener)

    def read(self) -> AbstractContextManager[Transaction]:
        return self._inner.read()

    def read_committed(self) -> AbstractContextManager[Transaction]:
        return self._inner.read_committed()

    def wait_for_work(self, timeout: float) -> bool:
        return self._inner.wait_for_work(timeout)

    def check(self) -> None:
        self._inner.check()

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        return self._inner.examine(thorough=thorough)

    def reclaim(self, *, thorough: bool = False, erasure: bool = False) -> bool:
        return self._inner.reclaim(thorough=thorough, erasure=erasure)

    def schema_version(self) -> str | None:
        return self._inner.schema_version()

    def migrate(self) -> None:
        self._inner.migrate()

    def close(self) -> None:
        self._inner.close()

    def __getattr__(self, name: str) -> Any:
        """Members of `inner` beyond the seam."""
        return getattr(self._inner, name)

    def _reached(self, location: str, number: int) -> None:
        point = self._points.get((location, number))
        if point is None or not self._first_time(point):
            return
        if point.action == REFUSE:
            raise Unavailable(f"fail-point {point}: nothing can be written now")
        os.kill(os.getpid(), signal.SIGKILL if point.action == KILL else signal.SIGSTOP)

    def _first_time(self, point: Failpoint) -> bool:
        if self._log is None:
            return True
        with self._lock:
            if (
                self._log.exists()
                and str(point) in self._log.read_text(encoding="utf-8").splitlines()
            ):
                return False
            with self._log.open("a", encoding="utf-8") as log:
                log.write(f"{point}\n")
                log.flush()
                os.fsync(log.fileno())
        return True


def announce(folder: Path, **plugins: str) -> Path:
    """Make plugins known to processes that have `folder` on their `PYTHONPATH`: each is a name and
    a module to import. Returns `folder`."""
    described = folder / "memservice_under_test-0.dist-info"
    described.mkdir(parents=True, exist_ok=True)
    (described / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: memservice-under-test\nVersion: 0\n", encoding="utf-8"
    )
    lines = [f"{name} = {module}" for name, module in plugins.items()]
    (described / "entry_points.txt").write_text(
        "\n".join(["[memservice]", *lines, ""]), encoding="utf-8"
    )
    return folder


def _open(settings: Settings, context: Context) -> Storage:
    from memservice.plugins import load_plugins

    uri = str(settings["uri"]).partition("+")[2]
    plugins = load_plugins()
    inner: Storage = plugins.open_provider(plugins.storage(uri), {**settings, "uri": uri}, context)
    log = os.environ.get(LOG)
    return FailpointStorage(inner, chosen(os.environ, sys.argv), Path(log) if log else None)


@hookimpl
def memservice_storages() -> Iterable[StorageProvider]:
    """`DB_CONNECTION_URI=failpoint+…`: the storage of the URI that follows."""
    yield StorageProvider(name="failpoint", open=_open, capabilities=frozenset({Capability.SHARED}))
