"""Search: one query, its vectors, and its rankings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import (
    FALSE,
    TRUE,
    Condition,
    equals,
    parse_filters,
    resources,
    texts_named,
)
from memservice.domain.records import ACTIVE, DELETING, Message, Space, Workspace
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
from memservice.services.retrieval.explain import (
    Counts,
    Explained,
    Narrowing,
    count_messages,
    explained,
)
from memservice.services.retrieval.message_ranking import MessageRanking
from memservice.services.retrieval.query import Query, analyse_query
from memservice.services.retrieval.query_embedding import NO_VECTORS, Remote
from memservice.services.retrieval.superseded_candidates import candidates
from memservice.services.retrieval.trace import Trace
from memservice.spi.repositories.workspaces import Located
from memservice.spi.storage import Transaction
from memservice.telemetry.context import Reason, embedding_for


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
        self._spaces: tuple[Transaction, dict[str, Space]] | None = None
        """The active spaces by their kind, and the transaction in which they were read."""

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
        with rt.storage.read_committed() as tx:
            workspace, spaces = tx.workspaces.with_spaces(workspace_id)
            embedders = active_embedders(spaces)
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

    def _space(self, tx: Transaction, workspace_key: int, kind: str) -> Space | None:
        """The active space of a kind. Both kinds are read at once."""
        if self._spaces is None or self._spaces[0] is not tx:
            spaces = tx.spaces.of_workspace(workspace_key)
            active = {space.kind: space for space in reversed(spaces) if space.state == ACTIVE}
            self._spaces = tx, active
        return self._spaces[1].get(kind)

    def messages(
        self,
        tx: Transaction,
        bounds: Bounds,
        limit: int,
        trace: Trace | None = None,
        messages_of_sessions: int | None = None,
    ) -> list[Message]:
        """The best `limit` messages within the bounds, best first; for a text without a term, the
        newest. `messages_of_sessions`: see `MessageRanking`."""
        query = self.query(tx, bounds.workspace)
        has_terms = bool(query.terms or self._vectors)
        space = self._space(tx, bounds.workspace, MESSAGE) if has_terms else None
        vector = query_embedding.vector_in(self.rt, space, query.unnamed, self._vectors)
        ranking = MessageRanking(
            self.rt, tx, bounds, query, space, vector, self._vectors, trace, messages_of_sessions
        )
        return ranking.best(limit)

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
        space = self._space(tx, bounds.workspace, CONCLUSION)
        vector = query_embedding.vector_in(self.rt, space, query.unnamed, self._vectors)
        superseded = candidates(self.rt, tx, bounds, query, space, vector)
        return ConclusionRanking(
            self.rt, tx, bounds, query, space, vector, max_distance, trace, superseded
        ).best(limit)


def active_embedders(spaces: Iterable[Space]) -> set[str]:
    """Ids of the embedders of those of the vector spaces that are active."""
    return {space.embedder for space in spaces if space.state == ACTIVE}


class SearchOptions(Struct, frozen=True):
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
    request = _Request(workspace_id, options, session_id, peer_id)
    return _find(rt, principal, request, None)[0]


def explain(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    options: SearchOptions,
    session_id: str | None = None,
    peer_id: str | None = None,
) -> Explained[Message]:
    """Like `search`, with the parts of each score and what the filters removed."""
    trace = Trace()
    request = _Request(workspace_id, options, session_id, peer_id)
    messages, counts = _find(rt, principal, request, trace)
    return explained(messages, trace, rt.settings.search.fusion_k, counts)


class _Request(Struct, frozen=True):
    """Where to search, and for what."""

    workspace_id: str
    options: SearchOptions
    session_id: str | None
    peer_id: str | None


def _find(
    rt: Runtime, principal: Principal, request: _Request, trace: Trace | None
) -> tuple[list[Message], Counts | None]:
    """The messages, and with a trace what became of its candidates."""
    policy.require(
        principal,
        request.workspace_id,
        peer_id=request.peer_id,
        session_id=request.session_id,
        member=request.session_id is not None,
        needs=Permission.VIEW,
    )
    options = request.options
    filters, perspective = _without_fixed(options, request.session_id, request.peer_id)
    condition = parse_filters(filters, resources.MESSAGE, workspace_id=request.workspace_id)
    lookup = Search.begin(rt, request.workspace_id, options.query)
    with rt.storage.read() as tx:
        located = visibility.find(
            tx, request.workspace_id, session_id=request.session_id, peer_id=request.peer_id
        )
        workspace = located.workspace
        if workspace is None and options.scope is not None:
            raise scopes.missing(options.scope, request.workspace_id)
        if workspace is None or not _exist(located, request):
            return [], None
        caller = bounds_for(tx, principal, workspace, is_erasing=located.is_erasing)
        session_keys = _sessions_of(
            tx, workspace, located.session.key if located.session else None, options.scope
        )
        if session_keys is None:
            session_keys = sessions_named(tx, workspace, condition)
        if session_keys is not None:
            caller = caller.in_sessions(session_keys)
        if request.session_id is None:
            caller = caller.with_messages(visibility.visible(tx, workspace.key))
        narrowing = Narrowing(caller, _filters(tx, workspace, located, perspective, condition))
        bounds = caller.with_messages(narrowing.condition)
        messages = lookup.messages(
            tx,
            bounds,
            options.limit,
            trace,
            None if located.session is None else located.session.message_count,
        )
        if trace is None:
            return messages, None
        return messages, count_messages(tx, narrowing, trace, len(messages))


def _exist(located: Located, request: _Request) -> bool:
    """Whether the session and the peer exist, as far as the request names them."""
    session, peer = located.session, located.peer
    if request.session_id is not None and (session is None or session.state == DELETING):
        return False
    return request.peer_id is None or peer is not None


def _filters(
    tx: Transaction,
    workspace: Workspace,
    located: Located,
    perspective: str | None,
    condition: Condition,
) -> dict[str, Condition]:
    """The filters of a request by name: those of its route first."""
    filters: dict[str, Condition] = {}
    if located.peer is not None:
        filters["peer"] = equals(author_key=located.peer.key)
    if perspective is not None:
        filters["peer_perspective"] = perspective_of(tx, workspace, perspective)
    if condition != TRUE:
        filters["filters"] = condition
    return filters


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
