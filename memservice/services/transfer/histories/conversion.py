"""A history as the lines of an export, in temporary files by kind."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from typing import IO, Any

from msgspec import Struct, field

from memservice.domain import records as r
from memservice.domain import tokens
from memservice.domain.errors import InvalidInput
from memservice.domain.ids import derived_uid, fingerprint
from memservice.domain.text.analysis import name_tokens
from memservice.domain.values import name_problem, shown
from memservice.runtime import Runtime
from memservice.services import write_hooks
from memservice.services.private_files import temporary
from memservice.services.transfer.histories.items import Item, Statement, Utterance
from memservice.services.transfer.histories.target import StoredSession, Target
from memservice.services.transfer.lines import (
    FORMAT,
    HEADER,
    VERSION,
    Line,
    Sum,
    UnreadableExport,
    format_line,
    format_time,
)

KINDS = (
    "peers",
    "peer_names",
    "sessions",
    "members",
    "messages",
    "collections",
    "conclusions",
)
"""In the order of an export: parents before children."""
MAX_STATEMENT = 65_535
MAX_ID = 80
MAX_NAME = 500
"""Characters of a name or title that are stored as metadata."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


class _Session(Struct):
    """A session of the file."""

    uid: str
    slug: str
    target: StoredSession | None
    seq: int = 0
    through: int = 0
    members: set[str] = field(default_factory=set)


