"""Imports of exports that are older than an erasure: what was erased does not come back, and the
rest is as the erasure left it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import TRUE, equals
from memservice.domain.ids import fingerprint, new_uid
from memservice.services import cards, deletion, dream_changes, sessions, workspaces
from memservice.services.erasure import messages, peers, retention
from memservice.services.supersession import REASON
from memservice.services.tasks import outbox
from memservice.services.transfer import importing
from memservice.services.transfer.copying import CopyMismatch, copy
from memservice.services.transfer.erased import ErasedRows
from memservice.services.transfer.export import ExportOptions
from memservice.services.transfer.histories import importing as histories
from memservice.services.v1 import metamessages
from memservice.spi.storage import Transaction
from memservice_memory.storage import MemoryStorage
from support.erasure.imports import Open, comparable, everything, exported, load
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.stores.stores import copy_contents

pytestmark = pytest.mark.slow
MARKER = "quokka"
DEFAULT = ExportOptions()


@pytest.fixture(scope="module")
def contents() -> dict[str, MemoryStorage]:
    """What `fill` stores in memory, once for all tests."""
    return {}


@pytest.fixture
def pipeline(open_pipeline: Open, contents: dict[str, MemoryStorage]) -> Pipeline:
    """Alice, Bob and Carol in two sessions. Bob spoke of his quokka in `talk` once, as the third
    message, and everything that rests on it is there too."""
    pipeline = open_pipeline()
    storage = pipeline.rt.storage
    if not isinstance(storage, MemoryStorage):
        fill(pipeline)
    elif contents:
        copy_contents(contents["memory"], storage)
    else:
        fill(pipeline)
        contents["memory"] = MemoryStorage()
        copy_contents(storage, contents["memory"])
    return pipeline


def fill(pipeline: Pipeline) -> None:
    drafts = [("alice", "I like tea."), ("bob", "I sing."), ("bob", f"I own a {MARKER}.")]
    drafts += [("alice", f"I have {n} boats.") for n in range(20)]
    pipeline.say("talk", *drafts[:3])
    pipeline.join("talk", carol=sessions.MemberConfig())
    pipeline.say("talk", *drafts[3:])
    sessions.remove_peers(pipeline.rt, PRINCIPAL, WORKSPACE, "talk", ["carol"])
    pipeline.say("other", ("alice", "I sleep."), ("bob", "I run."))
    pipeline.work()
    sings, owns, _ = pipeline.conclusions("bob")
    conclude(pipeline, "has a pet", [owns], message_keys=owns.message_keys)
    conclude(pipeline, "an animal singer", [sings, owns], message_keys=sings.message_keys)
    before = conclude(pipeline, "I own no pet.", [], source_ids=None, level=r.EXPLICIT)
    supersede(pipeline, before, owns)
    cards.put(pipeline.rt, PRINCIPAL, WORKSPACE, "bob", None, ["Called Bobby"])
    add_lines(pipeline, [f"PET: I own a {MARKER}.", "HOBBY: I run."])
    pipeline.rt.storage.write(lambda tx: add_notes(pipeline, tx))


def add_notes(pipeline: Pipeline, tx: Transaction) -> None:
    """What generation 1 stores, with and without the marker, and a delivery."""
    first, _, marked = tx.rows.page(r.Message, equals(session="talk"), limit=3)
    about: dict[str, Any] = {
        "workspace_key": marked.workspace_key,
        "created_at": pipeline.clock(),
    }
    (named,) = tx.rows.put(
        [r.NamedCollection(uid=new_uid(), owner_key=marked.author_key, name="pets", **about)]
    )
    own: dict[str, Any] = {**about, "owner_key": marked.author_key}
    tx.rows.put([r.Document(uid=new_uid(), collection_key=named.key, content="a file", **own)])
    of_talk: dict[str, Any] = {**own, "session_key": marked.session_key}
    summary, quoting = metamessages.SUMMARY_LABEL + r.SHORT, metamessages.REPRESENTATION_LABEL
    notes: list[tuple[str, str, int | None, dict[str, Any]]] = [
        ("note", MARKER, marked.key, own),
        ("note", "a remark", first.key, own),
        (summary, "before", first.key, of_talk),
        (summary, MARKER, marked.key, of_talk),
        (quoting, f"I own a {MARKER}.", None, of_talk),
        (quoting, "of alice", None, {**of_talk, "owner_key": first.author_key}),
    ]
    tx.rows.put(
        [
            r.Metamessage(uid=new_uid(), label=label, content=content, message_key=key, **values)
            for label, content, key, values in notes
        ]
    )
    url, state = "https://example.org/x", r.PAUSED
    endpoint = r.WebhookEndpoint(uid=new_uid(), url=url, secret="s", state=state, **about)
    (hook,) = tx.rows.put([endpoint])
    body = json.dumps({"data": {"peer_id": "bob"}})
    tx.rows.put(
        [
            r.Delivery(
                uid=new_uid(),
                event_uid=new_uid(),
                endpoint_key=hook.key,
                event="test",
                body=text,
                attempt=1,
                **about,
            )
            for text in (body, body.replace("bob", "alice"))
        ]
    )


def conclude(
    pipeline: Pipeline, content: str, sources: list[r.Conclusion], **values: Any
) -> r.Conclusion:
    like = sources[0] if sources else pipeline.conclusions("bob")[0]
    linked: dict[str, Any] = {
        "level": r.DEDUCTIVE,
        "source_ids": [source.uid for source in sources],
    }
    row = replace(
        like,
        key=0,
        uid=new_uid(),
        content=content,
        fingerprint=fingerprint(content),
        internal={"premises": [source.content for source in sources]} if sources else {},
        metadata={},
        **(linked | values),
    )
    return pipeline.rt.storage.write(lambda tx: tx.conclusions.put([row]))[0]


def supersede(
    pipeline: Pipeline, old: r.Conclusion, new: r.Conclusion, reason: str | None = None
) -> None:
    changed = replace(
        old,
        state=r.SUPERSEDED,
        superseded_by=new.key,
        superseded_at=pipeline.clock(),
        internal=old.internal if reason is None else {**old.internal, REASON: reason},
    )
    pipeline.rt.storage.write(lambda tx: tx.conclusions.put([changed]))


def add_lines(pipeline: Pipeline, lines: list[str]) -> None:
    def change(tx: Transaction) -> None:
        (card,) = tx.rows.page(r.Card, equals(target="bob"))
        tx.rows.change(r.Card, equals(key=card.key), lines=[*card.lines, *lines])

    pipeline.rt.storage.write(change)


def the_marked(pipeline: Pipeline) -> r.Message:
    with pipeline.rt.storage.read() as tx:
        (message,) = tx.rows.page(r.Message, equals(content=f"I own a {MARKER}."))
    return message


def erase_message(pipeline: Pipeline) -> None:
    messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "talk", the_marked(pipeline).uid)


def erase_session(pipeline: Pipeline) -> None:
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "talk")


def erase_peer(pipeline: Pipeline) -> None:
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "bob")


ERASURES = pytest.mark.parametrize("erase", [erase_message, erase_session, erase_peer])


@pytest.mark.every_storage("sqlite")
@ERASURES
def test_an_older_export_brings_nothing_erased_back(
    pipeline: Pipeline, erase: Callable[[Pipeline], None]
) -> None:
    lines = exported(pipeline)
    assert MARKER in everything(pipeline)
    erase(pipeline)
    pipeline.work()
    left = comparable(pipeline)
    report = load(pipeline, lines)
    assert sum(report.left_out.values()) > 0
    assert comparable(pipeline) == left
    assert MARKER not in everything(pipeline)
    again = load(pipeline, lines)
    assert not any(again.stored.values())
    assert again.left_out == report.left_out


@ERASURES
def test_under_another_name_the_import_is_as_the_erasure_left_the_rest(
    pipeline: Pipeline, erase: Callable[[Pipeline], None]
) -> None:
    lines = exported(pipeline)
    erase(pipeline)
    pipeline.work()
    left = comparable(pipeline)
    report = load(pipeline, lines, "copy")
    pipeline.work()
    assert report.left_out["messages"] > 0
    assert comparable(pipeline, "copy") == left
    assert MARKER not in everything(pipeline)
    number = len(everything(pipeline).splitlines())
    assert not any(load(pipeline, lines, "copy").stored.values())
    pipeline.work()
    assert len(everything(pipeline).splitlines()) == number


def test_a_reason_that_may_quote_what_is_left_out_is_left_out(pipeline: Pipeline) -> None:
    by_text = {row.content: row for row in pipeline.conclusions("bob")}
    owns, sings = by_text[f"I own a {MARKER}."], by_text["I sing."]
    plain: dict[str, Any] = {"source_ids": None, "level": r.EXPLICIT}
    birds, cats = (conclude(pipeline, f"I own {pets}.", [], **plain) for pets in ("birds", "cats"))
    supersede(pipeline, birds, owns, f"birds, then a {MARKER}")
    supersede(pipeline, owns, sings, f"no {MARKER} any more")
    supersede(pipeline, cats, by_text["an animal singer"], f"a {MARKER} and songs")
    dogs = conclude(pipeline, "I own dogs.", [], **plain)
    supersede(pipeline, dogs, by_text["I run."], f"no dogs beside a {MARKER}")
    lines = exported(pipeline)
    erase_message(pipeline)
    pipeline.work()
    left = comparable(pipeline)
    load(pipeline, lines, "copy")
    pipeline.work()
    assert MARKER not in everything(pipeline)
    assert comparable(pipeline, "copy") == left


def test_the_rest_fits_together_without_an_erased_message(pipeline: Pipeline) -> None:
    """What the erasure does to the rows that stay, the import does to the lines."""
    lines = exported(pipeline)
    erase_message(pipeline)
    pipeline.work()
    for _ in range(2):
        load(pipeline, lines, "copy")
        assert len(pipeline.tasks("summary", state=r.PENDING)) == 1
    pipeline.work()
    rows = [json.loads(line) for line in exported(pipeline, "copy")]

    def of(kind: str) -> list[dict[str, Any]]:
        return [row for row in rows if row["type"] == kind]

    talk = [row for row in of("messages") if row["session"] == "talk"]
    assert [row["seq"] for row in talk] == list(range(1, 23))
    tokens = [row["tokens"] for row in talk]
    assert [row["tokens_through"] for row in talk] == [sum(tokens[:n]) for n in range(1, 23)]
    (carol,) = [row for row in of("members") if row["peer"] == "carol"]
    assert (carol["joined_seq"], carol["left_seq"]) == (2, 22)
    by_content = {row["content"]: row for row in of("conclusions") if row["observer"] == "bob"}
    assert by_content.keys() == {"I sing.", "I run.", "an animal singer", "I own no pet."}
    assert by_content["an animal singer"]["source_ids"] == [by_content["I sing."]["uid"]]
    assert by_content["an animal singer"]["internal"] == {"premises": ["I sing."]}
    assert by_content["I own no pet."]["state"] == r.LIVE
    (card,) = [row for row in of("cards") if row["target"] == "bob"]
    assert card["lines"] == ["Called Bobby", "HOBBY: I run."]
    assert sorted(row["content"] for row in of("metamessages")) == [
        "a remark",
        "before",
        "of alice",
    ]
    (summary,) = of("summaries")
    assert summary["message_uid"] == talk[-1]["uid"]


@pytest.mark.parametrize("what", ["messages_days", "conclusions_days"])
def test_what_retention_erased_does_not_come_back(pipeline: Pipeline, what: str) -> None:
    pipeline.clock.advance(hours=24 * 3)
    pipeline.say("other", ("bob", "I read."))
    pipeline.work()
    lines = exported(pipeline)
    configure(pipeline, {what: 1})
    for key in (1, 2):
        while retention.erase_messages(pipeline.rt, key, pipeline.clock()):
            pass
    while retention.erase_conclusions(pipeline.rt, 1, pipeline.clock()):
        pass
    pipeline.work()
    configure(pipeline, {})
    left = comparable(pipeline)
    assert MARKER not in str([row for row in left if row["type"] == "conclusions"])
    report = load(pipeline, lines)
    assert report.left_out["conclusions"] > 0
    assert comparable(pipeline) == left
    assert pipeline.texts("bob")[-1] == "I read."


def configure(pipeline: Pipeline, days: dict[str, int]) -> None:
    workspaces.update(pipeline.rt, PRINCIPAL, WORKSPACE, None, {"retention": days})


def test_a_peer_that_is_being_erased_is_not_imported_yet(pipeline: Pipeline) -> None:
    lines = exported(pipeline)
    erase_peer(pipeline)
    with pytest.raises(Conflict, match="being erased"):
        load(pipeline, lines, respect=False)


@ERASURES
def test_erasures_need_not_be_respected(
    pipeline: Pipeline, erase: Callable[[Pipeline], None]
) -> None:
    lines = exported(pipeline)
    before = comparable(pipeline)
    erase(pipeline)
    pipeline.work()
    report = load(pipeline, lines, "copy", respect=False)
    assert not report.left_out
    assert comparable(pipeline, "copy") == before


def test_an_erased_workspace_is_not_imported(pipeline: Pipeline) -> None:
    lines = exported(pipeline)
    erasure = deletion.delete_workspace(
        pipeline.rt, PRINCIPAL, WORKSPACE, with_sessions=True
    ).erasure
    pipeline.work()
    for as_slug in (None, "copy"):
        with pytest.raises(Conflict, match=f"receipt {erasure.uid}.*--no-respect-erasures"):
            load(pipeline, lines, as_slug)
    assert MARKER not in everything(pipeline)
    load(pipeline, lines, respect=False)
    assert MARKER in everything(pipeline)


def test_what_was_erased_in_an_import_under_another_name_stays_erased(pipeline: Pipeline) -> None:
    lines = exported(pipeline)
    load(pipeline, lines, "copy")
    with pipeline.rt.storage.read() as tx:
        marked = tx.rows.page(r.Message, equals(content=f"I own a {MARKER}."))
    messages.delete(pipeline.rt, PRINCIPAL, "copy", "talk", marked[-1].uid)
    pipeline.work()
    report = load(pipeline, lines, "copy")
    assert report.left_out["messages"] == 1
    assert not any(report.stored.values())
    assert MARKER not in "".join(map(str, comparable(pipeline, "copy")))
    assert MARKER in "".join(map(str, comparable(pipeline)))


def receipt(pipeline: Pipeline, kind: str, line: dict[str, Any], workspace: str) -> None:
    """A receipt without the erased row, as of an earlier import."""
    erasure = r.Erasure(
        uid=new_uid(),
        kind=kind,
        workspace=WORKSPACE,
        workspace_uid=workspace,
        target=line["uid"],
        target_uid=line["uid"],
        requested_by="admin",
        task_uid=new_uid(),
        created_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.erasures.add(erasure))


def test_nothing_of_and_about_an_erased_peer_is_imported(
    pipeline: Pipeline, open_pipeline: Open
) -> None:
    session = sessions.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, "owned")[0]
    with pipeline.rt.storage.read() as tx:
        bob = tx.peers.by_slug(session.workspace_key, "bob")
    assert bob is not None
    pipeline.rt.storage.write(
        lambda tx: tx.rows.change(r.Session, equals(key=session.key), owner_key=bob.key)
    )
    cards.put(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", "bob", [f"has a {MARKER}"])
    own = r.ApiKey(uid="of-bob", workspace=WORKSPACE, peer="bob", created_at=pipeline.clock())
    pipeline.rt.storage.write(lambda tx: tx.keys.add(own))
    lines = exported(pipeline, options=ExportOptions(secrets=True))
    rows = [json.loads(line) for line in lines]
    (line,) = [row for row in rows if row["type"] == "peers" and row["slug"] == "bob"]
    (workspace,) = [row for row in rows if row["type"] == "workspaces"]
    second = open_pipeline()
    receipt(second, "peer", line, workspace["uid"])
    report = load(second, lines)
    second.work()
    for kind in ("peers", "api_keys", "named_collections", "documents", "deliveries"):
        assert report.left_out[kind] == 1, kind
    left = [json.loads(line) for line in exported(second, options=ExportOptions(secrets=True))]
    text = json.dumps(left)
    assert line["uid"] not in text
    assert MARKER not in everything(second)
    assert '"bob"' not in text
    message_rows = [row for row in left if row["type"] == "messages" and row["session"] == "talk"]
    assert [row["seq"] for row in message_rows] == list(range(1, 22))
    (owned,) = [row for row in left if row["type"] == "sessions" and row["slug"] == "owned"]
    assert owned["owner_uid"] is None
    assert not any(load(second, lines).stored.values())


def test_what_is_erased_while_an_import_runs_does_not_come_back(
    pipeline: Pipeline, open_pipeline: Open
) -> None:
    lines = exported(pipeline)
    rows = [json.loads(line) for line in lines]
    (line,) = [row for row in rows if row.get("content") == f"I own a {MARKER}."][:1]
    (workspace,) = [row for row in rows if row["type"] == "workspaces"]
    second = open_pipeline()

    filtered = ErasedRows.remaining

    def late(self: ErasedRows, batches: Any) -> Iterator[Any]:
        for kind, batch in filtered(self, batches):
            if kind == "messages":
                receipt(second, "message", line, workspace["uid"])
            yield kind, batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ErasedRows, "remaining", late)
        with pytest.raises(Conflict, match="while the import ran: import it again"):
            importing.load(second.rt, iter(lines))
    assert MARKER not in everything(second)
    load(second, lines)
    second.work()
    assert MARKER not in everything(second)


def test_a_conclusion_can_stand_before_its_sources(pipeline: Pipeline) -> None:
    """A later dream may find a source for a conclusion that it already has."""
    marked = f"I own a {MARKER}."
    with pipeline.rt.storage.read() as tx:
        (owns,) = tx.rows.page(r.Conclusion, equals(content=marked))
        (message,) = tx.rows.page(r.Message, equals(content=marked))
    only = conclude(pipeline, "feeds an animal", [owns], message_keys=[])
    both = conclude(pipeline, "has a name for it", [owns], message_keys=[])
    late = conclude(pipeline, "I feed it.", [], message_keys=[message.key], source_ids=None)
    other = conclude(pipeline, "I name it.", [], message_keys=[], source_ids=None)
    for row, sources in ((only, [late]), (both, [late, other])):
        changed = replace(row, source_ids=[source.uid for source in sources])
        pipeline.rt.storage.write(lambda tx, row=changed: tx.conclusions.put([row]))  # type: ignore[misc]
    lines = exported(pipeline)
    erase_message(pipeline)
    left = comparable(pipeline)
    load(pipeline, lines, "copy")
    assert comparable(pipeline, "copy") == left
    with pipeline.rt.storage.read() as tx:
        rows = tx.rows.page(r.Conclusion, equals(content="has a name for it"))
    assert [len(row.source_ids or ()) for row in rows] == [1, 1]


def test_tasks_lose_erased_rows(pipeline: Pipeline, open_pipeline: Open) -> None:
    with pipeline.rt.storage.read() as tx:
        message_rows = tx.rows.page(r.Message, equals(session="talk"), limit=4)
    first, second, marked, last = (message.key for message in message_rows)
    tasks = [
        outbox.embed(pipeline.rt, "message", message_rows[0].workspace_key, *keys)
        for keys in (
            ([marked],),
            ([first, marked, last], [second, first, marked]),
        )
    ]
    waiting = [replace(task, not_before=r.NEVER) for task in tasks]
    pipeline.rt.storage.write(lambda tx: tx.tasks.add(waiting))
    uids = {message.key: message.uid for message in message_rows}
    lines = exported(pipeline)
    second_store = open_pipeline()
    rows = [json.loads(line) for line in lines]
    (workspace,) = [row for row in rows if row["type"] == "workspaces"]
    receipt(second_store, "message", {"uid": uids[marked]}, workspace["uid"])
    report = load(second_store, lines)
    assert report.left_out["tasks"] == 1
    left = [json.loads(line) for line in exported(second_store)]
    payloads = [row["payload"] for row in left if row["type"] == "tasks"]
    assert uids[marked] not in json.dumps(payloads)
    (payload,) = [payload for payload in payloads if "like" in payload]
    assert payload["keys"] == [uids[first], uids[last]]
    assert payload["like"] == [uids[second], uids[last]]


def test_a_copy_says_what_it_lacks(pipeline: Pipeline, open_pipeline: Open) -> None:
    rows = [json.loads(line) for line in exported(pipeline)]
    (workspace,) = [row for row in rows if row["type"] == "workspaces"]
    (line,) = [row for row in rows if row.get("content") == f"I own a {MARKER}."][:1]
    second = open_pipeline()
    receipt(second, "message", line, workspace["uid"])
    lines = iter(exported(pipeline))
    with pytest.raises(CopyMismatch, match=r"erased in the target.*--no-respect-erasures"):
        copy(lines, second.rt, WORKSPACE, DEFAULT)


def test_a_proposal_of_a_dream_about_erased_conclusions_is_left_out(
    pipeline: Pipeline, open_pipeline: Open
) -> None:
    with pipeline.rt.storage.read() as tx:
        (owns,) = tx.rows.page(r.Conclusion, equals(content=f"I own a {MARKER}."))
    proposal = {"reads": [owns.uid], "card": None, "created": [f"likes the {MARKER}"]}
    task = r.Task(
        uid=new_uid(),
        unit=f"dream:{owns.workspace_key}:{owns.observer_key}:{owns.observed_key}",
        kind="dream",
        workspace_key=owns.workspace_key,
        observer_key=owns.observer_key,
        observed_key=owns.observed_key,
        payload={"type": "omni", "session": None, dream_changes.PROPOSAL: proposal},
        not_before=r.NEVER,
        created_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([task]))
    lines = exported(pipeline)
    erase_message(pipeline)
    pipeline.work()
    report = load(pipeline, lines, "copy")
    assert report.left_out["tasks"] == 1
    assert MARKER not in everything(pipeline)


CHAT = (
    ("one", "alice", "I like tea."),
    ("one", "bob", "I have a quokka."),
    ("one", "alice", "I have a boat."),
    ("two", "alice", "I live in Porto."),
)


class History:
    """A file of lines of chats that is imported again and again."""

    def __init__(self, pipeline: Pipeline, file: Path) -> None:
        self.pipeline, self.file = pipeline, file

    def load(self, *items: dict[str, str], respect: bool = True) -> histories.HistoryReport:
        self.file.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
        request = histories.HistoryRequest(
            file=self.file, format_name="chat", workspace_id=WORKSPACE, respect_erasures=respect
        )
        return histories.load(
            self.pipeline.rt,
            request,
            lambda done, total: None,
            lambda lines, number: nullcontext(lines),
        )

    def contents(self) -> list[str]:
        with self.pipeline.rt.storage.read() as tx:
            return [message.content for message in tx.rows.page(r.Message, TRUE)]


def line_of(text: str, at: str | None = None, session: str = "one") -> dict[str, str]:
    line = {"session": session, "peer": "alice", "content": text, "id": text}
    return line if at is None else {**line, "created_at": at}


def expire(pipeline: Pipeline, session: str = "one") -> None:
    """What the retention of one day erases of a session now."""
    with pipeline.rt.storage.read() as tx:
        (key,) = [row.key for row in tx.rows.page(r.Session, TRUE) if row.slug == session]
    configure(pipeline, {"messages_days": 1})
    while retention.erase_messages(pipeline.rt, key, pipeline.clock()):
        pass
    configure(pipeline, {})
    pipeline.work()


@pytest.mark.parametrize("number", [0, 2])
def test_a_history_brings_nothing_back_that_retention_erased(
    open_pipeline: Open, tmp_path: Path, number: int
) -> None:
    """The rest of the conversation counts as unchanged, and can be continued. `number`: of the
    messages that are still stored."""
    pipeline = open_pipeline()
    history = History(pipeline, tmp_path / "chat")
    old = [line_of(f"I have a {MARKER}.", "2024-02-01"), line_of("I feed it.", "2024-02-02")]
    rest = [line_of("I like tea.", "2024-03-01T10:00Z"), line_of("I sing.", "2024-03-01T11:00Z")]
    rest = rest[:number]
    history.load(*old, *rest)
    pipeline.work()
    expire(pipeline)
    left = history.contents()
    assert left == [line["content"] for line in rest]

    again = history.load(*old, *rest)
    assert again.left_out == {}
    assert again.report is not None
    assert again.report.left_out["messages"] == 2
    assert not any(again.report.stored.values())
    assert history.contents() == left

    new = line_of("I moved.", "2024-03-01T12:00Z")
    newer = history.load(*old, *rest, new)
    assert newer.left_out == {}
    assert history.contents() == [*left, "I moved."]
    with pipeline.rt.storage.read() as tx:
        (session,) = tx.rows.page(r.Session, TRUE)
    assert session.message_count == number + 1


def test_a_changed_conversation_is_left_as_it_is_after_retention(
    open_pipeline: Open, tmp_path: Path
) -> None:
    pipeline = open_pipeline()
    history = History(pipeline, tmp_path / "chat")
    old, tea = line_of(f"I have a {MARKER}.", "2024-02-01"), line_of("Tea.", "2024-03-01T10:00Z")
    history.load(old, tea)
    expire(pipeline)
    edited = line_of("Coffee.", "2024-03-01T10:00Z")
    assert history.load(old, edited, line_of("More.", "2024-03-01T11:00Z")).left_out == {
        "changed": 2
    }
    assert history.contents() == ["Tea."]


def test_messages_without_a_time_do_not_come_back_after_retention(
    open_pipeline: Open, tmp_path: Path
) -> None:
    pipeline = open_pipeline()
    history = History(pipeline, tmp_path / "chat")
    old = [line_of(f"I have a {MARKER}."), line_of("I feed it.")]
    history.load(*old)
    pipeline.clock.advance(hours=36)
    history.load(*old, line_of("I like tea."))
    expire(pipeline)
    assert history.contents() == ["I like tea."]
    again = history.load(*old, line_of("I like tea."), line_of("I sing."))
    assert again.left_out == {"expired": 2}
    assert history.contents() == ["I like tea.", "I sing."]
    assert history.load(*old, session_line := line_of("Hi.", session="two")).left_out == {
        "expired": 2
    }
    assert session_line["content"] in history.contents()
    pipeline.clock.advance(hours=36)
    expire(pipeline)
    assert history.load(*old).left_out == {"expired": 2}
    assert history.contents() == ["Hi."]
    assert history.load(*old, respect=False).left_out == {}
    assert MARKER in " ".join(history.contents())


@pytest.mark.parametrize("what", ["message", "session", "peer", "renewed peer"])
def test_a_history_brings_nothing_erased_back(
    open_pipeline: Open, tmp_path: Path, what: str
) -> None:
    pipeline = open_pipeline()
    history = History(pipeline, tmp_path / "chat")
    items = [
        {"session": session, "peer": peer, "content": text, "id": text}
        for session, peer, text in (*CHAT, ("one", "alice", "I sing."))
    ]
    history.load(*items[:-1])
    pipeline.work()
    if what == "message":
        with pipeline.rt.storage.read() as tx:
            (marked,) = [m for m in tx.rows.page(r.Message, TRUE) if MARKER in m.content]
        messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "one", marked.uid)
    elif what == "session":
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "one")
    else:
        peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "bob")
    pipeline.work()
    if what == "renewed peer":
        pipeline.say("three", ("bob", "I am another Bob."))
        pipeline.work()
    left = history.contents()
    report = history.load(*items[:-1])
    assert history.contents() == left
    assert report.report is not None
    assert report.report.left_out["messages"] > 0
    history.load(*items)
    assert MARKER not in " ".join(history.contents())
    assert ("I sing." in history.contents()) is (what != "session")
