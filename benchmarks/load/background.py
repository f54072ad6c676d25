"""How long background work takes: `python -m benchmarks.load background --db URI`.

Messages are stored through a server with a worker, whose language model answers on loopback after a
fixed time. Measured are the time until nothing is left to do, the calls of the model, and CPU time.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.load import servers
from benchmarks.load.client import Connection, Request, post
from benchmarks.load.data import PEERS, text
from benchmarks.load.processes import cpu_seconds
from memservice.testing.badmodel import BadModel, ModelRequest, bad_model, good_answer
from memservice.testing.llm import Say

BATCH = 20
"""Messages of a request."""
WORDS = 7
"""Of a message: 15 tokens on average."""
STATEMENTS = 5
"""That the model makes of a batch of messages, at most."""
LOOK_SECONDS = 0.2
WORK_SECONDS = 600.0
"""After this time the measurement fails."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What the background work of some messages took."""

    model_ms: float
    """How long the model takes to answer."""
    messages: int
    posted: float
    """Seconds until all messages were stored."""
    done: float
    """Seconds until no work was left, from the first message on."""
    calls: int
    """Of the model."""
    server_cpu: float
    """Seconds of the server's processes, with the worker's."""
    database_cpu: float | None


def measure(
    db: str,
    options: Mapping[str, str],
    messages: int,
    sessions: int,
    delays: list[float],
    progress: Callable[[str], None],
) -> list[Drained]:
    """One measurement for each delay of the model, in milliseconds, each in a workspace of its
    own."""
    drained: list[Drained] = []
    for delay in delays:
        name = f"background-{time.time_ns()}"
        with model(delay / 1000) as answering:
            settings = {**settings_for(answering), **options}
            with servers.service(db, settings, 2, background=True) as server:
                progress(f"a model of {delay:g} ms")
                drained.append(_drain(db, server, answering, name, messages, sessions, delay))
    return drained


@contextmanager
def model(seconds: float) -> Iterator[BadModel]:
    """A model that answers well, after some time."""

    def answer(request: ModelRequest) -> Say:
        time.sleep(seconds)
        say = good_answer(request)
        if "statements" not in (request.schema or {}).get("properties", {}):
            return say
        statements = json.loads("".join(say.pieces))["statements"]
        return Say((json.dumps({"statements": statements[:STATEMENTS]}),))

    with bad_model("ok", answer) as answering:
        yield answering


def settings_for(answering: BadModel) -> dict[str, str]:
    return {
        "LLM_OPENAI_BASE_URL": f"{answering.url}/v1",
        "LLM_MODEL": "model-1",
        # Else the last messages of each peer wait two minutes for others.
        "DERIVER_REPRESENTATION_BATCH_QUIET_SECONDS": "1",
        "DREAM_ENABLED": "false",  # a dream begins when there has been no message for some time
    }


def requests(workspace: str, messages: int, sessions: int) -> Iterator[Request]:
    """Requests that store the messages, one session after the other in turn."""
    dice = random.Random("background")
    for number in range(messages // BATCH):
        drafts = [
            {"peer_id": dice.choice(PEERS), "content": text(dice, WORDS)} for _ in range(BATCH)
        ]
        session = f"/v3/workspaces/{workspace}/sessions/s{number % sessions}"
        yield post(f"{session}/messages", {"messages": drafts})


def _drain(
    db: str,
    server: servers.Server,
    answering: BadModel,
    workspace: str,
    messages: int,
    sessions: int,
    delay: float,
) -> Drained:
    assert server.pid is not None
    database = servers.postmaster(db)
    pids = (server.pid, database)
    before = [None if pid is None else cpu_seconds(pid) for pid in pids]
    connection = Connection(server.url)
    began = time.monotonic()
    for request in requests(workspace, messages, sessions):
        connection.json(request)
    posted = time.monotonic() - began
    status = Request("GET", f"/v3/workspaces/{workspace}/queue/status")
    while not _is_done(connection.json(status)):
        if time.monotonic() - began > WORK_SECONDS:
            raise TimeoutError(f"background work is left after {WORK_SECONDS:g} s")
        time.sleep(LOOK_SECONDS)
    done = time.monotonic() - began
    connection.close()
    spent = [
        None if pid is None or start is None else cpu_seconds(pid) - start
        for pid, start in zip(pids, before, strict=True)
    ]
    calls = len(answering.requests)
    return Drained(delay, messages, posted, done, calls, spent[0] or 0.0, spent[1])


def _is_done(status: Any) -> bool:
    return not status["pending_work_units"] and not status["in_progress_work_units"]


def table(drained: list[Drained]) -> str:
    """Markdown."""
    lines = [
        "| model, ms | messages | stored, s | no work left, s | calls | CPU: server, s | "
        "database, s |",
        "| --: | --: | --: | --: | --: | --: | --: |",
    ]
    lines += [
        f"| {each.model_ms:g} | {each.messages:,} | {each.posted:.1f} | {each.done:.1f} | "
        f"{each.calls} | {each.server_cpu:.1f} | "
        f"{'' if each.database_cpu is None else f'{each.database_cpu:.1f}'} |"
        for each in drained
    ]
    return "\n".join(lines)
