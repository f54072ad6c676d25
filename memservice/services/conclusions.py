"""Conclusions: statements of an observer about an observed peer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain.errors import InvalidInput, NotFound, Problem, Refused
from memservice.domain.filters import (
    all_of,
    equals,
    parse_filters,
    resources,
    texts_named,
)
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import (
    ACTIVE,
    DELETED,
    EXPLICIT,
    LIVE,
    SUPERSEDED,
    Collection,
    Conclusion,
    Peer,
    Session,
    Workspace,
)
from memservice.domain.sizes import MAX_CONCLUSION
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import (
    dream_changes,
    indexing,
    moments,
    scopes,
    supersession,
    validation,
    visibility,
    workspaces,
    write_hooks,
)
from memservice.services.auth import policy
from memservice.services.auth.bounds import bounds_for
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.events import emit
from memservice.services.paging import Page, Paging, listing
from memservice.services.retrieval.explain import (
    Counts,
    Explained,
    Narrowing,
    count_conclusions,
    explained,
)
from memservice.services.retrieval.search import Search, sessions_named
from memservice.services.retrieval.trace import Trace
from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction


class ConclusionDraft(Struct, frozen=True):
    content: str
    observer: str
    observed: str
    session: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Arbitrary JSON; only documents have it."""


def create(
    rt: Runtime, principal: Principal, workspace_id: str, drafts: Sequence[ConclusionDraft]
) -> list[Conclusion]:
    """Store explicit conclusions, all or none. Peers and sessions must exist. Duplicates are not
    merged."""
    policy.require(principal, workspace_id)
    for index, draft in enumerate(drafts):
        validation.require_length(draft.content, MAX_CONCLUSION, ("conclusions", index, "content"))
    return store(rt, workspace_id, drafts, max_tokens=rt.settings.embedding.max_input_tokens)


def store(
    rt: Runtime,
    workspace_id: str,
    drafts: Sequence[ConclusionDraft],
    *,
    max_tokens: int | None,
) -> list[Conclusion]:
    """Like `create`, for an authorised caller. `max_tokens` limits each content; None: no limit,
    and an embedding covers only the beginning of a long one."""
    texts = [
        checked_content(draft.content, ("conclusions", index, "content"), max_tokens)
        for index, draft in enumerate(drafts)
    ]
    _check_write_hooks(rt, drafts, texts)
    vectors = indexing.embed_inline(rt, texts)

    def add(tx: Transaction) -> list[Conclusion]:
        workspace = workspaces.require(tx, workspace_id)
        peers = tx.peers.by_slugs(
            workspace.key,
            sorted({name for draft in drafts for name in (draft.observer, draft.observed)}),
        )
        sessions = _sessions(tx, workspace, drafts)
        now = rt.clock()
        rows, counts = [], dict[int, int]()
        collections: dict[tuple[int, int], Collection] = {}
        for index, (draft, text) in enumerate(zip(drafts, texts, strict=True)):
            observer, observed = _pair(workspace, peers, draft, index)
            pair = (observer.key, observed.key)
            if pair not in collections:
                collections[pair] = ensure_collection(rt, tx, observer, observed)
            collection = collections[pair]
            session = sessions.get(draft.session) if draft.session else None
            rows.append(
                Conclusion(
                    uid=new_uid(),
                    workspace_key=workspace.key,
                    collection_key=collection.key,
                    observer_key=observer.key,
                    observed_key=observed.key,
                    session_key=session.key if session else None,
                    observer=observer.slug,
                    observed=observed.slug,
                    session=session.slug if session else None,
                    content=text,
                    fingerprint=fingerprint(text),
                    metadata=dict(draft.metadata),
                    said_at=now,
                    created_at=now,
                )
            )
            counts[collection.key] = counts.get(collection.key, 0) + 1
        conclusions = tx.conclusions.put(rows)
        for key, amount in counts.items():
            tx.conclusions.count_explicit(key, amount)
        tx.tasks.add(indexing.index_conclusions(rt, tx, workspace.key, conclusions, vectors))
        return conclusions

    return rt.storage.write(add)


def _check_write_hooks(
    rt: Runtime, drafts: Sequence[ConclusionDraft], texts: Sequence[str]
) -> None:
    """Plugins may refuse a conclusion, and with it the request. They run before the transaction, so
    rows have no keys yet."""
    now = rt.clock()
    for index, (draft, text) in enumerate(zip(drafts, texts, strict=True)):
        conclusion = Conclusion(
            uid=new_uid(),
            workspace_key=0,
            collection_key=0,
            observer_key=0,
            observed_key=0,
            observer=draft.observer,
            observed=draft.observed,
            session=draft.session,
            content=text,
            fingerprint=fingerprint(text),
            said_at=now,
            created_at=now,
        )
        if not write_hooks.allows(rt.plugins, conclusion):
            raise Refused(f"Conclusion {index} was refused by a plugin")


