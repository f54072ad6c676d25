"""Brings messages that were erased here back to their places: `import --no-respect-erasures` into
the workspace in which they were erased.

One pass, in front of the storing of lines. Messages and members wait in temporary files until it is
known where messages are missing; then the sessions get gaps (`gaps`), and the lines the positions
in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from msgspec import Struct, field

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import FALSE, all_of, equals
from memservice.domain.filters.ast import Condition
from memservice.runtime import Runtime
from memservice.services.erasure.positions import MARKS
from memservice.services.transfer import gaps, record_formats
from memservice.services.transfer.expired_lines import ExpiredLines
from memservice.services.transfer.gaps import Begun, Gap, Mark, Marks
from memservice.services.transfer.lines import Line
from memservice.services.transfer.waiting_lines import Batch, WaitingLines
from memservice.spi.rows import Order
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
_MEMBERS, _MESSAGES = BY_RECORD[r.Member].name, BY_RECORD[r.Message].name
_SESSIONS = BY_RECORD[r.Session].name
_BEFORE = {
    record_format.name
    for record_format in record_formats.ROWS[
        : record_formats.ROWS.index(record_formats.FORMATS[_MESSAGES])
    ]
}
"""Kinds of lines that come before messages and do not wait for them."""


class _Run(Struct):
    """Successive messages in the file, all of which exist here one after the other, or none."""

    first: int
    """Position in the file of the first one."""
    here: int
    """Its position here; of missing ones, that of the message before it. 0: there is none."""
    before_uid: str | None
    """Uid here of the message before it."""
    through_before: int
    """`tokens_through` here of the message before it."""
    is_missing: bool
    messages: int = 0
    tokens: int = 0
    messages_before: int = 0
    """Number of missing messages in the runs before it."""
    tokens_before: int = 0
    """Sum of their tokens."""
    placed_tokens: int = 0
    """Sum of the tokens of its messages that have their position."""


def _run_at(runs: Sequence[_Run], seq: int) -> _Run | None:
    """The run with a position in the file."""
    index = bisect_right(runs, seq, key=lambda run: run.first) - 1
    return runs[index] if index >= 0 and seq < runs[index].first + runs[index].messages else None


class _Layout(Struct):
    """Where the messages of a session in the file are here."""

    runs: list[_Run] = field(default_factory=list)
    in_order: bool = True
    """Whether their order is the same in both, and the file lacks none."""
    last: r.Message | None = None
    """The last one that exists here."""
    number: int = 0

    def add(self, line: Line, existing: r.Message | None) -> None:
        """Add the next line of the session; `existing`: its message here."""
        self.number += 1
        before = self.last
        continues = before is None or existing is None or existing.seq > before.seq
        self.in_order &= line["seq"] == self.number and continues
        run = self.runs[-1] if self.runs else None
        is_missing = existing is None
        if (
            run is None
            or run.is_missing != is_missing
            or (existing is not None and existing.seq != run.here + run.messages)
        ):
            run = _Run(
                line["seq"],
                existing.seq if existing is not None else before.seq if before else 0,
                before.uid if before else None,
                before.tokens_through if before else 0,
                is_missing,
            )
            self.runs.append(run)
        run.messages += 1
        run.tokens += line["tokens"]
        self.last = existing or before

    def gaps(self) -> list[Gap]:
        """The gaps for what is missing."""
        missing = [run for run in self.runs if run.is_missing]
        return [Gap(run.here, run.before_uid, run.messages, run.tokens) for run in missing]

    def mark(self, seq: int | None) -> Mark | None:
        """A position in the file within the missing messages, or next to them."""
        if seq is not None:
            for near in (seq, seq + 1):
                run = _run_at(self.runs, near)
                if run is not None and run.is_missing:
                    return Mark(run.here, seq - run.first + 1)
        return None


class _Opened:
    """A session that has gaps for its missing messages."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self._runs = runs
        messages = tokens = 0
        for run in runs:
            run.messages_before, run.tokens_before = messages, tokens
            if run.is_missing:
                messages, tokens = messages + run.messages, tokens + run.tokens

    def message(self, line: Line) -> Line:
        """A line with its position and `tokens_through` here. Call it in the order of the lines."""
        run = _run_at(self._runs, line["seq"])
        if run is None or not run.is_missing:
            return line
        run.placed_tokens += line["tokens"]
        through = run.through_before + run.tokens_before + run.placed_tokens
        return {**line, "seq": self.position(line["seq"]), "tokens_through": through}

    def member(self, line: Line) -> Line:
        marks = {name: self.position(line[name]) for name in MARKS if line[name]}
        return {**line, **marks}

    def position(self, seq: int) -> int:
        """The position here of the message at a position in the file."""
        run = _run_at(self._runs, seq)
        if run is None:
            return seq
        return run.here + run.messages_before + seq - run.first + run.is_missing


