"""Erases a peer with a quarter of a session's messages, over HTTP: how long until the request is
accepted and until the receipt is `done`, how long concurrent readers and writers wait (before and
meanwhile), the CPU time and the peak memory of the worker, and the times of the steps of its work.

    python -m benchmarks.erasure [--uri URI] [--messages 200000] [--option NAME=VALUE]

Without `--uri`, a SQLite file in a temporary folder. With it, an empty store. With `--option
DB_SYNCHRONOUS=normal` nobody waits for the disk, whose slow moments otherwise look like waits for
the erasure. As in a deployment,
the server, the worker (this process) and each client are separate processes.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import resource
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from msgspec.structs import replace

from benchmarks.load import client
from benchmarks.load.client import Request
from benchmarks.load.servers import service
from benchmarks.write_times import WriteTimes
from memservice.compose import open_runtime
from memservice.domain import records as r
from memservice.domain.ids import fingerprint, new_uid
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services import indexing, messages
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ensure_collection
from memservice.services.erasure import receipts
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.spi.storage import Transaction
from memservice.worker.polling import Worker

ME = Principal(admin=True)
WORKSPACE, SESSION = "benchmark", "s"
PEERS = ("alice", "bob", "carol", "dave")
BATCH_SIZE = 1_000
PAUSE_SECONDS = 0.02
"""Between two requests of a client."""
NUMBER_OF_LONGEST = 3
SECONDS_BEFORE = 20.0
"""How long clients read and write before the erasure: what they wait then is not due to it."""


def fill(rt: Runtime, number: int) -> None:
    """Messages of the peers in turn, with their texts, and a conclusion from every fifth of the
    first peer."""
    drafts = [Draft(f"{peer} arrives.", peer) for peer in PEERS]
    first = messages.create(rt, ME, WORKSPACE, SESSION, drafts)
    template = first[0]

    def store(tx: Transaction, start: int) -> None:
        authors = tx.peers.by_slugs(template.workspace_key, PEERS)
        session = tx.sessions.by_key(template.session_key, lock=True)
        assert session is not None
        rows = []
        for n in range(start, min(start + BATCH_SIZE, number)):
            author = authors[PEERS[n % len(PEERS)]]
            rows.append(
                replace(
                    template,
                    key=0,
                    uid=new_uid(),
                    author_key=author.key,
                    author=author.slug,
                    seq=n + 1,
                    content=f"Message {n} is about subject {n % 977} and place {n % 89}.",
                    tokens=10,
                    tokens_through=session.token_total + 10 * (n - start + 1),
                )
            )
        stored = tx.messages.append(rows)
        by_key = {peer.key: peer for peer in authors.values()}
        terms = [indexing.message_terms(row.content) for row in stored]
        indexing.add_message_texts(rt, tx, template.workspace_key, stored, terms, by_key)
        last = stored[-1]
        tx.sessions.save(replace(session, message_count=last.seq, token_total=last.tokens_through))
        _conclude(rt, tx, authors["alice"], [row for row in stored if row.author == "alice"][::5])

    for start in range(len(PEERS), number, BATCH_SIZE):
        rt.storage.write(lambda tx, start=start: store(tx, start))  # type: ignore[misc]


def _conclude(rt: Runtime, tx: Transaction, peer: r.Peer, sources: list[r.Message]) -> None:
    collection = ensure_collection(rt, tx, peer, peer)
    rows = tx.conclusions.put(
        [
            r.Conclusion(
                uid=new_uid(),
                workspace_key=peer.workspace_key,
                collection_key=collection.key,
                observer_key=peer.key,
                observed_key=peer.key,
                session_key=message.session_key,
                observer=peer.slug,
                observed=peer.slug,
                session=message.session,
                content=message.content,
                fingerprint=fingerprint(message.content),
                message_keys=[message.key],
                said_at=message.created_at,
                created_at=message.created_at,
            )
            for message in sources
        ]
    )
    tx.conclusions.count_explicit(collection.key, len(rows))
    indexing.add_conclusion_texts(rt, tx, peer.workspace_key, rows)


class Repeating:
    """A process that repeats a request over one connection until it is ended."""

    def __init__(self, url: str, request: Request) -> None:
        processes = multiprocessing.get_context("spawn")
        self._connection, connection = processes.Pipe()
        self._process = processes.Process(
            target=_repeat, args=(url, request, connection), daemon=True
        )
        self._process.start()
        self._connection.recv()  # the first answer

    def end(self, since: float) -> str:
        """The times of its requests that ended after `since` (`time.monotonic`), in one line: how
        long, and when the longest began."""
        self._connection.send(None)
        times = sorted(row for row in self._connection.recv() if sum(row) >= since)
        self._process.join()
        (middle, _), (high, _) = times[len(times) // 2], times[len(times) * 99 // 100]
        longest = ", ".join(
            f"{seconds * 1e3:.1f} ms (at {began - since:.2f} s)"
            for seconds, began in reversed(times[-NUMBER_OF_LONGEST:])
        )
        return (
            f"{len(times)} times, median {middle * 1e3:.1f} ms, 99 % within {high * 1e3:.1f} ms, "
            f"longest {longest}"
        )


def _repeat(url: str, request: Request, ended: Connection) -> None:
    connection = client.Connection(url)
    connection.json(request)
    ended.send(None)
    times = []
    while not ended.poll(PAUSE_SECONDS):
        began = time.monotonic()
        connection.json(request)
        times.append((time.monotonic() - began, began))
    ended.send(times)


def measure(rt: Runtime, url: str) -> None:
    path = f"/v3/workspaces/{WORKSPACE}"
    page = client.post(f"{path}/sessions/{SESSION}/messages/list?page=3&size=50", {})
    message = {"content": "I write.", "peer_id": "bob"}
    write = client.post(f"{path}/sessions/other/messages", {"messages": [message]})
    reader, writer = Repeating(url, page), Repeating(url, write)
    began = time.monotonic()
    time.sleep(SECONDS_BEFORE)
    print(f"before: readers: {reader.end(began)}", flush=True)
    print(f"before: writers: {writer.end(began)}", flush=True)
    times = WriteTimes(rt)
    times.begin()
    reader, writer = Repeating(url, page), Repeating(url, write)
    time.sleep(1)
    began, cpu_began = time.monotonic(), time.process_time()
    receipt = client.Connection(url).json(client.Request("DELETE", f"{path}/peers/alice"))
    print(f"accepted after {(time.monotonic() - began) * 1e3:.1f} ms", flush=True)
    Worker(rt).run_until_idle(3_600)
    state = receipts.get(rt, ME, WORKSPACE, receipt["id"]).state
    print(f"{state} after {time.monotonic() - began:.1f} s", end=", ")
    print(f"{time.process_time() - cpu_began:.1f} s of CPU of the worker")
    print(f"readers: {reader.end(began)}\nwriters: {writer.end(began)}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024:.0f} MB")
    print(dict(receipts.get(rt, ME, WORKSPACE, receipt["id"]).counts))
    times.end()
    print(*times.lines(), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uri")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE, a setting")
    options = parser.parse_args()
    chosen = dict(option.split("=", 1) for option in options.option)
    with tempfile.TemporaryDirectory() as folder:
        uri = options.uri or f"sqlite:///{Path(folder) / 'erasure.db'}"
        settings = {"DERIVER_ENABLED": "false", **chosen}
        environment = {"DB_CONNECTION_URI": uri, **settings}
        loaded = load_settings(environ=environment, cwd=Path(folder))
        plugins, stop = load_plugins(loaded), threading.Event()
        # With `stop`, reasoners that compute run in processes of their own, as those of a worker.
        rt = open_runtime(loaded, "worker", plugins=plugins, stop=stop)
        rt.storage.migrate()
        # Before the store has texts: a server that finds unknown ones has them indexed again.
        with service(uri, settings, workers=2) as server:
            began = time.perf_counter()
            fill(rt, options.messages)
            print(f"filled in {time.perf_counter() - began:.1f} s", flush=True)
            gc.freeze()  # as a worker does
            measure(rt, server.url)
        rt.close()


if __name__ == "__main__":
    main()