def checked_content(content: str, argument: validation.Argument, max_tokens: int | None) -> str:
    """The text as it is stored. Raises `InvalidInput` for an empty text or too many tokens; None:
    any number."""
    text: str = strip_nul(content)
    if not text:
        raise InvalidInput(
            Problem(argument, "String should have at least 1 character", "string_too_short")
        )
    if max_tokens is not None and len(text.encode()) > max_tokens:
        from memservice.domain import tokens

        used = tokens.count(text)
        if used > max_tokens:
            raise InvalidInput.at(
                *argument,
                message=f"content has {used} tokens; at most {max_tokens} can be embedded",
            )
    return text


def _sessions(
    tx: Transaction, workspace: Workspace, drafts: Sequence[ConclusionDraft]
) -> dict[str, Session]:
    names = sorted({draft.session for draft in drafts if draft.session})
    sessions = {
        session.slug: session
        for session in tx.sessions.by_slugs(workspace.key, names)
        if session.state == ACTIVE
    }
    for name in names:
        if name not in sessions:
            raise NotFound(f"Session {name} not found in workspace {workspace.slug}")
    return sessions


def _pair(
    workspace: Workspace, peers: Mapping[str, Peer], draft: ConclusionDraft, index: int
) -> tuple[Peer, Peer]:
    validation.refuse_scope(
        draft.observed,
        peers.get(draft.observed),
        ("conclusions", index, "observed_id"),
        unknown_too=False,
    )
    for name in (draft.observer, draft.observed):
        if name not in peers:
            raise NotFound(f"Peer {name} not found in workspace {workspace.slug}")
    return peers[draft.observer], peers[draft.observed]


def ensure_collection(rt: Runtime, tx: Transaction, observer: Peer, observed: Peer) -> Collection:
    collection = tx.conclusions.collection(observer.key, observed.key)
    if collection is not None:
        return collection
    return tx.conclusions.put_collection(
        Collection(
            workspace_key=observer.workspace_key,
            observer_key=observer.key,
            observed_key=observed.key,
            observer=observer.slug,
            observed=observed.slug,
            created_at=rt.clock(),
        )
    )


class Shown(Struct, frozen=True):
    """The conclusions of a listing."""

    of_scopes: bool = True
    """With the conclusions of scopes."""
    superseded: bool = False
    """With superseded ones."""
    as_of: str | None = None
    """A time as the caller wrote it: those that were live then, instead of those that are now."""


LIVE_ONES = Shown()


def page(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    filters: object,
    paging: Paging,
    selection: Shown = LIVE_ONES,
) -> Page[Conclusion]:
    """Conclusions, newest first; oldest first if reversed."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    moment = moments.parse(rt, selection.as_of)
    if selection.superseded and moment is not None:
        raise InvalidInput.at("as_of", message="as_of cannot be combined with include=superseded")
    condition = parse_filters(filters, resources.CONCLUSION, workspace_id=workspace_id)
    with rt.storage.read() as tx:
        located = tx.workspaces.locate(workspace_id)
        workspace = located.workspace
        if workspace is None:
            return paging.empty()
        matching = (
            condition
            if selection.of_scopes
            else all_of(condition, scopes.not_of_scopes(tx, workspace))
        )
        if located.is_erasing:
            erased = visibility.not_erased(tx, workspace.key, "observer_key", "observed_key")
            matching = all_of(matching, erased)
        order = paging.order("created_at", newest_first=True)
        if moment is not None:
            return moments.standing_page(tx, workspace.key, moment, matching, paging, order)
        if not selection.superseded:
            return listing(tx.conclusions, paging, workspace.key, matching, order=order)
        in_states = equals(workspace_key=workspace.key, state=(LIVE, SUPERSEDED))
        return listing(tx.rows, paging, Conclusion, all_of(in_states, matching), order=order)


def missing(workspace_id: str, uid: str) -> NotFound:
    return NotFound(f"Document {uid} not found or does not belong to workspace {workspace_id}")


def get(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> Conclusion:
    """A live conclusion. Raises NotFound."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        conclusion = None if workspace is None else tx.conclusions.by_uid(workspace.key, uid)
    if conclusion is None or conclusion.state != LIVE:
        raise missing(workspace_id, uid)
    return conclusion


