"""Texts that were indexed by an earlier release get the terms of related words while they are in
use."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import Conclusion, Message, Task
from memservice.domain.text.relatives import RELATIVES
from memservice.pipeline.handler import Unfinished
from memservice.pipeline.indexing import reindex
from memservice.services import conclusions, indexing, store_compatibility
from memservice.services.conclusions import ConclusionDraft
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions
from memservice.services.tasks import kinds
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.storage import Transaction
from memservice.spi.text import TextRow
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

pytestmark = pytest.mark.every_storage("sqlite")

SAID = [
    "Wir haben zwei Katzen aus dem Tierheim geholt.",
    "Der Zug fährt um neun Uhr morgens.",
    "Er mag Tee ohne Zucker.",
    "Mein Chef hat den Urlaub genehmigt.",
    "Unsere Nachbarn haben einen lauten Hund.",
]


def matching(pipeline: Pipeline, query: str) -> list[str]:
    results = search.search(pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions(query))
    return [message.content for message in results]


def without_relatives(pipeline: Pipeline) -> int:
    """Make the index that of a release without related words. Returns the workspace's key."""
    rt = pipeline.rt
    (message, *_) = pipeline.say("s", *(("alice", content) for content in SAID))
    drafts = [ConclusionDraft("alice hat zwei Katzen", "alice", "alice")]
    conclusions.create(rt, PRINCIPAL, WORKSPACE, drafts)
    pipeline.work()

    def change(tx: Transaction) -> None:
        condition = equals(workspace_key=message.workspace_key)
        rows: Sequence[Message | Conclusion]
        for kind, rows in (
            (indexing.MESSAGE, tx.rows.page(Message, condition)),
            (indexing.CONCLUSION, tx.rows.page(Conclusion, condition)),
        ):
            assert rows
            old = [TextRow(row.key, indexing.message_terms(row.content).terms) for row in rows]
            rt.storage.text.add(tx, kind, message.workspace_key, old)
        tx.rows.delete(Task, equals(kind=kinds.REINDEX))
        tx.facts.set(store_compatibility.RELATED, "none")

    rt.storage.write(change)
    return message.workspace_key


@pytest.mark.slow
def test_old_texts_are_found_by_related_words_after_the_task(
    stored_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindex, "BATCH_SIZE", 2)
    workspace_key = without_relatives(stored_pipeline)
    rt = stored_pipeline.rt
    assert matching(stored_pipeline, "Was macht die Katze?") == []
    assert matching(stored_pipeline, "Zug")[:1] == [SAID[1]]
    store_compatibility.initialise(rt)
    store_compatibility.initialise(rt)
    (task,) = stored_pipeline.tasks(kinds.REINDEX)
    # A process that ends after the first step: the first texts have them, and the others are found
    # as before.
    first = rt.storage.write(reindex.Reindex().prepare(rt, [task]).store)
    assert isinstance(first, Unfinished)
    assert first.task.outcome == {"indexed": 2}
    rt.storage.write(lambda tx: tx.rows.put([first.task]))
    assert matching(stored_pipeline, "Was macht die Katze?")[:1] == [SAID[0]]
    assert matching(stored_pipeline, "Urlaub")[:1] == [SAID[3]]
    assert SAID[3] not in matching(stored_pipeline, "Gibt es eine Genehmigung?")[:1]
    stored_pipeline.work()
    (task,) = stored_pipeline.tasks(kinds.REINDEX)
    statements = stored_pipeline.texts("alice")
    assert (task.state, task.outcome) == ("done", {"indexed": len(SAID) + len(statements)})
    assert matching(stored_pipeline, "Gibt es eine Genehmigung?")[:1] == [SAID[3]]
    with rt.storage.read() as tx:
        assert tx.facts.get(store_compatibility.RELATED) == RELATIVES
        matches = rt.storage.text.search(
            tx, indexing.CONCLUSION, workspace_key, ["·katz"], 10, EVERYTHING
        )
        assert len(matches.hits) == sum("Katzen" in text for text in statements) > 0
        assert rt.storage.text.search(
            tx, indexing.MESSAGE, workspace_key, ["tee"], 10, EVERYTHING
        ).documents == len(SAID)


def test_messages_that_are_erased_meanwhile_stay_erased(stored_pipeline: Pipeline) -> None:
    workspace_key = without_relatives(stored_pipeline)
    rt = stored_pipeline.rt
    store_compatibility.initialise(rt)
    (task,) = stored_pipeline.tasks(kinds.REINDEX)
    prepared = reindex.Reindex().prepare(rt, [task])
    with rt.storage.read() as tx:
        keys = [row.key for row in tx.rows.page(Message, equals(workspace_key=workspace_key))]

    def erase(tx: Transaction) -> None:
        tx.rows.delete(Message, equals(key=keys[0]))
        rt.storage.text.remove(tx, indexing.MESSAGE, workspace_key, keys[:1])

    rt.storage.write(erase)
    rt.storage.write(prepared.store)
    with rt.storage.read() as tx:
        indexed = rt.storage.text.indexed(tx, indexing.MESSAGE, workspace_key, keys)
    assert sorted(indexed) == keys[1:]


def test_a_new_store_has_nothing_to_do(stored_pipeline: Pipeline) -> None:
    store_compatibility.initialise(stored_pipeline.rt)
    stored_pipeline.say("s", ("alice", "Katzen"))
    store_compatibility.initialise(stored_pipeline.rt)
    assert stored_pipeline.tasks(kinds.REINDEX) == []
