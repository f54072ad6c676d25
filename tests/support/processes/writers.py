"""Clients that write while processes end, and remember what was acknowledged."""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from support.processes.processes import Service

TOWNS = ("Oslo", "Lisbon", "Graz", "Tartu", "Cork", "Malmo", "Turin", "Split")


LEAST = 60
"""What each writer gets acknowledged before it ends, however often it was cut off."""


def fact(writer: int, number: int) -> str:
    """A sentence that no other writer sends, and that is not similar to the others."""
    town = TOWNS[(writer + number) % len(TOWNS)]
    return (
        f"I sold {number * 3 + 1} lamps of series {writer}{number} in {town} for "
        f"{number * 17 + writer} euros."
    )


@dataclass
class Writer:
    """Writes its own facts in order, as its own peer.

    With `keys` each request has an idempotency key and is sent again until it is acknowledged;
    without, what was not acknowledged is given up, for it may be stored or not.
    """

    number: int
    session: str
    keys: bool
    acknowledged: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    """Public id by content, of what was acknowledged."""
    wrong: list[str] = field(default_factory=list)
    """What no end of a process explains."""

    @property
    def peer(self) -> str:
        return f"writer{self.number}"

    def write(self, service: Service, stop: threading.Event, most: int) -> None:
        for number in range(most):
            content = fact(self.number, number)
            headers = {"Idempotency_Key": f"{self.peer} {number}"} if self.keys else {}
            while not self._store(service, content, headers):
                if not self.keys:
                    self.given_up.append(content)
                    break
                time.sleep(0.05)
            if stop.is_set() and len(self.acknowledged) >= LEAST:
                return
            time.sleep(0.01)

    def _store(self, service: Service, content: str, headers: dict[str, str]) -> bool:
        try:
            (message,) = service.say(self.session, (self.peer, content), timeout=10, **headers)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 503:
                self.wrong.append(f"{error.code} for {content}")
            return False
        except (OSError, ValueError, RuntimeError, http.client.HTTPException):
            return False  # nobody there, or an answer that was cut off
        if message["content"] != content:
            self.wrong.append(f"{message['content']!r} for {content!r}")
        self.acknowledged.append(content)
        self.ids[content] = message["id"]
        return True


@contextmanager
def writing(service: Service, writers: list[Writer], most: int) -> Iterator[None]:
    """While they write. They end some time after the block does."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=writer.write, args=(service, stop, most)) for writer in writers
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
