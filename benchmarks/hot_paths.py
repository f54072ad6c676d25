"""What a request costs: `python -m benchmarks.hot_paths --db sqlite:////tmp/hot.db`.

CPU milliseconds of the application and its store in one process, through WSGI without a server, and
as a multiple of a bare Flask application that answers "hello" as JSON in the same run. A server
adds the same to both. The store must be empty. Of a database server on this machine, `--server PID`
(the first line of its postmaster.pid) counts the CPU time as well.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flask import Flask
from werkzeug.test import Client

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.settings import load_settings

WORDS = [f"word{number}" for number in range(3000)]
WEIGHTS = [1 / (number + 5) for number in range(3000)]
SESSION = 5_000
"""Messages of the large session; the others hold the rest."""
W = "/v3/workspaces/bench"


def said(dice: random.Random, words: int = 20) -> str:
    return " ".join(dice.choices(WORDS, WEIGHTS, k=words))


def hello() -> Client:
    app = Flask("hello")

    @app.get("/")
    def answer() -> dict[str, str]:
        return {"hello": "world"}

    return Client(app)


def fill(post: Callable[[str, Any], Any], dice: random.Random, messages: int) -> str:
    """Store the messages, a card, and conclusions; returns the id of a message of the large
    session."""
    first = ""
    for start in range(0, messages, 100):
        session = "large" if start < SESSION else f"other{start % 700}"
        batch = [
            {"peer_id": dice.choice(["ann", "ben"]), "content": said(dice)} for _ in range(100)
        ]
        made = post(f"{W}/sessions/{session}/messages", {"messages": batch})
        first = first or made[0]["id"]
    for _ in range(0, messages // 10, 100):
        held = [
            {"content": said(dice, 12), "observer_id": "ann", "observed_id": "ann"}
            for _ in range(100)
        ]
        post(f"{W}/conclusions", {"conclusions": held})
    return first


def scenarios(
    client: Client, dice: random.Random, first: str
) -> Iterator[tuple[str, Callable[[], Any], int]]:
    def post(path: str, body: Any) -> Any:
        return client.post(path, data=json.dumps(body), content_type="application/json")

    def batch(number: int) -> Any:
        return {"messages": [{"peer_id": "ann", "content": said(dice)} for _ in range(number)]}

    pair = {"observer_id": "ann", "observed_id": "ann"}
    last = SESSION // 50 - 5
    yield "get message", lambda: client.get(f"{W}/sessions/large/messages/{first}"), 300
    yield "peer get-or-create (existing)", lambda: post(f"{W}/peers", {"id": "ann"}), 300
    members = {"id": "large", "peers": {"ann": {}, "ben": {}, "cleo": {}}}
    yield "session get-or-create, 3 peers (existing)", lambda: post(f"{W}/sessions", members), 200
    yield "list messages, page 1", lambda: post(f"{W}/sessions/large/messages/list?page=1", {}), 200
    yield (
        f"list messages, page {last}",
        lambda: post(f"{W}/sessions/large/messages/list?page={last}", {}),
        200,
    )
    yield (
        "session context, about 100 messages",
        lambda: client.get(f"{W}/sessions/large/context?tokens=6000"),
        100,
    )
    yield "create 1 message", lambda: post(f"{W}/sessions/large/messages", batch(1)), 100
    yield "create 100 messages", lambda: post(f"{W}/sessions/large/messages", batch(100)), 10
    yield (
        "search in the large session",
        lambda: post(f"{W}/sessions/large/search", {"query": said(dice, 6)}),
        40,
    )
    yield "search in the workspace", lambda: post(f"{W}/search", {"query": said(dice, 6)}), 40
    yield (
        "conclusions: query",
        lambda: post(f"{W}/conclusions/query", {"query": said(dice, 6), "filters": pair}),
        40,
    )
    yield "representation", lambda: post(f"{W}/peers/ann/representation", {}), 100
    yield (
        "representation with a query",
        lambda: post(f"{W}/peers/ann/representation", {"search_query": said(dice, 6)}),
        40,
    )


def cpu_of_server(pid: int) -> float:
    """CPU seconds that a server's processes have taken; of all that run now."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if pid in (int(stat.parent.name), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def cost(call: Callable[[], Any], rounds: int, repeat: int = 3, server: int | None = None) -> float:
    """CPU milliseconds of one call, best of some repetitions."""
    answer = call()
    if answer.status_code >= 400:
        raise RuntimeError(f"{answer.status_code}: {answer.get_data(as_text=True)[:200]}")
    best = float("inf")
    for _ in range(repeat):
        began = time.process_time() + (cpu_of_server(server) if server else 0.0)
        for _ in range(rounds):
            call()
        best = min(
            best,
            (time.process_time() + (cpu_of_server(server) if server else 0.0) - began) / rounds,
        )
    return 1000 * best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", required=True, help="the store, which must be empty")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--server", type=int, help="process id of the database's server")
    given = parser.parse_args()
    settings = load_settings(
        environ={"DB_CONNECTION_URI": given.db, "LOG_LEVEL": "warning"}, cwd=Path("/")
    )
    runtime = open_runtime(settings, "api")
    runtime.storage.migrate()
    client = Client(create_app(settings, runtime))
    dice = random.Random(7)  # words of a benchmark

    def post(path: str, body: Any) -> Any:
        answer = client.post(path, data=json.dumps(body), content_type="application/json")
        if answer.status_code != 201:
            raise RuntimeError(f"{answer.status_code}: {answer.get_data(as_text=True)[:200]}")
        return answer.get_json()

    first = fill(post, dice, given.messages)
    bare = hello()
    floor = cost(lambda: bare.get("/"), 500)
    print(f"{'bare Flask hello':45}{floor:9.3f} ms    1.0")
    for name, call, rounds in scenarios(client, dice, first):
        spent = cost(call, rounds, server=given.server)
        print(f"{name:45}{spent:9.3f} ms {spent / floor:6.1f}")
    runtime.close()


if __name__ == "__main__":
    main()
