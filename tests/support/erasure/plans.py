"""Random histories of one workspace, planned before anything is stored, so that what should remain
of them is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PEERS = ("alice", "bob", "carol")
TOPICS = ("tea", "boats", "chess")
SESSIONS = ("s0", "s1", "s2")
SCOPE = "team"
ERASED = "[erased]"

Step = tuple[int, int, int]
"""Which action, and two numbers that choose its arguments."""
ACTIONS = (
    *("say",) * 6,
    *("work",) * 4,
    *("delete_message",) * 5,
    *("dream",) * 2,
    *("correct",) * 2,
    "erase_peer",
    "redact_peer",
    "clone",
    "delete_session",
    "invalidate",
    "leave_scope",
    "join_scope",
    "ask",
    "export",
    "import",
    "restore",
    *("hold_dream",) * 2,
    "apply_dreams",
    "undo_dream",
    *("put_card",) * 2,
    "configure",
    "expire",
    "expire_conclusions",
    "observe",
    "erase_workspace",
)
_FIRST: Sequence[Step] = ((0, 0, 0), (0, 1, 4))
"""Somebody says something in two sessions."""


@dataclass(eq=False)
class Person:
    """A peer until it is erased; another person may have its id later."""

    slug: str
    name: str
    """A marker, which others mention."""
    erased: bool = False
    dreams: list[int] = field(default_factory=list)
    """Numbers of the dreams about it that can be undone."""


@dataclass(eq=False)
class Turn:
    """A message, in its session and in the clones of it."""

    author: Person
    marker: str
    topic: str
    named: Person | None
    conversations: set[Conversation] = field(default_factory=set)
    """Where it is at the end."""
    origin: Conversation | None = None
    is_redacted: bool = False
    is_forgotten: bool = False
    """Whether the conclusions from it were erased, while it stayed."""
    replacements: list[str] = field(default_factory=list)
    """Markers in corrections of the conclusion from it."""
    forgotten: list[str] = field(default_factory=list)
    """Those of `replacements` that were erased with the conclusions."""

    @property
    def survives(self) -> bool:
        return bool(self.conversations)

    def content(self, *, finally_: bool) -> str:
        """As it was said, or as it is at the end."""
        if self.named is None:
            return f"I like {self.marker} {self.topic}."
        name = ERASED if finally_ and self.is_redacted else self.named.name
        return f"I like {self.marker} {self.topic}, and so does {name}."


@dataclass(eq=False)
class Line:
    """A line of a caller, in the card that one peer has of another."""

    observer: Person
    target: Person
    marker: str
    named: Person | None
    has_name: bool = True
    """Until another one replaces it. The name of a peer that was erased before that stays, by the
    caller's choice: a replacement is no erasure, and leaves bytes in files."""
    is_redacted: bool = False

    @property
    def survives(self) -> bool:
        return not (self.observer.erased or self.target.erased)

    def content(self, *, finally_: bool) -> str:
        """As it was given, or as it is at the end."""
        if self.named is None:
            return f"ATTRIBUTE: given {self.marker}"
        name = ERASED if finally_ and self.is_redacted else self.named.name
        return f"ATTRIBUTE: given {self.marker}, a friend of {name}"


@dataclass(eq=False)
class Conversation:
    """A session until it is deleted; another one may have its name later."""

    slug: str
    """Of a clone: chosen by the service."""
    original: Conversation | None = None
    """Of a clone."""
    turns: list[Turn] = field(default_factory=list)
    people: list[Person] = field(default_factory=list)
    exists: bool = True

    @property
    def is_clone(self) -> bool:
        return self.original is not None


@dataclass(frozen=True)
class Action:
    name: str
    arguments: tuple[Any, ...] = ()


