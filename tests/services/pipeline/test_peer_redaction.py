"""Mentions of an erased peer in what others said: kept, or replaced by `[erased]`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain import tokens
from memservice.domain.errors import InvalidInput
from memservice.domain.filters import TRUE, equals
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.text.analysis import analyse
from memservice.pipeline.deletion import mentions as stages
from memservice.services import cards, conclusions, corrections, deletion
from memservice.services import peers as peer_service
from memservice.services.conclusions import ConclusionDraft
from memservice.services.erasure import mentions, peers, redacted_names, redaction
from memservice.services.erasure.erased import NotErased
from memservice.services.erasure.receipts import Receipt
from memservice.services.sessions import MemberConfig
from memservice.services.tasks import kinds, outbox
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.schema import TABLES
from support.erasure.kills import run_with_crashes
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

OpenPipeline = Callable[..., Pipeline]
NAME = "Alice Example"


def named(pipeline: Pipeline, slug: str = "al-1", name: str = NAME) -> None:
    peer_service.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, slug, {"name": name}, None)


def erase(pipeline: Pipeline, choice: str = mentions.REDACT, slug: str = "al-1") -> Receipt:
    return peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, slug, choice)


def finished(pipeline: Pipeline, erasure: Receipt) -> r.Erasure:
    pipeline.work()
    with pipeline.rt.storage.read() as tx:
        row = tx.erasures.by_uid(erasure.uid)
    assert row is not None
    assert row.state == r.FINISHED, [task.last_error for task in pipeline.tasks(kinds.ERASE)]
    return row


def rows(pipeline: Pipeline, record: type[Any], **values: Any) -> list[Any]:
    with pipeline.rt.storage.read() as tx:
        return tx.rows.page(record, equals(**values) if values else TRUE)


def everything(pipeline: Pipeline) -> str:
    return "\n".join(repr(row) for spec in TABLES for row in rows(pipeline, spec.record)).lower()


def contents(pipeline: Pipeline, session: str = "s") -> list[str]:
    with pipeline.rt.storage.read() as tx:
        (row,) = tx.rows.page(r.Session, equals(slug=session))
        return [message.content for message in tx.messages.page(row.key, limit=1_000)]


def sums_are_right(pipeline: Pipeline, session: str = "s") -> bool:
    (row,) = rows(pipeline, r.Session, slug=session)
    with pipeline.rt.storage.read() as tx:
        messages = tx.messages.page(row.key, limit=1_000)
    total = 0
    for number, message in enumerate(messages, 1):
        total += tokens.count(message.content)
        if (message.seq, message.tokens, message.tokens_through) != (
            number,
            tokens.count(message.content),
            total,
        ):
            return False
    return (row.message_count, row.token_total) == (len(messages), total)


@pytest.mark.slow
def test_names_are_replaced_everywhere(stored_pipeline: Pipeline) -> None:
    pipeline = stored_pipeline
    named(pipeline)
    pipeline.say("s", ("al-1", "I own a quokka."), ("bob", "Hello, I am Bob."))
    pipeline.say("s", ("bob", f"I met {NAME.upper()} (al-1); Alice's cat."), ("bob", "Bye."))
    pipeline.work()
    conclusions.create(
        pipeline.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft(f"knows {NAME}", "bob", "bob", "s")]
    )
    cards.put(pipeline.rt, PRINCIPAL, WORKSPACE, "bob", None, ["Friend of alice example", "tall"])
    (bob,) = rows(pipeline, r.Peer, slug="bob")
    note = r.Metamessage(
        uid=new_uid(), workspace_key=bob.workspace_key, owner_key=bob.key, label="n",
        content="about AL-1", created_at=pipeline.clock(),
    )  # fmt: skip
    of_bob = rows(pipeline, r.Conclusion, observer="bob", content=f"knows {NAME}")[0]

    def store(tx: Any) -> None:
        tx.rows.put([note])
        internal = {"premises": [f"{NAME} said so"], "superseded": "al-1 took it back", "kind": "x"}
        tx.rows.change(r.Conclusion, equals(key=of_bob.key), internal=internal)

    pipeline.rt.storage.write(store)
    assert peers.counts(pipeline.rt, PRINCIPAL, WORKSPACE, "al-1", mentions.REDACT)["mentions"] == 3
    assert "mentions" not in peers.counts(pipeline.rt, PRINCIPAL, WORKSPACE, "al-1")
    done = finished(pipeline, erase(pipeline))
    assert done.counts["mentions"] == 3  # the message, what is derived from it, and the conclusion
    assert (done.options, done.target) == ({"mentions": "redact"}, "al-1")
    assert contents(pipeline) == [
        "Hello, I am Bob.",
        "I met [erased] ([erased]); Alice's cat.",
        "Bye.",
    ]
    assert sums_are_right(pipeline)
    (changed,) = rows(pipeline, r.Conclusion, uid=of_bob.uid)
    assert (changed.content, changed.fingerprint) == (
        "knows [erased]",
        fingerprint("knows [erased]"),
    )
    assert changed.internal == {
        "premises": ["[erased] said so"],
        "superseded": "[erased] took it back",
        "kind": "x",
    }
    (card,) = rows(pipeline, r.Card)
    assert (card.lines, card.given) == (["Friend of [erased]", "tall"],) * 2
    assert [row.content for row in rows(pipeline, r.Metamessage)] == ["about [erased]"]
    text = everything(pipeline)
    assert NAME.lower() not in text
    assert text.count("al-1") == 1  # the id in the receipt


@pytest.mark.slow
def test_the_indexes_have_the_new_texts(stored_pipeline: Pipeline) -> None:
    pipeline = stored_pipeline
    named(pipeline, name="Zanzibella")
    pipeline.say("s", ("al-1", "Hi."), ("bob", "I like Zanzibella."))
    pipeline.work()
    (bob,) = rows(pipeline, r.Peer, slug="bob")
    conclusion = pipeline.conclusions("bob")[0]
    with pipeline.rt.storage.read() as tx:
        (space,) = [s for s in tx.spaces.of_workspace(bob.workspace_key) if s.kind == "conclusion"]
        old = pipeline.rt.vectors.fetch(tx, space, [conclusion.key])[conclusion.key]
    finished(pipeline, erase(pipeline))
    assert pipeline.texts("bob") == ["I like [erased]."]
    with pipeline.rt.storage.read() as tx:
        new = pipeline.rt.vectors.fetch(tx, space, [conclusion.key])[conclusion.key]
        for kind in ("message", "conclusion"):
            search = pipeline.rt.storage.text.search
            assert not _has_word(search, tx, kind, bob.workspace_key, "zanzibella")
            assert _has_word(search, tx, kind, bob.workspace_key, "erased")
    expected = pipeline.rt.embedder.embed(["I like [erased]."])[0]
    assert not (new == old).all()
    assert abs(new - expected).max() < 0.02


def _has_word(search: Any, tx: Any, kind: str, workspace_key: int, word: str) -> bool:
    return bool(search(tx, kind, workspace_key, analyse(word), 10, EVERYTHING).hits)


def test_mentions_stay_unless_the_caller_chooses(pipeline: Pipeline) -> None:
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), ("bob", f"I met {NAME}."))
    finished(pipeline, erase(pipeline, mentions.KEEP))
    assert contents(pipeline) == [f"I met {NAME}."]
    for call in (peers.erase, peers.counts):
        with pytest.raises(InvalidInput, match="'keep' or 'redact'"):
            call(pipeline.rt, PRINCIPAL, WORKSPACE, "bob", "hide")


@pytest.mark.slow
def test_only_sessions_of_the_peer_change(pipeline: Pipeline) -> None:
    named(pipeline, slug="will", name="Will")
    pipeline.say("s", ("will", "Hi."), ("bob", "Will is here."))
    pipeline.say("other", ("bob", "I will go."))
    finished(pipeline, erase(pipeline, slug="will"))
    assert contents(pipeline) == ["[erased] is here."]
    assert contents(pipeline, "other") == ["I will go."]
    assert sorted(pipeline.texts("bob")) == ["I will go.", "[erased] is here."]


@pytest.mark.slow
def test_what_is_said_after_the_request_stays(pipeline: Pipeline) -> None:
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), ("bob", f"I met {NAME}."))
    erasure = erase(pipeline)
    pipeline.say("s", ("bob", f"I miss {NAME}."))
    draft = ConclusionDraft(f"misses {NAME}", "bob", "bob", "s")
    conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, [draft])
    finished(pipeline, erasure)
    assert contents(pipeline) == ["I met [erased].", f"I miss {NAME}."]
    assert sorted(pipeline.texts("bob")) == sorted(
        ["I met [erased].", f"I miss {NAME}.", f"misses {NAME}"]
    )
    assert sums_are_right(pipeline)


@pytest.mark.slow
def test_summaries_are_made_again(pipeline: Pipeline) -> None:
    configuration = {"summary": {"messages_per_short_summary": 10}}
    named(pipeline)
    pipeline.join("s", **{"al-1": MemberConfig()})
    turns = [("bob", f"{NAME} is number {number}.") for number in range(10)]
    pipeline.say("s", *turns, configuration=configuration)
    pipeline.work()
    before = pipeline.summaries("s")
    assert NAME in before["short"].content
    finished(pipeline, erase(pipeline))
    after = pipeline.summaries("s")
    assert NAME not in after["short"].content
    assert after["short"].message_key == before["short"].message_key


@pytest.mark.slow
def test_an_interrupted_redaction_continues(
    stored_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = stored_pipeline
    for name, size in (("BATCH_SIZE", 3), ("PAGE_SIZE", 4), ("MAX_READ", 8)):
        monkeypatch.setattr(mentions, name, size)
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), *[("bob", f"{n}: I met {NAME}.") for n in range(10)])
    pipeline.work()
    erasure = erase(pipeline)
    (unit,) = [unit for unit in pipeline.ready() if unit.startswith("erase:")]
    crashes = run_with_crashes(pipeline, unit)
    assert crashes > 10
    assert finished(pipeline, erasure).counts["mentions"] == 20
    assert contents(pipeline) == [f"{n}: I met [erased]." for n in range(10)]
    assert sums_are_right(pipeline)
    assert NAME.lower() not in everything(pipeline)


def erase_workspace_first(pipeline: Pipeline) -> Receipt:
    """Erase a peer, and its workspace before that has begun. Returns the receipt of the peer."""
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), ("bob", f"I met {NAME}."))
    pipeline.work()
    erasure = erase(pipeline)
    (of_peer,) = [unit for unit in pipeline.ready() if unit.startswith("erase:")]
    deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE, with_sessions=True)
    (of_workspace,) = {unit for unit in pipeline.ready() if unit.startswith("erase:")} - {of_peer}
    assert NAME in payloads_of_erasures(pipeline)
    for _ in range(100):
        pipeline.run(of_workspace)
        (receipt,) = rows(pipeline, r.Erasure, kind="workspace")
        if receipt.state == r.FINISHED:
            break
    assert receipt.state == r.FINISHED
    return erasure


def payloads_of_erasures(pipeline: Pipeline) -> str:
    return str([task.payload for task in pipeline.tasks(kinds.ERASE)])


def test_an_erased_workspace_leaves_no_name_in_other_erasures(pipeline: Pipeline) -> None:
    erasure = erase_workspace_first(pipeline)
    assert NAME not in payloads_of_erasures(pipeline)
    finished(pipeline, erasure)


def test_no_name_stays_in_an_erasure_without_its_peer(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the erasure of the workspace is not finished, the one of the peer can be."""
    monkeypatch.setattr(redacted_names, "search", lambda *arguments: ([], None))
    erasure = erase_workspace_first(pipeline)
    assert NAME in payloads_of_erasures(pipeline)
    finished(pipeline, erasure)
    assert NAME not in payloads_of_erasures(pipeline)


