"""Erasure of a peer: gone at once, its id free, and nothing of it left when the receipt is
`done`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.errors import InvalidInput, NotFound, Unauthorised
from memservice.domain.filters import TRUE, equals
from memservice.domain.ids import new_uid
from memservice.pipeline.deletion import checking
from memservice.pipeline.deletion import peers as peer_erasure
from memservice.services import browsing, cards, conclusions, indexing, workspaces
from memservice.services import messages as message_service
from memservice.services import peers as peer_service
from memservice.services.auth.bounds import bounds_for
from memservice.services.auth.principal import Principal
from memservice.services.chat import evidence
from memservice.services.conclusions import ConclusionDraft
from memservice.services.erasure import dependents, peers, positions, searches
from memservice.services.erasure.erased import Erased
from memservice.services.erasure.receipts import Receipt
from memservice.services.paging import Paging
from memservice.services.retrieval import context, search
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.schema import TABLES
from memservice.worker import runner
from support.erasure.kills import AfterOneStep, run_with_crashes
from support.pipeline.all_tables import fill
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

OpenPipeline = Callable[..., Pipeline]


def erase(pipeline: Pipeline, slug: str = "alice") -> Receipt:
    return peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, slug)


def receipt(pipeline: Pipeline, erasure: Receipt) -> r.Erasure:
    with pipeline.rt.storage.read() as tx:
        row = tx.erasures.by_uid(erasure.uid)
    assert row is not None
    return row


def all_rows(pipeline: Pipeline, *without: type[Any]) -> str:
    with pipeline.rt.storage.read() as tx:
        return "\n".join(
            repr(row)
            for spec in TABLES
            if spec.record not in without
            for row in tx.rows.page(spec.record, TRUE)
        )


def messages_of(pipeline: Pipeline, session: str) -> list[r.Message]:
    with pipeline.rt.storage.read() as tx:
        return tx.rows.page(r.Message, equals(session=session))


@pytest.mark.slow
def test_a_peer_is_gone_at_once_and_its_id_is_free(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I own a quokka."), ("bob", "I like tea."))
    pipeline.work()
    conclusions.create(
        pipeline.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft("has a quokka", "bob", "alice", "s")]
    )
    cards.put(pipeline.rt, PRINCIPAL, WORKSPACE, "bob", "alice", ["quokka"])
    erase(pipeline)
    with pytest.raises(NotFound):
        erase(pipeline)
    page = peer_service.page(pipeline.rt, PRINCIPAL, WORKSPACE, None, Paging(1, 50))
    assert [peer.slug for peer in page.items] == ["bob"]
    everyone = peer_service.page(pipeline.rt, PRINCIPAL, WORKSPACE, None, Paging(1, 50), kind="all")
    assert [peer.slug for peer in everyone.items] == ["bob"]
    peer_service.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", None, None)
    assert cards.get(pipeline.rt, PRINCIPAL, WORKSPACE, "bob", "alice") is None
    of_alice = {"observed_id": "alice"}
    listed = conclusions.page(pipeline.rt, PRINCIPAL, WORKSPACE, of_alice, Paging(1, 50))
    assert listed.items == []
    listing = message_service.page(
        pipeline.rt, PRINCIPAL, WORKSPACE, "s", {"peer_id": "alice"}, Paging(1, 50)
    )
    assert listing.items == []
    pipeline.say("s", ("alice", "I am new here."))
    pipeline.work()
    assert [message.content for message in messages_of(pipeline, "s")] == [
        "I like tea.",
        "I am new here.",
    ]
    assert [message.seq for message in messages_of(pipeline, "s")] == [1, 2]
    assert pipeline.texts("alice") == ["I am new here."]
    assert "quokka" not in all_rows(pipeline)


@pytest.mark.slow
def test_what_it_said_is_gone_from_every_read_before_a_worker_begins(pipeline: Pipeline) -> None:
    messages = pipeline.say(
        "s", ("alice", "I own a quokka."), *(("bob", f"I like tea {n}.") for n in range(30))
    )
    pipeline.work()
    rt = pipeline.rt

    def reads() -> str:
        """Everything that callers read of the session and the workspace."""
        page = message_service.page(rt, PRINCIPAL, WORKSPACE, "s", None, Paging(1, 50))
        assert page.total == len(page.items)
        options = context.SessionContextOptions(summary=True)
        of_session = context.of_session(rt, PRINCIPAL, WORKSPACE, "s", options)
        with rt.storage.read() as tx:
            (workspace,) = tx.rows.page(r.Workspace)
            (session,) = tx.rows.page(r.Session)
            bounds = bounds_for(tx, PRINCIPAL, workspace)
            matching = tx.rows.page(r.Conclusion, bounds.condition)
            tail = evidence.tail(tx, session, 10_000, bounds)
        hits = search.search(rt, PRINCIPAL, WORKSPACE, search.SearchOptions("quokka"))
        transcript = browsing.transcript(rt, PRINCIPAL, WORKSPACE, "s")
        listing = conclusions.page(rt, PRINCIPAL, WORKSPACE, None, Paging(1, 50))
        return repr((page, of_session, matching, tail, hits, transcript.messages, listing))

    assert "quokka" in reads()
    erase(pipeline)
    assert "quokka" not in reads()
    assert "I like tea 29." in reads()
    with pytest.raises(NotFound):
        message_service.get(rt, PRINCIPAL, WORKSPACE, "s", messages[0].uid)


@pytest.mark.slow
def test_nothing_of_a_peer_is_left_and_what_others_said_stays(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_erasure, "BATCH_SIZE", 7)
    monkeypatch.setattr(peer_erasure, "MAX_SESSIONS", 2)
    for session in ("a", "b", "c"):
        fill(pipeline, WORKSPACE, session)
    with pipeline.rt.storage.read() as tx:
        (alice,) = tx.rows.page(r.Peer, equals(slug="alice"))
        bobs = tx.rows.count(r.Conclusion, equals(observer="bob", observed="bob"))
    before = peers.counts(pipeline.rt, PRINCIPAL, WORKSPACE, "alice")
    assert before["messages"] == 75
    assert all(before[name] for name in before if name != "api_keys")
    assert peers.counts(pipeline.rt, PRINCIPAL, WORKSPACE, "alice") == before
    erasure = erase(pipeline)
    pipeline.work()
    done = receipt(pipeline, erasure)
    assert done.state == r.FINISHED, [task.last_error for task in pipeline.tasks(kinds.ERASE)]
    assert (done.counts["messages"], done.counts["peers"]) == (75, 1)
    assert done.counts["conclusions"] == before["conclusions"]
    assert done.counts["cards"] == before["cards"]
    text = all_rows(pipeline, r.Erasure, r.Task)
    assert "apples" not in text
    assert "alice" not in text
    for session in ("a", "b", "c"):
        rows = messages_of(pipeline, session)
        assert [row.seq for row in rows] == list(range(1, 26))
        assert {row.author for row in rows} == {"bob"}
    with pipeline.rt.storage.read() as tx:
        assert tx.rows.count(r.Conclusion, equals(observer="bob", observed="bob")) == bobs
        for spec in TABLES:
            for row in tx.rows.page(spec.record, TRUE):
                for field in (
                    "author_key",
                    "owner_key",
                    "peer_key",
                    "observer_key",
                    "observed_key",
                ):
                    assert getattr(row, field, None) != alice.key
        for row in tx.rows.page(r.Session):
            assert row.message_count == 25


@pytest.mark.slow
def test_an_interrupted_erasure_continues(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_erasure, "BATCH_SIZE", 20)
    monkeypatch.setattr(positions, "BATCH_SIZE", 10)
    fill(pipeline, WORKSPACE, "s")
    erasure = erase(pipeline)
    (unit,) = [unit for unit in pipeline.ready() if unit.startswith("erase:")]
    crashes = run_with_crashes(pipeline, unit)
    assert crashes > 5
    pipeline.work()
    done = receipt(pipeline, erasure)
    assert (done.state, done.counts["messages"]) == (r.FINISHED, 25)
    assert [row.seq for row in messages_of(pipeline, "s")] == list(range(1, 26))


def test_a_dry_run_counts_conclusions_about_others_that_rest_on_the_peer(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependents, "BATCH_SIZE", 1)
    one, other, bobs = pipeline.say(
        "s", ("alice", "Hi."), ("alice", "Carl sings."), ("bob", "Yes.")
    )
    pipeline.say("s", ("carl", "La."))

    def conclude(observed: str, content: str, **sources: Any) -> r.Conclusion:
        draft = ConclusionDraft(content, "bob", observed)
        (row,) = conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, [draft])
        changed = replace(row, **sources)
        return pipeline.rt.storage.write(lambda tx: tx.conclusions.put([changed]))[0]

    about = conclude("alice", "Alice is polite.")
    of_alice = conclude("carl", "Carl sings.", message_keys=[one.key, other.key])
    of_both = conclude("carl", "Carl sings well.", message_keys=[other.key, bobs.key])
    deductive: dict[str, Any] = {"level": r.DEDUCTIVE, "internal": {"premises": []}}
    conclude("carl", "Carl is polite.", source_ids=[about.uid, of_alice.uid], **deductive)
    conclude("carl", "Carl is loud.", source_ids=[of_alice.uid, of_both.uid], **deductive)
    counts = peers.counts(pipeline.rt, PRINCIPAL, WORKSPACE, "alice")
    assert counts["conclusions"] == 3
    erasure = erase(pipeline)
    pipeline.work()
    assert receipt(pipeline, erasure).counts["conclusions"] == counts["conclusions"]


def test_keys_of_an_erased_peer_are_revoked(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I like tea."))
    now = pipeline.clock()
    minted = [
        r.ApiKey(uid=new_uid(), workspace=WORKSPACE, peer=slug, created_at=now)
        for slug in ("alice", "bob")
    ]
    pipeline.rt.storage.write(lambda tx: [tx.keys.add(key) for key in minted])
    erase(pipeline)
    with pipeline.rt.storage.read() as tx:
        revoked = [tx.keys.by_uid(key.uid) for key in minted]
    assert [key is not None and key.revoked_at is not None for key in revoked] == [True, False]


def test_events_that_name_the_peer_are_deleted(pipeline: Pipeline) -> None:
    (message, *_) = pipeline.say("s", ("alice", "I like tea."), ("bob", "I like tea."))
    now, key = pipeline.clock(), message.workspace_key

    def body(slug: str) -> str:
        return json.dumps({"type": "queue.empty", "data": {"observer": None, "observed": slug}})

    rows = [
        r.Delivery(
            uid=new_uid(), workspace_key=key, endpoint_key=1, event_uid=new_uid(), event="e",
            body=body(slug), attempt=1, created_at=now,
        )
        for slug in ("alice", "bob")
    ]  # fmt: skip
    pipeline.rt.storage.write(lambda tx: tx.rows.put(rows))
    erase(pipeline)
    pipeline.work()
    with pipeline.rt.storage.read() as tx:
        assert [row.body for row in tx.rows.page(r.Delivery)] == [body("bob")]


def test_work_in_progress_stores_nothing_about_an_erased_peer(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I own a quokka."), ("bob", "I like tea."))

    def erase_meanwhile(request: object) -> None:
        pipeline.reasoner.act = None
        erase(pipeline)

    pipeline.reasoner.act = erase_meanwhile
    pipeline.work()
    assert "quokka" not in all_rows(pipeline)
    assert pipeline.texts("bob") == ["I like tea."]


@pytest.mark.slow
def test_vectors_in_an_outside_index_are_removed(open_pipeline: OpenPipeline) -> None:
    index = ExternalIndex()
    pipeline = open_pipeline(
        LengthEmbedder("lengths-1", Capability.SEMANTIC),
        index,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
    )
    pipeline.say("s", ("alice", "I own a quokka."), ("bob", "I like tea."))
    pipeline.work()
    assert len(index.rows) == 4
    erasure = erase(pipeline)
    pipeline.work()
    assert receipt(pipeline, erasure).state == r.FINISHED
    assert len(index.rows) == 2


@pytest.mark.slow
def test_scopes_and_narrow_keys_are_refused(pipeline: Pipeline) -> None:
    fill(pipeline, WORKSPACE, "s")
    with pytest.raises(InvalidInput):
        erase(pipeline, "scope.team")
    with pytest.raises(NotFound):
        erase(pipeline, "nobody")
    own = Principal(workspace_id=WORKSPACE, peer_id="alice")
    with pytest.raises(Unauthorised):
        peers.erase(pipeline.rt, own, WORKSPACE, "alice")
    with pytest.raises(Unauthorised):
        peers.counts(pipeline.rt, own, WORKSPACE, "alice")
    allowed = {"self_service": {"enabled": True}}
    workspaces.update(pipeline.rt, PRINCIPAL, WORKSPACE, None, allowed)
    with pytest.raises(Unauthorised):
        peers.erase(pipeline.rt, own, WORKSPACE, "bob")
    assert peers.erase(pipeline.rt, own, WORKSPACE, "alice").state == r.ACCEPTED


def test_keys_are_counted_and_lose_their_labels(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    of_alice: dict[str, Any] = {
        "workspace": WORKSPACE,
        "peer": "alice",
        "created_at": pipeline.clock(),
    }
    times = {"valid": None, "revoked": pipeline.clock()}
    keys = [
        r.ApiKey(uid=uid, label="phone of Alice Example", revoked_at=at, **of_alice)
        for uid, at in times.items()
    ]
    pipeline.rt.storage.write(lambda tx: tx.rows.put(keys))
    assert peers.counts(pipeline.rt, PRINCIPAL, WORKSPACE, "alice")["api_keys"] == 1
    erasure = erase(pipeline)
    pipeline.work()
    assert receipt(pipeline, erasure).counts["api_keys"] == 1
    with pipeline.rt.storage.read() as tx:
        assert [key.label for key in tx.rows.page(r.ApiKey)] == [None, None]


@pytest.mark.slow
def test_several_batches_are_checked_together(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each erased row is checked once, and no check has many more rows than were asked for."""
    monkeypatch.setattr(peer_erasure, "BATCH_SIZE", 2)
    monkeypatch.setattr(checking, "CHECKED_ROWS", 6)
    history = pipeline.say("s", *(("alice", f"Alice likes thing {n}.") for n in range(20)))
    pipeline.work()
    concluded = {row.key for row in pipeline.conclusions("alice")}
    left_of_batch, checks = searches.left_of_batch, []

    def checking_rows(rt: Any, erased: Erased) -> list[str]:
        checks.append(erased)
        return left_of_batch(rt, erased)

    monkeypatch.setattr(searches, "left_of_batch", checking_rows)
    erase(pipeline)
    pipeline.work()
    keys = [
        (kind, key)
        for erased in checks
        for kind in (indexing.MESSAGE, indexing.CONCLUSION)
        for key in erased.of_kind(kind)
    ]
    assert len(keys) == len(set(keys))
    assert {key for kind, key in keys if kind == indexing.MESSAGE} == {row.key for row in history}
    assert {key for kind, key in keys if kind == indexing.CONCLUSION} == concluded
    assert 1 < len(checks) <= len(keys) // 6 + 2


