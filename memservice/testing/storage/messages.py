"""Chapter: messages and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta, timezone

from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters.ast import FALSE, Compare, equals
from memservice.domain.records import LONG, SHORT, Message
from memservice.spi.repositories import Position
from memservice.spi.storage import Storage
from memservice.testing.storage.base import NOW, Chapter, Dataset, populate


def converse(storage: Storage, dataset: Dataset, number: int, first: int = 1) -> list[Message]:
    """Store messages `first` to `number`. Their times are in reverse order, which must not
    matter."""
    messages = [
        dataset.message(seq, created_at=NOW - timedelta(hours=seq))
        for seq in range(first, number + 1)
    ]
    return storage.write(lambda tx: tx.messages.append(messages))


def lengthen(storage: Storage, dataset: Dataset, length: int) -> None:
    session = equals(key=dataset.session.key)
    storage.write(lambda tx: tx.rows.change(r.Session, session, message_count=length))


def in_writing(storage: Storage, keys: Sequence[int], distance: int) -> dict[int, Position]:
    """The positions around messages, read in a transaction that may write."""
    return storage.write(lambda tx: dict(tx.messages.neighbourhood(keys, distance)))


def position(message: Message) -> Position:
    return Position(
        message.key,
        message.session_key,
        message.author_key,
        message.seq,
        message.tokens,
        message.created_at,
    )


def in_order(positions: Sequence[Position]) -> list[Position]:
    return sorted(positions, key=lambda each: each.key)


class MessagesChapter(Chapter):
    def test_a_run_of_messages(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 9)
        converse(storage, storage.write(lambda tx: populate(tx, "other")), 9)
        key = dataset.session.key
        with storage.read() as tx:
            assert tx.messages.run(key, 1, 9) == messages
            assert tx.messages.run(key, 3, 5) == messages[2:5]
            assert tx.messages.run(key, 3, 5, reverse=True) == messages[2:5][::-1]
            assert tx.messages.run(key, 9, 9) == messages[8:]
            assert tx.messages.run(key, -5, 100) == messages
            assert (
                tx.messages.run(key, 5, 4)
                == tx.messages.run(key, 10, 20)
                == tx.messages.run(10**9, 1, 9)
                == []
            )

    def test_messages_are_counted_by_day(self, storage: Storage, dataset: Dataset) -> None:
        midnight = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
        times = (
            midnight - timedelta(microseconds=1),
            midnight,
            (midnight + timedelta(hours=23, minutes=59)).astimezone(timezone(timedelta(hours=9))),
            midnight + timedelta(days=1),
            midnight - timedelta(days=400),
        )
        with storage.read() as tx:
            assert tx.messages.newest_key() == 0
            assert tx.messages.per_day(0, 10) == {}
        messages = storage.write(
            lambda tx: tx.messages.append(
                [dataset.message(seq, created_at=at) for seq, at in enumerate(times, 1)]
            )
        )
        first, last = messages[0].key, messages[-1].key
        with storage.read() as tx:
            assert tx.messages.newest_key() == last
            assert tx.messages.per_day(first - 1, last) == {
                "2024-05-16": 1,
                "2024-05-17": 2,
                "2024-05-18": 1,
                "2023-04-13": 1,
            }
            assert tx.messages.per_day(first, messages[2].key) == {"2024-05-17": 2}
            assert tx.messages.per_day(last, last + 10) == {}

    def test_messages_are_paged_by_position(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 12)
        key = dataset.session.key
        late = Compare("created_at", "lt", NOW - timedelta(hours=6))
        with storage.read() as tx:
            assert tx.messages.page(key) == messages
            assert tx.messages.page(key, reverse=True, limit=3, offset=1) == messages[::-1][1:4]
            assert tx.messages.page(key, late, limit=4) == messages[6:10]
            assert (
                tx.messages.page(key, late, reverse=True, limit=2, offset=4) == messages[6:8][::-1]
            )
            assert (tx.messages.count(key), tx.messages.count(key, late)) == (12, 6)
            for limit, offset in ((4, 0), (4, 4), (4, 6), (10, 0)):
                for reverse in (False, True):
                    assert tx.messages.page_and_total(key, late, reverse, limit, offset) == (
                        tx.messages.page(key, late, reverse, limit, offset),
                        6,
                    )
            never = Compare("created_at", "lt", NOW - timedelta(days=9))
            assert tx.messages.page_and_total(key, never, False, 4, 0) == ([], 0)

    def test_matches_are_counted_with_the_state_of_their_session(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        key = dataset.session.key
        converse(storage, dataset, 12)
        converse(storage, storage.write(lambda tx: populate(tx, "other")), 9)
        storage.write(
            lambda tx: tx.rows.change(r.Session, equals(key=key), message_count=12, revision=3)
        )
        late = Compare("created_at", "lt", NOW - timedelta(hours=6))
        with storage.read() as tx:
            assert tx.messages.counted(key, late) == (6, 12, 3)
            assert tx.messages.counted(key, FALSE) == (0, 12, 3)
            assert tx.messages.counted(10**9, late) is None

    def test_every_change_of_stored_messages_raises_the_revision(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        messages = converse(storage, dataset, 3)
        key = dataset.session.key

        def revisions() -> list[int]:
            with storage.read() as tx:
                return [s.revision for s in tx.sessions.by_keys([key, other.session.key])]

        assert revisions() == [0, 0]
        storage.write(lambda tx: tx.messages.save(replace(messages[0], metadata={"a": 1})))
        assert revisions() == [1, 0]
        storage.write(lambda tx: tx.messages.revise(key))
        assert revisions() == [2, 0]
        storage.write(lambda tx: tx.messages.renumber(key, 2, 1, 2, 10))
        assert revisions() == [3, 0]
        storage.write(lambda tx: tx.messages.move_up(key, 2, 3, 1, 7))
        assert revisions() == [4, 0]
        converse(storage, dataset, 6, first=5)
        assert revisions() == [4, 0]

    def test_a_message_is_read_in_its_session_only(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        messages = converse(storage, dataset, 3)
        other = storage.write(lambda tx: tx.sessions.save(dataset.another_session("other", 1)))
        with storage.read() as tx:
            assert tx.messages.by_uid(dataset.session.key, messages[1].uid) == messages[1]
            assert tx.messages.by_uid(other.key, messages[1].uid) is None
            assert tx.messages.by_uid(dataset.session.key, "nothing") is None
            assert tx.messages.page(other.key) == []
            assert tx.messages.count(other.key) == 0

    def test_positions_become_dense_again(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 12)
        other = storage.write(lambda tx: populate(tx, "other"))
        elsewhere = converse(storage, other, 5)
        key = dataset.session.key
        removed = (messages[2], messages[3], messages[7])
        keys = tuple(message.key for message in removed)
        storage.write(lambda tx: tx.rows.delete(Message, equals(key=keys)))
        remaining = [message for message in messages if message not in removed]
        with storage.read() as tx:
            assert tx.messages.span(key, 2, 4) == (4, 9, sum(m.tokens for m in remaining[2:6]))
            assert tx.messages.span(key, 12, 4) == (0, 0, 0)
        tokens = sum(message.tokens for message in remaining[:2])
        storage.write(lambda tx: tx.messages.renumber(key, 2, 4, 2, tokens))
        with storage.read() as tx:
            assert [m.seq for m in tx.messages.page(key)] == [1, 2, 3, 4, 5, 6, 10, 11, 12]
        tokens += sum(message.tokens for message in remaining[2:6])
        storage.write(lambda tx: tx.messages.renumber(key, 9, 1000, 6, tokens))
        expected: list[Message] = []
        for message in remaining:
            through = message.tokens + (expected[-1].tokens_through if expected else 0)
            expected.append(replace(message, seq=len(expected) + 1, tokens_through=through))
        with storage.read() as tx:
            assert tx.messages.page(key) == expected
            assert tx.messages.page(other.session.key) == elsewhere

    def test_positions_make_room(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 9)
        other = storage.write(lambda tx: populate(tx, "other"))
        elsewhere = converse(storage, other, 5)
        key = dataset.session.key
        storage.write(lambda tx: tx.messages.move_up(key, 5, 9, 3, 40))
        storage.write(lambda tx: tx.messages.move_up(key, 2, 5, 1, 7))

        def moved(message: Message) -> Message:
            by, tokens = (3, 40) if message.seq > 5 else (1, 7) if message.seq > 2 else (0, 0)
            seq, through = message.seq + by, message.tokens_through + tokens
            return replace(message, seq=seq, tokens_through=through)

        with storage.read() as tx:
            assert tx.messages.page(key) == [moved(message) for message in messages]
            assert tx.messages.page(other.session.key) == elsewhere

    def test_messages_by_keys(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 5)
        with storage.read() as tx:
            assert tx.messages.by_keys([messages[3].key, messages[0].key, 10**9]) == {
                messages[0].key: messages[0],
                messages[3].key: messages[3],
            }
            assert tx.messages.by_keys([]) == {}

    def test_messages_by_keys_that_match(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 5)
        other = storage.write(lambda tx: populate(tx, "other"))
        foreign = converse(storage, other, 2)
        message_keys = [message.key for message in (*messages[1:], *foreign)]
        with storage.read() as tx:
            matching = tx.messages.matching(
                dataset.workspace.key, message_keys, equals(seq=(1, 2, 4))
            )
            assert matching == {messages[1].key: messages[1], messages[3].key: messages[3]}
            assert tx.messages.matching(other.workspace.key, message_keys, equals(seq=(1, 9))) == {
                foreign[0].key: foreign[0]
            }
            assert tx.messages.matching(dataset.workspace.key, [], equals(seq=1)) == {}
            assert tx.messages.contents(dataset.workspace.key, message_keys) == {
                message.key: message.content for message in messages[1:]
            }
            assert tx.messages.contents(dataset.workspace.key, []) == {}

    def test_save_replaces_a_message(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 3)
        changed = replace(messages[1], content="changed", metadata={"a": 1})
        assert storage.write(lambda tx: tx.messages.save(changed)) == changed
        with storage.read() as tx:
            assert tx.messages.run(dataset.session.key, 1, 3) == [messages[0], changed, messages[2]]

    def test_the_message_that_reaches_a_number_of_tokens(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        totals = [10, 10, 25, 2**40]
        storage.write(
            lambda tx: tx.messages.append(
                [
                    dataset.message(n, tokens_through=total)
                    for n, total in enumerate(totals, start=1)
                ]
            )
        )
        converse(storage, storage.write(lambda tx: populate(tx, "other")), 50)
        key = dataset.session.key
        with storage.read() as tx:
            reaching = tx.messages.seq_reaching
            assert [
                reaching(key, tokens) for tokens in (0, 1, 10, 11, 25, 26, 2**40, 2**40 + 1)
            ] == [1, 1, 1, 3, 3, 4, 4, None]
            assert reaching(10**9, 0) is None

    def test_positions(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 4)
        with storage.read() as tx:
            positions = tx.messages.positions([messages[2].key, messages[0].key, 10**9])
            assert in_order(positions) == [position(messages[0]), position(messages[2])]
            assert list(tx.messages.positions([])) == []
            for quick in (
                tx.messages.positions([messages[1].key], times=False),
                tx.messages.around([messages[1].key], 0, times=False),
            ):
                (location,) = quick
                assert location.created_at in (None, messages[1].created_at)
                assert location[:-1] == position(messages[1])[:-1]

    def test_positions_around_messages(self, storage: Storage, dataset: Dataset) -> None:
        """Each once, even if it is near several messages, and never of another session."""
        messages = converse(storage, dataset, 20)
        other = storage.write(lambda tx: populate(tx, "other"))
        foreign = converse(storage, other, 20)

        def keys(*numbers: int) -> list[int]:
            return [messages[number - 1].key for number in numbers]

        with storage.read() as tx:
            around = tx.messages.around
            assert in_order(around(keys(5), 2)) == [position(m) for m in messages[2:7]]
            assert in_order(around(keys(5, 7, 5), 1)) == [position(m) for m in messages[3:8]]
            assert in_order(around([*keys(1), foreign[19].key], 2)) == [
                position(m) for m in (*messages[:3], *foreign[17:])
            ]
            assert in_order(around(keys(4), 0)) == [position(messages[3])]
            assert in_order(around([10**9], 3)) == []
            assert list(around([], 3)) == []

    def test_positions_around_messages_as_arrays(self, storage: Storage, dataset: Dataset) -> None:
        """The same without times, however often a session is read, and while it grows."""
        messages: list[Message] = []
        for length in (20, 20, 20, 23, 23):
            messages += converse(storage, dataset, length, len(messages) + 1)
            lengthen(storage, dataset, length)
            for numbers, distance in (([5], 2), ([1, 2, 9, 12], 3), ([], 3), ([length], 1)):
                keys = [messages[number - 1].key for number in numbers]
                with storage.read() as tx:
                    table = tx.messages.neighbourhood(keys, distance)
                    around = tx.messages.around(keys, distance)
                without_times = {each.key: each._replace(created_at=None) for each in around}
                assert dict(table) == without_times
                assert in_writing(storage, keys, distance) == without_times

    def test_positions_around_many_messages(self, storage: Storage, dataset: Dataset) -> None:
        messages = converse(storage, dataset, 300)
        keys = [message.key for message in messages[::2]]
        with storage.read() as tx:
            assert in_order(tx.messages.around(keys, 3)) == [position(m) for m in messages]

    def test_the_newest_summary_of_each_kind_is_kept(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        messages = converse(storage, dataset, 2)
        other = storage.write(lambda tx: populate(tx, "other"))

        def summary(of: Dataset, kind: str, message: Message, content: str) -> r.Summary:
            return r.Summary(
                workspace_key=of.workspace.key,
                session_key=of.session.key,
                kind=kind,
                content=content,
                message_key=message.key,
                message_uid=message.uid,
                tokens=1,
                reasoner="r",
                created_at=NOW,
            )

        foreign = converse(storage, other, 1)[0]
        storage.write(lambda tx: tx.summaries.save(summary(other, SHORT, foreign, "theirs")))
        storage.write(lambda tx: tx.summaries.save(summary(dataset, SHORT, messages[0], "old")))
        long = storage.write(
            lambda tx: tx.summaries.save(summary(dataset, LONG, messages[0], "long"))
        )
        short = storage.write(
            lambda tx: tx.summaries.save(summary(dataset, SHORT, messages[1], "new"))
        )
        with storage.read() as tx:
            assert tx.summaries.of_session(dataset.session.key) == {SHORT: short, LONG: long}
            assert tx.summaries.of_session(other.session.key)[SHORT].content == "theirs"
            assert tx.rows.count(r.Summary) == 3
            assert tx.summaries.of_session(10**9) == {}