@pytest.mark.slow
def test_an_erasure_that_finds_mentions_again_and_again_fails(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), ("bob", f"I met {NAME}."))
    with monkeypatch.context() as patched:
        patched.setattr(redaction, "redact", lambda *arguments: redaction.NOTHING)
        erasure = erase(pipeline)
        pipeline.work()
        (task,) = pipeline.tasks(kinds.ERASE)
        assert NotErased.__name__ in (task.last_error or "")
        assert task.payload["redaction"]["passes"] == stages.MAX_PASSES
    pipeline.clock.advance(hours=10)
    finished(pipeline, erasure)
    assert contents(pipeline) == ["I met [erased]."]


@pytest.mark.slow
def test_vectors_in_an_outside_index_are_replaced(open_pipeline: OpenPipeline) -> None:
    index = ExternalIndex()
    pipeline = open_pipeline(
        LengthEmbedder("lengths-1", Capability.SEMANTIC),
        index,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
    )
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), ("bob", f"I met {NAME} there."))
    pipeline.work()
    assert len(index.rows) == 4
    old = dict(index.rows)
    finished(pipeline, erase(pipeline))
    pipeline.work()
    assert len(index.rows) == 2
    for key, row in index.rows.items():
        assert (row.vector != old[key].vector).any()


class BusyEmbedder(LengthEmbedder):
    """Does something after it computed the first vector of a text with `NAME`."""

    act: Callable[[], object] | None = None

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        vectors = super().embed(texts, purpose)
        if self.act is not None and any(NAME in text for text in texts):
            act, self.act = self.act, None
            act()
        return vectors


