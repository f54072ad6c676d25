"""Translation of uids in keys and paths into the ids that authorisation compares."""

from __future__ import annotations

from msgspec.structs import replace

from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.filters import equals
from memservice.domain.records import ACTIVE, PEER, NamedCollection, Peer, Session, Workspace
from memservice.services.auth.policy import Names
from memservice.spi.storage import Transaction


def names_by_uid(claims: Claims) -> bool:
    """Whether a key names resources by uid, like keys of this generation."""
    return bool(
        claims.app_uid or claims.user_uid or claims.owned_session_uid or claims.collection_uid
    )


def translate(tx: Transaction, claims: Claims, collections: bool = False) -> Claims:
    """The claims with ids for their uids: the narrowest resource that they name, and its workspace.
    Claims without uids are unchanged.

    Uids are unique in the store, so none needs its parent's. An unknown uid opens nothing; a
    collection's uid counts only with `collections`. Ids in addition to a uid narrow the key
    further; a key with names that contradict each other opens nothing.
    """
    if not names_by_uid(claims):
        return claims
    peer = session = None
    if claims.collection_uid:
        collection = (
            tx.rows.get(NamedCollection, equals(uid=claims.collection_uid)) if collections else None
        )
        key = None if collection is None else collection.workspace_key
    elif claims.owned_session_uid:
        session = tx.rows.get(Session, equals(uid=claims.owned_session_uid))
        key = None if session is None else session.workspace_key
    elif claims.user_uid:
        peer = tx.rows.get(Peer, equals(uid=claims.user_uid, kind=PEER))
        key = None if peer is None else peer.workspace_key
    else:
        app = tx.rows.get(Workspace, equals(uid=claims.app_uid))
        key = None if app is None else app.key
    workspace = None if key is None else tx.workspaces.by_key(key)
    nothing = replace(claims, workspace=None, peer=None, session=None)
    if workspace is None or workspace.state != ACTIVE:
        return nothing
    combined = replace(
        claims,
        workspace=workspace.slug,
        peer=claims.peer if peer is None else peer.slug,
        session=claims.session if session is None else session.slug,
    )
    pairs = (
        (claims.workspace, combined.workspace),
        (claims.peer, combined.peer),
        (claims.session, combined.session),
    )
    return (
        nothing
        if any(name is not None and name != resolved for name, resolved in pairs)
        else combined
    )


def names_of(
    tx: Transaction,
    app: str | None = None,
    user: str | None = None,
    session_id: str | None = None,
    collection: str | None = None,
) -> Names:
    """The names of the resources with these uids; None for those outside the path's workspace."""
    workspace = None if app is None else tx.rows.get(Workspace, equals(uid=app, state=ACTIVE))
    if workspace is None:
        return Names()
    peer = (
        None
        if user is None
        else tx.rows.get(Peer, equals(uid=user, workspace_key=workspace.key, kind=PEER))
    )
    session = (
        None
        if session_id is None
        else tx.rows.get(Session, equals(uid=session_id, workspace_key=workspace.key))
    )
    return Names(
        workspace.slug,
        None if peer is None else peer.slug,
        None if session is None else session.slug,
        collection,
    )
