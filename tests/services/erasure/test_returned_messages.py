"""Imports with `--no-respect-erasures` into the workspace in which something was erased: it comes
back to its place."""

from __future__ import annotations

import random
from typing import Any

import pytest

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import TRUE, equals
from memservice.domain.records import Member, Message, Session
from memservice.services import messages as message_service
from memservice.services import sessions
from memservice.services.erasure import messages, peers
from memservice.services.messages import Draft
from memservice.services.paging import Paging
from memservice.services.tasks import kinds
from memservice.services.transfer import gaps
from memservice.services.transfer.lines import Sum, UnreadableExport, format_line
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction
from support.erasure.free_positions import check_free_positions
from support.erasure.imports import PLAIN, Open, exported, load
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline


def erase(pipeline: Pipeline, content: str, session: str = "talk") -> None:
    with pipeline.rt.storage.read() as tx:
        (message,) = tx.rows.page(Message, equals(content=content, session=session))
    messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, session, message.uid)


def state(pipeline: Pipeline) -> dict[str, Any]:
    """Messages by position with their sums of tokens, and marks of members, by session."""
    check_free_positions(pipeline)
    with pipeline.rt.storage.read() as tx:
        return {
            session.slug: (
                session.message_count,
                session.token_total,
                [
                    (message.seq, message.content, message.tokens_through)
                    for message in tx.messages.page(session.key, limit=1_000)
                ],
                {
                    member.peer: (member.joined_seq, member.left_seq)
                    for member in tx.rows.page(Member, equals(session_key=session.key))
                },
            )
            for session in tx.rows.page(Session, TRUE)
        }


def rows(pipeline: Pipeline) -> list[str]:
    """The lines of an export in any order, without those that are made again."""
    made_again = (b'"type":"tasks"', b'"type":"summaries"', b'"type":"workspaces"')
    lines = exported(pipeline, options=PLAIN)[1:-1]
    return sorted(line.decode() for line in lines if not any(kind in line for kind in made_again))


def texts(pipeline: Pipeline, session: str = "talk") -> list[str]:
    return [content for _, content, _ in state(pipeline)[session][2]]


def leave(pipeline: Pipeline, session: str, peer: str) -> None:
    sessions.remove_peers(pipeline.rt, PRINCIPAL, WORKSPACE, session, [peer])


@pytest.mark.every_storage("sqlite")
def test_an_erased_message_comes_back_to_its_place(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(3)])
    pipeline.join("talk", carol=sessions.MemberConfig())
    pipeline.say("talk", *[("bob", f"I have {n} cats.") for n in range(4)])
    leave(pipeline, "talk", "carol")
    pipeline.say("other", ("bob", "I run."))
    pipeline.work()
    before, lines = state(pipeline), exported(pipeline)
    exported_rows = rows(pipeline)
    for content in ("I have 1 boats.", "I have 2 boats.", "I have 0 cats.", "I have 3 cats."):
        erase(pipeline, content)
    pipeline.work()
    assert state(pipeline) != before
    report = load(pipeline, lines, respect=False)
    assert (report.stored["messages"], dict(report.left_out)) == (4, {})
    assert state(pipeline) == before
    assert not pipeline.tasks(kinds.REPACK, state=r.PENDING)
    pipeline.work()
    assert rows(pipeline) == exported_rows
    again = load(pipeline, lines, respect=False)
    assert not any(again.stored.values())
    # Its export has the messages in their order, so another store can import it.
    other = open_pipeline()
    load(other, exported(pipeline))
    assert state(other) == before


def test_a_filter_that_was_used_meanwhile_matches_what_comes_back(
    open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With totals, and with few matches, that the process remembers from the moment before."""
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(4)])
    lines = exported(pipeline)
    for n in (1, 3):
        erase(pipeline, f"I have {n} boats.")
    pipeline.work()

    def totals() -> list[int]:
        by_alice = {"peer_id": "alice"}
        pages = [
            message_service.page(
                pipeline.rt, PRINCIPAL, WORKSPACE, "talk", by_alice, Paging(1, size)
            )
            for size in (1, 50)
        ]
        return [page.total for page in pages]

    make_room = gaps.make_room

    def slowly(*arguments: Any) -> None:
        make_room(*arguments)
        assert totals() == [2, 2]

    monkeypatch.setattr(gaps, "make_room", slowly)
    assert totals() == [2, 2]
    load(pipeline, lines, respect=False)
    assert totals() == [4, 4]


def test_totals_after_an_import_that_failed_at_the_end_of_a_session(
    open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other messages take the positions that were free for those of the import."""
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(4)])
    lines = exported(pipeline)
    erase(pipeline, "I have 3 boats.")
    pipeline.work()
    by_alice = {"peer_id": "alice"}

    def total() -> int:
        paging = Paging(1, 1)
        return message_service.page(
            pipeline.rt, PRINCIPAL, WORKSPACE, "talk", by_alice, paging
        ).total

    def failing(*arguments: Any) -> None:
        assert total() == 3
        raise Conflict("the import fails")

    monkeypatch.setattr(gaps, "make_room", failing)
    with pytest.raises(Conflict, match="the import fails"):
        load(pipeline, lines, respect=False)
    pipeline.work()
    pipeline.say("talk", ("alice", "I sing."))
    assert total() == 4