@pytest.mark.slow
def test_a_vector_of_an_old_text_is_not_stored(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = BusyEmbedder("lengths-1", Capability.SEMANTIC)
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), ("bob", f"I met {NAME} there, and it rained all day."))
    erasures: list[Receipt] = []
    stored: list[Vector] = []
    upsert = pipeline.rt.vectors.upsert

    def erase_meanwhile() -> None:
        erasures.append(erase(pipeline))
        for _ in range(1_000):  # on a busy machine, a run has time for few steps
            for unit in pipeline.ready():
                if unit.startswith("erase:"):
                    pipeline.run(unit)
            if all(NAME not in message.content for message in rows(pipeline, r.Message)):
                break
        else:
            pytest.fail("the name is still in a message")
        monkeypatch.setattr(pipeline.rt.vectors, "upsert", recording)

    def recording(tx: Any, space: Any, vectors: Any) -> None:
        stored.extend(row.vector for row in vectors)
        upsert(tx, space, vectors)

    (old,) = embedder.embed([f"I met {NAME} there, and it rained all day."])
    embedder.act = erase_meanwhile
    pipeline.work()
    finished(pipeline, erasures[0])
    (new,) = embedder.embed(["I met [erased] there, and it rained all day."])
    assert stored
    assert not any((vector == old).all() for vector in stored)
    assert any((vector == new).all() for vector in stored)


