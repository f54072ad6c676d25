"""Every operation of the third generation is called until it has given each documented success.
Each answer has exactly the documented fields, and each documented field occurs."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import jwt
import pytest
from flask import Flask
from msgspec.structs import replace

from memservice.api import health, v3
from memservice.api.routing import walk
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import Message, Usage
from memservice.plugins import load_plugins
from memservice.services import indexing
from memservice.settings import load_settings
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import (
    Answered,
    AnswerRequest,
    Consolidated,
    ConsolidateRequest,
    Statement,
    Superseded,
)
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction
from memservice.spi.toolbox import Step, ToolUse
from memservice.worker.polling import Worker
from support.api.documents import document
from support.pipeline.fakes import ScriptedReasoner
from support.receiver import LOOPBACK, Receiver, receiving
from support.stores.stores import sqlite_store_at

pytestmark = pytest.mark.slow

SECRET = "s" * 40
OPERATIONS = sorted(
    (operation.method, operation.rule.replace("<", "{").replace(">", "}"))
    for operation, _ in walk((health.routes, *v3.GROUPS))
)


# The default embedder makes no vectors of messages, and none that represent meaning.
_VECTOR = "[].explanation.vector"
_NO_VECTOR = {
    *(_VECTOR, f"{_VECTOR}.rank", f"{_VECTOR}.share", f"{_VECTOR}.similarity"),
    "[].explanation.source.similarity",
}

NEVER_RETURNED = {
    ("POST", "/v3/workspaces/{workspace_id}/search", 200): _NO_VECTOR,
    ("POST", "/v3/workspaces/{workspace_id}/sessions/{session_id}/search", 200): _NO_VECTOR,
    ("POST", "/v3/workspaces/{workspace_id}/peers/{peer_id}/search", 200): _NO_VECTOR,
    # Of a shape that others share: what callers store rests on nothing, and a secret is shown once.
    ("POST", "/v3/workspaces/{workspace_id}/conclusions", 201): {
        "[].source_ids",
        "[].kind",
        "[].when",
        "[].certainty",
    },
    ("POST", "/v3/workspaces/{workspace_id}/webhooks", 200): {".secret"},
    # The receipt of an erasure that has only been accepted, and its counts without one.
    ("DELETE", "/v3/workspaces/{workspace_id}/peers/{peer_id}", 202): {
        ".session_id",
        ".reason",
        ".finished_at",
    },
    ("DELETE", "/v3/workspaces/{workspace_id}/peers/{peer_id}", 200): {
        ".id",
        ".session_id",
        ".reason",
        ".requested_by",
        ".job_id",
        ".created_at",
        ".finished_at",
    },
    (
        "DELETE",
        "/v3/workspaces/{workspace_id}/sessions/{session_id}/messages/{message_id}",
        202,
    ): {".reason", ".finished_at"},
    # Only a failed erasure has it; here none fails.
    ("GET", "/v3/workspaces/{workspace_id}/erasures", 200): {".items[].reason"},
    ("GET", "/v3/workspaces/{workspace_id}/erasures/{erasure_id}", 200): {".reason"},
    ("GET", "/v3/erasures", 200): {".items[].reason"},
    ("GET", "/v3/erasures/{erasure_id}", 200): {".reason"},
    # Only work that is tried again has it; here each task is tried once.
    ("GET", "/v3/workspaces/{workspace_id}/queue/failures", 200): {".items[].next_try_at"},
    ("POST", "/v3/workspaces/{workspace_id}/conclusions/{conclusion_id}/restore", 200): {
        ".session_id",
        ".source_ids",
        ".kind",
        ".when",
        ".certainty",
    },
    # Like the conclusion of a caller that it corrects.
    ("PUT", "/v3/workspaces/{workspace_id}/conclusions/{conclusion_id}", 200): {
        ".session_id",
        ".source_ids",
        ".kind",
        ".when",
        ".certainty",
    },
    # Only with `as_of` is one of them superseded.
    ("POST", "/v3/workspaces/{workspace_id}/conclusions/query", 200): {
        "[].superseded_at",
        "[].superseded_by",
    },
    ("GET", "/v3/workspaces/{workspace_id}/conclusions/{conclusion_id}/history", 200): {
        ".versions[].session_id",
        ".versions[].kind",
        ".versions[].when",
        ".versions[].certainty",
        ".versions[].model",
    },
    # It has no successor.
    ("POST", "/v3/workspaces/{workspace_id}/conclusions/{conclusion_id}/invalidate", 200): {
        ".session_id",
        ".source_ids",
        ".kind",
        ".when",
        ".certainty",
        ".superseded_by",
    },
}


class Talkative(ScriptedReasoner):
    """Says something to every question, after a call of a tool. Its dreams fail unless a test has
    set `dream`."""

    dream: Consolidated | None = None

    def fail(self, request: object) -> None:
        raise RuntimeError("the model is away")

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        if self.dream is not None:
            return self.dream
        raise RuntimeError("the model is away")

    def answer(self, request: AnswerRequest) -> Iterator[str | Answered]:  # type: ignore[override]
        yield "tea"
        yield Answered(
            steps=[Step(uses=[ToolUse(name="search_memory", input={"query": "tea"})])],
            run_id="run-1",
        )


@dataclass
class RouteCalls:
    """The successes of one operation."""

    statuses: set[int] = field(default_factory=set)
    bodies: list[tuple[int, Any]] = field(default_factory=list)


class Story:
    """A small world that is made, used and unmade over HTTP alone, but for a moment that needs a
    model."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        settings = {
            "DB_CONNECTION_URI": sqlite_store_at(folder / "story.db"),
            "AUTH_USE_AUTH": "true",
            "AUTH_JWT_SECRET": SECRET,
            "REASONER": "scripted",
            "WORKER_MAX_ATTEMPTS": "1",
            "WEBHOOK_ALLOW_NETWORKS": f'["{LOOPBACK}"]',
            "WEBHOOK_MAX_ATTEMPTS": "1",
            "BUDGET_DAILY_TOKENS": "1000000",
        }
        loaded = load_settings(environ={}, cwd=folder, overrides=settings)
        self.reasoner = Talkative()
        self.rt = open_runtime(loaded, "api", plugins=load_plugins(loaded, extra=[self.reasoner]))
        self.rt.storage.migrate()
        self.app: Flask = create_app(runtime=self.rt)
        self.client = self.app.test_client()
        self.receiver = receiver
        self.calls = {operation: RouteCalls() for operation in OPERATIONS}
        self.admin = {
            "Authorization": "Bearer "
            + jwt.encode({"t": "", "ad": True}, SECRET, algorithm="HS256")
        }

    def work(self) -> None:
        Worker(self.rt).run_until_idle(60)

    def do(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Ask, note what is answered with which status; it has to be a success."""
        if path.startswith("…"):
            path = f"/v3/workspaces/w{path[1:]}"
        if body is not None:
            options["json"] = body
        answer = self.client.open(path, method=method, headers=self.admin, **options)
        assert answer.status_code < 300, (
            f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        )
        rule, _ = self.app.url_map.bind("localhost").match(
            path.partition("?")[0], method, return_rule=True
        )
        call = self.calls[method, rule.rule.replace("<", "{").replace(">", "}")]
        call.statuses.add(answer.status_code)
        content = answer.get_json() if answer.is_json else None
        call.bodies.append((answer.status_code, content))
        return content

    def tell(self) -> None:
        self.hold()
        self.read()
        self.deliver()
        self.mint()
        self.unmake()

    def hold(self) -> None:
        """Workspace, peers, sessions, messages, conclusions, scopes."""
        self.do("GET", "/health")
        self.do("GET", "/health/ready")
        for _ in range(2):
            self.do(
                "POST",
                "/v3/workspaces",
                {"id": "w", "configuration": {"summary": {"messages_per_short_summary": 10}}},
            )
            self.do("POST", "…/peers", {"id": "alice", "metadata": {"kind": "person"}})
            self.do(
                "POST",
                "…/sessions",
                {"id": "talk", "peers": {"alice": {}, "bob": {"observe_others": True}}},
            )
            self.do("POST", "…/scopes", {"id": "work", "metadata": {"kind": "scope"}})
        self.do(
            "PUT",
            "/v3/workspaces/w",
            {
                "configuration": {
                    "summary": {"messages_per_short_summary": 10, "messages_per_long_summary": 20}
                }
            },
        )
        self.do("PUT", "…/peers/alice", {"configuration": {"observe_me": True}})
        self.do("PUT", "…/sessions/talk", {"metadata": {"kind": "session"}})
        self.do("POST", "…/sessions/talk/peers", {"carol": {}})
        self.do("DELETE", "…/sessions/talk/peers", ["carol"])
        self.do("PUT", "…/sessions/talk/peers", {"alice": {}, "bob": {"observe_others": True}})
        self.do(
            "PUT", "…/sessions/talk/peers/bob/config", {"observe_me": True, "observe_others": True}
        )
        messages = [
            {"peer_id": "alice", "content": f"I like tea number {n}.", "metadata": {"n": n}}
            for n in range(20)
        ]
        self.message = self.do("POST", "…/sessions/talk/messages", {"messages": messages})[0]["id"]
        upload = {
            "file": (io.BytesIO(b"I like tea from a file."), "notes.txt", "text/plain"),
            "peer_id": "alice",
        }
        self.do("POST", "…/sessions/talk/messages/upload", data=upload)
        pair = {"observer_id": "alice", "observed_id": "alice", "session_id": "talk"}
        self.conclusion = self.do(
            "POST", "…/conclusions", {"conclusions": [{"content": "alice likes tea", **pair}]}
        )[0]["id"]
        self.rt.storage.write(self.reason)
        self.do("POST", "…/scopes/work/sessions", {"session_ids": ["talk"]})
        self.do("GET", "…/queue/status")
        self.work()
        self.do("PUT", "…/peers/alice/card", {"peer_card": ["Likes tea"]})

    def reason(self, tx: Transaction) -> None:
        """What a dream and a model leave."""
        workspace = tx.workspaces.by_slug("w")
        assert workspace is not None
        row = tx.conclusions.by_uid(workspace.key, self.conclusion)
        assert row is not None
        (message,) = tx.rows.page(Message, equals(author="alice"), (Order("key"),), 1)
        row_derived = replace(
            row,
            key=0,
            uid=new_uid(),
            level="deductive",
            source_ids=[row.uid],
            message_keys=[message.key],
            content="tea it is",
            fingerprint=new_uid(),
            internal={
                "kind": "plan",
                "when": {"start": "2024-05", "end": None},
                "certainty": "hedged",
            },
        )
        conclusion_rows = tx.conclusions.put([row_derived])
        self.deduction = conclusion_rows[0].uid
        indexing.index_conclusions(
            self.rt,
            tx,
            workspace.key,
            conclusion_rows,
            indexing.embed_inline(self.rt, [row_derived.content]),
        )
        now = self.rt.clock()
        call = Usage(
            day=now.date().isoformat(),
            task="chat",
            provider="p",
            model="m",
            outcome="success",
            created_at=now,
        )
        tx.usage.add([replace(call, workspace_key=workspace.key, input_tokens=1)])

    def read(self) -> None:
        for listed in ("/v3/workspaces", "…/peers", "…/sessions", "…/scopes", "…/conclusions"):
            self.do("POST", f"{listed}/list?size=100")
        self.do("POST", "…/peers/alice/sessions")
        self.do("GET", "…/sessions/talk/peers")
        self.do("GET", "…/sessions/talk/peers/bob/config")
        self.do("GET", "…/scopes/work")
        self.do("GET", "…/scopes/work/status")
        self.do("POST", "…/scopes/work/sessions/list")
        self.do("POST", "…/sessions/talk/messages/list")
        self.do("GET", f"…/sessions/talk/messages/{self.message}")
        self.do("PUT", f"…/sessions/talk/messages/{self.message}", {"metadata": {"n": "one"}})
        spare = {"messages": [{"peer_id": "alice", "content": "Forget this."}]}
        (deleted,) = self.do("POST", "…/sessions/talk/messages", spare)
        self.do("DELETE", f"…/sessions/talk/messages/{deleted['id']}")
        self.do("POST", "…/peers", {"id": "passer-by"})
        self.do("DELETE", "…/peers/passer-by?dry_run=true")
        self.do("DELETE", "…/peers/passer-by")
        for path in ("", "/peers/alice", "/sessions/talk"):
            assert self.do("POST", f"…{path}/search", {"query": "tea"})
            assert self.do("POST", f"…{path}/search", {"query": "tea", "explain": True})
        self.do("POST", "…/peers/alice/representation", {})
        self.do("GET", "…/peers/alice/card")
        self.do("GET", "…/peers/alice/export")
        self.do("GET", "…/peers/alice/context")
        self.do("GET", "…/sessions/talk/context?peer_target=alice")
        self.do("GET", "…/sessions/talk/summaries")
        query = {
            "query": "tea",
            "filters": {"observer": "alice", "observed": "alice", "level": "deductive"},
        }
        for explain in (False, True):
            assert self.do("POST", "…/conclusions/query", {**query, "explain": explain})
        self.do("GET", f"…/conclusions/{self.deduction}")
        for path in ("", "/peers/alice"):
            self.do("POST", f"…{path}/chat", {"query": "What about tea?", "include_evidence": True})
        copy = self.do("POST", "…/sessions/talk/clone")["id"]
        self.do("GET", "…/usage")
        self.do("DELETE", f"…/sessions/{copy}")
        self.work()
        receipt, *_ = self.do("GET", "…/erasures")["items"]
        self.do("GET", f"…/erasures/{receipt['id']}")
        self.do("GET", "/v3/erasures")
        self.do("GET", f"/v3/erasures/{receipt['id']}")

    def deliver(self) -> None:
        """Webhooks, and work that fails."""
        for _ in range(2):
            endpoint = self.do("POST", "…/webhooks", {"url": self.receiver.url()})["id"]
        for status in (204, 503):
            self.receiver.answers(status)
            self.do("GET", "…/webhooks/test")
            self.work()
        self.do("POST", "…/webhooks", {"url": self.receiver.url("/silent")})
        self.receiver.close()
        self.do("GET", "…/webhooks/test")
        self.work()
        self.do("GET", "…/webhooks")
        self.do("GET", f"…/webhooks/{endpoint}/deliveries")
        (_, letter) = self.do("GET", f"…/webhooks/{endpoint}/dead_letters")["items"]
        self.do("POST", f"…/deliveries/{letter['id']}/redeliver")
        self.do("DELETE", f"…/webhooks/{endpoint}")

        self.dream()
        self.reasoner.act = self.reasoner.fail
        self.do(
            "POST",
            "…/sessions/talk/messages",
            {"messages": [{"peer_id": "alice", "content": "I like coffee."}]},
        )
        self.do("POST", "…/schedule_dream", {"observer": "alice", "dream_type": "omni"})
        self.work()
        self.do("GET", "…/queue/failures")
        self.do("POST", "…/queue/failures/retry")

    def dream(self) -> None:
        """A dream that is held, applied and undone, and one that is discarded."""
        drafts = [
            {"content": f"Alice likes tea {n}", "observer_id": "alice", "observed_id": "alice"}
            for n in range(7)
        ]
        uids = [row["id"] for row in self.do("POST", "…/conclusions", {"conclusions": drafts})]
        self.reasoner.dream = Consolidated(
            [Statement("Alice likes tea a lot.", (), "deductive", tuple(uids))],
            [Superseded(uid, "#0", "one habit") for uid in uids],
            ["ATTRIBUTE: Likes tea"],
        )
        self.reasoner.capabilities = frozenset({Capability.COSTLY})
        for ending in ("apply", "discard"):
            self.do("POST", "…/schedule_dream", {"observer": "alice", "dream_type": "omni"})
            self.work()
            dream_id = self.do("GET", "…/dreams")["items"][0]["id"]
            self.do("GET", f"…/dreams/{dream_id}")
            self.do("POST", f"…/dreams/{dream_id}/{ending}")
            if ending == "apply":
                self.work()
                self.do("GET", f"…/dreams/{dream_id}")
                self.do("POST", "…/conclusions/list?include=superseded")
                self.do("POST", "…/conclusions/list?include_messages=true")
                self.do("GET", f"…/conclusions/{uids[0]}/history")
                self.do("POST", f"…/conclusions/{uids[0]}/restore")
                self.do("GET", f"…/conclusions/{uids[0]}/history")
                corrected = self.do("PUT", f"…/conclusions/{uids[0]}", {"content": "Likes tea"})
                self.do("POST", f"…/conclusions/{corrected['id']}/invalidate")
                self.do("POST", f"…/conclusions/{uids[0]}/restore")
                self.do("POST", f"…/dreams/{dream_id}/undo")
        self.reasoner.capabilities, self.reasoner.dream = frozenset(), None

    def mint(self) -> None:
        named = {
            "workspace_id": "w",
            "peer_id": "alice",
            "session_id": "talk",
            "label": "l",
            "expires_at": "2999-01-01T00:00:00Z",
        }
        key = self.do("POST", "/v3/keys", query_string=named)
        used = self.client.get(
            "/v3/workspaces/w/sessions/talk/context",
            headers={"Authorization": f"Bearer {key['key']}"},
        )
        assert used.status_code == 200
        self.do("DELETE", f"/v3/keys/{key['id']}")
        # That it was used is written off the request; a bound that tells a hang from an answer.
        until = time.monotonic() + 60
        while (
            self.do("GET", "/v3/keys")["items"][0]["last_used_at"] is None
            and time.monotonic() < until
        ):
            time.sleep(0.05)

    def unmake(self) -> None:
        self.do("DELETE", "…/scopes/work/sessions/talk")
        self.do("DELETE", f"…/conclusions/{self.conclusion}")
        for session in self.do("POST", "…/sessions/list")["items"]:
            self.do("DELETE", f"…/sessions/{session['id']}")
        self.do("DELETE", "/v3/workspaces/w")


@pytest.fixture(scope="module")
def calls_by_route(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[tuple[str, str], RouteCalls]]:
    with receiving() as receiver:
        story = Story(tmp_path_factory.mktemp("story"), receiver)
        story.tell()
        yield story.calls
        story.rt.close()


def described(method: str, path: str) -> dict[int, Any]:
    """The schema of each success; None where there is no body."""
    answers = document("v3")["paths"][path][method.lower()]["responses"]
    successes = {
        int(status): answer for status, answer in answers.items() if status.startswith("2")
    }
    return {
        status: answer.get("content", {}).get("application/json", {}).get("schema")
        for status, answer in successes.items()
    }


def closed(schema: Any) -> Any:
    """The schema with references followed, and objects without keys that it does not name; where it
    names none, any."""
    if isinstance(schema, list):
        return [closed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return closed(document("v3")["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    inner_schemas = {key: closed(inner) for key, inner in schema.items()}
    if "properties" in inner_schemas:
        inner_schemas["additionalProperties"] = False
    return inner_schemas


FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("date-time", raises=ValueError)
def _has_an_offset(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


def fields_of(schema: Any, field: str = "") -> Iterator[str]:
    """The path of each field that a schema names."""
    for alternative in schema.get("anyOf", ()):
        yield from fields_of(alternative, field)
    for name, inner in schema.get("properties", {}).items():
        yield f"{field}.{name}"
        yield from fields_of(inner, f"{field}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from fields_of(schema["items"], f"{field}[]")
    if isinstance(further := schema.get("additionalProperties"), dict):
        yield from fields_of(further, f"{field}{{}}")


def fields_in(value: Any, fields: Sequence[str], field: str = "") -> Iterator[str]:
    """The path of each field that has a value other than null. `fields`: those that are described;
    what is not among them is a name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            here = f"{field}.{name}" if f"{field}.{name}" in fields else f"{field}{{}}"
            if inner is not None:
                yield here
                yield from fields_in(inner, fields, here)
    elif isinstance(value, list):
        for inner in value:
            yield from fields_in(inner, fields, f"{field}[]")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_each_successful_answer_matches_the_document(
    calls_by_route: dict[tuple[str, str], RouteCalls], method: str, path: str
) -> None:
    schemas, record = described(method, path), calls_by_route[method, path]
    assert record.statuses == schemas.keys()
    for status, body in record.bodies:
        if schemas[status] is None:
            assert body is None
        else:
            jsonschema.Draft202012Validator(
                closed(schemas[status]), format_checker=FORMATS
            ).validate(body)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_each_documented_field_occurs_in_an_answer(
    calls_by_route: dict[tuple[str, str], RouteCalls], method: str, path: str
) -> None:
    for status, schema in described(method, path).items():
        fields = list(fields_of(closed(schema or {})))
        bodies = [
            body
            for status_of_body, body in calls_by_route[method, path].bodies
            if status_of_body == status
        ]
        occurring = {field for body in bodies for field in fields_in(body, fields)}
        assert set(fields) - occurring == NEVER_RETURNED.get((method, path, status), set()), status
