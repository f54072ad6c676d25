"""Mentions of peers that were erased here with `mentions=redact`, in lines of others: replaced as
the erasure replaced them in the rows (`erasure.mentions` says where)."""

from __future__ import annotations

from collections.abc import Callable

from memservice.domain import records as r
from memservice.domain import tokens
from memservice.domain.ids import fingerprint
from memservice.domain.text.mentions import Mentions
from memservice.services import dream_changes
from memservice.services.erasure import dream_texts, mentions
from memservice.services.peers import names_of
from memservice.services.tasks import kinds
from memservice.services.transfer import record_formats
from memservice.services.transfer.lines import Line, parse_time
from memservice.services.transfer.record_formats import RecordFormat


class RedactedLines:
    """The names of the erased peers of one file, and the lines in which they were replaced. Uids
    are those in the file."""

    def __init__(self, uid_here: Callable[[str], str]) -> None:
        """`uid_here`: uid in the file → uid of the row in this storage."""
        self._uid_here = uid_here
        self._names: dict[str, tuple[str, ...]] = {}
        """By uid of the peer."""
        self._peers_of_sessions: dict[str, set[str]] = {}
        """Uids of these peers by uid of a session where they are or were members."""
        self._mentions_of: dict[tuple[str, ...], Mentions] = {}
        """By names, sorted."""
        self._changed: dict[type[r.Message | r.Conclusion], set[str]] = {
            r.Message: set(),
            r.Conclusion: set(),
        }
        """Uids, in the file and here, of rows in which names were replaced."""

    def add_peer(self, line: Line) -> None:
        """Replace the names of this peer in the lines that follow."""
        plain = {name: line[name] for name in record_formats.FORMATS[line["type"]].plain}
        plain["created_at"] = parse_time(line["created_at"])
        self._names[line["uid"]] = tuple(names_of(r.Peer(workspace_key=0, **plain)))

    def add_member(self, line: Line) -> None:
        """Read a membership, which comes before the messages of its session."""
        if line["peer_uid"] in self._names:
            self._peers_of_sessions.setdefault(line["session_uid"], set()).add(line["peer_uid"])

    def uids(self, record: type[r.Message | r.Conclusion]) -> set[str]:
        """Uids, in the file and here, of the rows in which names were replaced: the vectors in the
        file are of their old texts."""
        return self._changed[record]

    def are_in_content(self, line: Line) -> bool:
        """Whether the content of a line that can belong to a session mentions one of the peers."""
        return self._mentions(line["session_uid"]).are_in(line["content"])

    def is_based_on_mentions(self, line: Line) -> bool:
        """Whether a task has a proposal of a dream that read a conclusion in which names were
        replaced."""
        proposal = line["payload"].get(dream_changes.PROPOSAL) or {}
        return not self._changed[r.Conclusion].isdisjoint(proposal.get("reads", ()))

    def replaced(self, record_format: RecordFormat, line: Line) -> Line:
        """The line without mentions."""
        record = record_format.record
        if not self._names:
            return line
        if record is r.Message:
            return self._message(line)
        if record is r.Conclusion:
            return self._conclusion(line)
        if record is r.Metamessage:
            content = self._mentions(line["session_uid"]).replaced(line["content"])
            return {**line, "content": content}
        names = self._mentions(None)
        if record is r.Card:
            texts = {name: list(map(names.replaced, line[name])) for name in ("lines", "given")}
            return {**line, **texts}
        if record is r.Task and line["kind"] == kinds.DREAM:
            return {**line, "payload": dream_texts.changed(line["payload"], names.replaced)}
        return line

    def _message(self, line: Line) -> Line:
        content = self._mentions(line["session_uid"]).replaced(line["content"])
        if content == line["content"]:
            return line
        self._changed[r.Message] |= {line["uid"], self._uid_here(line["uid"])}
        return {**line, "content": content, "tokens": tokens.count(content)}

    def _conclusion(self, line: Line) -> Line:
        names = self._mentions(line["session_uid"])
        content = names.replaced(line["content"])
        internal = mentions.replaced_in(line["internal"], names)
        if content == line["content"] and internal == line["internal"]:
            return line
        self._changed[r.Conclusion] |= {line["uid"], self._uid_here(line["uid"])}
        new = {"content": content, "fingerprint": fingerprint(content), "internal": internal}
        return {**line, **new}

    def _mentions(self, session_uid: str | None) -> Mentions:
        peers = set(self._names)
        if session_uid is not None:
            peers = self._peers_of_sessions.get(session_uid, set())
        names = tuple(sorted({name for peer in peers for name in self._names[peer]}))
        if names not in self._mentions_of:
            self._mentions_of[names] = Mentions(names)
        return self._mentions_of[names]