def test_messages_since_the_export_come_after_those_that_come_back(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(4)])
    lines = exported(pipeline)
    for n in (1, 3):
        erase(pipeline, f"I have {n} boats.")
    pipeline.say("talk", ("bob", "I sing."), ("bob", "I run."))
    pipeline.work()
    load(pipeline, lines, respect=False)
    assert texts(pipeline) == [*(f"I have {n} boats." for n in range(4)), "I sing.", "I run."]
    pipeline.say("talk", ("bob", "I read."))
    assert texts(pipeline)[-1] == "I read."


def test_messages_of_an_erased_peer_come_back(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice" if n % 3 else "bob", f"I have {n} boats.") for n in range(10)])
    pipeline.work()
    before, lines = state(pipeline), exported(pipeline)
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "bob")
    pipeline.work()
    assert len(texts(pipeline)) == 6
    load(pipeline, lines, respect=False)
    assert state(pipeline) == before
    assert "I have 3 boats." in pipeline.texts("bob")


def test_a_conclusion_is_superseded_again_by_one_that_comes_back(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", ("bob", "I live in Oslo."), ("bob", "I sing."), ("bob", "I own a cat."))
    pipeline.work()
    oslo, sings, cat = pipeline.conclusions("bob")

    def replace(tx: Transaction) -> None:
        for row in (oslo, cat):
            tx.rows.change(
                r.Conclusion,
                equals(key=row.key),
                state=r.SUPERSEDED,
                superseded_by=sings.key,
                superseded_at=pipeline.clock(),
            )

    pipeline.rt.storage.write(replace)
    lines = exported(pipeline)
    erase(pipeline, "I sing.")
    pipeline.work()
    assert {row.content for row in pipeline.conclusions("bob")} == {oslo.content, cat.content}
    load(pipeline, lines, respect=False)
    with pipeline.rt.storage.read() as tx:
        rows = {row.content: row for row in tx.rows.page(r.Conclusion, TRUE)}
    assert rows[sings.content].state == r.LIVE
    for row in (oslo, cat):
        returned = rows[row.content]
        assert (returned.state, returned.superseded_by) == (r.SUPERSEDED, rows[sings.content].key)


@pytest.mark.every_storage("sqlite")
@pytest.mark.slow
def test_random_sessions_are_as_if_nothing_had_been_erased(
    open_pipeline: Open, storage_name: str
) -> None:
    for seed in range(6 if storage_name == "memory" else 2):
        rng = random.Random(seed)
        # Sometimes nothing, or nothing that was said, follows what is erased.
        plan = [_action(rng, n) for n in range(16 + rng.choice([0, 1, 2, 8]))]
        plain, erased = open_pipeline(), open_pipeline()
        lines: list[bytes] = []
        for n, (action, *arguments) in enumerate(plan):
            for pipeline in (plain, erased):
                _act(pipeline, action, arguments)
            if n == 15:
                erased.work()
                lines = exported(erased)
                contents = texts(erased)
                for content in rng.sample(contents, rng.randint(1, len(contents))):
                    erase(erased, content)
                erased.work()
        load(erased, lines, respect=False)
        expected, actual = state(plain)["talk"], state(erased)["talk"]
        assert actual[:3] == expected[:3], f"seed {seed}"
        for peer, (joined, left) in expected[3].items():
            here_joined, here_left = actual[3][peer]
            if not any(peer in arguments for _, *arguments in plan[16:]):
                assert (here_joined, here_left) == (joined, left), f"seed {seed}, {peer}"
            # Who joined or left since the export sees at most what they were present for.
            assert here_joined >= joined
            assert (here_left is None) == (left is None)
            assert here_left is None or here_left <= left


def _action(rng: random.Random, n: int) -> tuple[str, ...]:
    peer = rng.choice(["carol", "dave", "erin"])
    kind = rng.choice(["say", "say", "say", "join", "leave"])
    return ("say", f"{n} {'x ' * rng.randint(1, 9)}".strip()) if kind == "say" else (kind, peer)


def _act(pipeline: Pipeline, action: str, arguments: list[str]) -> None:
    if action == "say":
        pipeline.say("talk", ("alice", arguments[0]))
    elif action == "join":
        pipeline.join("talk", **{arguments[0]: sessions.MemberConfig()})
    elif any(member.peer == arguments[0] for member in _present(pipeline)):
        leave(pipeline, "talk", arguments[0])


def _present(pipeline: Pipeline) -> list[Member]:
    with pipeline.rt.storage.read() as tx:
        return tx.rows.page(Member, equals(session="talk", left_at=None))


def test_positions_are_closed_when_the_import_fails(
    open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker closes them at once, and the file can be imported again."""
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(6)])
    before, lines = state(pipeline), exported(pipeline)
    for n in (1, 3):
        erase(pipeline, f"I have {n} boats.")
    pipeline.work()
    after = state(pipeline)
    with monkeypatch.context() as failing:
        failing.setattr(gaps, "require_open", _fail)
        with pytest.raises(OSError, match="the disk is full"):
            load(pipeline, lines, respect=False)
    assert state(pipeline)["talk"][0] == 6
    with pytest.raises(Conflict, match="still have gaps"):
        load(pipeline, lines, respect=False)
    pipeline.work()
    assert state(pipeline) == after
    load(pipeline, lines, respect=False)
    assert state(pipeline) == before


def _fail(*_: object) -> None:
    raise OSError("the disk is full")


@pytest.mark.every_storage("sqlite")
def test_a_killed_import_leaves_a_task_that_closes_the_positions(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(6)])
    erase(pipeline, "I have 1 boats.")
    pipeline.work()
    after = state(pipeline)
    with pipeline.rt.storage.read() as tx:
        (session,) = tx.rows.page(Session, TRUE)
        first = tx.messages.run(session.key, 1, 1)[0]
    opening = [gaps.Gap(1, first.uid, 2, 7)]
    begun = gaps.begin(pipeline.rt, session, opening)
    gaps.make_room(pipeline.rt, session, opening, {}, begun)
    with pipeline.rt.storage.read() as tx:
        assert [message.seq for message in tx.messages.page(session.key)] == [1, 4, 5, 6, 7]
    pipeline.work()
    assert state(pipeline) != after
    gaps.hold(pipeline.rt, [begun])
    pipeline.clock.advance(minutes=4)
    pipeline.work()
    assert state(pipeline) != after, "the import said that it goes on"
    pipeline.clock.advance(minutes=2)
    pipeline.work()
    assert state(pipeline) == after


@pytest.mark.every_storage("sqlite")
def test_long_sessions_make_room_in_batches(
    open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps, "BATCH_SIZE", 4)
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(30)])
    before, lines = state(pipeline), exported(pipeline)
    for n in (0, 1, 9, 10, 11, 20, 29):
        erase(pipeline, f"I have {n} boats.")
    pipeline.work()
    load(pipeline, lines, respect=False)
    assert state(pipeline) == before


def test_a_summary_covers_what_comes_back(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(24)])
    pipeline.work()
    before, lines = pipeline.summaries("talk")["short"], exported(pipeline)
    without = [line for line in lines if b'"type":"summaries"' not in line]
    erase(pipeline, "I have 2 boats.")
    pipeline.work()
    assert pipeline.summaries("talk")["short"].content != before.content
    load(pipeline, lines, respect=False)
    after = pipeline.summaries("talk")["short"]
    assert (after.content, after.message_uid) == (before.content, before.message_uid)
    # A file without the summary: a task makes it again.
    erase(pipeline, "I have 2 boats.")
    pipeline.work()
    load(pipeline, resealed(without), respect=False)
    pipeline.work()
    covered = {row.content for row in pipeline.reasoner.summaries[-1].messages}
    assert "I have 2 boats." in covered


def resealed(lines: list[bytes]) -> list[bytes]:
    """The same lines, with the number and the checksum of the remaining ones at the end."""
    total = Sum()
    for line in lines[1:-1]:
        total.add(line)
    return [*lines[:-1], format_line(total.end())]


def test_a_file_cannot_change_a_session_of_another_workspace(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(4)])
    pipeline.work()
    lines = exported(pipeline)
    erase(pipeline, "I have 1 boats.")
    pipeline.work()
    before = state(pipeline)
    # Messages of the workspace `w` in a file of the workspace `other`, which also erased something.
    other = "other"
    message_service.create(pipeline.rt, PRINCIPAL, other, "s", [Draft("I sing.", "bob")])
    with pipeline.rt.storage.read() as tx:
        (sung,) = tx.rows.page(Message, equals(content="I sing."))
    messages.delete(pipeline.rt, PRINCIPAL, other, "s", sung.uid)
    pipeline.work()
    header, workspace, *_ = exported(pipeline, other)
    foreign = [line for line in lines if b'"type":"messages"' in line]
    with pytest.raises(UnreadableExport, match="not in the file"):
        load(pipeline, resealed([header, workspace, *foreign, b""]), respect=False)
    assert state(pipeline)["talk"] == before["talk"]
    assert not pipeline.tasks(kinds.REPACK, state=r.PENDING)


def test_messages_that_exist_here_in_another_order_are_a_conflict(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *[("alice", f"I have {n} boats.") for n in range(4)])
    lines = exported(pipeline)
    erase(pipeline, "I have 0 boats.")
    pipeline.work()

    def exchange(tx: Transaction) -> None:
        first, second, _ = tx.rows.page(Message, TRUE, (Order("seq"),))
        for message, seq in ((first, 9), (second, 1), (first, 2)):
            tx.rows.change(Message, equals(key=message.key), seq=seq)

    pipeline.rt.storage.write(exchange)
    with pytest.raises(Conflict, match=r"'talk'.*another order.*--as"):
        load(pipeline, lines, respect=False)
