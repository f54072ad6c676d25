"""Moving workspaces to another embedder: new vectors beside the old ones, which are answered from
until the new ones are whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from memservice.domain.errors import ConfigurationError, NotFound, Unavailable
from memservice.domain.records import ACTIVE, BUILDING, Conclusion, Message, Space, Workspace
from memservice.hookspecs import hookimpl
from memservice.operations import doctor, reembed
from memservice.pipeline.handler import MAX_BACKOFF_SECONDS
from memservice.runtime import Runtime
from memservice.services import conclusions, deletion
from memservice.services.conclusions import ConclusionDraft
from memservice.services.indexing import Kind
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from memservice.spi.llm import ModelFailure
from memservice.spi.providers import EmbedderProvider
from support.pipeline.fakes import ExternalIndex
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

OpenPipeline = Callable[..., Pipeline]
PAIR = {"observer": "alice", "observed": "alice"}
SEMANTIC = Capability.SEMANTIC
INLINE = Capability.INLINE


class Letters:
    """Vectors that count letters, of any dimension. `act` is called before each batch, and may
    raise."""

    duplicate_distance: float | None = None

    def __init__(self, name: str, dimension: int, *capabilities: Capability) -> None:
        self.id = f"{name}-1"
        self.name = name
        self.dimension = dimension
        self.capabilities = frozenset(capabilities)
        self.embedded: list[str] = []
        self.act: Callable[[Sequence[str]], None] = lambda texts: None

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        self.act(texts)
        if purpose == "document":
            self.embedded += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        vector = np.zeros(self.dimension, np.float32)
        for letter in text.casefold():
            vector[ord(letter) % self.dimension] += 1
        length = np.float32(np.linalg.norm(vector))
        return vector / length if length else vector

    @hookimpl
    def memservice_embedders(self) -> Iterable[EmbedderProvider]:
        yield EmbedderProvider(
            name=self.name, open=lambda settings, context: self, capabilities=self.capabilities
        )


class Both:
    """Two of them, of one plugin."""

    def __init__(self, *embedders: Letters) -> None:
        self.embedders = embedders

    @hookimpl
    def memservice_embedders(self) -> Iterable[EmbedderProvider]:
        for embedder in self.embedders:
            yield from embedder.memservice_embedders()


def workspace(rt: Runtime) -> Workspace:
    (workspace,) = reembed.chosen(rt, [WORKSPACE])
    return workspace


def build(rt: Runtime, name: str) -> dict[Kind, tuple[str | None, int]]:
    target, pipeline = rt.open_embedder(name), workspace(rt)
    with reembed.hold_lease(rt, pipeline.key) as lease:
        return {
            moved.kind: (moved.previous, moved.created)
            for moved in reembed.build(rt, target, pipeline, lease, lambda rows: None)
        }


def settle(rt: Runtime, name: str) -> int:
    target, pipeline = rt.open_embedder(name), workspace(rt)
    with reembed.hold_lease(rt, pipeline.key) as lease:
        return reembed.settle(rt, target, pipeline, lease, lambda rows: None)


def move(rt: Runtime, name: str) -> dict[Kind, tuple[str | None, int]]:
    moved = build(rt, name)
    settle(rt, name)
    return moved


def spaces(rt: Runtime) -> list[tuple[str, str, str, int]]:
    """Kind, embedder, state and number of vectors of each space."""
    with rt.storage.read() as tx:
        rows = tx.rows.page(Space)
        inside = [rt.vectors.count(tx, space) for space in rows] if rt.vectors_transactional else []
    inside = inside or [rt.vectors.count(None, space) for space in rows]
    return sorted(
        (space.kind, space.embedder, space.state, number)
        for space, number in zip(rows, inside, strict=True)
    )


def keys_with_vector(rt: Runtime, kind: str) -> set[int]:
    """Keys of the rows that have a vector in the active space."""
    with rt.storage.read() as tx:
        space = tx.spaces.active(workspace(rt).key, kind)
        assert space is not None
        if rt.vectors_transactional:
            return set(rt.vectors.keys(tx, space))
    return set(rt.vectors.keys(None, space))


def all_rows(rt: Runtime, record: type[Message] | type[Conclusion]) -> set[int]:
    with rt.storage.read() as tx:
        return {row.key for row in tx.rows.page(record)}


def matching_contents(pipeline: Pipeline, query: str = "tea") -> list[str]:
    return [
        conclusion.content
        for conclusion in conclusions.query(
            pipeline.rt, PRINCIPAL, WORKSPACE, query, 5, filters=PAIR
        )
    ]


def test_messages_get_vectors_after_a_move_to_a_semantic_embedder(
    open_pipeline: OpenPipeline,
) -> None:
    letters = Letters("letters", 7, SEMANTIC)
    pipeline = open_pipeline(letters)
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a boat."), ("bob", " "))
    pipeline.work()
    hashed = pipeline.rt.embedder.id
    assert spaces(pipeline.rt) == [("conclusion", hashed, "active", 2)]
    assert move(pipeline.rt, "letters") == {"message": (None, 2), "conclusion": (hashed, 2)}
    assert spaces(pipeline.rt) == [
        ("conclusion", "letters-1", "active", 2),
        ("message", "letters-1", "active", 2),
    ]
    assert sorted(letters.embedded) == [
        "I like tea.",
        "I like tea.",
        "I own a boat.",
        "I own a boat.",
    ]
    # This process is still configured with the other one, and yet answers from the new vectors, and
    # writes such.
    letters.act = lambda texts: letters.embedded.append(f"query {texts}")
    matching_contents(pipeline)  # the first query learns that there is another embedder now
    assert matching_contents(pipeline)[0] == "I like tea."
    assert "query ['tea']" in letters.embedded
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.work()
    assert spaces(pipeline.rt) == [
        ("conclusion", "letters-1", "active", 3),
        ("message", "letters-1", "active", 3),
    ]


def test_messages_lose_their_vectors_after_a_move_to_a_non_semantic_embedder(
    open_pipeline: OpenPipeline,
) -> None:
    letters = Letters("letters", 7, SEMANTIC)
    pipeline = open_pipeline(letters, EMBEDDER="letters")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert spaces(pipeline.rt) == [
        ("conclusion", "letters-1", "active", 1),
        ("message", "letters-1", "active", 1),
    ]
    moved = move(pipeline.rt, "hashed")
    hashed = pipeline.rt.open_embedder("hashed").id
    assert moved == {"message": ("letters-1", 0), "conclusion": ("letters-1", 1)}
    assert spaces(pipeline.rt) == [("conclusion", hashed, "active", 1)]
    assert matching_contents(pipeline) == ["I like tea."]
    assert [
        m.content for m in search.search(pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions("tea"))
    ] == ["I like tea."]


def test_moving_again_adds_missing_vectors_only(open_pipeline: OpenPipeline) -> None:
    letters = Letters("letters", 7, INLINE)
    pipeline = open_pipeline(letters)
    pipeline.say("s", ("alice", "I like tea.\nI own a boat."))
    pipeline.work()
    move(pipeline.rt, "letters")
    assert move(pipeline.rt, "letters") == {}
    assert len(letters.embedded) == 2
    first = min(keys_with_vector(pipeline.rt, "conclusion"))
    with pipeline.rt.storage.read() as tx:
        space = tx.spaces.active(workspace(pipeline.rt).key, "conclusion")
    assert space is not None
    pipeline.rt.storage.write(lambda tx: pipeline.rt.vectors.delete(tx, space, [first]))
    assert settle(pipeline.rt, "letters") == 1
    assert keys_with_vector(pipeline.rt, "conclusion") == all_rows(pipeline.rt, Conclusion)


def test_an_interrupted_move_continues_where_it_stopped(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH_SIZE", 4)
    letters = Letters("letters", 7, INLINE)
    pipeline = open_pipeline(letters)
    pipeline.say("s", *(("alice", f"I own {number} boats.") for number in range(10)))
    pipeline.work()
    hashed = pipeline.rt.embedder.id

    def end(texts: Sequence[str]) -> None:
        if len(letters.embedded) >= 8:
            raise KeyboardInterrupt

    letters.act = end
    with pytest.raises(KeyboardInterrupt):
        build(pipeline.rt, "letters")
    assert spaces(pipeline.rt) == [
        ("conclusion", hashed, "active", 10),
        ("conclusion", "letters-1", "building", 8),
    ]
    (advice,) = [check.advice for check in doctor.look(pipeline.rt) if check.name == "embedder"]
    assert "`memservice reembed`" in advice
    letters.act = lambda texts: None
    assert matching_contents(pipeline, "9 boats")[0] == "I own 9 boats.", (
        "answered from the old ones meanwhile"
    )
    assert move(pipeline.rt, "letters") == {"conclusion": (hashed, 2)}
    assert len(letters.embedded) == 10, "nothing is made twice"
    (check,) = [check for check in doctor.look(pipeline.rt) if check.name == "embedder"]
    assert (check.state, "`memservice reembed --to`" in check.advice) == ("ok", True), (
        "it moved away from what is configured"
    )
    assert spaces(pipeline.rt) == [("conclusion", "letters-1", "active", 10)]


@pytest.mark.slow
def test_rows_written_during_a_move_have_vectors_afterwards(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH_SIZE", 3)
    letters = Letters("letters", 7, INLINE, SEMANTIC)
    pipeline = open_pipeline(letters)
    pipeline.say("s", *(("alice", f"I own {number} boats.") for number in range(10)))
    pipeline.work()
    written = 0

    def meanwhile(texts: Sequence[str]) -> None:
        nonlocal written
        if written < 5:
            written += 1
            draft = ConclusionDraft(f"Alice has {written} cats.", "alice", "alice")
            conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, [draft])
            pipeline.say("s", ("bob", f"Hello number {written}."))
            if written == 3:
                conclusions.delete(
                    pipeline.rt, PRINCIPAL, WORKSPACE, pipeline.conclusions("alice")[0].uid
                )

    letters.act = meanwhile
    move(pipeline.rt, "letters")
    pipeline.work()
    live = {row.key for row in pipeline.conclusions("alice")} | {
        row.key for row in pipeline.conclusions("bob")
    }
    assert keys_with_vector(pipeline.rt, "conclusion") == live
    assert keys_with_vector(pipeline.rt, "message") == all_rows(pipeline.rt, Message)
    assert {state for _, _, state, _ in spaces(pipeline.rt)} == {"active"}


def test_a_row_that_was_stored_just_before_the_change_gets_its_vector_after_it(
    open_pipeline: OpenPipeline,
) -> None:
    """As by a writer whose transaction had read which space is the active one, and committed after
    the last row was looked at."""
    letters = Letters("letters", 7, INLINE)
    pipeline = open_pipeline(letters)
    pipeline.say("s", ("alice", "I like tea.\nI own a boat."))
    pipeline.work()
    build(pipeline.rt, "letters")
    with pipeline.rt.storage.read() as tx:
        new = tx.spaces.active(workspace(pipeline.rt).key, "conclusion")
    assert new is not None
    late = pipeline.conclusions("alice")[0].key
    pipeline.rt.storage.write(lambda tx: pipeline.rt.vectors.delete(tx, new, [late]))
    assert "I like tea." in matching_contents(pipeline), "found by its text until then"
    assert settle(pipeline.rt, "letters") == 1
    assert keys_with_vector(pipeline.rt, "conclusion") == all_rows(pipeline.rt, Conclusion)


def test_a_task_in_progress_during_the_switch_creates_the_new_vector(
    open_pipeline: OpenPipeline,
) -> None:
    slow, letters = Letters("slow", 5), Letters("letters", 7)
    pipeline = open_pipeline(Both(slow, letters), EMBEDDER="slow")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    pipeline.say("s", ("alice", "I own a boat."))

    def move_first(texts: Sequence[str]) -> None:
        slow.act = lambda texts: None
        if texts == ["I own a boat."]:
            build(pipeline.rt, "letters")
        else:
            slow.act = move_first

    slow.act = move_first
    pipeline.work()
    assert settle(pipeline.rt, "letters") == 0, (
        "the row had been there when the last one was looked for"
    )
    failed = [task for task in pipeline.tasks(kinds.EMBED) if task.attempts]
    assert ["SpaceReplaced" in (task.last_error or "") for task in failed] == [True]
    pipeline.clock.advance(seconds=MAX_BACKOFF_SECONDS * 2)
    pipeline.work()
    assert {task.state for task in pipeline.tasks(kinds.EMBED)} == {"done"}
    assert spaces(pipeline.rt) == [("conclusion", "letters-1", "active", 2)]


@pytest.mark.slow
def test_a_workspace_with_an_outside_index_is_moved(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH_SIZE", 3)
    index, letters = ExternalIndex(), Letters("letters", 7, SEMANTIC)
    pipeline = open_pipeline(index, letters, VECTOR_STORE_TYPE="outside")
    pipeline.say("s", *(("alice", f"I own {number} boats.") for number in range(7)))
    pipeline.work()
    doomed = pipeline.conclusions("alice")[1]

    def meanwhile(texts: Sequence[str]) -> None:
        letters.act = lambda texts: None
        # Of the very batch that is in hand: it was read, and will be stored.
        conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, doomed.uid)

    letters.act = lambda texts: (
        meanwhile(texts) if doomed.content in texts and len(letters.embedded) >= 7 else None
    )
    move(pipeline.rt, "letters")
    pipeline.work()
    assert {len(row.vector) for row in index.rows.values()} == {7}, (
        "nothing of the old ones is left"
    )
    assert keys_with_vector(pipeline.rt, "conclusion") == {
        row.key for row in pipeline.conclusions("alice")
    }
    assert doomed.key not in keys_with_vector(pipeline.rt, "conclusion")
    assert keys_with_vector(pipeline.rt, "message") == all_rows(pipeline.rt, Message)


def test_vectors_of_erased_rows_are_removed(open_pipeline: OpenPipeline) -> None:
    index, letters = ExternalIndex(), Letters("letters", 7, INLINE)
    pipeline = open_pipeline(index, letters, VECTOR_STORE_TYPE="outside")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    move(pipeline.rt, "letters")
    ((number, key),) = index.rows
    for stray in (key + 1, key + 500):
        index.rows[number, stray] = index.rows[number, key]
    settle(pipeline.rt, "letters")
    assert list(index.rows) == [(number, key)]


def test_an_unfinished_move_to_another_embedder_is_dropped(open_pipeline: OpenPipeline) -> None:
    first, second = Letters("first", 7, INLINE), Letters("second", 9, INLINE)
    pipeline = open_pipeline(Both(first, second))
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()

    def stop(texts: Sequence[str]) -> None:
        raise KeyboardInterrupt

    first.act = stop
    with pytest.raises(KeyboardInterrupt):
        build(pipeline.rt, "first")
    move(pipeline.rt, "second")
    assert spaces(pipeline.rt) == [("conclusion", "second-1", "active", 1)]


def test_a_workspace_can_be_moved_there_and_back(open_pipeline: OpenPipeline) -> None:
    letters = Letters("letters", 7, INLINE)
    pipeline = open_pipeline(letters)
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    hashed = pipeline.rt.embedder.id
    build(pipeline.rt, "letters")  # the old space is not dropped yet
    move(pipeline.rt, "hashed")
    assert spaces(pipeline.rt) == [("conclusion", hashed, "active", 1)]


def test_a_move_waits_for_an_unreachable_embedder(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("memservice.operations.reembed.time.sleep", waited.append)
    letters = Letters("letters", 7, INLINE)
    pipeline = open_pipeline(letters)
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    failures = [
        ModelFailure("too much", retryable=True, retry_after=700.0),
        ConnectionError("away"),
    ]

    def fail(texts: Sequence[str]) -> None:
        if failures:
            raise failures.pop(0)

    letters.act = fail
    move(pipeline.rt, "letters")
    assert [seconds >= 1 for seconds in waited] == [True, True]
    assert waited[0] == 700, "as long as it asks for"
    failures += [ModelFailure("no such model", retryable=False)]
    pipeline.say("s", ("alice", "I own a boat."))
    with pytest.raises(Unavailable, match="run this again"):
        move(pipeline.rt, "hashed") and move(pipeline.rt, "letters")
    assert len(waited) == 2, "what will not pass is not waited for"


def test_a_workspace_deleted_during_a_move_is_skipped(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH_SIZE", 2)
    letters = Letters("letters", 7, INLINE)
    pipeline = open_pipeline(letters)
    pipeline.say("s", *(("alice", f"I own {number} boats.") for number in range(6)))
    pipeline.work()

    def delete(texts: Sequence[str]) -> None:
        letters.act = lambda texts: None
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
        pipeline.work()
        deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE)
        pipeline.work()

    letters.act = delete
    with pytest.raises(reembed.Erased):
        build(pipeline.rt, "letters")
    with pytest.raises(NotFound, match=WORKSPACE):
        reembed.chosen(pipeline.rt, [WORKSPACE])
    assert spaces(pipeline.rt) == []


def test_another_model_under_the_same_name_is_detected(open_pipeline: OpenPipeline) -> None:
    letters = Letters("letters", 7, INLINE)
    pipeline = open_pipeline(letters)
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    move(pipeline.rt, "letters")
    letters.dimension = 8
    with pytest.raises(ConfigurationError, match="dimension 8"):
        build(pipeline.rt, "letters")


def test_vectors_of_two_embedders_are_never_compared(open_pipeline: OpenPipeline) -> None:
    """Both have the same dimension, so only their names differ; the query was embedded before the
    change."""
    old, new = Letters("old", 7, SEMANTIC), Letters("new", 7, SEMANTIC)
    pipeline = open_pipeline(Both(old, new), EMBEDDER="old")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    comparisons: list[tuple[str, int]] = []
    query = pipeline.rt.vectors.query

    def watched(view: object, space: Space, *rest: object) -> object:
        comparisons.append((space.embedder, len(comparisons)))
        return query(view, space, *rest)  # type: ignore[arg-type]

    pipeline.rt.vectors.query = watched  # type: ignore[method-assign,assignment]

    def change(texts: Sequence[str]) -> None:
        if texts == ["tea"]:
            old.act = lambda texts: None
            build(pipeline.rt, "new")

    old.act = change
    assert [
        m.content for m in search.search(pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions("tea"))
    ] == ["I like tea."]
    assert comparisons == [], (
        "a vector by the old embedder is not compared with those of the new one"
    )
    search.search(pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions("tea"))
    assert [embedder for embedder, _ in comparisons] == ["new-1"]


def test_spaces_being_built_are_not_queried(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(Letters("letters", 7, INLINE))
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    key = workspace(pipeline.rt).key
    other = Space(
        workspace_key=key,
        kind="message",
        embedder="letters-1",
        dimension=7,
        state=BUILDING,
        created_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.spaces.save(other))
    with pipeline.rt.storage.read() as tx:
        assert tx.spaces.active(key, "message") is None
        assert [space.state for space in tx.spaces.of_workspace(key)] == [ACTIVE, BUILDING]
