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
from support.pipeline.fakes import Outside
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

Start = Callable[..., Place]
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
        self.asked: list[str] = []
        self.act: Callable[[Sequence[str]], None] = lambda texts: None

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        self.act(texts)
        if purpose == "document":
            self.asked += texts
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
    target, place = rt.open_embedder(name), workspace(rt)
    with reembed.hold_lease(rt, place.key) as lease:
        return {
            moved.kind: (moved.previous, moved.created)
            for moved in reembed.build(rt, target, place, lease, lambda rows: None)
        }


def settle(rt: Runtime, name: str) -> int:
    target, place = rt.open_embedder(name), workspace(rt)
    with reembed.hold_lease(rt, place.key) as lease:
        return reembed.settle(rt, target, place, lease, lambda rows: None)


def move(rt: Runtime, name: str) -> dict[Kind, tuple[str | None, int]]:
    moved = build(rt, name)
    settle(rt, name)
    return moved


def spaces(rt: Runtime) -> list[tuple[str, str, str, int]]:
    """Kind, embedder, state and number of vectors of each space."""
    with rt.storage.read() as tx:
        found = tx.rows.page(Space)
        inside = (
            [rt.vectors.count(tx, space) for space in found] if rt.vectors_transactional else []
        )
    inside = inside or [rt.vectors.count(None, space) for space in found]
    return sorted(
        (space.kind, space.embedder, space.state, number)
        for space, number in zip(found, inside, strict=True)
    )


def held(rt: Runtime, kind: str) -> set[int]:
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


def asked(place: Place, query: str = "tea") -> list[str]:
    return [
        found.content
        for found in conclusions.query(place.rt, PRINCIPAL, WORKSPACE, query, 5, filters=PAIR)
    ]


def test_messages_get_vectors_after_a_move_to_a_semantic_embedder(
    start: Start,
) -> None:
    letters = Letters("letters", 7, SEMANTIC)
    place = start(letters)
    place.say("s", ("alice", "I like tea."), ("alice", "I own a boat."), ("bob", " "))
    place.work()
    hashed = place.rt.embedder.id
    assert spaces(place.rt) == [("conclusion", hashed, "active", 2)]
    assert move(place.rt, "letters") == {"message": (None, 2), "conclusion": (hashed, 2)}
    assert spaces(place.rt) == [
        ("conclusion", "letters-1", "active", 2),
        ("message", "letters-1", "active", 2),
    ]
    assert sorted(letters.asked) == ["I like tea.", "I like tea.", "I own a boat.", "I own a boat."]
    # This process is still configured with the other one, and yet answers from the new vectors, and
    # writes such.
    letters.act = lambda texts: letters.asked.append(f"asked {texts}")
    asked(place)  # the first query learns that there is another embedder now
    assert asked(place)[0] == "I like tea."
    assert "asked ['tea']" in letters.asked
    place.say("s", ("alice", "I keep bees."))
    place.work()
    assert spaces(place.rt) == [
        ("conclusion", "letters-1", "active", 3),
        ("message", "letters-1", "active", 3),
    ]


def test_messages_lose_their_vectors_after_a_move_to_a_non_semantic_embedder(start: Start) -> None:
    letters = Letters("letters", 7, SEMANTIC)
    place = start(letters, EMBEDDER="letters")
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert spaces(place.rt) == [
        ("conclusion", "letters-1", "active", 1),
        ("message", "letters-1", "active", 1),
    ]
    moved = move(place.rt, "hashed")
    hashed = place.rt.open_embedder("hashed").id
    assert moved == {"message": ("letters-1", 0), "conclusion": ("letters-1", 1)}
    assert spaces(place.rt) == [("conclusion", hashed, "active", 1)]
    assert asked(place) == ["I like tea."]
    assert [
        m.content for m in search.search(place.rt, PRINCIPAL, WORKSPACE, SearchOptions("tea"))
    ] == ["I like tea."]