@pytest.mark.slow
def test_what_is_left_of_unchecked_batches_is_removed(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the worker died between the batches and their check."""
    monkeypatch.setattr(peer_erasure, "BATCH_SIZE", 3)
    history = pipeline.say("s", *(("alice", f"Alice likes thing {n}.") for n in range(8)))
    pipeline.work()
    erase(pipeline)
    unit = pipeline.unit(kinds.ERASE)
    remove, is_first = indexing.remove_rows, [True]

    def forgetting(*arguments: Any) -> None:
        if is_first and arguments[2] == indexing.MESSAGE:
            is_first.clear()
            return
        remove(*arguments)

    monkeypatch.setattr(indexing, "remove_rows", forgetting)
    run_with_crashes(pipeline, unit)
    pipeline.work()
    keys = [message.key for message in history]
    with pipeline.rt.storage.read() as tx:
        text = pipeline.rt.storage.text
        assert not is_first
        assert text.indexed(tx, indexing.MESSAGE, history[0].workspace_key, keys) == []
    assert all(task.state == "done" for task in pipeline.tasks(kinds.ERASE))


@pytest.mark.slow
def test_messages_without_a_session_are_erased(open_pipeline: OpenPipeline) -> None:
    """In a damaged store, as only one without foreign keys can be: the erasure neither repeats
    without end nor leaves them."""
    pipeline = open_pipeline(DB_CONNECTION_URI="memory://")
    history = pipeline.say("lost", ("alice", "I own a quokka."), ("bob", "I like tea."))
    pipeline.say("s", ("alice", "I sail."), ("bob", "I swim."))
    pipeline.work()
    lost = equals(key=history[0].session_key)
    pipeline.rt.storage.write(lambda tx: tx.rows.delete(r.Session, lost))
    erasure = erase(pipeline)
    for _ in range(100):
        ready = pipeline.ready()
        if not ready:
            break
        runner.run(pipeline.rt, ready[0], AfterOneStep())
    assert pipeline.ready() == []
    assert receipt(pipeline, erasure).state == r.FINISHED
    assert receipt(pipeline, erasure).counts["messages"] == 2
    assert "quokka" not in all_rows(pipeline)
    assert pipeline.texts("bob") == ["I like tea.", "I swim."]
