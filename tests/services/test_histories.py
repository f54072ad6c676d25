"""Memories and conversations of other systems, imported into a workspace."""

from __future__ import annotations

import gc
import json
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.errors import InvalidInput
from memservice.domain.filters import TRUE
from memservice.hookspecs import hookimpl
from memservice.services import messages
from memservice.services.transfer.histories import importing, json_reader
from memservice.services.transfer.histories.formats import FORMATS
from memservice.services.transfer.histories.importing import HistoryReport, HistoryRequest
from memservice.services.transfer.histories.json_reader import entries
from memservice.services.transfer.lines import UnreadableExport
from services.conftest import OpenServices
from support.services import histories
from support.services.services import Services


def no_progress(done: int, total: int) -> None:
    assert 0 <= done <= total


def plain(lines: Iterator[bytes], number: int) -> AbstractContextManager[Iterator[bytes]]:
    return nullcontext(lines)


def load(
    services: Services, path: Path, format_name: str, content: str | None = None, **options: Any
) -> HistoryReport:
    if content is not None:
        path.write_text(content, encoding="utf-8")
    fields: dict[str, Any] = {"workspace_id": "w", "user": "me"}
    request = HistoryRequest(file=path, format_name=format_name, **(fields | options))
    return importing.load(services.rt, request, no_progress, plain)


def rows(services: Services, record: type[Any]) -> list[Any]:
    with services.rt.storage.read() as tx:
        return list(tx.rows.page(record, TRUE))


def messages_of(services: Services) -> list[tuple[str, str]]:
    return [(message.author, message.content) for message in rows(services, r.Message)]


