"""Search: one query, its vectors, and its rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import (
    FALSE,
    Condition,
    all_of,
    equals,
    parse_filters,
    resources,
    texts_named,
)
from memservice.domain.records import ACTIVE, DELETING, Message, Workspace
from memservice.domain.sizes import MAX_QUERY
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import scopes, validation, visibility
from memservice.services.auth import policy
from memservice.services.auth.bounds import MAX_SESSIONS, Bounds, bounds_for, visible_to
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.indexing import CONCLUSION, MESSAGE
from memservice.services.retrieval import query_embedding
from memservice.services.retrieval.conclusion_ranking import ConclusionHit, ConclusionRanking
from memservice.services.retrieval.message_ranking import MessageRanking
from memservice.services.retrieval.query import Query, analyse_query
from memservice.services.retrieval.query_embedding import NO_VECTORS, Remote
from memservice.services.retrieval.superseded_candidates import candidates
from memservice.services.retrieval.trace import Trace
from memservice.spi.storage import Transaction
from memservice.telemetry.context import Reason, embedding_for

if TYPE_CHECKING:
    pass


class Search:
    """One query of a workspace. Call `begin` with no transaction open; the rankings run in one."""

    def __init__(
        self, rt: Runtime, text: str, query: Query | None = None, vectors: Remote = NO_VECTORS
    ) -> None:
        self.rt = rt
        self.text = text
        self._query = query
        self._vectors = vectors
        """The query's vectors, by the id of each embedder that is not inline."""

    @classmethod
    def begin(
        cls,
        rt: Runtime,
        workspace_id: str,
        text: str,
        purpose: str = "search_messages",
        argument: str | None = "query",
    ) -> Search:
        """Start a search: call those embedders of the workspace that are not inline. `purpose`: see
        `ModelCall`. Raises `InvalidInput` for a text that is too long; `argument`: the caller's
        name of the text, or None if its length was checked."""
        if argument is not None:
            validation.require_length(text, MAX_QUERY, (argument,))
        if not text or not rt.has_remote_embedder:
            return cls(rt, text)
        with rt.storage.read() as tx:
            workspace = tx.workspaces.by_slug(workspace_id)
            embedders = active_embedders(tx, workspace)
            if workspace is None or not embedders:
                return cls(rt, text)
            query = analyse_query(tx, workspace.key, text)
        with embedding_for(Reason(purpose, workspace.key, workspace.slug)):
            vectors = query_embedding.remote_vectors(rt, embedders, query.unnamed)
        return cls(rt, text, query, vectors)

    def query(self, tx: Transaction, workspace_key: int) -> Query:
        """The text, analysed once."""
        if self._query is None:
            self._query = analyse_query(tx, workspace_key, self.text)
        return self._query

    def messages(
        self, tx: Transaction, bounds: Bounds, limit: int, trace: Trace | None = None
    ) -> list[Message]:
        """The best `limit` messages within the bounds, best first; for a text without a term, the
        newest."""
        query = self.query(tx, bounds.workspace)
        has_terms = bool(query.terms or self._vectors)
        space = tx.spaces.active(bounds.workspace, MESSAGE) if has_terms else None
        vector = query_embedding.vector_in(self.rt, space, query.unnamed, self._vectors)
        return MessageRanking(self.rt, tx, bounds, query, space, vector, trace).best(limit)

    def conclusions(
        self,
        tx: Transaction,
        bounds: Bounds,
        limit: int,
        max_distance: float | None = None,
        trace: Trace | None = None,
    ) -> list[ConclusionHit]:
        """The best `limit` conclusions within the bounds, best first: the live ones, or those that
        stood at the moment of the bounds. `max_distance` as in `ConclusionRanking`."""
        query = self.query(tx, bounds.workspace)
        space = tx.spaces.active(bounds.workspace, CONCLUSION)
        vector = query_embedding.vector_in(self.rt, space, query.unnamed, self._vectors)
        superseded = candidates(self.rt, tx, bounds, query, space, vector)
        return ConclusionRanking(
            self.rt, tx, bounds, query, space, vector, max_distance, trace, superseded
        ).best(limit)