@pytest.mark.slow
def test_conclusions_without_a_session_and_superseded_ones_change(pipeline: Pipeline) -> None:
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), ("bob", "Hello."))
    drafts = [ConclusionDraft(f"{text} {NAME}", "bob", "bob") for text in ("knows", "met")]
    old, _ = conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, drafts)
    corrections.invalidate(pipeline.rt, PRINCIPAL, WORKSPACE, old.uid, f"{NAME} objected")
    finished(pipeline, erase(pipeline))
    texts = {row.content: row.internal for row in rows(pipeline, r.Conclusion, observer="bob")}
    assert {"knows [erased]", "met [erased]"} <= texts.keys()
    assert texts["knows [erased]"]["superseded"] == "[erased] objected"
    assert NAME.lower() not in everything(pipeline)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["changes", "proposal"])
def test_names_in_dreams_are_replaced(pipeline: Pipeline, entry: str) -> None:
    """A name in a card that a dream changed, or proposes, is in no conclusion of the pair. What is
    no text stays, also if the name is in it."""
    named(pipeline)
    pipeline.say("s", ("al-1", "Hi."), ("bob", "I paint boats."))
    pipeline.work()
    (bob,) = rows(pipeline, r.Peer, slug="bob")
    line, uid = f"Friend of {NAME}", f"uid of {NAME}"
    statement = {
        "content": f"Met {NAME}",
        "premises": [line],
        "source_ids": [uid],
        "level": "explicit",
    }
    payload: dict[str, Any] = {
        "changes": {
            "created": [uid],
            "superseded": [[uid, 1]],
            "card": {"before": [line], "given": [line], "after": [line, "Tall"]},
        },
        "proposal": {
            "reason": f"{NAME} says so",
            "created": [statement],
            "superseded": [{"old": uid, "new": "#0", "reason": f"{NAME} left"}],
            "card": [line],
            "reads": [uid],
            "given": [line],
        },
    }

    def store(tx: Transaction) -> None:
        task = replace(
            outbox.index(pipeline.rt, bob.workspace_key, []),
            kind=kinds.DREAM,
            unit="dream:other",
            state=r.HELD if entry == "proposal" else r.DONE,
            observer_key=bob.key,
            observed_key=bob.key,
            payload={entry: payload[entry]},
        )
        tx.tasks.add([task])

    pipeline.rt.storage.write(store)
    finished(pipeline, erase(pipeline))
    (task,) = [task for task in pipeline.tasks(kinds.DREAM) if entry in task.payload]
    expected = json.loads(json.dumps(payload[entry]).replace(NAME, "[erased]"))
    with_uids = json.loads(json.dumps(expected).replace("uid of [erased]", uid))
    assert task.payload[entry] == with_uids
