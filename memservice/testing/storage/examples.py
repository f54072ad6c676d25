"""One row of every record with every field set to a value that is easily damaged, and one with as
few values as possible."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from memservice.domain import records as r
from memservice.testing.storage.base import NOW, Dataset

TEXT = (
    "Zoë\u0301 said: “naïve 中文 👩‍👩‍👧 \U0010ffff” \u202eabc\u202c; it's 100%_\\n 'x' \"y\" "
    "\x01\x7f\ufeff\r\n\ttail  "
)
"""Combining and astral characters, controls, quotes, LIKE's wildcards, a backslash, line ends,
blanks at the end."""

NAME = ("n" * 508) + "-_9Z"
"""A name of maximum length."""

JSON: dict[str, Any] = {
    "text": TEXT,
    TEXT: "also as a key",
    "a.b": 1,
    '$["x"]': 2,
    "": "empty key",
    "big": 2**63 - 1,
    "small": -(2**63),
    "past the doubles": 2**53 + 1,
    "tenth": 0.1,
    "tiny": 1.5e-300,
    "whole": 3.0,
    "true": True,
    "one": 1,
    "false": False,
    "zero": 0,
    "none": None,
    "list": [],
    "object": {},
    "nested": {"a": [{"b": [None, True, "1", 1, {"c": {"d": []}}]}]},
    "looks like": ["1", "true", "null", "2024-01-01T00:00:00Z", "{}", "[]"],
}

FIRST = datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def full_rows(
    w: Dataset, message: int, conclusion: int, task: int, endpoint: int, named: int
) -> Iterator[Any]:
    """A row of every record, with every field set. The numbers are keys of stored rows."""
    workspace: dict[str, Any] = {"workspace_key": w.workspace.key}
    yield r.Workspace(
        uid=w.uid(100),
        slug=NAME,
        v1_name=TEXT,
        state=r.DELETING,
        metadata=JSON,
        configuration=JSON,
        created_at=BEFORE_1970,
    )
    yield r.Peer(
        **workspace,
        uid=w.uid(101),
        slug=NAME,
        v1_name=TEXT,
        v1_role="assistant",
        kind=r.SCOPE,
        metadata=JSON,
        configuration=JSON,
        created_at=FIRST,
    )
    yield r.PeerName(**workspace, peer_key=w.carol.key, token="t" * 512)
    yield r.Session(
        **workspace,
        uid=w.uid(102),
        slug=NAME,
        owner_key=w.alice.key,
        state=r.ARCHIVED,
        metadata=JSON,
        configuration=JSON,
        message_count=2**31,
        token_total=2**62,
        created_at=LAST,
    )
    yield r.Member(
        **workspace,
        session_key=w.session.key,
        peer_key=w.carol.key,
        session=NAME,
        peer=NAME,
        kind=r.SCOPE,
        observe_me=False,
        observe_others=True,
        joined_at=FIRST,
        joined_seq=2**31,
        left_at=LAST,
        left_seq=2**40,
    )
    yield w.message(
        7,
        session=NAME,
        author=NAME,
        content=TEXT * 2000,
        metadata=JSON,
        internal=JSON,
        tokens=0,
        tokens_through=2**62,
        created_at=FIRST,
        stored_at=LAST,
    )
    yield r.IdempotencyKey(
        **workspace,
        session_key=w.session.key,
        digest="d" * 64,
        request="r" * 64,
        message_keys=[message, 2**40],
        created_at=LAST,
    )
    yield r.Summary(
        **workspace,
        session_key=w.session.key,
        kind=r.LONG,
        content=TEXT,
        message_key=message,
        message_uid=w.uid(103),
        tokens=12,
        reasoner="extractive",
        model="a/model:free",
        created_at=LAST,
    )
    yield r.Collection(
        **workspace,
        observer_key=w.bob.key,
        observed_key=w.carol.key,
        observer=NAME,
        observed=NAME,
        explicit_count=3,
        explicit_at_last_dream=2,
        last_dream_at=BEFORE_1970,
        created_at=NOW,
    )
    yield r.Card(
        **workspace,
        observer_key=w.bob.key,
        target=NAME,
        lines=[TEXT, "", "b"],
        given=["b"],
        updated_at=BEFORE_1970,
    )
    yield w.conclusion(
        8,
        session_key=w.session.key,
        session=NAME,
        observer=NAME,
        observed=NAME,
        content=TEXT,
        fingerprint="f" * 64,
        level=r.CONTRADICTION,
        state=r.SUPERSEDED,
        superseded_by=conclusion,
        deleted_at=LAST,
        times_derived=17,
        source_ids=[w.uid(1), w.uid(2)],
        message_keys=[message, 2**40],
        internal=JSON,
        metadata=JSON,
        reasoner="llm",
        model="m",
        said_at=FIRST,
        created_at=BEFORE_1970,
        superseded_at=LAST,
        restored_at=FIRST,
    )
    yield r.NamedCollection(
        **workspace, uid=w.uid(104), owner_key=w.bob.key, name=NAME, metadata=JSON, created_at=NOW
    )
    yield r.Document(
        **workspace,
        uid=w.uid(105),
        owner_key=w.bob.key,
        collection_key=named,
        content=TEXT,
        metadata=JSON,
        created_at=BEFORE_1970,
    )
    yield r.Metamessage(
        **workspace,
        uid=w.uid(106),
        owner_key=w.bob.key,
        session_key=w.session.key,
        message_key=message,
        label=TEXT,
        content=TEXT,
        metadata=JSON,
        created_at=LAST,
    )
    yield w.task(
        9,
        unit="derive:1:2:ü",
        kind="dream",
        session_key=w.session.key,
        observer_key=w.alice.key,
        observed_key=w.bob.key,
        message_key=message,
        payload=JSON,
        state=r.FAILED,
        attempts=5,
        last_error=TEXT,
        outcome=JSON,
        request_id=TEXT,
        not_before=BEFORE_1970,
        created_at=FIRST,
        finished_at=LAST,
    )
    yield r.Lease(unit="derive:1:2:ü", owner="host:123:ü", number=2**31, expires_at=BEFORE_1970)
    yield r.ScopeSession(
        **workspace,
        scope_key=w.carol.key,
        session_key=w.session.key,
        session=NAME,
        state="completed",
        docs_copied=0,
        updated_at=FIRST,
    )
    yield r.Space(
        **workspace,
        kind="conclusion",
        embedder="e" * 200,
        dimension=1536,
        state="retired",
        created_at=BEFORE_1970,
    )
    yield r.WebhookEndpoint(
        **workspace,
        uid=w.uid(107),
        url="https://example.org/ü?a=b&c='d'",
        secret=TEXT,
        state="paused",
        failures=3,
        created_at=LAST,
    )
    yield r.Delivery(
        **workspace,
        uid=w.uid(108),
        endpoint_key=endpoint,
        event_uid="e" * 21,
        event="test.event",
        body=TEXT,
        attempt=2,
        status=599,
        error=TEXT,
        duration_ms=2**31 - 1,
        created_at=FIRST,
    )
    yield r.ApiKey(
        uid="a" * 64,
        label=TEXT,
        admin=True,
        workspace=NAME,
        peer=NAME,
        session=NAME,
        expires_at=LAST,
        revoked_at=FIRST,
        last_used_at=BEFORE_1970,
        created_at=NOW,
        workspace_uid=w.workspace.uid,
        peer_uid=w.bob.uid,
        session_uid=w.session.uid,
    )
    yield r.Usage(
        **workspace,
        day="1969-12-31",
        task="derive",
        provider="p",
        model=TEXT,
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=4,
        reasoning_tokens=6,
        duration_ms=5,
        outcome="ok",
        created_at=BEFORE_1970,
    )
    yield r.Fact(name="token counter", value=TEXT)
    yield r.ConsoleMember(
        uid=w.uid(109),
        name=TEXT,
        password_hash="$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA",
        role=r.READER,
        workspaces=[{"id": NAME, "uid": w.workspace.uid}],
        state=r.DEACTIVATED,
        created_at=BEFORE_1970,
    )
    yield r.ConsoleLink(
        uid=w.uid(110),
        digest="d" * 64,
        kind=r.NEW_PASSWORD,
        role=r.OPERATOR,
        workspaces=[{"id": NAME, "uid": w.workspace.uid}],
        member_uid=w.uid(109),
        created_by=w.uid(109),
        expires_at=LAST,
        created_at=FIRST,
    )
    yield r.BrowserSession(
        uid=w.uid(111),
        digest="d" * 64,
        member_uid=w.uid(109),
        claims=JSON,
        key_uid="a" * 64,
        address="2001:db8::1",
        client=TEXT,
        expires_at=LAST,
        created_at=FIRST,
    )
    yield r.SignInFailures(
        subject="address:ü", failures=2**31, paused_until=LAST, last_at=BEFORE_1970
    )
    yield r.AuditEntry(
        uid=w.uid(112),
        actor=TEXT,
        actor_uid=w.uid(109),
        action="member.invite",
        target=TEXT,
        workspace=NAME,
        address="2001:db8::1",
        detail=JSON,
        created_at=BEFORE_1970,
    )
    yield r.Erasure(
        uid=w.uid(113),
        kind="message",
        workspace_key=w.workspace.key,
        workspace=NAME,
        workspace_uid=w.workspace.uid,
        session=NAME,
        target=w.uid(114),
        target_uid=w.uid(114),
        requested_by=TEXT,
        options=JSON,
        state=r.FINISHED,
        task_uid=w.uid(115),
        counts=JSON,
        created_at=FIRST,
        finished_at=LAST,
    )


def bare_rows(w: Dataset, message: int, named: int, endpoint: int) -> Iterator[Any]:
    """A row of every record that has optional fields, with all of them empty or null."""
    workspace: dict[str, Any] = {"workspace_key": w.workspace.key}
    yield r.Workspace(uid=w.uid(200), slug="b", v1_name="", created_at=NOW)
    yield r.Peer(**workspace, uid=w.uid(201), slug="b", v1_name="", created_at=NOW)
    yield r.Session(**workspace, uid=w.uid(202), slug="b", created_at=NOW)
    yield r.Member(
        **workspace,
        session_key=w.session.key,
        peer_key=w.carol.key,
        session="talk",
        peer="carol",
        joined_at=NOW,
    )
    yield w.message(8, content="", tokens=0, tokens_through=0)
    yield r.Summary(
        **workspace,
        session_key=w.session.key,
        kind=r.SHORT,
        content="s",
        message_key=message,
        message_uid=w.uid(203),
        tokens=0,
        reasoner="r",
        created_at=NOW,
    )
    yield r.Collection(
        **workspace,
        observer_key=w.bob.key,
        observed_key=w.bob.key,
        observer="bob",
        observed="bob",
        created_at=NOW,
    )
    yield r.Card(**workspace, observer_key=w.bob.key, target="nobody", lines=[], updated_at=NOW)
    yield w.conclusion(9, content="", source_ids=None)
    yield w.conclusion(10, source_ids=[])
    yield r.NamedCollection(
        **workspace, uid=w.uid(204), owner_key=w.bob.key, name="", created_at=NOW
    )
    yield r.Document(
        **workspace,
        uid=w.uid(205),
        owner_key=w.bob.key,
        collection_key=named,
        content="",
        created_at=NOW,
    )
    yield r.Metamessage(
        **workspace, uid=w.uid(206), owner_key=w.bob.key, label="", content="", created_at=NOW
    )
    yield w.task(10, "bare", workspace_key=None)
    yield r.ScopeSession(
        **workspace,
        scope_key=w.carol.key,
        session_key=w.session.key,
        session="talk",
        state="pending",
        updated_at=NOW,
    )
    yield r.WebhookEndpoint(**workspace, uid=w.uid(207), url="http://b", secret="", created_at=NOW)
    yield r.Delivery(
        **workspace,
        uid=w.uid(208),
        endpoint_key=endpoint,
        event_uid="",
        event="e",
        body="",
        attempt=1,
        created_at=NOW,
    )
    yield r.ApiKey(uid=w.uid(209), created_at=NOW)
    yield r.Usage(day="", task="t", provider="p", model="m", outcome="ok", created_at=NOW)
    yield r.Fact(name="empty", value="")
    yield r.ConsoleMember(
        uid=w.uid(210), name="", password_hash="", role=r.OWNER, workspaces=[], created_at=NOW
    )
    yield r.ConsoleMember(uid=w.uid(211), name="b", password_hash="", role=r.OWNER, created_at=NOW)
    yield r.ConsoleLink(uid=w.uid(212), digest="", kind=r.SET_UP, expires_at=NOW, created_at=NOW)
    yield r.BrowserSession(
        uid=w.uid(213), digest="", address="", client="", expires_at=NOW, created_at=NOW
    )
    yield r.AuditEntry(uid=w.uid(214), actor="", action="", created_at=NOW)
    yield r.Erasure(
        uid=w.uid(215),
        kind="",
        workspace="",
        workspace_uid="",
        target="",
        requested_by="",
        task_uid="",
        created_at=NOW,
    )