class Conversion:
    """Collects items, then gives the lines. A context manager: its temporary files end with it."""

    def __init__(self, rt: Runtime, target: Target, format_name: str) -> None:
        self._rt = rt
        self._target = target
        self._format = format_name
        self._now = format_time(rt.clock())
        self._files: dict[str, IO[bytes]] = {}
        self._peers: dict[str, tuple[str, str]] = {}
        """Slug and uid, by id in the file."""
        self._sessions: dict[str, _Session] = {}
        self._messages: set[str] = set()
        """Uids; so with the next one."""
        self._statements: set[str] = set()
        self._collections: set[str] = set()
        """Slugs of the peers whose collections are written."""
        self._closing = ExitStack()
        self.counts: Counter[str] = Counter()
        """Lines by kind, and what was left out: `outdated`, `refused` (by a plugin), `changed`
        (messages of sessions that differ from those in the target), `expired` (messages without a
        time, where retention erased messages), `repeated`."""

    def __enter__(self) -> Conversion:
        self._files = {kind: self._closing.enter_context(temporary()) for kind in KINDS}
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def add(self, items: Iterable[Item]) -> None:
        """Raises `UnreadableExport` for an item that cannot be stored."""
        for item in items:
            if isinstance(item, Utterance):
                self._utterance(item)
            elif isinstance(item, Statement):
                self._statement(item)
            else:
                self.counts["outdated"] += 1

    def lines(self) -> Iterator[bytes]:
        """The export, header first."""
        total = Sum()
        yield format_line(self._header())
        for data in self._rows():
            total.add(data)
            yield data
        yield format_line(total.end())

    def _rows(self) -> Iterator[bytes]:
        yield format_line(self._workspace())
        for kind in KINDS:
            file = self._files[kind]
            file.seek(0)
            yield from file

    def _write(self, kind: str, line: Line) -> None:
        self._files[kind].write(format_line({"type": kind, **line}))
        self.counts[kind] += 1

    def _header(self) -> Line:
        return {
            "type": HEADER,
            "format": FORMAT,
            "version": VERSION,
            "exported_at": self._now,
            "workspace": self._target.workspace_id,
            "token_counter": tokens.counter_id(),
            "vectors": False,
            "secrets": False,
        }

    def _workspace(self) -> Line:
        return {
            "type": "workspaces",
            "uid": self._target.uid,
            "slug": self._target.workspace_id,
            "v1_name": self._target.workspace_id,
            "state": r.ACTIVE,
            "metadata": {},
            "configuration": {},
            "created_at": self._now,
        }

    def _uid(self, *names: str) -> str:
        return derived_uid(self._target.uid, "history", self._format, *names)

    def _peer(self, name: str, at: str, *, is_assistant: bool = False) -> tuple[str, str]:
        """Slug and uid of a peer."""
        if name in self._peers:
            return self._peers[name]
        slug = _slug(name)
        erased = self._target.erased_uid("peer", slug)
        peer = None if erased else self._target.peer(slug)
        uid = erased or (peer.uid if peer else derived_uid(self._target.uid, "peer", slug))
        self._peers[name] = slug, uid
        if peer is None:
            metadata = {} if slug == name else {"name": name[:MAX_NAME]}
            self._write(
                "peers",
                {
                    "uid": uid,
                    "slug": slug,
                    "v1_name": slug,
                    "v1_role": None,
                    "kind": r.PEER,
                    "metadata": metadata,
                    "configuration": {"observe_me": False} if is_assistant else {},
                    "created_at": at,
                },
            )
            for token in sorted(name_tokens(slug, metadata.get("name"))):
                self._write("peer_names", {"peer_uid": uid, "token": token})
        return slug, uid

    def _session(self, name: str, title: str | None, at: str) -> _Session:
        if name in self._sessions:
            return self._sessions[name]
        slug = _slug(name)
        erased = self._target.erased_uid("session", slug)
        stored_session = None if erased else self._target.session(slug)
        uid = erased or (
            stored_session.uid if stored_session else derived_uid(self._target.uid, "session", slug)
        )
        session = self._sessions[name] = _Session(uid, slug, stored_session)
        if stored_session is None:
            metadata = {"imported_from": self._format} | (
                {"title": title[:MAX_NAME]} if title else {}
            )
            self._write(
                "sessions",
                {
                    "uid": uid,
                    "slug": slug,
                    "owner_uid": None,
                    "state": r.ACTIVE,
                    "metadata": metadata,
                    "configuration": {},
                    "created_at": at,
                },
            )
        return session

    def _utterance(self, item: Utterance) -> None:
        at = self._time(item.at)
        session = self._session(item.session, item.title, at)
        slug, uid = self._peer(item.peer, at, is_assistant=item.is_assistant)
        size = self._rt.settings.app.max_message_size
        for number, start in enumerate(range(0, len(item.content), size)):
            part = item.content[start : start + size]
            self._message(item, session, (slug, uid), number, part, at)

    def _message(
        self,
        item: Utterance,
        session: _Session,
        author: tuple[str, str],
        number: int,
        content: str,
        at: str,
    ) -> None:
        slug, author_uid = author
        uid = self._uid("message", item.session, item.id, *([str(number)] if number else []))
        if uid in self._messages:
            raise UnreadableExport(
                f"the conversation {shown(item.session)!r} has two messages with the id "
                f"{shown(item.id)!r}"
            )
        self._messages.add(uid)
        allowed = self._allowed(uid, slug, content, item.metadata, item.at)
        if allowed is None:
            self.counts["refused"] += 1
            return
        reason = self._reason_left_out(session, uid, author_uid, item.at)
        if reason is not None:
            self.counts[reason] += 1
            return
        content, metadata = allowed
        if slug not in session.members:
            session.members.add(slug)
            self._member(session, slug, author_uid, at)
        count = tokens.count(content)
        session.seq += 1
        session.through += count
        self._write(
            "messages",
            {
                "uid": uid,
                "session_uid": session.uid,
                "author_uid": author_uid,
                "session": session.slug,
                "author": slug,
                "seq": session.seq,
                "content": content,
                "metadata": metadata,
                "internal": {},
                "tokens": count,
                "tokens_through": session.through,
                "created_at": at,
            },
        )

    def _reason_left_out(
        self, session: _Session, uid: str, author_uid: str, at: datetime | None
    ) -> str | None:
        """Why a message cannot be in the target at this position; None: it is there, it can be
        added there, or the import recognises it as erased."""
        target_session = session.target
        if target_session is None:
            return None
        if target_session.differs:
            return "changed"
        if target_session.has_next(uid):
            target_session.position += 1
        elif target_session.has_expired(at):
            return "expired" if at is None else None
        elif target_session.position < len(target_session.uids) and not self._target.any_erased(
            uid, author_uid
        ):
            target_session.differs = True
            return "changed"
        return None

    def _allowed(
        self,
        uid: str,
        author: str,
        content: str,
        metadata: Mapping[str, Any],
        at: datetime | None,
    ) -> tuple[str, dict[str, Any]] | None:
        """Content and metadata after the plugins that may change them; None if one refuses."""
        message = r.Message(
            uid=uid,
            workspace_key=0,
            session_key=0,
            author_key=0,
            session="",
            author=author,
            seq=0,
            content=content,
            metadata=dict(metadata),
            tokens=0,
            tokens_through=0,
            created_at=at or self._rt.clock(),
        )
        try:
            message = write_hooks.apply(self._rt.plugins, message)
        except InvalidInput:
            return None
        return message.content, dict(message.metadata)

    def _member(self, session: _Session, slug: str, uid: str, at: str) -> None:
        self._write(
            "members",
            {
                "session_uid": session.uid,
                "peer_uid": uid,
                "session": session.slug,
                "peer": slug,
                "kind": r.PEER,
                "observe_me": None,
                "observe_others": None,
                "joined_at": at,
                "joined_seq": 0,
                "left_at": None,
                "left_seq": None,
            },
        )

    def _statement(self, item: Statement) -> None:
        if len(item.content) > MAX_STATEMENT:
            raise UnreadableExport(
                f"the memory {item.id!r} is longer than {MAX_STATEMENT} characters"
            )
        at = self._time(item.at)
        slug, peer_uid = self._peer(item.peer, at)
        session = None if item.session is None else self._session(item.session, None, at)
        uid = self._uid("statement", item.id)
        if uid in self._statements:
            self.counts["repeated"] += 1
            return
        self._statements.add(uid)
        if not self._allows(uid, slug, item):
            self.counts["refused"] += 1
            return
        self._collection(slug, peer_uid, at)
        self._write(
            "conclusions",
            {
                "uid": uid,
                "observer_uid": peer_uid,
                "observed_uid": peer_uid,
                "session_uid": None if session is None else session.uid,
                "observer": slug,
                "observed": slug,
                "session": None if session is None else session.slug,
                "content": item.content,
                "fingerprint": fingerprint(item.content),
                "level": r.EXPLICIT,
                "state": r.LIVE,
                "superseded_by": None,
                "deleted_at": None,
                "times_derived": 1,
                "source_ids": None,
                "message_uids": [],
                "internal": {},
                "metadata": dict(item.metadata),
                "reasoner": "imported",
                "model": None,
                "said_at": at,
                "created_at": at,
            },
        )

    def _allows(self, uid: str, slug: str, item: Statement) -> bool:
        at = item.at or self._rt.clock()
        conclusion = r.Conclusion(
            uid=uid,
            workspace_key=0,
            collection_key=0,
            observer_key=0,
            observed_key=0,
            observer=slug,
            observed=slug,
            content=item.content,
            fingerprint=fingerprint(item.content),
            metadata=dict(item.metadata),
            said_at=at,
            created_at=at,
        )
        return write_hooks.allows(self._rt.plugins, conclusion)

    def _collection(self, slug: str, uid: str, at: str) -> None:
        if slug in self._collections:
            return
        self._collections.add(slug)
        self._write(
            "collections",
            {
                "observer_uid": uid,
                "observed_uid": uid,
                "observer": slug,
                "observed": slug,
                "explicit_at_last_dream": 0,
                "last_dream_at": None,
                "created_at": at,
            },
        )

    def _time(self, at: datetime | None) -> str:
        return self._now if at is None else format_time(at)


def _slug(name: str) -> str:
    """A valid id for a name of the file, different for different names."""
    if name_problem(name, MAX_ID) is None:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    readable = _OTHER.sub("-", name)[:MAX_ID].strip("-")
    return f"{readable}-{digest}" if readable else f"peer-{digest}"
