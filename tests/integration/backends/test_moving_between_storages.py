"""A workspace goes from SQLite to PostgreSQL and back, and is what it was."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from memservice.compose import open_runtime
from memservice.domain.records import Conclusion, Workspace
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services import conclusions, indexing, messages, store_compatibility
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft
from memservice.services.messages import Draft
from memservice.services.transfer import export
from memservice.services.transfer.copying import CopyMismatch, copy
from memservice.services.transfer.export import ExportOptions
from memservice.settings import load_settings
from support.stores.postgres_server import drop_database
from support.stores.postgres_store import new_store
from support.stores.vector_stores import vector_store

PRINCIPAL = Principal(admin=True)
BATCH_SIZE = 100
SESSIONS = 20
EVERYTHING = ExportOptions(secrets=True)

pytestmark = pytest.mark.xdist_group("postgres-moving")


@contextmanager
def store(uri: str, folder: Path, **more: str) -> Iterator[Runtime]:
    settings = load_settings(
        environ={"DB_CONNECTION_URI": uri, "DB_SYNCHRONOUS": "normal", **more}, cwd=folder
    )
    runtime = open_runtime(settings, plugins=load_plugins(settings))
    runtime.storage.migrate()
    store_compatibility.initialise(runtime)
    try:
        yield runtime
    finally:
        runtime.close()


def fill(rt: Runtime, number: int) -> None:
    """So many messages, in some sessions, and a conclusion for every tenth."""
    for start in range(0, number, BATCH_SIZE):
        session = f"s{start // BATCH_SIZE % SESSIONS}"
        drafts = [
            Draft(f"Message {n}: I saw {n % 97} birds near {n % 13} lakes.", f"p{n % 7}")
            for n in range(start, start + BATCH_SIZE)
        ]
        messages.create(rt, PRINCIPAL, "w", session, drafts)
        new_drafts = [
            ConclusionDraft(f"saw {n} birds", f"p{n % 7}", f"p{n % 7}", session)
            for n in range(start, start + BATCH_SIZE, 10)
        ]
        conclusions.create(rt, PRINCIPAL, "w", new_drafts)


@pytest.mark.parametrize(
    "number", [200, pytest.param(50_000, marks=[pytest.mark.heavy, pytest.mark.timeout(3_600)])]
)
def test_a_workspace_moved_there_and_back_is_unchanged(tmp_path: Path, number: int) -> None:
    uri = new_store()
    try:
        with store(f"sqlite:///{tmp_path}/a.db", tmp_path) as first, store(uri, tmp_path) as second:
            fill(first, number)
            began = time.monotonic()
            there = copy(export.lines(first, "w", EVERYTHING), second, "w", EVERYTHING)
            assert there.stored["messages"] == number
            assert there.stored["conclusions"] == number // 10
            assert there.stored["vectors"] >= number // 10
            with store(f"sqlite:///{tmp_path}/b.db", tmp_path) as third:
                back = copy(export.lines(second, "w", EVERYTHING), third, "w", EVERYTHING)
                assert (back.sha256, back.stored) == (there.sha256, there.stored)
                for before, after in zip(
                    export.lines(first, "w", EVERYTHING),
                    export.lines(third, "w", EVERYTHING),
                    strict=True,
                ):
                    assert after == before or b'"type":"header"' in before
        print(f"{number} messages there and back, compared, in {time.monotonic() - began:.0f} s")
    finally:
        drop_database(uri)


def turn(rt: Runtime) -> None:
    """Give conclusions one another's vectors."""
    with rt.storage.read() as tx:
        (workspace,) = tx.rows.page(Workspace)
        (space,) = (
            space
            for space in tx.spaces.of_workspace(workspace.key)
            if space.kind == indexing.CONCLUSION
        )
        rows = tx.rows.page(Conclusion)
        vectors = rt.vectors.fetch(rt.beside(tx), space, [row.key for row in rows])
    others = indexing.vector_rows(rows, [vectors[row.key] for row in reversed(rows)])
    if rt.vectors_transactional:
        rt.storage.write(lambda tx: rt.vectors.upsert(tx, space, others))
    else:
        rt.vectors.upsert(None, space, others)


@pytest.mark.parametrize(
    "index",
    [
        pytest.param("postgres", marks=pytest.mark.heavy),
        pytest.param("redis", marks=pytest.mark.heavy),
        "qdrant",
    ],
)
def test_moved_vectors_are_unchanged(tmp_path: Path, index: str) -> None:
    """In an index that keeps them bit by bit, and in ones that scale them once more. They come back
    as they were."""
    with ExitStack() as stack:
        uri = f"sqlite:///{tmp_path}/b.db"
        if index == "postgres":
            stack.callback(drop_database, uri := new_store())
        settings = stack.enter_context(vector_store(index))
        first = stack.enter_context(store(f"sqlite:///{tmp_path}/a.db", tmp_path))
        second = stack.enter_context(store(uri, tmp_path, **settings))
        third = stack.enter_context(store(f"sqlite:///{tmp_path}/c.db", tmp_path))
        fill(first, 100)
        assert (
            copy(export.lines(first, "w", EVERYTHING), second, "w", EVERYTHING).stored["vectors"]
            == 10
        )
        copy(export.lines(second, "w", EVERYTHING), third, "w", EVERYTHING)
        copy(export.lines(first, "w", EVERYTHING), third, "w", EVERYTHING)
        turn(second)
        with pytest.raises(
            CopyMismatch, match=r"from the original in vectors of kind conclusion\."
        ):
            copy(export.lines(first, "w", EVERYTHING), second, "w", EVERYTHING)