def active_embedders(tx: Transaction, workspace: Workspace | None) -> set[str]:
    """Ids of the embedders of a workspace's active vector spaces."""
    spaces = [] if workspace is None else tx.spaces.of_workspace(workspace.key)
    return {space.embedder for space in spaces if space.state == ACTIVE}


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search for messages; None: not set."""

    query: str
    limit: int = 10
    filters: object = None
    scope: str | None = None


def search(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    options: SearchOptions,
    session_id: str | None = None,
    peer_id: str | None = None,
) -> list[Message]:
    """Messages of a workspace, a session, a peer (as author) or a scope's sessions, best first.
    Empty for an unknown container."""
    policy.require(
        principal,
        workspace_id,
        peer_id=peer_id,
        session_id=session_id,
        member=session_id is not None,
        needs=Permission.VIEW,
    )
    scope = options.scope
    filters, perspective = _without_fixed(options, session_id, peer_id)
    condition = parse_filters(filters, resources.MESSAGE, workspace_id=workspace_id)
    lookup = Search.begin(rt, workspace_id, options.query)
    with rt.storage.read() as tx:
        located = visibility.find(tx, workspace_id, session_id=session_id, peer_id=peer_id)
        workspace = located.workspace
        if workspace is None:
            if scope is not None:
                raise scopes.missing(scope, workspace_id)
            return []
        if session_id is not None and (
            located.session is None or located.session.state == DELETING
        ):
            return []
        if peer_id is not None and located.peer is None:
            return []
        session_keys = _sessions_of(
            tx, workspace, located.session.key if located.session else None, scope
        )
        session_keys = (
            sessions_named(tx, workspace, condition) if session_keys is None else session_keys
        )
        if perspective is not None:
            condition = all_of(condition, perspective_of(tx, workspace, perspective))
        if located.peer is not None:
            condition = all_of(condition, equals(author_key=located.peer.key))
        if session_id is None:
            condition = all_of(condition, visibility.visible(tx, workspace.key))
        caller = bounds_for(tx, principal, workspace, is_erasing=located.is_erasing)
        bounds = caller.with_messages(condition)
        if session_keys is not None:
            bounds = bounds.in_sessions(session_keys)
        return lookup.messages(tx, bounds, options.limit)


def _without_fixed(
    options: SearchOptions, session_id: str | None, peer_id: str | None
) -> tuple[object, str | None]:
    """The caller's filter without the names that the route fixes, and its `peer_perspective`."""
    filters = options.filters
    if not isinstance(filters, Mapping):
        return filters, None
    fixed = {"workspace_id"}
    fixed |= {"session_id"} if session_id is not None else set()
    fixed |= {"peer_id"} if peer_id is not None else set()
    if options.scope is not None and "session_id" in filters:
        raise InvalidInput.at("scope", message="scope cannot be combined with a session_id filter")
    perspective = filters.get("peer_perspective")
    if perspective is not None and not isinstance(perspective, str):
        raise InvalidInput.at(
            "filters",
            "peer_perspective",
            message="peer_perspective must be the id of a peer",
        )
    remaining = {
        name: value
        for name, value in filters.items()
        if name not in fixed and name != "peer_perspective"
    }
    return remaining, strip_nul(perspective)


def _sessions_of(
    tx: Transaction, workspace: Workspace, session_key: int | None, scope: str | None
) -> tuple[int, ...] | None:
    if session_key is not None:
        return (session_key,)
    if scope is None:
        return None
    return tuple(
        member.session_key
        for member in scopes.member_sessions(tx, scopes.find(tx, workspace, scope))
    )


def sessions_named(
    tx: Transaction, workspace: Workspace, condition: Condition
) -> tuple[int, ...] | None:
    """Keys of the only sessions in which a condition can match, to narrow an index; None: any."""
    names = texts_named(condition, "session")
    if names is None or len(names) > MAX_SESSIONS:
        return None
    return tuple(session.key for session in tx.sessions.by_slugs(workspace.key, names))


def perspective_of(tx: Transaction, workspace: Workspace, peer_id: str) -> Condition:
    """Condition for the messages visible to the peer with this id; none if it does not exist."""
    peer = tx.peers.by_slug(workspace.key, peer_id)
    return FALSE if peer is None else visible_to(tx, peer)