class Plan:
    """The actions of a history, and its end."""

    def __init__(self, steps: Sequence[Step], seed: int = 0) -> None:
        self._random = random.Random(seed)
        self.actions: list[Action] = []
        self.turns: list[Turn] = []
        self.people: list[Person] = []
        self.conversations: list[Conversation] = []
        self.lines: list[Line] = []
        for number, first, second in [*_FIRST, *steps]:
            name = ACTIONS[number % len(ACTIONS)]
            getattr(self, f"_{name}")(first, second)
        self._add("work")

    @classmethod
    def at_random(cls, seed: int, steps: int) -> Plan:
        numbers = random.Random(seed)
        drawn = [
            (numbers.randrange(1_000), numbers.randrange(1_000), numbers.randrange(1_000))
            for _ in range(steps)
        ]
        return cls(drawn, seed)

    def erased_markers(self) -> list[str]:
        """Markers that must be nowhere at the end."""
        markers = []
        for turn in self.turns:
            if not turn.survives:
                markers.append(turn.marker)
            markers += turn.forgotten
            if turn.origin not in turn.conversations:
                markers += turn.replacements
        markers += [line.marker for line in self.lines if not line.survives]
        lines = (line for line in self.lines if line.has_name)
        naming: list[Turn | Line] = [*self.turns, *lines]
        named = {one.named for one in naming if one.survives and not one.is_redacted}
        return markers + [one.name for one in self.people if one.erased and one not in named]

    def kept_markers(self) -> list[str]:
        """Markers of messages that are searched for at the end."""
        return [turn.marker for turn in self.turns if turn.survives]

    def existing(self) -> list[Conversation]:
        return [conversation for conversation in self.conversations if conversation.exists]

    def _add(self, name: str, *arguments: Any) -> None:
        self.actions.append(Action(name, arguments))

    def _marker(self) -> str:
        return f"zq{self._random.getrandbits(48):012x}zq"

    def _person(self, number: int) -> Person:
        slug = PEERS[number % len(PEERS)]
        for person in self.people:
            if person.slug == slug and not person.erased:
                return person
        person = Person(slug, self._marker())
        self.people.append(person)
        return person

    def _living(self) -> list[Person]:
        return [person for person in self.people if not person.erased]

    def _conversation(self, number: int) -> Conversation:
        slug = SESSIONS[number % len(SESSIONS)]
        for conversation in self.existing():
            if conversation.slug == slug and not conversation.is_clone:
                return conversation
        conversation = Conversation(slug)
        self.conversations.append(conversation)
        return conversation

    def _say(self, first: int, second: int) -> None:
        conversation = self._conversation(first)
        turns = []
        for number in range(1 + second % 5):
            author = self._person(first // 3 + number * (1 + second // 5))
            if author not in conversation.people:
                conversation.people.append(author)
            others = [one for one in conversation.people if one is not author and not one.erased]
            named = others[second % len(others)] if others and (first + number) % 3 == 0 else None
            topic = TOPICS[(second + number) % len(TOPICS)]
            turns.append(Turn(author, self._marker(), topic, named, {conversation}, conversation))
        conversation.turns += turns
        self.turns += turns
        self._add("say", conversation, turns, self._marker())

    def _work(self, first: int, second: int) -> None:
        self._add("work")

    def _original(self, number: int) -> Conversation | None:
        conversations = [
            conversation for conversation in self.existing() if not conversation.is_clone
        ]
        return conversations[number % len(conversations)] if conversations else None

    def _clone(self, first: int, second: int) -> None:
        conversation = self._original(first)
        if conversation is not None and sum(one.is_clone for one in self.existing()) < 2:
            turns, people = list(conversation.turns), list(conversation.people)
            copy = Conversation("", conversation, turns, people)
            self.conversations.append(copy)
            for turn in copy.turns:
                turn.conversations.add(copy)
            self._add("clone", conversation, copy)

    def _turn(self, number: int) -> Turn | None:
        turns = [turn for turn in self.turns if turn.survives]
        return turns[number % len(turns)] if turns else None

    def _delete_message(self, first: int, second: int) -> None:
        turn = self._turn(first)
        if turn is not None:
            self._add(
                "delete_message", turn, sorted(turn.conversations, key=self.conversations.index)
            )
            self._forget(turn)

    def _forget(self, turn: Turn) -> None:
        for conversation in turn.conversations:
            conversation.turns.remove(turn)
        turn.conversations.clear()

    def _erase_peer(self, first: int, second: int, *, redacts: bool = False) -> None:
        living = self._living()
        if living:
            person = living[first % len(living)]
            self._add("erase_peer", person, redacts)
            person.erased = True
            for turn in self.turns:
                if turn.author is person:
                    self._forget(turn)
                elif turn.named is person and redacts:
                    turn.is_redacted = True
            for line in self.lines:
                line.is_redacted |= line.named is person and redacts

    def _redact_peer(self, first: int, second: int) -> None:
        self._erase_peer(first, second, redacts=True)

    def _delete_session(self, first: int, second: int) -> None:
        conversation = self._original(first)
        if conversation is not None:
            self._add("delete_session", conversation)
            conversation.exists = False
            for turn in conversation.turns:
                turn.conversations.discard(conversation)

    def _dream(self, first: int, second: int) -> None:
        living = self._living()
        if living:
            person = living[first % len(living)]
            person.dreams.append(len(self.actions))
            self._add("dream", person, len(self.actions))

    def _hold_dream(self, first: int, second: int) -> None:
        living = self._living()
        if living:
            self._add("hold_dream", living[first % len(living)], len(self.actions))

    def _apply_dreams(self, first: int, second: int) -> None:
        self._add("apply_dreams")

    def _undo_dream(self, first: int, second: int) -> None:
        living = self._living()
        if living:
            person = living[first % len(living)]
            if person.dreams:
                self._add("undo_dream", person, person.dreams[second % len(person.dreams)])

    def _put_card(self, first: int, second: int) -> None:
        living = self._living()
        if living:
            observer, target = living[first % len(living)], living[second % len(living)]
            others = [one for one in living if one not in (observer, target)]
            named = others[0] if others and second % 2 else None
            for line in self.lines:
                if (line.observer, line.target) == (observer, target):
                    line.has_name = line.named is not None and line.named.erased
            line = Line(observer, target, self._marker(), named)
            self.lines.append(line)
            self._add("put_card", line)

    def _configure(self, first: int, second: int) -> None:
        """Change what is derived: of one session, or of all that do not say so themselves."""
        conversation = self._original(first)
        if conversation is not None:
            of_workspace = second % 5 == 0
            self._add("configure", None if of_workspace else conversation, second)

    def _expire(self, first: int, second: int) -> None:
        """Erase what is old: of one session and its clones, by their own retention, or by that of
        the workspace, while the other sessions keep theirs."""
        conversation = self._add_expiry("expire", first, second)
        if conversation is None:
            return
        for turn in list(conversation.turns):
            self._forget(turn)

    def _expire_conclusions(self, first: int, second: int) -> None:
        """Erase what was concluded long ago from one session and its clones, by their own
        retention, or by that of the workspace with what was concluded from no session; what was
        said stays."""
        conversation = self._add_expiry("expire_conclusions", first, second)
        if conversation is None:
            return
        for turn in conversation.turns:
            turn.is_forgotten = True
            turn.forgotten += turn.replacements
            turn.replacements.clear()

    def _add_expiry(self, name: str, first: int, second: int) -> Conversation | None:
        """An action with the session, and its clones, that expire, the sessions that do not, and
        whether the workspace decides that. Returns the session."""
        conversation = self._original(first)
        if conversation is not None:
            existing = self.existing()
            expiring = [one for one in existing if conversation in (one, one.original)]
            others = [one for one in existing if one not in expiring]
            self._add(name, expiring, others, second % 2 == 0)
        return conversation

    def _observe(self, first: int, second: int) -> None:
        """Switch off, or on again, that anything is concluded about a peer."""
        living = self._living()
        if living:
            self._add("observe", living[first % len(living)], second % 3 == 0)

    def _erase_workspace(self, first: int, second: int) -> None:
        """Rarely, and never as the last action, so that the workspace exists in the end."""
        if second % 3:
            return
        self._add("erase_workspace")
        for person in self.people:
            person.erased = True
        for turn in self.turns:
            self._forget(turn)
        for conversation in self.conversations:
            conversation.exists = False
        self._say(first, second)

    def _correct(self, first: int, second: int) -> None:
        turn = self._turn(first)
        if turn is not None:
            marker = self._marker()
            turn.replacements.append(marker)
            self._add("correct", turn, marker)

    def _restore(self, first: int, second: int) -> None:
        turn = self._turn(first)
        if turn is not None:
            self._add("restore", turn)

    def _invalidate(self, first: int, second: int) -> None:
        turn = self._turn(first)
        if turn is not None:
            self._add("invalidate", turn)

    def _leave_scope(self, first: int, second: int) -> None:
        if any(conversation.slug == "s0" for conversation in self.existing()):
            self._add("leave_scope")

    def _join_scope(self, first: int, second: int) -> None:
        if any(conversation.slug == "s0" for conversation in self.existing()):
            self._add("join_scope")

    def _ask(self, first: int, second: int) -> None:
        turn = self._turn(first)
        if turn is not None:
            self._add("ask", turn)

    def _export(self, first: int, second: int) -> None:
        self._add("export")

    def _import(self, first: int, second: int) -> None:
        self._add("import_exports")
