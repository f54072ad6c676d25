"""What three generations should see of one store: a model in plain lists, by the rules of the
mapping and nothing of the product."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

ACTIVE, ARCHIVED, DELETING = "active", "archived", "deleting"


def fits(name: str) -> bool:
    """Can it be an id in the later generations?"""
    return re.fullmatch(r"[a-zA-Z0-9_-]+", name) is not None


@dataclass(eq=False)
class Named:
    """The uid is learnt from the store. Where a slug or a name is None, the uid stands in its
    place."""

    uid: str = ""
    given_slug: str | None = None
    given_name: str | None = None

    @property
    def slug(self) -> str:
        return self.given_slug or self.uid

    @property
    def name(self) -> str:
        return self.uid if self.given_name is None else self.given_name


@dataclass(eq=False)
class Peer(Named):
    assistant: bool = False


@dataclass(eq=False)
class Session:
    owner: Peer | None
    given_slug: str | None = None
    uid: str = ""
    state: str = ACTIVE
    members: dict[Peer, bool] = field(default_factory=dict)
    """Everybody who ever was in it, and whether they are now."""
    messages: list[tuple[str, Peer]] = field(default_factory=list)

    @property
    def slug(self) -> str:
        return self.given_slug or self.uid

    def is_shown_to(self, user: Peer) -> bool:
        """As a session of the user's, in the first generation."""
        return self.owner is user or (self.owner is None and self.members.get(user, False))

    def join(self, peers: Iterable[Peer]) -> None:
        self.members.update(dict.fromkeys(peers, True))

    def leave(self, peers: Iterable[Peer]) -> None:
        self.members.update({peer: False for peer in peers if peer in self.members})


@dataclass(eq=False)
class Note:
    owner: Peer
    session: Session
    label: str


@dataclass(eq=False)
class Workspace(Named):
    peers: list[Peer] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def users(self) -> list[Peer]:
        return [peer for peer in self.peers if not peer.assistant]

    def by_slug(self, slug: str) -> Peer | None:
        return next((peer for peer in self.peers if peer.slug == slug), None)

    def by_name(self, name: str) -> Peer | None:
        return next((peer for peer in self.peers if peer.name == name), None)

    def session(self, slug: str) -> Session | None:
        return next((session for session in self.sessions if session.slug == slug), None)

    def ensure(self, slugs: Iterable[str]) -> list[Peer]:
        """The peers of these ids, made by a later generation where they are missing."""
        unique = sorted(set(slugs))
        for slug in unique:
            if self.by_slug(slug) is None:
                self.peers.append(
                    Peer(given_slug=slug, given_name=slug if self.by_name(slug) is None else None)
                )
        return [peer for slug in unique if (peer := self.by_slug(slug)) is not None]

    def add_user(self, name: str) -> Peer:
        """A peer that the first generation made."""
        user = Peer(
            given_slug=name if fits(name) and self.by_slug(name) is None else None, given_name=name
        )
        self.peers.append(user)
        return user

    def the_assistant(self) -> Peer:
        for peer in self.peers:
            if peer.assistant:
                return peer
        self.peers.append(Peer(assistant=True))
        return self.peers[-1]

    def clone(self, session: Session, upto: int | None, deep: bool = False) -> Session:
        messages = session.messages[: len(session.messages) if upto is None else upto + 1]
        copied = Session(session.owner, members=dict(session.members), messages=list(messages))
        self.sessions.append(copied)
        if deep:
            self.notes += [
                Note(note.owner, copied, note.label)
                for note in self.notes
                if note.session is session
            ]
        return copied

    def erase(self) -> None:
        """What was deleted goes."""
        deleted = [session for session in self.sessions if session.state == DELETING]
        self.sessions = [session for session in self.sessions if session not in deleted]
        self.notes = [note for note in self.notes if note.session not in deleted]
