"""What of a history is in the target already."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from memservice.domain import records as r
from memservice.domain.errors import NoStore
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.ids import derived_uid
from memservice.runtime import Runtime
from memservice.services.transfer.expired_lines import ExpiredLines
from memservice.spi.rows import BY_KEY

BATCH_SIZE = 1_000


class StoredSession(Struct):
    """The messages of a session that is in the target."""

    uid: str
    uids: list[str] = field(default_factory=list)
    """Of its messages, by position."""
    position: int = 0
    """Number of messages that were found again."""
    differs: bool = False
    """Whether it has other messages than the file: then what follows cannot be added."""
    expired_before: datetime | None = None
    """Retention erased its messages that are older; None: it erased none."""

    def has_next(self, uid: str) -> bool:
        """Whether this is the next message of it that has not been found yet."""
        return self.position < len(self.uids) and self.uids[self.position] == uid

    def has_expired(self, at: datetime | None) -> bool:
        """Whether retention erased a message of the file that is not here. Retention erases the
        oldest messages, so one without a time was erased unless a later import added it: then
        messages of the file that are still here come before it."""
        if self.expired_before is None:
            return False
        return self.position == 0 if at is None else at < self.expired_before


class Target:
    """The workspace into which a history is imported; it may not exist yet, nor its store."""

    def __init__(self, rt: Runtime, workspace_id: str, *, respect_erasures: bool = True) -> None:
        self._rt = rt
        self.workspace_id = workspace_id
        self._workspace = self._find()
        self._erased = self._receipts() if respect_erasures else {}
        """By kind and slug, the uid of a peer or session that was erased here."""
        self._expired = self._expired_lines() if respect_erasures else ExpiredLines()
        self.uid = (
            derived_uid("history", workspace_id) if self._workspace is None else self._workspace.uid
        )

    @property
    def exists(self) -> bool:
        return self._workspace is not None

    def _find(self) -> r.Workspace | None:
        try:
            if self._rt.storage.schema_version() is None:
                return None
        except NoStore:
            return None
        with self._rt.storage.read() as tx:
            return tx.workspaces.by_slug(self.workspace_id)

    def _receipts(self) -> dict[tuple[str, str], str]:
        erased: dict[tuple[str, str], str] = {}
        last = 0
        while self._workspace is not None:
            own = equals(workspace_uid=self._workspace.uid, kind=("peer", "session"))
            with self._rt.storage.read() as tx:
                page = tx.rows.page(
                    r.Erasure, all_of(own, Compare("key", "gt", last)), BY_KEY, limit=BATCH_SIZE
                )
            if not page:
                break
            erased.update(
                ((receipt.kind, receipt.target), receipt.target_uid)
                for receipt in page
                if receipt.target_uid is not None
            )
            last = page[-1].key
        return erased

    def _expired_lines(self) -> ExpiredLines:
        expired = ExpiredLines()
        if self._workspace is not None:
            with self._rt.storage.read() as tx:
                expired.begin(tx, [self._workspace.uid])
        return expired

    def erased_uid(self, kind: str, slug: str) -> str | None:
        """The uid of the `peer` or `session` of this name that was erased here: an import leaves
        out what refers to it, also if there is a new one of the name."""
        return self._erased.get((kind, slug))

    def peer(self, slug: str) -> r.Peer | None:
        if self._workspace is None:
            return None
        with self._rt.storage.read() as tx:
            return tx.peers.by_slugs(self._workspace.key, [slug]).get(slug)

    def session(self, slug: str) -> StoredSession | None:
        if self._workspace is None:
            return None
        with self._rt.storage.read() as tx:
            condition = equals(workspace_key=self._workspace.key, slug=slug)
            session = next(
                (one for one in tx.rows.page(r.Session, condition) if one.state != r.DELETING),
                None,
            )
            if session is None:
                return None
            stored_session = StoredSession(
                session.uid, expired_before=self._expired.messages_before(slug)
            )
            while page := tx.messages.run(
                session.key, len(stored_session.uids) + 1, len(stored_session.uids) + BATCH_SIZE
            ):
                stored_session.uids += [message.uid for message in page]
        return stored_session

    def any_erased(self, *uids: str) -> bool:
        """Whether one of these rows was erased here."""
        if self._workspace is None:
            return False
        with self._rt.storage.read() as tx:
            return bool(tx.erasures.erased_uids(uids))