_PAIR = {"observer": ("observer", "observer_id"), "observed": ("observed", "observed_id")}


class QueryOptions(Struct, frozen=True):
    """A query for conclusions; None: not set."""

    text: str
    top_k: int = 10
    distance: float | None = None
    """Maximum cosine distance."""
    filters: object = None
    """They must name one observer and one observed."""
    as_of: str | None = None
    """A time as the caller wrote it: of the conclusions that were live then."""


def query(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    text: str,
    top_k: int = 10,
    distance: float | None = None,
    filters: object = None,
    as_of: str | None = None,
) -> list[Conclusion]:
    """The live conclusions that match a query best, best first. The filters must name one observer
    and one observed. `distance`: the maximum cosine distance. `as_of`: of those that were live at
    that time."""
    options = QueryOptions(text, top_k, distance, filters, as_of)
    return _find(rt, principal, workspace_id, options, None)[0]


def explain(
    rt: Runtime, principal: Principal, workspace_id: str, options: QueryOptions
) -> Explained[Conclusion]:
    """Like `query`, with the parts of each score and what the filters removed."""
    trace = Trace()
    rows, counts = _find(rt, principal, workspace_id, options, trace)
    return explained(rows, trace, rt.settings.search.fusion_k, counts)


def _find(
    rt: Runtime, principal: Principal, workspace_id: str, options: QueryOptions, trace: Trace | None
) -> tuple[list[Conclusion], Counts | None]:
    """The conclusions, and with a trace what became of its candidates."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    moment = moments.parse(rt, options.as_of)
    names = _pair_named(options.filters)
    condition = parse_filters(options.filters, resources.CONCLUSION, workspace_id=workspace_id)
    lookup = Search.begin(rt, workspace_id, options.text, "search_memory")
    with rt.storage.read() as tx:
        located = tx.workspaces.locate(workspace_id, peer_id=names[0])
        workspace, observer = located.workspace, located.peer
        if workspace is None:
            return [], None
        is_self = names[1] == names[0]
        observed = observer if is_self else tx.peers.by_slug(workspace.key, names[1])
        if observer is None or observed is None:
            return [], None
        index_filter = IndexFilter(
            sessions=sessions_named(tx, workspace, condition),
            observers=(observer.key,),
            observed=(observed.key,),
            levels=texts_named(condition, "level"),
        )
        caller = bounds_for(tx, principal, workspace, is_erasing=located.is_erasing)
        narrowing = Narrowing(caller.as_of(tx, moment), {"filters": condition})
        bounds = narrowing.caller.with_conclusions(condition, index_filter)
        hits = lookup.conclusions(tx, bounds, options.top_k, options.distance, trace)
        if trace is None:
            return [hit.conclusion for hit in hits], None
        has_distance = options.distance is not None
        counts = count_conclusions(tx, narrowing, trace, len(hits), has_distance=has_distance)
        return [hit.conclusion for hit in hits], counts


def _pair_named(filters: object) -> list[str]:
    """The ids of observer and observed in the filters. Raises `InvalidInput`."""
    values = filters if isinstance(filters, Mapping) else {}
    ids = [
        strip_nul(next((values[name] for name in names if name in values), None))
        for names in _PAIR.values()
    ]
    if not all(isinstance(value, str) for value in ids):
        raise InvalidInput.at(
            "filters", message="observer and observed must be specified for semantic search"
        )
    return ids


def delete(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> None:
    """Hide a conclusion, live or superseded, immediately; it is erased some minutes later. Raises
    NotFound."""
    policy.require(principal, workspace_id)

    def change(tx: Transaction) -> None:
        workspace = tx.workspaces.by_slug(workspace_id)
        conclusion = (
            None if workspace is None else tx.conclusions.by_uid(workspace.key, uid, lock=True)
        )
        if conclusion is None or conclusion.state not in (LIVE, SUPERSEDED):
            raise missing(workspace_id, uid)
        tx.conclusions.put([replace(conclusion, state=DELETED, deleted_at=rt.clock())])
        if conclusion.state == LIVE:
            if conclusion.level == EXPLICIT:
                tx.conclusions.count_explicit(conclusion.collection_key, -1)
            indexing.remove_conclusions(rt, tx, conclusion.workspace_key, [conclusion.key])
        supersession.forget_reasons(tx, [conclusion])
        dream_changes.discard_citing(tx, [conclusion])

    rt.storage.write(change)
    emit.conclusion_deleted(rt, workspace_id, uid)