def conclusions_of(services: Services) -> list[tuple[str, str]]:
    return [(row.observed, row.content) for row in rows(services, r.Conclusion)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history"


def test_memories_of_mem0(services: Services, file: Path) -> None:
    load(services, file, "mem0", histories.TEXTS["mem0"])
    bob = "bob-example-com-"
    first, second, third = rows(services, r.Conclusion)
    assert (first.observer, first.observed, first.content) == ("alice", "alice", "Likes green tea")
    assert first.created_at.isoformat() == "2024-07-26T17:00:00+00:00"
    assert (first.session, first.metadata) == ("run-7", {"category": "food"})
    assert second.observed.startswith(bob)
    assert third.observed == "helper"
    (peer,) = [peer for peer in rows(services, r.Peer) if peer.slug.startswith(bob)]
    assert peer.metadata == {"name": "bob@example.com"}
    (collection, *_) = rows(services, r.Collection)
    assert collection.explicit_count == 1


def test_a_bare_list_of_mem0(services: Services, file: Path) -> None:
    load(services, file, "mem0", json.dumps(histories.MEM0["results"]))
    assert len(rows(services, r.Conclusion)) == 3


def test_users_threads_and_facts_of_zep(services: Services, file: Path) -> None:
    report = load(services, file, "zep", histories.TEXTS["zep"])
    assert sorted(messages_of(services)) == [
        ("alice", "I moved."),
        ("assistant", "Where to?"),
        ("bob", "I have a dog."),
    ]
    assert conclusions_of(services) == [("alice", "Alice lives in Porto")]
    assert report.left_out == {"outdated": 1}


def test_agents_of_letta(services: Services, file: Path) -> None:
    load(services, file, "letta", histories.TEXTS["letta"])
    (agent,) = [peer.slug for peer in rows(services, r.Peer) if peer.slug != "me"]
    assert agent.startswith("Sam-the-helper-")
    assert messages_of(services) == [("me", "I am Chad."), (agent, "Hello, Chad!"), ("me", "Bye.")]
    assert conclusions_of(services) == [
        ("me", "Name: Chad"),
        ("me", "Likes boats"),
        (agent, "I am kind."),
    ]


def test_an_agent_of_letta_in_the_older_format(services: Services, file: Path) -> None:
    load(services, file, "letta", json.dumps(histories.OLDER_LETTA))
    assert (messages_of(services), conclusions_of(services)) == (
        [("me", "Hi")],
        [("me", "Name: Chad")],
    )


def test_conversations_of_chatgpt(services: Services, file: Path) -> None:
    load(services, file, "chatgpt", histories.TEXTS["chatgpt"])
    assert messages_of(services) == [
        ("me", "I am allergic to nuts."),
        ("chatgpt", "Noted."),
        ("me", "And to shellfish."),
    ]
    (session,) = rows(services, r.Session)
    assert session.metadata == {"imported_from": "chatgpt", "title": "Allergies"}
    assert rows(services, r.Message)[0].created_at.isoformat() == "2024-05-01T10:00:00.500000+00:00"


def test_conversations_of_claude(services: Services, file: Path) -> None:
    load(services, file, "claude", histories.TEXTS["claude"])
    assert messages_of(services) == [("me", "I fly to Oslo."), ("claude", "Have fun.")]


def test_lines_of_chats(services: Services, file: Path) -> None:
    load(services, file, "chat", histories.TEXTS["chat"])
    assert sorted(messages_of(services)) == [
        ("bot", "Nice."),
        ("maria", "I moved to Porto."),
        ("tom", "I have a boat."),
    ]


@pytest.mark.parametrize("name", ["chatgpt", "claude"])
def test_archives(services: Services, tmp_path: Path, name: str) -> None:
    whole = json.loads(histories.TEXTS[name])
    path = histories.zipped(
        tmp_path / "a.zip",
        **{"export/conversations-000__json": json.dumps(whole[:1]), "user__json": "{}"},
        **{"export/conversations-001__json": json.dumps(whole[1:])},
    )
    load(services, path, name)
    assert len(rows(services, r.Message)) == (3 if name == "chatgpt" else 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_a_repetition_adds_nothing(services: Services, file: Path, name: str) -> None:
    dry = load(services, file, name, histories.TEXTS[name], dry_run=True)
    assert dry.report is None
    assert rows(services, r.Workspace) == []
    first = load(services, file, name)
    assert first.read == dry.read
    assert first.report is not None
    assert sum(first.report.stored.values()) > 0
    before = [rows(services, record) for record in (r.Message, r.Conclusion, r.Peer, r.Task)]
    again = load(services, file, name)
    assert again.report is not None
    assert not any(again.report.stored.values())
    after = [rows(services, record) for record in (r.Message, r.Conclusion, r.Peer, r.Task)]
    assert after == before


@pytest.mark.slow
def test_an_interrupted_import_is_continued(services: Services, file: Path) -> None:
    items = [{"session": f"s{n % 7}", "peer": "p", "content": f"text {n}"} for n in range(1_500)]
    file.write_text(histories.lines(*items), encoding="utf-8")
    request = HistoryRequest(file=file, format_name="chat", workspace_id="w")

    def cut_off(lines: Iterator[bytes], number: int) -> AbstractContextManager[Iterator[bytes]]:
        def some() -> Iterator[bytes]:
            for position, line in enumerate(lines):
                if position == 1_200:
                    raise KeyboardInterrupt
                yield line

        return nullcontext(some())

    with pytest.raises(KeyboardInterrupt):
        importing.load(services.rt, request, no_progress, cut_off)
    assert 0 < len(rows(services, r.Message)) < 1_500
    load(services, file, "chat")
    assert sorted(content for _, content in messages_of(services)) == sorted(
        item["content"] for item in items
    )
    tasks = [task for task in rows(services, r.Task) if task.kind == "representation"]
    assert len(tasks) == 1_500, "one for each message, in both runs together"


def test_a_newer_file_adds_what_is_new(services: Services, file: Path) -> None:
    load(services, file, "chat", histories.TEXTS["chat"])
    newer = {"session": "a", "peer": "maria", "content": "I like it here.", "id": "3"}
    report = load(services, file, "chat", histories.lines(*histories.CHAT, newer))
    assert report.report is not None
    assert report.report.stored["messages"] == 1
    session = rows(services, r.Session)[0]
    assert session.message_count == 3


def test_a_conversation_that_differs_is_left_as_it_is(services: Services, file: Path) -> None:
    load(services, file, "chat", histories.TEXTS["chat"])
    edited = {"session": "a", "peer": "bot", "content": "Great.", "id": "2b"}
    report = load(
        services,
        file,
        "chat",
        histories.lines(
            histories.CHAT[0], edited, {"session": "new", "peer": "tom", "content": "Hi"}
        ),
    )
    assert report.left_out == {"changed": 1}
    assert ("bot", "Great.") not in messages_of(services)
    assert ("tom", "Hi") in messages_of(services)


def test_conclusions_are_derived_from_what_users_say(services: Services, file: Path) -> None:
    load(services, file, "chatgpt", histories.TEXTS["chatgpt"])
    authors = {peer.key: peer.slug for peer in rows(services, r.Peer)}
    derived = [task for task in rows(services, r.Task) if task.kind == "representation"]
    assert [authors[task.observed_key] for task in derived] == ["me", "me"]


def test_nothing_is_derived_where_that_is_not_wanted(services: Services, file: Path) -> None:
    load(services, file, "chatgpt", histories.TEXTS["chatgpt"], derive=False)
    assert [task.kind for task in rows(services, r.Task) if task.kind == "representation"] == []


def test_a_workspace_and_peers_that_exist_are_used(services: Services, file: Path) -> None:
    draft = messages.Draft(author="maria", content="Hello.")
    messages.create_in(services.rt, "w", "own", [draft])
    before = {peer.slug: peer.uid for peer in rows(services, r.Peer)}
    load(services, file, "chat", histories.TEXTS["chat"])
    after = {peer.slug: peer.uid for peer in rows(services, r.Peer)}
    assert after["maria"] == before["maria"]
    assert len(rows(services, r.Workspace)) == 1


def test_two_workspaces_have_the_same_history(services: Services, file: Path) -> None:
    load(services, file, "chat", histories.TEXTS["chat"])
    request = HistoryRequest(file=file, format_name="chat", workspace_id="other")
    importing.load(services.rt, request, no_progress, plain)
    assert len(rows(services, r.Message)) == 6


def test_long_messages_are_stored_in_parts(open_services: OpenServices, file: Path) -> None:
    services = open_services(MAX_MESSAGE_SIZE="10")
    load(services, file, "chat", histories.lines({"peer": "p", "content": "x" * 25}))
    assert [len(content) for _, content in messages_of(services)] == [10, 10, 5]


def test_names_are_bounded_and_stay_distinct(services: Services, file: Path) -> None:
    items = [
        {"peer": f"{'ü' * 9_000}{n}", "session": "s" * 9_000, "title": "t" * 9_000, "content": "x"}
        for n in range(2)
    ]
    load(services, file, "chat", histories.lines(*items))
    peers = rows(services, r.Peer)
    assert len({peer.slug for peer in peers}) == 2
    (session,) = rows(services, r.Session)
    named = [*(peer.metadata["name"] for peer in peers), session.metadata["title"]]
    assert [len(name) for name in named] == [500, 500, 500]
    assert max(len(row.slug) for row in (*peers, session)) <= 100


def test_plugins_change_and_refuse(open_services: OpenServices, file: Path) -> None:
    class Redactor:
        @hookimpl
        def memservice_message_storing(self, message: r.Message) -> r.Message:
            if "boat" in message.content:
                raise InvalidInput.at("content", message="no boats")
            return replace(message, content=message.content.replace("Porto", "…"))

        @hookimpl
        def memservice_conclusion_storing(self, conclusion: r.Conclusion) -> bool:
            return "tea" not in conclusion.content

    services = open_services(Redactor())
    report = load(services, file, "chat", histories.TEXTS["chat"])
    assert report.left_out == {"refused": 1}
    assert ("maria", "I moved to ….") in messages_of(services)
    again = load(services, file, "chat")
    assert again.left_out == {"refused": 1}
    assert again.report is not None
    assert not any(again.report.stored.values())
    assert load(services, file, "mem0", histories.TEXTS["mem0"]).left_out == {"refused": 1}


def _node_without_parent() -> str:
    damaged = json.loads(histories.TEXTS["chatgpt"])
    damaged[0]["mapping"]["b"]["parent"] = "gone"
    return json.dumps(damaged)


def _circle() -> str:
    damaged = json.loads(histories.TEXTS["chatgpt"])
    damaged[0]["mapping"]["b"]["parent"] = "d"
    return json.dumps(damaged)


DAMAGED = [
    ("mem0", histories.TEXTS["mem0"][:-30], "cut off"),
    ("mem0", "", "the file is empty"),
    ("mem0", "memories", "line 1: expected a list or an object"),
    ("mem0", '{"results": [\n{"id": "a"}]}', "results[0] (line 2) has no `memory`"),
    ("mem0", '[{"id": "a", "memory": 3.5}]', "entry 1 (line 1): `memory` is '3.5', but must be a"),
    ("mem0", '[{"memory": "x"}]', "entry 1 (line 1) has no `id`"),
    ("mem0", '{"next": "http://x", "results": []}', "one page of several"),
    ("mem0", '[{"id":"a","memory":"x","created_at":"soon"}]', "`created_at` is 'soon', but must"),
    ("mem0", '[{"id":"a","memory":"x","metadata":[]}]', "`metadata` cannot be stored"),
    ("mem0", '[{"id":"a","memory":"x"}] []', "continues after its end"),
    ("mem0", '[\n\n{"id":"a",}]', "line 3: the file is not JSON"),
    ("mem0", "[" * 100_000, "nested too deeply"),
    ("mem0", '[{"id":"a","memory":NaN}]', "NaN is not a number"),
    ("zep", '{"other": []}', "none of `users`"),
    ("zep", '{"facts": [{"uuid": "a"}]}', "facts[0] (line 1) has no `fact`"),
    ("zep", '{"threads":[{"thread_id":"t","messages":[{"role":"boss"}]}]}', "must be one of user"),
    ("letta", "[]", "neither `agents` nor"),
    ("letta", '{"agents": [{"messages": []}], "blocks": []}', "`agents`[0] has no `name`"),
    ("chatgpt", '[{"id": "a"}]', "has no `mapping`"),
    ("chatgpt", _node_without_parent(), "has no node `gone`"),
    ("chatgpt", _circle(), "is its own ancestor"),
    ("chatgpt", '{"results": []}', "must be a list of conversations"),
    ("claude", '[{"uuid": "a"}]', "has no `chat_messages`"),
    ("claude", '[{"uuid":"a","chat_messages":[{"sender":"dog"}]}]', "must be one of human"),
    ("chat", '{"peer": "a", "content": "x"}\n{"peer": "a"', "line 2 is not JSON"),
    ("chat", '{"peer": "a"}', "line 1 has no `content`"),
    ("chat", '{"text": "a"}', "unknown field `text`; known: session, peer, content"),
    ("chat", "[]", "line 1 is not an object"),
    ("chat", histories.lines(histories.CHAT[0], histories.CHAT[0]), "two messages with the id '1'"),
]


@pytest.mark.parametrize(("name", "content", "problem"), DAMAGED)
def test_nothing_of_a_damaged_file_is_stored(
    services: Services, file: Path, name: str, content: str, problem: str
) -> None:
    # Else a finalizer of an earlier test may run while the parser is at the recursion limit, and
    # fail there.
    gc.collect()
    with pytest.raises(UnreadableExport) as refusal:
        load(services, file, name, content)
    assert problem in str(refusal.value)
    assert str(refusal.value).endswith("; nothing was stored")
    assert rows(services, r.Workspace) == []


def test_damaged_archives(services: Services, tmp_path: Path) -> None:
    path = histories.zipped(tmp_path / "a.zip", users__json="[]")
    with pytest.raises(UnreadableExport, match=r"has no conversations\.json, but users\.json"):
        load(services, path, "claude")
    path = histories.zipped(tmp_path / "a.zip", conversations__json=histories.TEXTS["claude"] * 9)
    data = bytearray(path.read_bytes())
    data[60:70] = b"\xff" * 10
    path.write_bytes(data)
    with pytest.raises(UnreadableExport, match=r"damaged|not UTF-8|not JSON"):
        load(services, path, "claude")
    path.write_bytes(bytes(data[:100]))
    with pytest.raises(UnreadableExport):
        load(services, path, "claude")
    assert rows(services, r.Workspace) == []


def test_halves_of_characters_and_nul_are_replaced(services: Services, file: Path) -> None:
    load(services, file, "claude", histories.TEXTS["claude"].replace("Oslo", "\\ud83d\\u0000!"))
    assert ("me", "I fly to \ufffd!.") in messages_of(services)


@pytest.mark.slow
def test_entries_are_those_of_the_whole_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the document is cut by the reads."""
    generator = random.Random(3)
    texts = ["", "a\nb", 'quo"te\\', "ünïcode 🎈", "x" * 40]

    def value(depth: int) -> Any:
        kind = generator.randrange(6 if depth < 3 else 4)
        if kind == 4:
            return [value(depth + 1) for _ in range(generator.randrange(4))]
        if kind == 5:
            return {generator.choice(texts) + str(n): value(depth + 1) for n in range(3)}
        return (generator.choice(texts), generator.randrange(10**9), -1.5e-7, None)[kind]

    for chunk in (1, 2, 7, 30):
        monkeypatch.setattr(json_reader, "CHUNK", chunk)
        monkeypatch.setattr(json_reader, "NEAR_END", 16)
        for _ in range(30):
            document = [value(0) for _ in range(generator.randrange(6))]
            text = json.dumps(document, indent=generator.choice((None, 1)), ensure_ascii=False)
            assert [entry.value for entry in entries(BytesIO(text.encode()))] == document
            whole = json.dumps({"a": 1, "list": document, "z": [2]})
            assert [
                (entry.key, entry.value) for entry in entries(BytesIO(whole.encode()), ("list",))
            ] == [("a", 1), *(("list", item) for item in document), ("z", [2])]
            numbers = [
                int(entry.where.partition("line ")[2].rstrip(")"))
                for entry in entries(BytesIO(json.dumps([1, 2, 3], indent=1).encode()))
            ]
            assert numbers == [2, 3, 4]


@pytest.mark.slow
def test_a_long_list_is_not_in_memory_as_a_whole() -> None:
    size = 30_000

    def parts() -> Iterator[bytes]:
        yield b"[0"
        for _ in range(size):
            yield b',"' + b"x" * 500 + b'"'
        yield b"]"

    class Stream(BytesIO):
        """15 MB that exist only while they are read."""

        def __init__(self) -> None:
            super().__init__()
            self._parts = parts()

        def read1(self, length: int | None = -1, /) -> bytes:
            return next(self._parts, b"")

        def read(self, length: int | None = -1, /) -> bytes:
            return next(self._parts, b"")

    tracemalloc.start()
    try:
        number = sum(1 for _ in entries(Stream()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert number == size + 1
    assert peak < 6 * 2**20
