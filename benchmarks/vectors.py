"""How fast and how exact one large space of vectors is searched:
`python -m benchmarks.vectors --db postgresql:///bench --rows 1000000`.

The vectors are invented: heaps around random middles, spread mostly in a few directions, as those
of sentences are. They are stored through the configured index, as rows of a tenth each by ten
authors and of sessions of a thousand; then the nearest are asked for, with and without filters, and
compared with the exact ones, which numpy computes. Times are wall-clock milliseconds of one query,
alone. The store must be empty.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

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
                kind="message",
                embedder="bench",
                dimension=dimension,
                state="active",
                created_at=rt.clock(),
            )
        )
        return space

    return rt.storage.write(make)


def fill(rt: Runtime, space: Space, vectors: Matrix) -> float:
    """Store the vectors as rows 1, 2 …; returns the seconds it took."""
    began = time.monotonic()
    for start in range(0, len(vectors), BATCH_SIZE):
        rows = [
            VectorRow(key, f"row{key}", vectors[key - 1], session=1 + key // 1_000, author=key % 10)
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
) -> None:
    """Print the recall of the nearest ten, and the median and 95th percentile of the time."""
    keys = np.nonzero(fits)[0]
    among = vectors[keys]
    hits_sum, times = 0.0, []
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
        f"ms   p95 {np.percentile(times, 95):7.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", required=True, help="the store, which must be empty")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    settings = load_settings(environ={**os.environ, "DB_CONNECTION_URI": options.db})
    rt = open_runtime(settings)
    rt.storage.migrate()
    vectors = heaped(options.rows, options.dimension, options.seed)
    dice = np.random.default_rng(options.seed + 1)
    queries = vectors[
        dice.integers(options.rows, size=options.queries)
    ] + 0.02 * dice.standard_normal((options.queries, options.dimension), dtype=np.float32)
    space = make_space(rt, options.dimension)
    seconds = fill(rt, space, vectors)
    print(
        f"{options.rows:,} vectors of {options.dimension} numbers stored in {seconds:.0f} "
        f"s, {options.rows / seconds:,.0f} a second"
    )
    indexes = getattr(rt.vectors, "indexes", None)
    if indexes is not None:
        began = time.monotonic()
        indexes.build_if_large(space)  # what the service does in the background
        print(f"index built in {time.monotonic() - began:.0f} s")
    number = np.arange(1, options.rows + 1)
    session = max(1, options.rows // 2_000)
    measure(rt, space, vectors, queries, "everything", EVERYTHING, number > 0)
    measure(
        rt,
        space,
        vectors,
        queries,
        "one author of ten",
        IndexFilter(authors=(3,)),
        number % 10 == 3,
    )
    measure(
        rt,
        space,
        vectors,
        queries,
        "one session",
        IndexFilter(sessions=(session,)),
        1 + number // 1_000 == session,
    )
    rt.close()


if __name__ == "__main__":
    main()
