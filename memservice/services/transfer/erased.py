"""Leaves out of an import what was erased here, with everything that refers to it, and adapts the
lines that stay, as an erasure adapts the rows that stay.

One pass, in front of the storing of lines. What it remembers grows with the erased rows only: their
uids, the positions of erased messages, and the rows that mention erased peers. Lines that can be
adapted only when later ones are known wait in temporary files: members for the messages, cards for
the conclusions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import equals
from memservice.domain.values import shown
from memservice.runtime import Runtime
from memservice.services.erasure import cards, conclusions, mentions, notes, positions
from memservice.services.transfer import after_erasures, erased_references, record_formats
from memservice.services.transfer.after_erasures import Supersession
from memservice.services.transfer.erased_references import LeftOut
from memservice.services.transfer.expired_lines import ExpiredLines
from memservice.services.transfer.lines import Line, UnreadableExport, parse_time
from memservice.services.transfer.record_formats import RecordFormat
from memservice.services.transfer.redacted_lines import RedactedLines
from memservice.services.transfer.waiting_lines import Batch, WaitingLines
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction

_ERASURE_MESSAGE = (
    "rows of this file were erased here while the import ran: import it again to leave them out"
)
_RECEIVED = (r.Message, r.Peer, r.Session)
"""Records whose erasure leaves a receipt with the uid, besides the workspace."""
_ORDER = {record_format.name: n for n, record_format in enumerate(record_formats.ROWS)}
_WAITS_FOR: Mapping[str, str] = {
    BY_RECORD[r.Member].name: BY_RECORD[r.Message].name,
    BY_RECORD[r.Card].name: BY_RECORD[r.Conclusion].name,
}
"""Kind of a line → the kind of the lines that must be known first."""


class _Changes(Struct):
    """How the messages of a session differ from those in the file."""

    gaps: list[int] = field(default_factory=list)
    """Positions of the messages that are left out, in rising order."""
    redacted: int | None = None
    """Position of the first message in which names are replaced."""
    tokens: int = 0
    """Fewer in the messages so far. Negative if there are more."""

    @property
    def first(self) -> int | None:
        """The first position where a message is left out or redacted; None: there is none."""
        positions = (*self.gaps[:1], self.redacted)
        return min((position for position in positions if position is not None), default=None)


class ErasedRows:
    """The rows of one file that were erased here, and what refers to them."""

    def __init__(self, rt: Runtime, uid_here: Callable[[str], str]) -> None:
        """`uid_here`: uid in the file → uid of the row in this storage."""
        self._rt = rt
        self._uid_here = uid_here
        self._left_out = LeftOut()
        self._expired = ExpiredLines()
        self._redacted = RedactedLines(uid_here)
        self.counts: Counter[str] = Counter()
        """Number of lines that were left out, by kind."""
        self._adapted_uids: set[str] = set()
        """Uids here of conclusions that lost sources."""
        self._successors: dict[str, Supersession] = {}
        """By uid here of a conclusion that was left out."""
        self._first_left_out: dict[tuple[str, str], datetime] = {}
        """When the first conclusion that was left out was stored, by uids here of its pair."""
        self._workspace_uids: tuple[str, ...] = ()
        self._newest = 0
        """Key of the newest receipt when the import began."""
        self._changes: dict[str, _Changes] = {}
        """By uid of the session in the file."""
        self._summaries: dict[str, set[str]] = {}
        """Kinds of summary that were left out, by uid here of the session."""

    def remaining(self, batches: Iterable[Batch]) -> Generator[Batch]:
        """The batches to store. Raises Conflict if the workspace was erased here."""
        batches = iter(batches)
        first = next(batches, None)
        if first is None:
            return
        active = first[0] == record_formats.WORKSPACE.name and self._begin(first[1])
        yield first
        if not active:
            yield from batches
            return
        with ExitStack() as files:
            waiting = {kind: WaitingLines(files) for kind in _WAITS_FOR}
            for kind, lines in batches:
                yield from self._released(waiting, _ORDER.get(kind, len(_ORDER)))
                remaining = self._filtered(kind, lines)
                if kind in waiting:
                    waiting[kind].add(remaining)
                elif remaining:
                    yield kind, remaining
            yield from self._released(waiting, len(_ORDER))

    def _begin(self, lines: Sequence[Line]) -> bool:
        """Whether anything of this workspace was erased here."""
        uids = {uid for line in lines for uid in (line["uid"], self._uid_here(line["uid"]))}
        self._workspace_uids = tuple(sorted(uids))
        self._newest = self._rt.storage.write(self._newest_receipt)
        with self._rt.storage.read() as tx:
            erasure = tx.erasures.of_target(self._workspace_uids)
            if erasure is not None:
                raise Conflict(
                    f"the workspace {shown(lines[0]['slug'])!r} of this file was erased here "
                    f"(receipt {erasure.uid}); nothing was stored. To import it nevertheless, use "
                    "--no-respect-erasures"
                )
            has_expired = self._expired.begin(tx, self._workspace_uids)
            return tx.erasures.has_targets_of(self._workspace_uids) or has_expired

    def _newest_receipt(self, tx: Transaction) -> int:
        self._wait_for_erasures(tx)
        return tx.erasures.newest_key()

    def _wait_for_erasures(self, tx: Transaction) -> None:
        """Wait until the erasures of peers that are being accepted are committed, and make later
        ones wait for this transaction: they replace names in the rows that are stored by then."""
        for uid in self._workspace_uids:
            tx.rows.get(r.Workspace, equals(uid=uid), lock=True)

    def _released(self, waiting: Mapping[str, WaitingLines], order: int) -> Iterator[Batch]:
        """The waiting lines, when lines of this order in the file are next."""
        for kind, lines_waiting in waiting.items():
            if order > _ORDER[_WAITS_FOR[kind]]:
                for lines in lines_waiting.taken():
                    adapted = [self._late(kind, line) for line in lines]
                    if remaining := [line for line in adapted if line is not None]:
                        yield kind, remaining

    def _late(self, kind: str, line: Line) -> Line | None:
        if kind == BY_RECORD[r.Member].name:
            return self._member(line)
        card = self._card(line)
        return None if card is None else self._redacted.replaced(record_formats.FORMATS[kind], card)

    def _filtered(self, kind: str, lines: Sequence[Line]) -> list[Line]:
        record_format = record_formats.FORMATS.get(kind)
        erased = self._erased(record_format, lines)
        self._read_names(record_format, lines, erased)
        covered = self._covered(record_format, lines)
        remaining = []
        for line in lines:
            if record_format is None:
                is_remaining = not (self._left_out.vector(line) or self._is_of_old_text(line))
            else:
                is_remaining = (
                    line.get("uid") not in erased
                    and not self._left_out.refers(record_format, line)
                    and not self._quotes(record_format, line, covered)
                )
            if is_remaining:
                remaining.append(
                    line if record_format is None else self._adapted(record_format, line)
                )
            else:
                self._leave_out(kind, record_format, line)
        return remaining

    def _erased(self, record_format: RecordFormat | None, lines: Sequence[Line]) -> set[str]:
        """Uids of the lines whose rows were erased here."""
        if record_format is None:
            return set()
        self._expired.read(record_format, lines)
        expired = {line["uid"] for line in lines if self._expired.has(record_format, line)}
        if record_format.record not in _RECEIVED:
            return expired
        here = {line["uid"]: self._uid_here(line["uid"]) for line in lines}
        with self._rt.storage.read() as tx:
            erased = tx.erasures.erased_uids(sorted({*here, *here.values()}))
        return expired | {uid for uid, local in here.items() if uid in erased or local in erased}

    def _read_names(
        self, record_format: RecordFormat | None, lines: Sequence[Line], erased: Collection[str]
    ) -> None:
        """Read what tells where names of erased peers are to be replaced."""
        if record_format is None:
            return
        if record_format.record is r.Member:
            for line in lines:
                self._redacted.add_member(line)
        if record_format.record is r.Peer and erased:
            here = {uid: {uid, self._uid_here(uid)} for uid in erased}
            with self._rt.storage.read() as tx:
                redacted = {
                    erasure.target_uid
                    for erasure in tx.erasures.of_targets(sorted(set().union(*here.values())))
                    if erasure.options.get("mentions") == mentions.REDACT
                }
            for line in lines:
                if not redacted.isdisjoint(here.get(line["uid"], ())):
                    self._redacted.add_peer(line)

    def _is_of_old_text(self, line: Line) -> bool:
        """Whether this is the vector of a text in which names are replaced."""
        record = record_formats.SPACED.get(line["space"]["kind"])
        return record in (r.Message, r.Conclusion) and line["uid"] in self._redacted.uids(record)

    def without_vectors(
        self, record: type[r.Message | r.Conclusion], rows: Sequence[Any]
    ) -> list[Any]:
        """New rows whose vectors in the file are of another text."""
        uids = self._redacted.uids(record)
        return [row for row in rows if row.uid in uids]

    def _covered(self, record_format: RecordFormat | None, lines: Sequence[Line]) -> dict[str, int]:
        """Positions here of the messages up to which summaries of sessions with changes go, by uid
        in the file."""
        if record_format is None or record_format.record not in (r.Summary, r.Metamessage):
            return {}
        here = {
            self._uid_here(line["message_uid"]): line["message_uid"]
            for line in lines
            if line["session_uid"] in self._changes and line["message_uid"]
        }
        if not here:
            return {}
        with self._rt.storage.read() as tx:
            messages = tx.rows.page(r.Message, equals(uid=tuple(here)))
        return {here[message.uid]: message.seq for message in messages}

    def _quotes(self, record_format: RecordFormat, line: Line, covered: Mapping[str, int]) -> bool:
        """Whether a line can contain words of what is left out, or a name that is replaced."""
        is_note = record_format.record is r.Metamessage
        if is_note and notes.is_representation(line["label"]):
            # A representation does not name its conclusions.
            return line["owner_uid"] in self._left_out.of_conclusions
        if record_format.record is r.Summary or (is_note and notes.is_summary(line["label"])):
            changes = self._changes.get(line["session_uid"])
            first = None if changes is None else changes.first
            is_later = first is not None and covered.get(line["message_uid"], first) >= first
            return is_later or self._redacted.are_in_content(line)
        return record_format.record is r.Task and self._redacted.is_based_on_mentions(line)

    def _leave_out(self, kind: str, record_format: RecordFormat | None, line: Line) -> None:
        self.counts[kind] += 1
        if record_format is None:
            return
        self._left_out.add(record_format, line)
        if record_format.record is r.Message:
            changes = self._changes.setdefault(line["session_uid"], _Changes())
            insort(changes.gaps, line["seq"])
            changes.tokens += line["tokens"]
        elif record_format.record is r.Conclusion:
            successor = line["superseded_by"]
            self._successors[self._uid_here(line["uid"])] = (
                None if successor is None else self._uid_here(successor),
                line["superseded_at"],
            )
            pair = (self._uid_here(line["observer_uid"]), self._uid_here(line["observed_uid"]))
            stored = parse_time(line["created_at"])
            self._first_left_out[pair] = min(stored, self._first_left_out.get(pair, stored))
        elif record_format.record is r.Summary and line["session_uid"] not in self._left_out.uids(
            r.Session
        ):
            session = self._uid_here(line["session_uid"])
            self._summaries.setdefault(session, set()).add(line["kind"])

    def _adapted(self, record_format: RecordFormat, line: Line) -> Line:
        """A line that stays, without what is left out."""
        if record_format.record is r.Message:
            return self._message(line)
        adapted = self._left_out.without(record_format, line)
        if record_format.record is r.Conclusion and adapted != line:
            self._adapted_uids.add(self._uid_here(line["uid"]))
        # Cards come later, when the lines that quote what is left out are known.
        is_card = record_format.record is r.Card
        return adapted if is_card else self._redacted.replaced(record_format, adapted)

    def _message(self, line: Line) -> Line:
        redacted = self._redacted.replaced(record_formats.FORMATS[line["type"]], line)
        if redacted is not line:
            changes = self._changes.setdefault(line["session_uid"], _Changes())
            changes.redacted = min(line["seq"], changes.redacted or line["seq"])
            changes.tokens += line["tokens"] - redacted["tokens"]
        elif line["session_uid"] in self._changes:
            changes = self._changes[line["session_uid"]]
        else:
            return line
        tokens = line["tokens_through"] - changes.tokens
        if tokens < redacted["tokens"]:
            raise UnreadableExport("a message has fewer `tokens_through` than those before it")
        seq = line["seq"] - bisect_left(changes.gaps, line["seq"])
        return {**redacted, "seq": seq, "tokens_through": tokens}

    def _member(self, line: Line) -> Line:
        changes = self._changes.get(line["session_uid"])
        if changes is None:
            return line
        marks = {
            name: line[name] - bisect_right(changes.gaps, line[name])
            for name in positions.MARKS
            if line[name] is not None
        }
        return {**line, **marks}

    def _card(self, line: Line) -> Line | None:
        """A card without the service's own lines that may quote a conclusion that is left out. None
        if nothing stays."""
        if (line["observer_uid"], line["target"]) not in self._left_out.pairs:
            return line
        with self._rt.storage.read() as tx:
            observer = tx.rows.get(r.Peer, equals(uid=self._uid_here(line["observer_uid"])))
            pair = equals(observer_key=observer.key if observer else 0, observed=line["target"])
            collection = tx.rows.get(r.Collection, pair)
            unquoted = cards.unquoted(
                tx, collection.key if collection else 0, line["lines"], line["given"]
            )
        lines = [text for text in line["lines"] if text not in unquoted]
        if not lines:
            self.counts[BY_RECORD[r.Card].name] += 1
            return None
        return {**line, "lines": lines}

    def refuse_new(
        self, tx: Transaction, record_format: RecordFormat, lines: Sequence[Line]
    ) -> None:
        """Call it in the transaction that stores these lines, after it looked for existing rows.
        Raises Conflict if one of them, or a row that they refer to, was erased since the lines were
        filtered: an import must not bring back what is erased while it runs."""
        self.refuse_redacted(tx)
        uids = set(self._workspace_uids)
        for line in lines:
            named = erased_references.named(record_format, line, _RECEIVED)
            uids.update(named, map(self._uid_here, named))
        if tx.erasures.erased_uids(sorted(uids)):
            raise Conflict(_ERASURE_MESSAGE)

    def refuse_redacted(self, tx: Transaction) -> None:
        """Call it in each transaction that stores lines. Raises Conflict if mentions of a peer are
        being replaced since the import began: any line may have its names."""
        self._wait_for_erasures(tx)
        for erasure in tx.erasures.of_peers_after(self._newest, self._workspace_uids):
            if erasure.options.get("mentions") == mentions.REDACT:
                raise Conflict(_ERASURE_MESSAGE)

    def adjusted(
        self, tx: Transaction, workspace_key: int, rows: Sequence[r.Conclusion]
    ) -> list[r.Conclusion]:
        """New conclusions; those that lost sources as they follow from the remaining ones."""
        lost = [row for row in rows if row.uid in self._adapted_uids]
        lost_uids = self._left_out.uids(r.Message)
        by_uid = {row.uid: row for row in conclusions.adjust(tx, workspace_key, lost, lost_uids)}
        return [by_uid.get(row.uid, row) for row in rows]

    def finish(self, workspace_key: int, superseded: Mapping[str, Supersession]) -> None:
        """Call it when all rows are stored. `superseded`: by uid here of each superseded
        conclusion."""
        erased = after_erasures.erase_based_on(self._rt, workspace_key, self._successors)
        self.counts[BY_RECORD[r.Conclusion].name] += erased
        after_erasures.restore(self._rt, workspace_key, superseded, self._successors)
        after_erasures.forget_reasons(self._rt, workspace_key, self._adapted_uids)
        after_erasures.forget_later_reasons(self._rt, self._first_left_out)
        after_erasures.summarise(self._rt, workspace_key, self._summaries)
