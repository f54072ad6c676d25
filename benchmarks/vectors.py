"""How fast and how exact one large space of vectors is searched:
`python -m benchmarks.vectors --db postgresql:///bench --rows 1000000`, or in an index outside the
storage: `python -m benchmarks.vectors --index redis://127.0.0.1:6379/1 --rows 1000000`.

The vectors are invented: heaps around random middles, spread mostly in a few directions, as those
of sentences are. They are stored through the configured index, as conclusions by ten authors, in
sessions of a thousand, of a thousand observers about one peer each; then the nearest are
asked for, with and without filters, and compared with the exact ones, which numpy computes. At the
end, a thousand rows and then the whole space are deleted. Times are wall-clock milliseconds of one
call, alone; of Redis, the CPU time and memory of the server are shown too, since they mean the same
on a busy machine. The store and the index must be empty.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from redis import Redis

from memservice.compose import open_runtime
from memservice.domain.records import Space
from memservice.runtime import Runtime
from memservice.services import workspaces
from memservice.settings import load_settings
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.vectors import VectorRow

BATCH_SIZE = 2_000
HEAPS = 500
DIRECTIONS = 32
"""In which the vectors of a heap differ much; in all others they differ a little."""
K = 10

OBSERVERS = 1_000
DELETED = 1_000

Matrix = np.ndarray[Any, np.dtype[np.float32]]


def heaped(rows: int, dimension: int, seed: int) -> Matrix:
    dice = np.random.default_rng(seed)
    middles = dice.standard_normal((HEAPS, dimension), dtype=np.float32)
    directions = dice.standard_normal((DIRECTIONS, dimension), dtype=np.float32) / np.sqrt(
        DIRECTIONS
    )
    matrix = np.empty((rows, dimension), np.float32)
    for start in range(0, rows, 100_000):
        part = matrix[start : start + 100_000]
        part[:] = middles[dice.integers(HEAPS, size=len(part))]
        part += dice.standard_normal((len(part), DIRECTIONS), dtype=np.float32) @ directions
        part += 0.1 * dice.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return matrix


def make_space(rt: Runtime, dimension: int) -> Space:
    def make(view: Any) -> Space:
        workspace, _ = workspaces.ensure(rt, view, "bench")
        space: Space = view.spaces.save(
            Space(
                workspace_key=workspace.key,
                kind="conclusion",
                embedder="bench",
                dimension=dimension,
                state="active",
                created_at=rt.clock(),
            )
        )
        return space

    return rt.storage.write(make)


class Usage:
    """What the server of the index used, if it is Redis."""

    def __init__(self, url: str | None) -> None:
        self._client = Redis.from_url(url) if url and url.startswith("redis") else None

    def cpu_ms(self) -> float:
        info: Any = self._client.info("cpu") if self._client else {}
        return 1_000 * float(sum(info.get(f"used_cpu_{kind}", 0) for kind in ("user", "sys")))

    def memory(self) -> int:
        info: Any = self._client.info("memory") if self._client else {}
        return int(info.get("used_memory", 0))


def fill(rt: Runtime, space: Space, vectors: Matrix) -> float:
    """Store the vectors as rows 1, 2 …; returns the seconds it took."""
    began = time.monotonic()
    for start in range(0, len(vectors), BATCH_SIZE):
        rows = [
            VectorRow(
                key,
                f"row{key}",
                vectors[key - 1],
                session=1 + key // 1_000,
                author=key % 10,
                observer=1 + key % OBSERVERS,
                observed=1 + key % OBSERVERS,
                level="explicit",
            )
            for key in range(start + 1, min(start + BATCH_SIZE, len(vectors)) + 1)
        ]
        if rt.vectors_transactional:
            rt.storage.write(lambda view, rows=rows: rt.vectors.upsert(view, space, rows))  # type: ignore[misc]
        else:
            rt.vectors.upsert(None, space, rows)
        if start % 100_000 == 0:
            print(f"  {start:>9,} stored, {time.monotonic() - began:.0f} s", flush=True)
    return time.monotonic() - began


def measure(
    rt: Runtime,
    space: Space,
    vectors: Matrix,
    queries: Matrix,
    name: str,
    where: IndexFilter,
    fits: Any,
    usage: Usage,
) -> None:
    """Print the recall of the nearest ten, and the median and 95th percentile of the time."""
    keys = np.nonzero(fits)[0]
    among = vectors[keys]
    hits_sum, times, cpu_ms = 0.0, [], usage.cpu_ms()
    for vector in queries:
        exact = set((keys[np.argsort(-(among @ vector))[:K]] + 1).tolist())
        began = time.perf_counter()
        if rt.vectors_transactional:
            with rt.storage.read() as view:
                hits = rt.vectors.query(view, space, vector, K, where)
        else:
            hits = rt.vectors.query(None, space, vector, K, where)
        times.append((time.perf_counter() - began) * 1_000)
        hits_sum += len(exact & {hit.key for hit in hits}) / len(exact)
    print(
        f"{name:<28} recall@{K} {hits_sum / len(queries):.3f}   median {np.median(times):7.1f} "
        f"ms   p95 {np.percentile(times, 95):7.1f} ms   CPU of Redis "
        f"{(usage.cpu_ms() - cpu_ms) / len(queries):7.1f} ms"
    )


def prepare(rt: Runtime, space: Space) -> None:
    """What the service does in the background."""
    began = time.monotonic()
    indexes = getattr(rt.vectors, "indexes", None)
    if indexes is not None:
        indexes.build_if_large(space)
    elif not rt.vectors_transactional:
        after = 0
        while keys := rt.vectors.keys(None, space, after):  # as reconciliation does
            after = keys[-1]
    print(f"prepared in {time.monotonic() - began:.0f} s", flush=True)


def remove(rt: Runtime, space: Space, rows: int) -> None:
    def timed(name: str, call: Callable[[Any], None]) -> None:
        began = time.perf_counter()
        if rt.vectors_transactional:
            rt.storage.write(call)
        else:
            call(None)
        print(f"{name}: {(time.perf_counter() - began) * 1_000:.0f} ms")

    keys = range(1, min(DELETED, rows) + 1)
    timed(f"{len(keys):,} rows deleted", lambda tx: rt.vectors.delete(tx, space, keys))
    timed("the rest deleted", lambda tx: rt.vectors.drop(tx, space))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", default="memory://", help="the store, which must be empty")
    parser.add_argument("--index", help="the URL of a Redis or Qdrant for the vectors")
    parser.add_argument("--filled", action="store_true", help="the index has these rows already")
    parser.add_argument("--keep", action="store_true", help="delete nothing at the end")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    environ = {**os.environ, "DB_CONNECTION_URI": options.db}
    if options.index:
        kind = "redis" if options.index.startswith("redis") else "qdrant"
        environ |= {"VECTOR_STORE_TYPE": kind, "VECTOR_STORE_URL": options.index}
    rt = open_runtime(load_settings(environ=environ))
    rt.storage.migrate()
    usage = Usage(options.index)
    vectors = heaped(options.rows, options.dimension, options.seed)
    dice = np.random.default_rng(options.seed + 1)
    queries = vectors[
        dice.integers(options.rows, size=options.queries)
    ] + 0.02 * dice.standard_normal((options.queries, options.dimension), dtype=np.float32)
    space = make_space(rt, options.dimension)
    if not options.filled:
        cpu_ms, memory = usage.cpu_ms(), usage.memory()
        seconds = fill(rt, space, vectors)
        cpu_ms, memory = usage.cpu_ms() - cpu_ms, usage.memory() - memory
        print(
            f"{options.rows:,} vectors of {options.dimension} numbers: {seconds:.0f} s, each "
            f"{1_000 * seconds / options.rows:.2f} ms, and {cpu_ms / options.rows:.2f} ms of CPU "
            f"and {memory / options.rows:,.0f} bytes of Redis"
        )
    memory = usage.memory()
    prepare(rt, space)
    print(f"each vector {(usage.memory() - memory) / options.rows:,.0f} bytes more of Redis")
    number = np.arange(1, options.rows + 1)
    session = max(1, options.rows // 2_000)
    pair = number % OBSERVERS == 6
    for name, where, fits in (
        ("everything", EVERYTHING, number > 0),
        ("one author of ten", IndexFilter(authors=(3,)), number % 10 == 3),
        ("one session", IndexFilter(sessions=(session,)), 1 + number // 1_000 == session),
        ("one observer and observed", IndexFilter(observers=(7,), observed=(7,)), pair),
    ):
        measure(rt, space, vectors, queries, name, where, fits, usage)
    if not options.keep:
        remove(rt, space, options.rows)
    rt.close()


if __name__ == "__main__":
    main()
