"""What comes back to the end of a session, and imports that were interrupted, with
`--no-respect-erasures`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import TRUE, equals
from memservice.domain.records import Member, Message
from memservice.services import corrections, sessions
from memservice.services.auth.bounds import visible_to
from memservice.services.erasure import messages, peers
from memservice.services.transfer import gaps, importing, successors
from memservice.spi.storage import Transaction
from support.erasure.imports import Open, exported, load
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline


def erase(pipeline: Pipeline, content: str) -> None:
    with pipeline.rt.storage.read() as tx:
        message = tx.rows.page(Message, equals(content=content))[0]
    messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "talk", message.uid)


def boats(*numbers: int) -> list[tuple[str, str]]:
    return [("alice", f"I have {n} boats.") for n in numbers]


def marks(pipeline: Pipeline) -> dict[str, tuple[int, int | None]]:
    with pipeline.rt.storage.read() as tx:
        rows = tx.rows.page(Member, TRUE)
    return {row.peer: (row.joined_seq, row.left_seq) for row in rows}


def seen_by(pipeline: Pipeline, name: str) -> list[str]:
    with pipeline.rt.storage.read() as tx:
        (peer,) = tx.rows.page(r.Peer, equals(slug=name))
        return [message.content for message in tx.rows.page(Message, visible_to(tx, peer))]


def supersede(pipeline: Pipeline, old: r.Conclusion, new: r.Conclusion) -> None:
    pipeline.rt.storage.write(
        lambda tx: tx.rows.change(
            r.Conclusion,
            equals(key=old.key),
            state=r.SUPERSEDED,
            superseded_by=new.key,
            superseded_at=pipeline.clock(),
        )
    )
    pipeline.clock.advance(hours=1)


def states(pipeline: Pipeline) -> dict[int, tuple[str, str, int | None]]:
    with pipeline.rt.storage.read() as tx:
        rows = tx.rows.page(r.Conclusion, equals(observer="bob"))
    return {row.key: (row.content, row.state, row.superseded_by) for row in rows}


class Killed(BaseException):
    """The process of the import ends here."""


def interrupted(
    monkeypatch: pytest.MonkeyPatch,
    load_it: Callable[[], Any],
    module: Any,
    name: str,
    on: Callable[..., bool] = lambda *_: True,
) -> None:
    """Run an import that is killed when it calls a function with such arguments."""
    original = getattr(module, name)

    def kill(*arguments: Any, **named: Any) -> Any:
        if on(*arguments):
            raise Killed
        return original(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, kill)
        patch.setattr(gaps, "close", lambda *_: None)
        with pytest.raises(Killed):
            load_it()


def test_who_joined_later_does_not_see_the_last_messages_that_come_back(
    open_pipeline: Open,
) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *boats(*range(8)))
    pipeline.join("talk", dave=sessions.MemberConfig())
    pipeline.say("talk", *boats(8, 9))
    lines = exported(pipeline)
    for n in range(5, 10):
        erase(pipeline, f"I have {n} boats.")
    pipeline.join("talk", carol=sessions.MemberConfig())
    pipeline.work()
    assert marks(pipeline) == {"alice": (0, None), "dave": (5, None), "carol": (5, None)}
    load(pipeline, lines, respect=False)
    assert marks(pipeline) == {"alice": (0, None), "dave": (8, None), "carol": (10, None)}
    assert seen_by(pipeline, "dave") == ["I have 8 boats.", "I have 9 boats."]
    assert seen_by(pipeline, "carol") == []


def test_an_interrupted_import_shows_no_later_messages_to_who_had_left(
    open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *boats(*range(5)), *[("bob", f"I have {n} cats.") for n in range(3)])
    sessions.remove_peers(pipeline.rt, PRINCIPAL, WORKSPACE, "talk", ["bob"])
    lines = exported(pipeline)
    visible = seen_by(pipeline, "bob")
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "bob")
    pipeline.work()
    interrupted(
        monkeypatch,
        lambda: load(pipeline, lines, respect=False),
        importing._Loader,
        "store",
        lambda _, kind, __: kind == "messages",
    )
    pipeline.say("talk", *[("alice", f"Bob does not read this {n}.") for n in range(3)])
    assert not any("not read" in content for content in seen_by(pipeline, "bob"))
    pipeline.clock.advance(hours=1)
    pipeline.work()
    assert not any("not read" in content for content in seen_by(pipeline, "bob"))
    load(pipeline, lines, respect=False)
    assert seen_by(pipeline, "bob") == visible


def test_token_sums_count_redacted_texts(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    name = "bobby-long-name-here"
    pipeline.say(
        "talk", *[("alice", f"{name} says {n} to {name}.") for n in range(3)], (name, "I sing.")
    )
    lines = exported(pipeline)
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, name, "redact")
    pipeline.work()
    load(pipeline, lines, respect=False)
    with pipeline.rt.storage.read() as tx:
        (session,) = tx.rows.page(r.Session, TRUE)
        rows = tx.messages.page(session.key)
    assert [row.tokens_through for row in rows] == [
        sum(row.tokens for row in rows[:n]) for n in range(1, 5)
    ]
    assert session.token_total == rows[-1].tokens_through


def test_a_file_that_lacks_what_came_back_before(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *boats(*range(6)))
    first = exported(pipeline)
    erase(pipeline, "I have 2 boats.")
    pipeline.work()
    second = exported(pipeline)
    load(pipeline, first, respect=False)
    erase(pipeline, "I have 5 boats.")
    pipeline.work()
    load(pipeline, second, respect=False)
    with pipeline.rt.storage.read() as tx:
        rows = tx.rows.page(Message, TRUE)
    contents = {row.seq: row.content for row in rows}
    assert contents == {n + 1: f"I have {n} boats." for n in range(6)}


def test_a_successor_supersedes_again_after_an_interrupted_import(
    open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", ("bob", "I live in Oslo."), ("bob", "I live in Rome."))
    pipeline.work()
    supersede(pipeline, *pipeline.conclusions("bob"))
    lines = exported(pipeline)
    erase(pipeline, "I live in Rome.")
    pipeline.work()
    interrupted(monkeypatch, lambda: load(pipeline, lines, respect=False), successors, "set_all")
    load(pipeline, lines, respect=False)
    (oslo, rome) = states(pipeline)
    assert states(pipeline) == {
        oslo: ("I live in Oslo.", r.SUPERSEDED, rome),
        rome: ("I live in Rome.", r.LIVE, None),
    }


def test_what_a_caller_invalidated_stays_invalidated(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", ("bob", "I live in Oslo."), ("bob", "I live in Rome."))
    pipeline.work()
    oslo, rome = pipeline.conclusions("bob")
    supersede(pipeline, oslo, rome)
    lines = exported(pipeline)
    erase(pipeline, "I live in Rome.")
    pipeline.work()
    pipeline.clock.advance(hours=1)
    corrections.invalidate(pipeline.rt, PRINCIPAL, WORKSPACE, oslo.uid, "I never lived there")
    load(pipeline, lines, respect=False)
    assert states(pipeline)[oslo.key] == ("I live in Oslo.", r.SUPERSEDED, None)


def test_what_was_said_again_since_is_live_once(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", ("bob", "I live in Oslo."), ("bob", "I sing."))
    pipeline.work()
    lines = exported(pipeline)
    erase(pipeline, "I live in Oslo.")
    pipeline.work()
    pipeline.clock.advance(hours=1)
    pipeline.say("talk", ("bob", "I live in Oslo."))
    pipeline.work()
    counted = pipeline.counted("bob")
    load(pipeline, lines, respect=False)
    pipeline.work()
    assert pipeline.texts("bob") == ["I sing.", "I live in Oslo."]
    assert pipeline.counted("bob") == counted
    (again,) = [key for key, (text, state, _) in states(pipeline).items() if state != r.LIVE]
    assert states(pipeline)[again][0] == "I live in Oslo."


def test_summaries_come_back_after_a_killed_import(
    open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", *boats(*range(24)))
    pipeline.work()
    lines = exported(pipeline)
    erase(pipeline, "I have 1 boats.")
    pipeline.work()
    kinds = sorted(pipeline.summaries("talk"))
    assert kinds
    interrupted(monkeypatch, lambda: load(pipeline, lines, respect=False), gaps, "make_room")
    assert not pipeline.summaries("talk")
    pipeline.clock.advance(minutes=6)
    pipeline.work()
    assert sorted(pipeline.summaries("talk")) == kinds


def test_an_id_that_is_used_again_is_named(open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    pipeline.say("talk", ("bob", "I sing."), ("alice", "I run."))
    pipeline.work()
    lines = exported(pipeline)
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "bob")
    pipeline.work()
    pipeline.say("talk", ("bob", "I read."))
    with pytest.raises(Conflict, match=r"other peers have the ids bob.*--as"):
        load(pipeline, lines, respect=False)


def test_a_session_that_is_new_needs_no_gaps(
    open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what existed is moved: a large file of new sessions takes no longer."""
    pipeline = open_pipeline()
    pipeline.say("talk", *boats(*range(3)))
    pipeline.say("other", ("bob", "I sing."))
    lines = exported(pipeline)
    erase(pipeline, "I have 1 boats.")
    pipeline.work()
    sessions_opened: list[str] = []
    begin = gaps.begin

    def noted(rt: Any, session: r.Session, opening: Any) -> Any:
        sessions_opened.append(session.slug)
        return begin(rt, session, opening)

    def forget_session(tx: Transaction) -> None:
        (session,) = tx.rows.page(r.Session, equals(slug="other"))
        for record in (Message, Member, r.Conclusion):
            tx.rows.delete(record, equals(session_key=session.key))
        tx.rows.delete(r.Session, equals(key=session.key))

    pipeline.rt.storage.write(forget_session)
    monkeypatch.setattr(gaps, "begin", noted)
    load(pipeline, lines, respect=False)
    assert sessions_opened == ["talk"]
