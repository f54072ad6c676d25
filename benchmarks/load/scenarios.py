"""What is measured: a name, and how to make its requests."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.load.client import Request, post
from benchmarks.load.data import (
    LARGE,
    MEDIUM,
    PEERS,
    SESSION,
    SHORT,
    WORDS,
    WRITTEN,
    Stored,
    message,
    text,
)

_M, _L = f"/v3/workspaces/{MEDIUM}", f"/v3/workspaces/{LARGE}"
_W = f"/v3/workspaces/{WRITTEN}"
"""Of all writes, so that reads are of the same data in every round and every run."""
_PAIR = {"observer_id": "ann", "observed_id": "ann"}
FILTER = {
    "AND": [
        {"OR": [{"metadata": {"lang": "en"}}, {"metadata": {"lang": "de"}}]},
        {"metadata": {"score": {"gte": 20}}},
        {"NOT": [{"peer_id": "ann"}]},
    ]
}
_SECOND_FILTER = {"AND": [{"metadata": {"score": {"gte": 50}}}, {"peer_id": "ben"}]}
BOUNDARY = "benchmark-boundary"
Named = tuple[str, Callable[[random.Random], Request]]


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    request: Callable[[random.Random], Request]
    writes: bool = False


def question(dice: random.Random) -> str:
    """A word as frequent as in the messages, and two of any frequency."""
    return f"{text(dice, 1)} {' '.join(dice.choices(WORDS, k=2))}"


def query(dice: random.Random, **more: Any) -> dict[str, Any]:
    return {"query": question(dice), **more}


def _created(path: str, number: int) -> Callable[[random.Random], Request]:
    return lambda dice: post(path, {"messages": [message(dice) for _ in range(number)]})


def _upload(dice: random.Random) -> Request:
    lines = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="peer_id"\r\n\r\nann\r\n',
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n',
        f"Content-Type: text/plain\r\n\r\n{text(dice, 400)}\r\n--{BOUNDARY}--\r\n",
    )
    return Request(
        "POST",
        f"{_W}/sessions/{SHORT}-files/messages/upload",
        "".join(lines).encode(),
        f"multipart/form-data; boundary={BOUNDARY}",
    )


def scenarios(stored: Stored) -> list[Scenario]:
    """Every scenario."""
    return [Scenario(name, request) for name, request in reads(stored)] + [
        Scenario(name, request, writes=True) for name, request in writes(stored)
    ]


def reads(stored: Stored) -> list[Named]:
    large, short = f"{_M}/sessions/{SESSION}", f"{_M}/sessions/{SHORT}"
    deep = max(1, stored.size.medium // 2 // 50 - 10)
    got = Request("GET", f"{large}/messages/{stored.message}")
    listed = post(f"{large}/messages/list?page=1", {})
    context = Request("GET", f"{short}/context?tokens=4000")
    peer = f"{_M}/peers/ann"
    return [
        ("msg_get", lambda dice: got),
        ("msg_list_p1", lambda dice: listed),
        ("msg_list_deep", lambda dice: post(f"{large}/messages/list?page={deep}", {})),
        ("peer_get_or_create", lambda dice: post(f"{_M}/peers", {"id": dice.choice(PEERS)})),
        (
            "session_get_or_create",
            lambda dice: post(
                f"{_M}/sessions", {"id": SESSION, "peers": {name: {} for name in PEERS}}
            ),
        ),
        ("context", lambda dice: context),
        (
            "context_nosum",
            lambda dice: Request("GET", f"{short}/context?tokens=8000&summary=false"),
        ),
        (
            "filter_list",
            lambda dice: post(f"{large}/messages/list?page=1", {"filters": FILTER}),
        ),
        (
            "filter_list_2",
            lambda dice: post(f"{large}/messages/list?page=1", {"filters": _SECOND_FILTER}),
        ),
        ("search_session_m", lambda dice: post(f"{large}/search", query(dice))),
        ("search_ws_m", lambda dice: post(f"{_M}/search", query(dice))),
        ("search_session_l", lambda dice: post(f"{_L}/sessions/{SESSION}/search", query(dice))),
        ("search_ws_l", lambda dice: post(f"{_L}/search", query(dice))),
        ("concl_query", lambda dice: post(f"{_M}/conclusions/query", query(dice, filters=_PAIR))),
        ("representation", lambda dice: post(f"{peer}/representation", {})),
        (
            "representation_query",
            lambda dice: post(f"{peer}/representation", {"search_query": question(dice)}),
        ),
        ("chat", lambda dice: post(f"{peer}/chat", query(dice))),
    ]


def writes(stored: Stored) -> list[Named]:
    create = _created(f"{_W}/sessions/written/messages", 1)
    mixed_reads = [request for name, request in reads(stored) if name in MIXED]
    return [
        ("msg_create_1", create),
        ("msg_create_100", _created(f"{_W}/sessions/batches/messages", 100)),
        (
            "concl_create_20",
            lambda dice: post(
                f"{_W}/conclusions",
                {
                    "conclusions": [
                        {"content": text(dice, 12), "observer_id": "ben", "observed_id": "cleo"}
                        for _ in range(20)
                    ]
                },
            ),
        ),
        ("upload", _upload),
        (
            "mixed_70_30",
            lambda dice: dice.choice(mixed_reads)(dice) if dice.random() < 0.7 else create(dice),
        ),
    ]


MIXED = ("msg_get", "msg_list_p1", "context", "peer_get_or_create", "session_get_or_create")
"""The reads of the mixed scenario, each as often as the others."""
