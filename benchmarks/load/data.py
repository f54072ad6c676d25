"""Made-up data, stored through the API."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from benchmarks.load.client import Connection, Request, post

MEDIUM, LARGE, WRITTEN = "load-m", "load-l", "load-w"
"""Workspaces."""
SESSION, SHORT = "large", "short"
"""Sessions of the medium workspace: of half of its messages, and of `SHORT_MESSAGES`."""
PEERS = ("ann", "ben", "cleo")
SHORT_MESSAGES = 100
BATCH = 100
WORDS = [f"word{number}" for number in range(3000)]
WEIGHTS = list(accumulate(1 / (number + 5) for number in range(3000)))
"""Cumulative, which saves a third of the CPU time of making a message."""


@dataclass(frozen=True, slots=True)
class Size:
    medium: int = 10_000
    """Messages of the medium workspace; half of them are in one session."""
    large: int = 50_000
    """Messages of the large workspace."""
    conclusions: int = 10_000
    """Conclusions of one peer about itself, in the medium workspace."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the scenarios need from the seeded data."""

    size: Size
    message: str
    """Id of a message of the large session."""


def text(dice: random.Random, words: int = 20) -> str:
    return " ".join(dice.choices(WORDS, cum_weights=WEIGHTS, k=words))


def message(dice: random.Random) -> dict[str, Any]:
    """A message with three keys of metadata: `lang` (four values), `score` (0 to 99) and `tags`."""
    return {
        "peer_id": dice.choice(PEERS),
        "content": text(dice),
        "metadata": {
            "lang": dice.choice(("en", "de", "fr", "ja")),
            "score": dice.randrange(100),
            "tags": dice.sample(("red", "green", "blue", "black"), 2),
        },
    }


def batches(size: Size) -> Iterator[Request]:
    """Requests that store everything but the short session and the conclusions."""
    for workspace, total in ((MEDIUM, size.medium), (LARGE, size.large)):
        for start in range(0, total, BATCH):
            dice = random.Random(f"{workspace} {start}")
            large = start < total // 2
            session = SESSION if large else f"other{start // 1000}"
            yield post(
                f"/v3/workspaces/{workspace}/sessions/{session}/messages",
                {"messages": [message(dice) for _ in range(min(BATCH, total - start))]},
            )


def conclusions(size: Size) -> Iterator[Request]:
    for start in range(0, size.conclusions, BATCH):
        dice = random.Random(f"conclusions {start}")
        pair = {"observer_id": "ann", "observed_id": "ann"}
        drafts = [
            {"content": text(dice, 12), **pair} for _ in range(min(BATCH, size.conclusions - start))
        ]
        yield post(f"/v3/workspaces/{MEDIUM}/conclusions", {"conclusions": drafts})


def seed(url: str, size: Size, *, token: str | None = None, connections: int = 4) -> Stored:
    """Store the data, unless an earlier run has. Raises RuntimeError if the server refuses."""
    first = Connection(url, token)
    try:
        sessions = f"/v3/workspaces/{MEDIUM}/sessions"
        listed = f"{sessions}/{SESSION}/messages/list?size=1"
        if not first.json(post(listed, {}))["items"]:
            members: dict[str, object] = {name: {} for name in PEERS}
            for workspace in (MEDIUM, LARGE):
                path = f"/v3/workspaces/{workspace}/sessions"
                first.json(post(path, {"id": SESSION, "peers": members}))
            dice = random.Random("short")
            short = {"messages": [message(dice) for _ in range(SHORT_MESSAGES)]}
            first.json(post(f"{sessions}/{SHORT}/messages", short))

            def store(request: Request) -> None:
                connection = Connection(url, token)
                try:
                    connection.json(request)
                finally:
                    connection.close()

            with ThreadPoolExecutor(connections) as pool:
                for _ in pool.map(store, [*batches(size), *conclusions(size)]):
                    pass
            first.close()  # the server may have closed the idle connection
        return Stored(size, first.json(post(listed, {}))["items"][0]["id"])
    finally:
        first.close()
