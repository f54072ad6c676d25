"""Adds messages to the text index, if they were too many for the write that stored them."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.records import Message, Task
from memservice.pipeline.handler import Handler, Outcome, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction


class IndexText(Handler):
    """Handler of `index` tasks: each has the keys of some messages. A repetition changes
    nothing."""

    kind = kinds.INDEX

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        workspace_key = tasks[0].workspace_key or 0
        keys = [int(key) for key in tasks[0].payload.get("keys", [])]
        with rt.storage.read() as tx:
            messages = tx.messages.by_keys(keys)
            authors = tx.peers.by_keys(
                sorted({message.author_key for message in messages.values()})
            )
        if not messages:
            return nothing(skipped="the messages no longer exist")
        terms = {
            message.content: indexing.message_terms(message.content)
            for message in messages.values()
        }

        def store(tx: Transaction) -> Outcome:
            # Messages may have been erased or changed since they were read. They are locked, so
            # that an erasure cannot overtake the change of their index.
            existing = tx.locked(Message, messages)
            texts = [
                terms.get(message.content) or indexing.message_terms(message.content)
                for message in existing
            ]
            indexing.add_message_texts(rt, tx, workspace_key, existing, texts, authors)
            return {"indexed": len(existing)}

        return Prepared(store)