class ReturnedMessages:
    """The messages of one file that were erased here."""

    def __init__(self, rt: Runtime, uid_here: Callable[[str], str]) -> None:
        """`uid_here`: uid in the file → uid of the row in this storage."""
        self._rt = rt
        self._uid_here = uid_here
        self.is_active = False
        """Whether anything of the workspace was erased here."""
        self.newest_conclusion = 0
        """Key of the newest conclusion before the import."""
        self._existing: set[str] = set()
        """Uids in the file of the sessions that existed before the import."""
        self._layouts: dict[str, _Layout] = {}
        """By uid of the session in the file."""
        self._opened: dict[str, _Opened] = {}
        """The same, of sessions with gaps."""
        self._begun: dict[int, Begun] = {}
        """The same, by key of the session."""
        self._held_at = rt.clock()
        self._own: Condition = FALSE
        """Selects rows of the workspace: a file can name any uid."""

    def placed(self, batches: Iterable[Batch]) -> Generator[Batch]:
        """The batches to store. What it yields must be stored before the next one is taken."""
        batches = iter(batches)
        first = next(batches, None)
        if first is None:
            return
        yield first
        if first[0] != record_formats.WORKSPACE.name or not self._has_erasures(first[1]):
            yield from batches
            return
        try:
            with ExitStack() as files:
                waiting = {kind: WaitingLines(files) for kind in (_MEMBERS, _MESSAGES)}
                for kind, lines in batches:
                    if kind in waiting:
                        waiting[kind].add(lines)
                        if kind == _MESSAGES:
                            self._read(lines)
                        continue
                    if kind == _SESSIONS:
                        self._note_existing(lines)
                    if kind not in _BEFORE:
                        yield from self._released(waiting)
                    yield kind, lines
                    self._hold()
                yield from self._released(waiting)
        except BaseException:
            # The process may be about to end: a worker closes what remains of the gaps.
            gaps.close(self._rt, list(self._begun.values()))
            raise
        gaps.finish(self._rt, list(self._begun.values()))

    def is_placed(self, tx: Transaction, session_key: int) -> bool:
        """Whether new messages of a session have positions in gaps. Raises Conflict if the gaps may
        have been closed."""
        begun = self._begun.get(session_key)
        if begun is not None:
            gaps.require_open(tx, begun)
        return begun is not None

    def _hold(self) -> None:
        """Say from time to time that the import goes on."""
        if self._begun and self._rt.clock() - self._held_at >= gaps.RENEWAL:
            gaps.hold(self._rt, list(self._begun.values()))
            self._held_at = self._rt.clock()

    def _note_existing(self, lines: Sequence[Line]) -> None:
        here = {self._uid_here(line["uid"]): line["uid"] for line in lines}
        with self._rt.storage.read() as tx:
            sessions = tx.rows.page(r.Session, all_of(self._own, equals(uid=tuple(here))))
        self._existing.update(here[session.uid] for session in sessions)

    def _has_erasures(self, lines: Sequence[Line]) -> bool:
        here = self._uid_here(lines[0]["uid"])
        workspace_uids = tuple(sorted({lines[0]["uid"], here}))
        with self._rt.storage.read() as tx:
            workspace = tx.rows.get(r.Workspace, equals(uid=here))
            self._own = equals(workspace_key=workspace.key) if workspace else FALSE
            if tx.erasures.has_targets_of(workspace_uids) or ExpiredLines().begin(
                tx, workspace_uids
            ):
                newest = tx.rows.page(r.Conclusion, order=(Order("key", descending=True),), limit=1)
                self.is_active = True
                self.newest_conclusion = newest[0].key if newest else 0
        return self.is_active

    def _read(self, lines: Sequence[Line]) -> None:
        here = {self._uid_here(line["uid"]): line["uid"] for line in lines}
        with self._rt.storage.read() as tx:
            messages = tx.rows.page(r.Message, all_of(self._own, equals(uid=tuple(here))))
        existing = {here[message.uid]: message for message in messages}
        for line in lines:
            layout = self._layouts.setdefault(line["session_uid"], _Layout())
            layout.add(line, existing.get(line["uid"]))

    def _released(self, waiting: Mapping[str, WaitingLines]) -> Iterator[Batch]:
        """The lines that wait: members, then messages."""
        self._open(waiting[_MEMBERS])
        for kind, lines_waiting in waiting.items():
            for lines in lines_waiting.taken():
                yield kind, [self._line(kind, line) for line in lines]
                self._hold()

    def _line(self, kind: str, line: Line) -> Line:
        opened = self._opened.get(line["session_uid"])
        if opened is None:
            return line
        return opened.message(line) if kind == _MESSAGES else opened.member(line)

    def _open(self, members: WaitingLines) -> None:
        """Open gaps in all sessions in which messages are missing."""
        opening: dict[str, tuple[r.Session, list[Gap]]] = {}
        uids = [uid for uid, layout in self._layouts.items() if uid in self._existing]
        for start in range(0, len(uids), BATCH_SIZE):
            here = {self._uid_here(uid): uid for uid in uids[start : start + BATCH_SIZE]}
            with self._rt.storage.read() as tx:
                sessions = tx.rows.page(r.Session, all_of(self._own, equals(uid=tuple(here))))
            for session in sessions:
                layout = self._layouts[here[session.uid]]
                if session_gaps := layout.gaps():
                    if not layout.in_order:
                        raise Conflict(
                            f"the session {session.slug!r} here has messages of this file in "
                            "another order: import the file as another workspace with --as"
                        )
                    opening[here[session.uid]] = session, session_gaps
        if opening:
            marks = self._marks(opening.keys(), members)
            for uid, (session, session_gaps) in opening.items():
                begun = gaps.begin(self._rt, session, session_gaps)
                self._begun[session.key] = begun
                gaps.make_room(self._rt, session, session_gaps, marks[uid], begun)
                self._opened[uid] = _Opened(self._layouts[uid].runs)
                self._hold()
        self._layouts.clear()

    def _marks(self, uids: Collection[str], members: WaitingLines) -> Mapping[str, Marks]:
        """What the members of these sessions in the file had seen of the missing messages, by uid
        of the session."""
        marks: dict[str, dict[tuple[int, str], Mark]] = {uid: {} for uid in uids}
        for lines in members.batches():
            own = [line for line in lines if line["session_uid"] in uids]
            peer_uids = {self._uid_here(line["peer_uid"]) for line in own}
            with self._rt.storage.read() as tx:
                peers = tx.rows.page(r.Peer, all_of(self._own, equals(uid=tuple(peer_uids))))
            keys = {peer.uid: peer.key for peer in peers}
            for line in own:
                key = keys.get(self._uid_here(line["peer_uid"]))
                for name in MARKS:
                    mark = self._layouts[line["session_uid"]].mark(line[name])
                    if key is not None and mark is not None:
                        marks[line["session_uid"]][key, name] = mark
        return marks
