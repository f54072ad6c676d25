"""The connection: opened at first use, with a check of the server's version and with errors that
say what to do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, cast

from redis import Redis, RedisError

from memservice.domain.errors import ConfigurationError, IndexUnavailable

Word = bytes | str | int
"""A part of a command."""


class Pipeline(Protocol):
    def execute_command(self, *words: Word) -> object: ...

    def execute(self) -> list[Any]: ...


class Client(Protocol):
    """The part of the client that is used here, with types. The client has no methods for vector
    sets."""

    def execute_command(self, *words: Word) -> Any: ...

    def pipeline(self, transaction: bool) -> AbstractContextManager[Pipeline]: ...


MIN_MAJOR_VERSION = 8
MIN_VERSION = "Redis 8.0"


class Server:
    """A Redis server whose version is checked once, as soon as it can be reached. Safe for
    threads."""

    def __init__(self, client: Redis, location: str) -> None:
        """`location`: the server's address for messages, without a password."""
        self._client = client
        self._location = location
        self._checked = False
        self._lock = threading.Lock()

    @contextmanager
    def client(self) -> Iterator[Client]:
        """The client. Raises `IndexUnavailable` if Redis fails or cannot be reached, and
        `ConfigurationError` if the server is too old."""
        try:
            self._check()
            yield cast(Client, self._client)
        except RedisError as error:
            raise IndexUnavailable(
                f"the vector index at {self._location} failed: {type(error).__name__}: "
                f"{_reason(error)}"
            ) from error

    def check_now(self, log: logging.Logger) -> None:
        """Check the version at startup if the server can be reached, so that a wrong server is
        reported then and not at the first query. Otherwise log a warning."""
        try:
            with self.client():
                pass
        except IndexUnavailable as error:
            log.warning("%s: search uses text only until the index is available again", error)

    def _check(self) -> None:
        with self._lock:
            if self._checked:
                return
            info: Any = self._client.info("server")
            version = str(info.get("redis_version", "unknown"))
            relative = info.get("server_name") or info.get("valkey_version")
            if relative and str(relative) != "redis":
                raise ConfigurationError(
                    f"{self._location} is {relative}, not Redis (version {version}), and has no "
                    "vector sets: "
                    f"point VECTOR_STORE_URL at {MIN_VERSION} or newer"
                )
            major = version.partition(".")[0]
            if not major.isdigit() or int(major) < MIN_MAJOR_VERSION:
                raise ConfigurationError(
                    f"{self._location} is Redis {version}, which has no vector sets: point "
                    f"VECTOR_STORE_URL at {MIN_VERSION} or newer, "
                    "or choose another VECTOR_STORE_TYPE"
                )
            self._checked = True


def _reason(error: RedisError) -> str:
    """The server's words, without the command that the client quotes before them: a vector is
    neither readable nor for a log."""
    return str(error).rpartition(" of pipeline caused error: ")[2]


def pairs(answer: Any, value: Callable[[Any], float]) -> list[tuple[int, float]]:
    """Elements with their scores. The answer is a mapping in RESP3 and a flat list in RESP2."""
    if isinstance(answer, dict):
        return [(int(key), value(score)) for key, score in answer.items()]
    return [(int(key), value(score)) for key, score in zip(answer[::2], answer[1::2], strict=True)]
