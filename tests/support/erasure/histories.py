"""Performs a plan on a store: completely, or without what it erases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import pytest

from memservice.domain import records as r
from memservice.domain.errors import Conflict, Unavailable
from memservice.domain.filters import all_of, equals
from memservice.services import (
    cards,
    cloning,
    corrections,
    deletion,
    dream_changes,
    dream_descriptions,
    dreams,
    messages,
    scopes,
    sessions,
    supersession,
    webhooks,
    workspaces,
)
from memservice.services import peers as peer_service
from memservice.services.chat import chat
from memservice.services.chat.chat import ChatOptions
from memservice.services.dreams import DreamRequest
from memservice.services.erasure import mentions, peers, retention
from memservice.services.erasure import messages as message_erasure
from memservice.services.messages import Draft
from memservice.services.paging import Paging
from memservice.services.sessions import SessionFields
from memservice.services.transfer import export
from memservice.services.transfer.importing import load_file
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Statement
from support.erasure.free_positions import check_free_positions
from support.erasure.kills import Kills
from support.erasure.plans import SCOPE, TOPICS, Conversation, Line, Person, Plan, Turn
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

PROPOSED = "proposed in "
"""The beginning of what a dream concludes that is held for review."""
SWITCHES: Sequence[dict[str, Any]] = (
    {"reasoning": {"enabled": False}},
    {"reasoning": {"enabled": True}},
    {"summary": {"enabled": False}},
)
"""Configurations of sessions and workspaces."""


class Dreamer(ScriptedReasoner):
    """Concludes from all that somebody likes of a topic, and quotes it in the card."""

    number = 0
    proposes = False
    """Whether its dreams are held for review: like those of a model that changes too much."""

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        explicit = [row for row in request.known if row.level == r.EXPLICIT]
        quotations = [f"ATTRIBUTE: {row.content}" for row in explicit]
        card = list(dict.fromkeys([*request.card, *quotations]))
        if request.card_only:
            return Consolidated(card=card)
        created = [
            Statement(
                f"{PROPOSED if self.proposes else ''}dream {self.number}: a friend of {topic}",
                (),
                r.DEDUCTIVE,
                tuple(row.uid for row in sources),
                tuple(row.content for row in sources),
            )
            for topic in TOPICS
            if (sources := [row for row in explicit if f" {topic}" in row.content])
        ]
        return Consolidated(created, card=card if request.write_card else None)


class History:
    """A plan that is performed. `whole` False: without the erasures and all that they erase, as if
    it had never been said. `waits`: actions before which all work is done."""

    def __init__(
        self,
        pipeline: Pipeline,
        plan: Plan,
        *,
        whole: bool = True,
        kills: Kills | None = None,
        webhook: str | None = None,
        waits: Collection[int] = (),
    ) -> None:
        assert isinstance(pipeline.reasoner, Dreamer)
        self.pipeline, self.plan, self.whole = pipeline, plan, whole
        self.reasoner = pipeline.reasoner
        self.kills = kills
        self.webhook = webhook
        self.is_registered = False
        self.slugs: dict[Conversation, str] = {}
        self.dream_uids: dict[int, str] = {}
        """By number."""
        self.exports: list[bytes] = []
        self.exports_of_erased: list[bytes] = []
        """Of workspaces that are erased."""
        self.waits = set(waits)
        """Numbers of the actions that had to wait until an erasure was done, with all other
        work. The history without the erasure waits there too."""
        self._number = 0

    def perform(self) -> None:
        for number, action in enumerate(self.plan.actions):
            self._number = number
            self.pipeline.clock.advance(seconds=1)
            if self._number in self.waits:
                self.work()
            getattr(self, action.name)(*action.arguments)

    def _wait(self) -> None:
        self.waits.add(self._number)
        self.work()

    def work(self) -> None:
        if self.kills is None:
            self.pipeline.work()
        else:
            self.kills.work(self.pipeline)
        check_free_positions(self.pipeline)

    def say(self, conversation: Conversation, turns: Sequence[Turn], key: str) -> None:
        rt = self.pipeline.rt
        self.slugs[conversation] = conversation.slug
        self._register()
        fields = SessionFields(scopes=[SCOPE] if conversation.slug == "s0" else [])
        sessions.get_or_create(rt, PRINCIPAL, WORKSPACE, conversation.slug, fields)
        authors = {turn.author: None for turn in turns if self.whole or not turn.author.erased}
        for author in authors:
            metadata = {"name": author.name}
            peer_service.get_or_create(rt, PRINCIPAL, WORKSPACE, author.slug, metadata, None)
        if authors:
            members = {author.slug: sessions.MemberConfig() for author in authors}
            sessions.add_peers(rt, PRINCIPAL, WORKSPACE, conversation.slug, members)
        drafts = [
            Draft(
                turn.content(finally_=not self.whole),
                turn.author.slug,
                metadata={"note": turn.marker},
                configuration=self._configuration(turn),
            )
            for turn in turns
            if self.whole or turn.survives
        ]
        if drafts:
            messages.create(rt, PRINCIPAL, WORKSPACE, conversation.slug, drafts, key)

    def _configuration(self, turn: Turn) -> dict[str, Any]:
        """Of a message. Nothing is derived from one whose conclusions are erased in the end."""
        shared: dict[str, Any] = {"summary": {"messages_per_short_summary": 10}}
        derives = self.whole or not turn.is_forgotten
        return shared if derives else {**shared, "reasoning": {"enabled": False}}

    def _register(self) -> None:
        """Register the endpoint of webhooks before the first message."""
        if self.webhook is not None and not self.is_registered:
            workspaces.get_or_create(self.pipeline.rt, PRINCIPAL, WORKSPACE, None, None)
            webhooks.register(self.pipeline.rt, PRINCIPAL, WORKSPACE, self.webhook)
            self.is_registered = True

    def clone(self, conversation: Conversation, copy: Conversation) -> None:
        rt = self.pipeline.rt
        try:
            self.slugs[copy] = cloning.clone(rt, PRINCIPAL, WORKSPACE, conversation.slug).slug
        except Unavailable:  # a peer of it is being erased
            self._wait()
            self.slugs[copy] = cloning.clone(rt, PRINCIPAL, WORKSPACE, conversation.slug).slug

    def delete_message(self, turn: Turn, conversations: Sequence[Conversation]) -> None:
        if not self.whole:
            return
        for conversation in conversations:
            slug = self.slugs[conversation]
            with self.pipeline.rt.storage.read() as tx:
                rows = tx.rows.page(r.Message, equals(session=slug))
            (message,) = [row for row in rows if turn.marker in row.content]
            message_erasure.delete(self.pipeline.rt, PRINCIPAL, WORKSPACE, slug, message.uid)

    def erase_peer(self, person: Person, redacts: bool) -> None:
        if self.whole:
            choice = mentions.REDACT if redacts else mentions.KEEP
            peers.erase(self.pipeline.rt, PRINCIPAL, WORKSPACE, person.slug, choice)

    def delete_session(self, conversation: Conversation) -> None:
        deletion.delete_session(self.pipeline.rt, PRINCIPAL, WORKSPACE, conversation.slug)
        self.work()  # its name is free afterwards

    def dream(self, person: Person, number: int) -> None:
        self.work()
        self.reasoner.number = number
        if self.whole or not person.erased:
            before = self._dreams()
            request = DreamRequest(person.slug, dreams.OMNI)
            dreams.schedule(self.pipeline.rt, PRINCIPAL, WORKSPACE, request)
            (self.dream_uids[number],) = self._dreams().keys() - before.keys()
        self.work()

    def _conclusion(self, turn: Turn) -> r.Conclusion | None:
        """The live conclusion from a message, of its author about itself."""
        rows = self.pipeline.conclusions(turn.author.slug)
        matches = [row for row in rows if row.level == r.EXPLICIT and turn.marker in row.content]
        return matches[0] if matches else None

    def correct(self, turn: Turn, marker: str) -> None:
        self.work()
        if self.whole or turn.survives:
            row = self._conclusion(turn)
            if row is not None:
                text = f"I really like {marker} {turn.topic}."
                corrections.correct(self.pipeline.rt, PRINCIPAL, WORKSPACE, row.uid, text)

    def restore(self, turn: Turn) -> None:
        """Make the oldest version of the conclusion from a message live again."""
        self.work()
        if self.whole or turn.survives:
            pair = equals(observer=turn.author.slug, observed=turn.author.slug)
            with self.pipeline.rt.storage.read() as tx:
                rows = tx.rows.page(r.Conclusion, all_of(pair, equals(state=r.SUPERSEDED)))
            uids = [row.uid for row in rows if turn.marker in row.content]
            if uids:
                supersession.restore(self.pipeline.rt, PRINCIPAL, WORKSPACE, uids[0])

    def invalidate(self, turn: Turn) -> None:
        self.work()
        if self.whole or turn.survives:
            row = self._conclusion(turn)
            if row is not None:
                reason = f"not {turn.marker}"
                corrections.invalidate(self.pipeline.rt, PRINCIPAL, WORKSPACE, row.uid, reason)

    def leave_scope(self) -> None:
        scopes.remove_session(self.pipeline.rt, PRINCIPAL, WORKSPACE, SCOPE, "s0")

    def join_scope(self) -> None:
        scopes.add_sessions(self.pipeline.rt, PRINCIPAL, WORKSPACE, SCOPE, ["s0"])

    def ask(self, turn: Turn) -> None:
        if self.whole or turn.survives:
            options = ChatOptions(f"Who likes {turn.marker}?")
            answer = chat.ask_peer(
                self.pipeline.rt, PRINCIPAL, WORKSPACE, turn.author.slug, options
            )
            answer.content()

    def export(self) -> None:
        try:
            self.exports.append(self._exported())
        except Conflict:  # an erasure is not finished
            self._wait()
            self.exports.append(self._exported())

    def _exported(self) -> bytes:
        return b"".join(export.lines(self.pipeline.rt, WORKSPACE))

    def import_exports(self) -> None:
        """Import each older state of the workspace: all that remains exists already."""
        self.work()
        for data in self.exports:
            load_file(self.pipeline.rt, data.splitlines(keepends=True))
        for data in self.exports_of_erased:
            with pytest.raises(Conflict, match="was erased here"):
                load_file(self.pipeline.rt, data.splitlines(keepends=True))

    def hold_dream(self, person: Person, number: int) -> None:
        """A dream whose changes wait for a review."""
        self.reasoner.proposes = True
        self.reasoner.capabilities = frozenset({Capability.COSTLY})
        try:
            self.dream(person, number)
        finally:
            self.reasoner.proposes = False
            self.reasoner.capabilities = frozenset()

    def _dreams(self) -> dict[str, str]:
        """State by uid of all dreams, newest first, without those of cards alone."""
        rt = self.pipeline.rt
        page = dream_descriptions.page(rt, PRINCIPAL, WORKSPACE, Paging(1, 500))
        return {dream.uid: dream.state for dream in page.items if dream.kind == dreams.OMNI}

    def apply_dreams(self) -> None:
        """Approve all dreams that wait for a review."""
        self.work()
        for uid, state in self._dreams().items():
            if state == r.HELD:
                dream_changes.apply(self.pipeline.rt, PRINCIPAL, WORKSPACE, uid)
        self.work()

    def undo_dream(self, person: Person, number: int) -> None:
        self.work()
        if self.whole or not person.erased:
            with suppress(Conflict):  # it changed nothing
                uid = self.dream_uids[number]
                dream_changes.undo(self.pipeline.rt, PRINCIPAL, WORKSPACE, uid)

    def put_card(self, line: Line) -> None:
        if self.whole or line.survives:
            content = line.content(finally_=not self.whole)
            observer, target = line.observer.slug, line.target.slug
            cards.put(self.pipeline.rt, PRINCIPAL, WORKSPACE, observer, target, [content])

    def configure(self, conversation: Conversation | None, number: int) -> None:
        self.work()  # what was said before is derived as it was configured then
        configuration = SWITCHES[number % len(SWITCHES)]
        self._set(conversation, configuration)

    def _set(self, conversation: Conversation | None, configuration: dict[str, Any]) -> None:
        """Of a session or, None, of the workspace."""
        rt = self.pipeline.rt
        if conversation is None:
            workspaces.update(rt, PRINCIPAL, WORKSPACE, None, configuration)
        else:
            slug = self.slugs[conversation]
            sessions.update(rt, PRINCIPAL, WORKSPACE, slug, None, configuration)

    def expire(
        self,
        expiring: Sequence[Conversation],
        others: Sequence[Conversation],
        by_workspace: bool,
    ) -> None:
        """What these sessions have becomes too old."""
        rt = self.pipeline.rt
        self.pipeline.clock.advance(days=3)
        if not self.whole:
            return
        self._retain("messages_days", expiring, others, by_workspace)
        with rt.storage.read() as tx:
            keys = [session.key for session in tx.rows.page(r.Session)]
        for key in keys:
            while retention.erase_messages(rt, key, self.pipeline.clock()):
                pass
        self._retain_all(expiring, others)

    def _retain(
        self,
        days: str,
        expiring: Sequence[Conversation],
        others: Sequence[Conversation],
        by_workspace: bool,
    ) -> None:
        """Set for how long messages or conclusions are kept: of each session, or of the workspace
        for those that expire."""
        short, long = ({"retention": {days: number}} for number in (2, 30_000))
        for conversation in others:
            self._set(conversation, long)
        for conversation in expiring:
            self._set(conversation, {"retention": {}} if by_workspace else short)
        self._set(None, short if by_workspace else {"retention": {}})

    def _retain_all(self, expiring: Sequence[Conversation], others: Sequence[Conversation]) -> None:
        self._set(None, {"retention": {}})
        for conversation in (*others, *expiring):
            self._set(conversation, {"retention": {}})

    def expire_conclusions(
        self,
        expiring: Sequence[Conversation],
        others: Sequence[Conversation],
        by_workspace: bool,
    ) -> None:
        """What was concluded from these sessions becomes too old; by the retention of the workspace
        also what was concluded from no session. The latter has no trace in what was said, so it
        expires in the history without the erasures, too."""
        rt = self.pipeline.rt
        self.work()
        self.pipeline.clock.advance(days=3)
        if not self.whole:
            expiring, others = (), (*expiring, *others)
        self._retain("conclusions_days", expiring, others, by_workspace)
        with rt.storage.read() as tx:
            workspace = tx.workspaces.by_slug(WORKSPACE)
            assert workspace is not None
            sessions_in_turn = tx.rows.page(r.Session, equals(workspace_key=workspace.key))
        for session_key in (None, *(session.key for session in sessions_in_turn)):
            now = self.pipeline.clock()
            while retention.erase_conclusions(rt, workspace.key, now, session_key):
                pass
        self._retain_all(expiring, others)

    def observe(self, person: Person, observed: bool) -> None:
        self.work()  # what was said before is derived as it was configured then
        if self.whole or not person.erased:
            configuration = {"observe_me": observed}
            peer_service.get_or_create(
                self.pipeline.rt, PRINCIPAL, WORKSPACE, person.slug, None, configuration
            )

    def erase_workspace(self) -> None:
        deletion.delete_workspace(self.pipeline.rt, PRINCIPAL, WORKSPACE, with_sessions=True)
        self.exports_of_erased += self.exports
        self.exports.clear()
        self.is_registered = False
