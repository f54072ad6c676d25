"""Erasure of a peer: gone for every caller, and its id free, when the request returns. A task
erases what it said and what is held about it by anyone."""

from __future__ import annotations

from memservice.domain.configuration import allows_self_service
from memservice.domain.errors import InvalidInput, NotFound
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Any_, Condition
from memservice.domain.records import (
    ERASED,
    ERASED_PREFIX,
    PEER,
    ApiKey,
    Card,
    Conclusion,
    Document,
    Member,
    Message,
    Metamessage,
    NamedCollection,
    Peer,
    PeerName,
    Workspace,
)
from memservice.runtime import Runtime
from memservice.services import validation
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.erasure import dependents, mentions, receipts, work
from memservice.services.erasure.receipts import ErasureRequest, Receipt
from memservice.services.peers import names_of
from memservice.services.tasks import outbox
from memservice.spi.storage import Transaction


def counts(
    rt: Runtime, principal: Principal, workspace_id: str, slug: str, choice: str = mentions.KEEP
) -> dict[str, int]:
    """What `erase` would erase now: number of rows by table. With the choice `REDACT`, `mentions`
    is the number of messages and conclusions of others that would change, among the newest
    `mentions.MAX_COUNTED` of each. Conclusions about others count if they rest on the newest
    `dependents.MAX_READ` of its messages and conclusions. Changes nothing. Raises as `erase`
    does."""
    policy.require(principal, workspace_id, peer_id=slug)
    _require_choice(choice)
    with rt.storage.read() as tx:
        workspace, peer = _require(tx, principal, workspace_id, slug)
        owner = equals(owner_key=peer.key)
        of_pairs = _of_pairs(workspace, peer)
        own_or_about = Any_((equals(observer_key=peer.key), equals(target=peer.slug)))
        redacted = {"mentions": mentions.count(tx, peer)} if choice == mentions.REDACT else {}
        return redacted | {
            "messages": tx.rows.count(Message, equals(author_key=peer.key)),
            "conclusions": tx.rows.count(Conclusion, of_pairs)
            + dependents.count(tx, peer, of_pairs),
            "cards": tx.rows.count(Card, _in(workspace, own_or_about)),
            "members": tx.rows.count(Member, equals(peer_key=peer.key)),
            "api_keys": tx.rows.count(ApiKey, _valid_keys(workspace, peer)),
            "named_collections": tx.rows.count(NamedCollection, owner),
            "documents": tx.rows.count(Document, owner),
            "metamessages": tx.rows.count(Metamessage, owner),
        }


def erase(
    rt: Runtime, principal: Principal, workspace_id: str, slug: str, choice: str = mentions.KEEP
) -> Receipt:
    """Erase a peer that is not a scope. Its keys are revoked, its memberships end, and a new peer
    of the same id starts empty. What others said stays; with the choice `REDACT`, the task replaces
    the peer's id and names in it. Returns the receipt. Raises NotFound, InvalidInput for an unknown
    choice, and Unauthorised for a peer's own key unless the workspace allows self-service."""
    policy.require(principal, workspace_id, peer_id=slug)
    _require_choice(choice)

    def change(tx: Transaction) -> Receipt:
        workspace, peer = _require(tx, principal, workspace_id, slug)
        work.interrupt_peer(tx, peer)
        workspace, peer = _require(tx, principal, workspace_id, slug, lock=True)
        name = ERASED_PREFIX + peer.uid
        # Not `put`: it first runs an update that keeps the id, and the caller waits for it.
        tx.rows.change(
            Peer,
            equals(key=peer.key),
            kind=ERASED,
            slug=name,
            v1_name=name,
            v1_role=None,
            metadata={},
            configuration={},
        )
        now = rt.clock()
        tx.rows.delete(PeerName, equals(peer_key=peer.key))
        tx.rows.change(Member, equals(peer_key=peer.key), kind=ERASED, peer=name, left_at=now)
        own_or_about = Any_((equals(observer_key=peer.key), equals(target=peer.slug)))
        erased_counts = {
            "cards": tx.rows.delete(Card, _in(workspace, own_or_about)),
            "api_keys": tx.keys.revoke_of(now, workspace.slug, peer_id=peer.slug),
        }
        # A label may name the person.
        tx.rows.change(ApiKey, equals(workspace=workspace.slug, peer=peer.slug), label=None)
        is_redacted = choice == mentions.REDACT
        task = outbox.erase_peer(
            rt,
            peer,
            names_of(peer) if is_redacted else (),
            mentions.newest(tx) if is_redacted else None,
            {table: number for table, number in erased_counts.items() if number},
        )
        request = ErasureRequest(
            receipts.PEER, workspace, slug, peer.uid, options={"mentions": choice}
        )
        erasure = receipts.open(rt, tx, principal.actor, request, task)
        tx.tasks.add([task])
        return receipts.accepted(erasure, task)

    return rt.storage.write(change)


def _require_choice(choice: str) -> None:
    if choice not in mentions.CHOICES:
        allowed = " or ".join(map(repr, mentions.CHOICES))
        raise InvalidInput.at("mentions", message=f"Input should be {allowed}")


def _require(
    tx: Transaction, principal: Principal, workspace_id: str, slug: str, *, lock: bool = False
) -> tuple[Workspace, Peer]:
    # A lock of the workspace waits for an import's transaction, whose rows the task then sees.
    workspace = tx.workspaces.by_slug(workspace_id, lock=lock)
    policy.require_self_service(
        principal, workspace is not None and allows_self_service(workspace.configuration)
    )
    peer = None if workspace is None else tx.peers.by_slug(workspace.key, slug, lock=lock)
    validation.refuse_scope(slug, peer, ("peer_id",))
    if workspace is None or peer is None or peer.kind != PEER:
        raise NotFound(f"Peer {slug} not found in workspace {workspace_id}")
    return workspace, peer


def _in(workspace: Workspace, condition: Condition) -> Condition:
    return all_of(equals(workspace_key=workspace.key), condition)


def _valid_keys(workspace: Workspace, peer: Peer) -> Condition:
    return equals(workspace=workspace.slug, peer=peer.slug, revoked_at=None)


def _of_pairs(workspace: Workspace, peer: Peer) -> Condition:
    return _in(workspace, Any_((equals(observer_key=peer.key), equals(observed_key=peer.key))))
