"""Removes what work in progress adds to a vector index outside the storage for erased rows
(`services.erasure.embedding`). Every erasure does it after its last row and before its receipt is
`done`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from memservice.domain.records import Task
from memservice.pipeline.handler import Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.erasure import embedding
from memservice.spi.storage import Transaction

ENTRY = "embedding"
"""Entry of the payload: the claims that existed after the rows were erased, and the last task that
was read."""
PAUSE_SECONDS = 0.02
SECONDS = 0.25
"""About how long one step waits for work in progress."""


def prepare(
    rt: Runtime, task: Task, workspace_key: int, then: Callable[[Task], Unfinished]
) -> Prepared:
    """The next step. `then` continues with the task after the last one. With an index in the
    storage there is nothing to do."""
    if rt.vectors_transactional:
        return Prepared(lambda tx: then(task))
    progress = task.payload.get(ENTRY)
    if progress is None:
        return Prepared(
            lambda tx: _at(task, claims=embedding.claims(rt, tx, workspace_key), after=0)
        )
    claims, after = progress["claims"], progress["after"]
    if not wait(rt, lambda tx: embedding.have_ended(rt, tx, workspace_key, claims)):
        return Prepared(lambda tx: Unfinished(task))
    with rt.storage.read() as tx:
        missing, last = embedding.missing_rows(tx, workspace_key, after)
        spaces = tx.spaces.of_workspace(workspace_key)
    for kind, keys in missing.items():
        if keys:
            indexing.remove_vectors(rt, None, kind, spaces, keys)
    if last is not None:
        return Prepared(lambda tx: _at(task, claims=[], after=last))
    payload = {name: task.payload[name] for name in task.payload if name != ENTRY}
    return Prepared(lambda tx: then(replace(task, payload=payload)))


def wait(rt: Runtime, is_true: Callable[[Transaction], bool]) -> bool:
    """Wait for a condition, for a short time. False if it is not fulfilled yet."""
    ends = time.monotonic() + SECONDS
    while True:
        with rt.storage.read() as tx:
            if is_true(tx):
                return True
        if time.monotonic() >= ends:
            return False
        time.sleep(PAUSE_SECONDS)


def _at(task: Task, **progress: Any) -> Unfinished:
    return Unfinished(replace(task, payload={**task.payload, ENTRY: progress}))
