"""The services over a store of their own, and short ways to fill and query one workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import EXPLICIT, Conclusion, Message, Session, Summary
from memservice.runtime import Runtime
from memservice.services import conclusions, indexing, messages, peers, sessions
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft, ensure_collection
from memservice.services.messages import Draft
from memservice.services.retrieval import context, representation, search
from memservice.services.retrieval.context import SessionContext, SessionContextOptions
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.services.retrieval.search import SearchOptions
from memservice.services.sessions import MemberConfig
from memservice.spi.storage import Transaction

ME = Principal(admin=True)
WORKSPACE = "w"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


class Services:
    """The services, called for one workspace."""

    def __init__(self, rt: Runtime, clock: Clock) -> None:
        self.rt = rt
        self.clock = clock

    def say(
        self,
        session: str,
        *turns: tuple[str, str],
        at: datetime | None = None,
        once: str | None = None,
    ) -> list[Message]:
        """Store (peer, content) pairs with one request."""
        drafts = [Draft(content, author, created_at=at) for author, content in turns]
        return messages.create(self.rt, ME, WORKSPACE, session, drafts, once)

    def peer(self, *names: str, **fields: Any) -> None:
        for name in names:
            peers.get_or_create(
                self.rt, ME, WORKSPACE, name, fields.get("metadata"), fields.get("config")
            )

    def join(self, session: str, *names: str) -> Session:
        return sessions.add_peers(
            self.rt, ME, WORKSPACE, session, {name: MemberConfig() for name in names}
        )

    def leave(self, session: str, *names: str) -> None:
        sessions.remove_peers(self.rt, ME, WORKSPACE, session, names)

    def conclude(
        self, observer: str, observed: str, *contents: str, session: str | None = None
    ) -> list[Conclusion]:
        return conclusions.create(
            self.rt,
            ME,
            WORKSPACE,
            [ConclusionDraft(text, observer, observed, session) for text in contents],
        )

    def derive(
        self, observer: str, observed: str, content: str, level: str = EXPLICIT, **fields: Any
    ) -> Conclusion:
        """A conclusion as background work stores it."""
        (conclusion,) = self.conclude(observer, observed, content)
        changed = replace(conclusion, level=level, **fields)
        return self.rt.storage.write(lambda tx: tx.conclusions.put([changed]))[0]

    def deduce(
        self,
        content: str,
        premises: Sequence[Conclusion],
        level: str = "deductive",
        observer: str = "ann",
        observed: str = "ann",
    ) -> None:
        """Store a conclusion that rests on these, as a dream does."""
        self.peer(observer, observed)
        vectors = indexing.embed_inline(self.rt, [content])
        workspace_key = premises[0].workspace_key

        def add(tx: Transaction) -> None:
            peers = tx.peers.by_slugs(workspace_key, sorted({observer, observed}))
            collection = ensure_collection(self.rt, tx, peers[observer], peers[observed])
            row = replace(
                premises[0],
                key=0,
                uid=new_uid(),
                collection_key=collection.key,
                observer_key=peers[observer].key,
                observer=observer,
                observed_key=peers[observed].key,
                observed=observed,
                content=content,
                fingerprint=fingerprint(content),
                level=level,
                source_ids=[premise.uid for premise in premises],
                message_keys=[],
            )
            rows = tx.conclusions.put([row])
            tx.tasks.add(indexing.index_conclusions(self.rt, tx, workspace_key, rows, vectors))

        self.rt.storage.write(add)

    def summarise(self, message: Message, kind: str, tokens: int, content: str = "before") -> None:
        def store(tx: Transaction) -> None:
            tx.summaries.save(
                Summary(
                    workspace_key=message.workspace_key,
                    session_key=message.session_key,
                    kind=kind,
                    content=content,
                    message_key=message.key,
                    message_uid=message.uid,
                    tokens=tokens,
                    reasoner="test",
                    created_at=self.clock(),
                )
            )

        self.rt.storage.write(store)

    def search(
        self, query: str, limit: int = 10, filters: Mapping[str, Any] | None = None, **where: Any
    ) -> list[str]:
        """Contents of the messages found, best first."""
        options = SearchOptions(query, limit, filters, where.pop("scope", None))
        messages = search.search(self.rt, ME, WORKSPACE, options, **where)
        return [message.content for message in messages]

    def ask(self, query: str, observer: str, observed: str, **options: Any) -> list[str]:
        """Contents of the conclusions found."""
        pair = {"observer": observer, "observed": observed}
        return [
            row.content
            for row in conclusions.query(self.rt, ME, WORKSPACE, query, filters=pair, **options)
        ]

    def represent(self, peer: str, **options: Any) -> str:
        return representation.of_peer(
            self.rt, ME, WORKSPACE, peer, RepresentationOptions(**options)
        )

    def represented(self, peer: str, **options: Any) -> list[str]:
        """The texts of the explicit lines of a representation, in order."""
        lines = self.represent(peer, **options).splitlines()
        return [line.partition("] ")[2] for line in lines if line.startswith("[")]

    def context(self, session: str, **options: Any) -> SessionContext:
        return context.of_session(self.rt, ME, WORKSPACE, session, SessionContextOptions(**options))


def contents(rows: Sequence[Message]) -> list[str]:
    return [message.content for message in rows]