def test_moving_again_adds_missing_vectors_only(start: Start) -> None:
    letters = Letters("letters", 7, INLINE)
    place = start(letters)
    place.say("s", ("alice", "I like tea.\nI own a boat."))
    place.work()
    move(place.rt, "letters")
    assert move(place.rt, "letters") == {}
    assert len(letters.asked) == 2
    first = min(held(place.rt, "conclusion"))
    with place.rt.storage.read() as tx:
        space = tx.spaces.active(workspace(place.rt).key, "conclusion")
    assert space is not None
    place.rt.storage.write(lambda tx: place.rt.vectors.delete(tx, space, [first]))
    assert settle(place.rt, "letters") == 1
    assert held(place.rt, "conclusion") == all_rows(place.rt, Conclusion)


def test_an_interrupted_move_continues_where_it_stopped(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH_SIZE", 4)
    letters = Letters("letters", 7, INLINE)
    place = start(letters)
    place.say("s", *(("alice", f"I own {number} boats.") for number in range(10)))
    place.work()
    hashed = place.rt.embedder.id

    def end(texts: Sequence[str]) -> None:
        if len(letters.asked) >= 8:
            raise KeyboardInterrupt

    letters.act = end
    with pytest.raises(KeyboardInterrupt):
        build(place.rt, "letters")
    assert spaces(place.rt) == [
        ("conclusion", hashed, "active", 10),
        ("conclusion", "letters-1", "building", 8),
    ]
    (advice,) = [check.advice for check in doctor.look(place.rt) if check.name == "embedder"]
    assert "`memservice reembed`" in advice
    letters.act = lambda texts: None
    assert asked(place, "9 boats")[0] == "I own 9 boats.", "answered from the old ones meanwhile"
    assert move(place.rt, "letters") == {"conclusion": (hashed, 2)}
    assert len(letters.asked) == 10, "nothing is made twice"
    (check,) = [check for check in doctor.look(place.rt) if check.name == "embedder"]
    assert (check.state, "`memservice reembed --to`" in check.advice) == ("ok", True), (
        "it moved away from what is configured"
    )
    assert spaces(place.rt) == [("conclusion", "letters-1", "active", 10)]


def test_rows_written_during_a_move_have_vectors_afterwards(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH_SIZE", 3)
    letters = Letters("letters", 7, INLINE, SEMANTIC)
    place = start(letters)
    place.say("s", *(("alice", f"I own {number} boats.") for number in range(10)))
    place.work()
    written = 0

    def meanwhile(texts: Sequence[str]) -> None:
        nonlocal written
        if written < 5:
            written += 1
            draft = ConclusionDraft(f"Alice has {written} cats.", "alice", "alice")
            conclusions.create(place.rt, PRINCIPAL, WORKSPACE, [draft])
            place.say("s", ("bob", f"Hello number {written}."))
            if written == 3:
                conclusions.delete(
                    place.rt, PRINCIPAL, WORKSPACE, place.conclusions("alice")[0].uid
                )

    letters.act = meanwhile
    move(place.rt, "letters")
    place.work()
    live = {row.key for row in place.conclusions("alice")} | {
        row.key for row in place.conclusions("bob")
    }
    assert held(place.rt, "conclusion") == live
    assert held(place.rt, "message") == all_rows(place.rt, Message)
    assert {state for _, _, state, _ in spaces(place.rt)} == {"active"}


def test_a_row_that_was_stored_just_before_the_change_gets_its_vector_after_it(
    start: Start,
) -> None:
    """As by a writer whose transaction had read which space is the active one, and committed after
    the last row was looked at."""
    letters = Letters("letters", 7, INLINE)
    place = start(letters)
    place.say("s", ("alice", "I like tea.\nI own a boat."))
    place.work()
    build(place.rt, "letters")
    with place.rt.storage.read() as tx:
        new = tx.spaces.active(workspace(place.rt).key, "conclusion")
    assert new is not None
    late = place.conclusions("alice")[0].key
    place.rt.storage.write(lambda tx: place.rt.vectors.delete(tx, new, [late]))
    assert "I like tea." in asked(place), "found by its text until then"
    assert settle(place.rt, "letters") == 1
    assert held(place.rt, "conclusion") == all_rows(place.rt, Conclusion)


def test_a_task_in_progress_during_the_switch_creates_the_new_vector(
    start: Start,
) -> None:
    slow, letters = Letters("slow", 5), Letters("letters", 7)
    place = start(Both(slow, letters), EMBEDDER="slow")
    place.say("s", ("alice", "I like tea."))
    place.work()
    place.say("s", ("alice", "I own a boat."))

    def move_first(texts: Sequence[str]) -> None:
        slow.act = lambda texts: None
        if texts == ["I own a boat."]:
            build(place.rt, "letters")
        else:
            slow.act = move_first

    slow.act = move_first
    place.work()
    assert settle(place.rt, "letters") == 0, (
        "the row had been there when the last one was looked for"
    )
    failed = [task for task in place.tasks(kinds.EMBED) if task.attempts]
    assert ["SpaceReplaced" in (task.last_error or "") for task in failed] == [True]
    place.clock.advance(seconds=MAX_BACKOFF_SECONDS * 2)
    place.work()
    assert {task.state for task in place.tasks(kinds.EMBED)} == {"done"}
    assert spaces(place.rt) == [("conclusion", "letters-1", "active", 2)]


def test_a_workspace_with_an_outside_index_is_moved(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH_SIZE", 3)
    index, letters = Outside(), Letters("letters", 7, SEMANTIC)
    place = start(index, letters, VECTOR_STORE_TYPE="outside")
    place.say("s", *(("alice", f"I own {number} boats.") for number in range(7)))
    place.work()
    doomed = place.conclusions("alice")[1]

    def meanwhile(texts: Sequence[str]) -> None:
        letters.act = lambda texts: None
        # Of the very batch that is in hand: it was read, and will be stored.
        conclusions.delete(place.rt, PRINCIPAL, WORKSPACE, doomed.uid)

    letters.act = lambda texts: (
        meanwhile(texts) if doomed.content in texts and len(letters.asked) >= 7 else None
    )
    move(place.rt, "letters")
    place.work()
    assert {len(row.vector) for row in index.rows.values()} == {7}, (
        "nothing of the old ones is left"
    )
    assert held(place.rt, "conclusion") == {row.key for row in place.conclusions("alice")}
    assert doomed.key not in held(place.rt, "conclusion")
    assert held(place.rt, "message") == all_rows(place.rt, Message)


def test_vectors_of_erased_rows_are_removed(start: Start) -> None:
    index, letters = Outside(), Letters("letters", 7, INLINE)
    place = start(index, letters, VECTOR_STORE_TYPE="outside")
    place.say("s", ("alice", "I like tea."))
    place.work()
    move(place.rt, "letters")
    ((number, key),) = index.rows
    for stray in (key + 1, key + 500):
        index.rows[number, stray] = index.rows[number, key]
    settle(place.rt, "letters")
    assert list(index.rows) == [(number, key)]


def test_an_unfinished_move_to_another_embedder_is_dropped(start: Start) -> None:
    first, second = Letters("first", 7, INLINE), Letters("second", 9, INLINE)
    place = start(Both(first, second))
    place.say("s", ("alice", "I like tea."))
    place.work()

    def stop(texts: Sequence[str]) -> None:
        raise KeyboardInterrupt

    first.act = stop
    with pytest.raises(KeyboardInterrupt):
        build(place.rt, "first")
    move(place.rt, "second")
    assert spaces(place.rt) == [("conclusion", "second-1", "active", 1)]


def test_a_workspace_can_be_moved_there_and_back(start: Start) -> None:
    letters = Letters("letters", 7, INLINE)
    place = start(letters)
    place.say("s", ("alice", "I like tea."))
    place.work()
    hashed = place.rt.embedder.id
    build(place.rt, "letters")  # the old space is not dropped yet
    move(place.rt, "hashed")
    assert spaces(place.rt) == [("conclusion", hashed, "active", 1)]


def test_a_move_waits_for_an_unreachable_embedder(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("memservice.operations.reembed.time.sleep", waited.append)
    letters = Letters("letters", 7, INLINE)
    place = start(letters)
    place.say("s", ("alice", "I like tea."))
    place.work()
    failures = [
        ModelFailure("too much", retryable=True, retry_after=700.0),
        ConnectionError("away"),
    ]

    def fail(texts: Sequence[str]) -> None:
        if failures:
            raise failures.pop(0)

    letters.act = fail
    move(place.rt, "letters")
    assert [seconds >= 1 for seconds in waited] == [True, True]
    assert waited[0] == 700, "as long as it asks for"
    failures += [ModelFailure("no such model", retryable=False)]
    place.say("s", ("alice", "I own a boat."))
    with pytest.raises(Unavailable, match="run this again"):
        move(place.rt, "hashed") and move(place.rt, "letters")
    assert len(waited) == 2, "what will not pass is not waited for"


def test_a_workspace_deleted_during_a_move_is_skipped(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "BATCH_SIZE", 2)
    letters = Letters("letters", 7, INLINE)
    place = start(letters)
    place.say("s", *(("alice", f"I own {number} boats.") for number in range(6)))
    place.work()

    def delete(texts: Sequence[str]) -> None:
        letters.act = lambda texts: None
        deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
        place.work()
        deletion.delete_workspace(place.rt, PRINCIPAL, WORKSPACE)
        place.work()

    letters.act = delete
    with pytest.raises(reembed.Erased):
        build(place.rt, "letters")
    with pytest.raises(NotFound, match=WORKSPACE):
        reembed.chosen(place.rt, [WORKSPACE])
    assert spaces(place.rt) == []


def test_another_model_under_the_same_name_is_detected(start: Start) -> None:
    letters = Letters("letters", 7, INLINE)
    place = start(letters)
    place.say("s", ("alice", "I like tea."))
    place.work()
    move(place.rt, "letters")
    letters.dimension = 8
    with pytest.raises(ConfigurationError, match="dimension 8"):
        build(place.rt, "letters")


def test_vectors_of_two_embedders_are_never_compared(start: Start) -> None:
    """Both have the same dimension, so only their names differ; the query was embedded before the
    change."""
    old, new = Letters("old", 7, SEMANTIC), Letters("new", 7, SEMANTIC)
    place = start(Both(old, new), EMBEDDER="old")
    place.say("s", ("alice", "I like tea."))
    place.work()
    seen: list[tuple[str, int]] = []
    query = place.rt.vectors.query

    def watched(view: object, space: Space, *rest: object) -> object:
        seen.append((space.embedder, len(seen)))
        return query(view, space, *rest)  # type: ignore[arg-type]

    place.rt.vectors.query = watched  # type: ignore[method-assign,assignment]

    def change(texts: Sequence[str]) -> None:
        if texts == ["tea"]:
            old.act = lambda texts: None
            build(place.rt, "new")

    old.act = change
    assert [
        m.content for m in search.search(place.rt, PRINCIPAL, WORKSPACE, SearchOptions("tea"))
    ] == ["I like tea."]
    assert seen == [], "a vector by the old embedder is not compared with those of the new one"
    search.search(place.rt, PRINCIPAL, WORKSPACE, SearchOptions("tea"))
    assert [embedder for embedder, _ in seen] == ["new-1"]


def test_spaces_being_built_are_not_queried(start: Start) -> None:
    place = start(Letters("letters", 7, INLINE))
    place.say("s", ("alice", "I like tea."))
    place.work()
    key = workspace(place.rt).key
    other = Space(
        workspace_key=key,
        kind="message",
        embedder="letters-1",
        dimension=7,
        state=BUILDING,
        created_at=place.clock(),
    )
    place.rt.storage.write(lambda tx: tx.spaces.save(other))
    with place.rt.storage.read() as tx:
        assert tx.spaces.active(key, "message") is None
        assert [space.state for space in tx.spaces.of_workspace(key)] == [ACTIVE, BUILDING]
