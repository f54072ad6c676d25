"""The connection: made at first use, to a server that is new enough, its failures told in words
that help."""

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
    """What is used of the client, with types: vector sets are newer than its own methods."""

    def execute_command(self, *words: Word) -> Any: ...

    def pipeline(self, transaction: bool) -> AbstractContextManager[Pipeline]: ...


MIN_MAJOR_VERSION = 8
MIN_VERSION = "Redis 8.0"


class Server:
    """A Redis whose version is looked at once, as soon as it can be reached. Safe for threads."""

    def __init__(self, client: Redis, location: str) -> None:
        """`location`: where it is, as messages call it; without a password."""
        self._client = client
        self._place = location
        self._checked = False
        self._lock = threading.Lock()

    @contextmanager
    def asked(self) -> Iterator[Client]:
        """The client. Raises `IndexUnavailable` for what Redis or the way to it does,
        `ConfigurationError` for an older server."""
        try:
            self._check()
            yield cast(Client, self._client)
        except RedisError as error:
            raise IndexUnavailable(
                f"the vector index at {self._place} failed: {type(error).__name__}: {error}"
            ) from error

    def check_now(self, log: logging.Logger) -> None:
        """Look at the version already at the start, if the server is there: whoever set up an old
        one should hear it then."""
        try:
            with self.asked():
                pass
        except IndexUnavailable as error:
            log.warning("%s: search answers from text until it is back", error)

    def _check(self) -> None:
        with self._lock:
            if self._checked:
                return
            info: Any = self._client.info("server")
            version = str(info.get("redis_version", "unknown"))
            relative = info.get("server_name") or info.get("valkey_version")
            if relative and str(relative) != "redis":
                raise ConfigurationError(
                    f"{self._place} is not Redis but {relative} (it calls itself "
                    f"{version}), which has no vector sets: "
                    f"point VECTOR_STORE_URL at {MIN_VERSION} or newer"
                )
            major = version.partition(".")[0]
            if not major.isdigit() or int(major) < MIN_MAJOR_VERSION:
                raise ConfigurationError(
                    f"{self._place} is Redis {version}, which has no vector sets: point "
                    f"VECTOR_STORE_URL at {MIN_VERSION} or newer, "
                    "or choose another VECTOR_STORE_TYPE"
                )
            self._checked = True


def pairs(answer: Any, value: Callable[[Any], float]) -> list[tuple[int, float]]:
    """Elements with their scores: a mapping by the newer protocol, a flat list by the older one."""
    if isinstance(answer, dict):
        return [(int(key), value(score)) for key, score in answer.items()]
    return [(int(key), value(score)) for key, score in zip(answer[::2], answer[1::2], strict=True)]
