"""One scenario that causes every event. Each event arrives at a collector, over a real socket, and
is compared with the contract's list of fields. Without traces no text of messages leaves the
process."""

from __future__ import annotations

import io
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from flask.testing import FlaskClient

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.records import Conclusion, Space, Usage
from memservice.hookspecs import hookimpl
from memservice.pipeline.indexing import reconcile
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services.dreams import ERASURE
from memservice.services.events import trace_file
from memservice.serving.logs import JsonLines
from memservice.settings import load_settings
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from memservice.spi.llm import CompletionRequest, ModelCall, ModelFailure
from memservice.spi.providers import Context, EmbedderProvider
from memservice.worker import retention
from memservice.worker.polling import Worker
from support.pipeline.pipeline import Clock
from support.reasoning.model import SCRIPTED, ScriptedModel, calling
from support.receiver import Receiver, receiving
from support.stores.stores import sqlite_store_at
from support.telemetry.contract import CALL_PURPOSES, EMBEDDING_PURPOSES, EVENTS

SECRET = "sekretwort"
TRACES = {kind for kind, listed in EVENTS.items() if listed.category == "trace"}
W = "/v3/workspaces/w"
STATEMENTS = (
    f"Ann likes {SECRET}.",
    f"Ann lives in Ghent with a {SECRET}.",
    f"Ann sells {SECRET} on Mondays.",
)


class Asked:
    """An embedder that reports its calls, as remote ones do."""

    id = "asked-1"
    dimension = 2
    capabilities = frozenset({Capability.SEMANTIC})
    duplicate_distance: float | None = None

    def __init__(self) -> None:
        self.called: Callable[[ModelCall], None] = lambda call: None

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Any]:
        tokens = sum(len(text) // 4 + 1 for text in texts)
        self.called(
            ModelCall(
                purpose,
                "asked",
                "asked-1",
                "success",
                3,
                embedding=True,
                input_tokens=tokens,
                input_count=len(texts),
            )
        )
        rows = [np.array([len(text), ord(text[:1] or " ")], np.float32) for text in texts]
        return [row / np.float32(np.linalg.norm(row)) for row in rows]

    def _open(self, settings: Any, context: Context) -> Asked:
        self.called = context.called
        return self

    @hookimpl
    def memservice_embedders(self) -> Iterable[EmbedderProvider]:
        yield EmbedderProvider(name="asked", open=self._open, capabilities=self.capabilities)


def answer_to(request: CompletionRequest) -> Any:
    """What the model answers where a test scripts nothing: a statement for each deriving, a
    summary, a text."""
    if request.response_schema is not None:
        return {"statements": [{"content": text, "messages": [1]} for text in STATEMENTS]}
    return f"They spoke of {SECRET}."


class Scene:
    def __init__(
        self,
        rt: Runtime,
        clock: Clock,
        model: ScriptedModel,
        client: FlaskClient,
        collector: Receiver,
    ) -> None:
        self.rt, self.clock, self.model, self.client, self.collector = (
            rt,
            clock,
            model,
            client,
            collector,
        )

    def work(self) -> None:
        Worker(self.rt).run_until_idle(60)

    def post(self, path: str, **body: Any) -> Any:
        answer = self.client.post(f"{W}{path}", json=body)
        assert answer.status_code < 300, answer.text
        return answer.get_json() if answer.data and answer.is_json else None

    def events(self) -> dict[str, list[dict[str, Any]]]:
        """All that arrived, by type. Ends the process's part."""
        self.rt.close()
        by_type: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for request in self.collector.requests:
            body = json.loads(request.body)
            for event in body if isinstance(body, list) else [body]:
                by_type[event["type"]].append(event)
        return by_type


Play = Callable[..., Scene]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """The whole scenario, once, under these settings."""
    opened: list[Runtime] = []
    with receiving() as collector:

        def run(**settings: str) -> Scene:
            environ = {
                "DB_CONNECTION_URI": sqlite_store_at(tmp_path / "e.db"),
                "DB_SYNCHRONOUS": "normal",
                "REASONER": "llm",
                "EMBEDDER": "asked",
                "DERIVER_FLUSH_ENABLED": "true",
                "SUMMARY_MESSAGES_PER_SHORT_SUMMARY": "10",
                "SUMMARY_MESSAGES_PER_LONG_SUMMARY": "20",
                "LLM_RETRY_PAUSE_SECONDS": "0.001",
                "LLM_OPENAI_API_KEY": "sk-verysecretkey",
                "TELEMETRY_ENABLED": "true",
                "TELEMETRY_ENDPOINT": collector.url("/events?token=verysecretkey"),
                "TELEMETRY_HEADERS": '{"Authorization": "Bearer verysecretkey"}',
                "NAMESPACE": "here",
                **SCRIPTED,
                **settings,
            }
            loaded = load_settings(environ=environ, cwd=tmp_path)
            model, clock = ScriptedModel(), Clock()
            model.say = answer_to
            rt = open_runtime(
                loaded, "api", plugins=load_plugins(loaded, extra=[model, Asked()]), clock=clock
            )
            opened.append(rt)
            rt.storage.migrate()
            scene = Scene(rt, clock, model, create_app(runtime=rt).test_client(), collector)
            everything_happens(scene)
            return scene

        yield run
        for rt in opened:
            rt.close()


def everything_happens(scene: Scene) -> None:
    messages = [
        {"peer_id": "ann", "content": f"I like {SECRET}, number {number}."} for number in range(20)
    ]
    scene.model.replies = [ModelFailure("busy", retryable=True, status=429)]
    scene.post("/sessions/s/messages", messages=messages[:10])
    scene.post("/sessions/s/messages", messages=messages[10:])
    form = {
        "peer_id": "ann",
        "file": (io.BytesIO(f"A file about {SECRET}.".encode()), "notes.txt", "text/plain"),
    }
    assert scene.client.post(f"{W}/sessions/s/messages/upload", data=form).status_code == 201
    scene.work()
    assert (
        scene.client.get(
            f"{W}/sessions/s/context?summary=true&peer_target=ann&search_query={SECRET}"
        ).status_code
        == 200
    )
    assert scene.client.get(f"{W}/peers/ann/context").status_code == 200
    scene.post("/search", query=SECRET)
    scene.model.replies = [calling(("search_memory", {"query": SECRET})), f"Ann likes {SECRET}."]
    scene.post("/peers/ann/chat", query=f"What about {SECRET}?")
    scene.post("/chat", query=f"Who likes {SECRET}?", stream=True)
    dream(scene)
    lose_a_vector(scene)
    with scene.rt.storage.read() as tx:
        uid = next(row.uid for row in tx.rows.page(Conclusion) if row.state == "live")
    assert scene.client.delete(f"{W}/conclusions/{uid}").status_code == 204
    assert scene.client.delete(f"{W}/sessions/s").status_code == 202
    scene.work()
    assert scene.client.delete(W).status_code == 202
    scene.work()
    scene.clock.advance(days=2)
    retention.sweep(scene.rt)


def lose_a_vector(scene: Scene) -> None:
    """It is found missing, and made again."""
    rt = scene.rt
    with rt.storage.read() as tx:
        space = next(space for space in tx.rows.page(Space) if space.kind == "conclusion")
        lost = rt.vectors.keys(tx, space)[:1]
    rt.storage.write(lambda tx: rt.vectors.delete(tx, space, lost))
    scene.clock.advance(seconds=rt.settings.vector_store.reconciliation_interval_seconds + 1)
    reconcile.run(rt)
    scene.work()


def dream(scene: Scene) -> None:
    with scene.rt.storage.read() as tx:
        first, second = [
            row for row in tx.rows.page(Conclusion) if row.observer == "ann" and row.state == "live"
        ][:2]
    scene.model.contents = lambda: {row.uid: row.content for row in (first, second)}
    scene.model.replies = [
        calling(
            (
                "supersede_conclusions",
                {"conclusions": [{"id": first.uid, "replaced_by": second.uid, "reason": "newer"}]},
            ),
            (
                "create_conclusions",
                {
                    "conclusions": [
                        {
                            "content": f"Ann collects {SECRET}.",
                            "level": "deductive",
                            "source_ids": [second.uid],
                        }
                    ]
                },
            ),
            ("update_peer_card", {"lines": [f"ATTRIBUTE: lives in {SECRET}"]}),
        ),
        "DONE",
        calling(("search_memory", {"query": SECRET})),
        "DONE",
    ]
    scene.post("/schedule_dream", observer="ann", dream_type="omni")
    scene.work()
    scene.model.replies.clear()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Every line that the process would log, from `debug` on, with whatever else goes with it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("memservice")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


def hold_against_the_contract(by_type: dict[str, list[dict[str, Any]]]) -> None:
    for kind, events in by_type.items():
        validator = jsonschema.Draft202012Validator(EVENTS[kind].envelope_schema("here"))
        for event in events:
            validator.validate(event)
    ids = Counter(event["id"] for events in by_type.values() for event in events)
    assert [name for name, number in ids.items() if number > 1] == []


@pytest.mark.slow
def test_every_event_has_its_fields_and_no_message_text(play: Play, logged: io.StringIO) -> None:
    scene = play()
    by_type = scene.events()
    hold_against_the_contract(by_type)
    assert set(by_type) == set(EVENTS) - TRACES
    of = {kind: [event["data"] for event in events] for kind, events in by_type.items()}

    assert [(data["source"], data["message_count"]) for data in of["message.created"]] == [
        ("api", 10),
        ("api", 10),
        ("file_upload", 1),
    ]
    assert of["file.uploaded"][0]["filename"] == "notes.txt"
    assert {data["context_scope"] for data in of["context.retrieved"]} == {"session", "peer"}
    assert {data["deletion_type"] for data in of["deletion.completed"]} == {
        "observation",
        "session",
        "workspace",
    }
    (whole,) = [data for data in of["deletion.completed"] if data["deletion_type"] == "session"]
    assert (
        whole["resource_id"],
        whole["success"],
        whole["sessions_deleted"],
        whole["messages_deleted"],
    ) == ("s", True, 1, 21)
    assert {data["erasure_type"] for data in of["erasure.completed"]} == {"session", "workspace"}
    assert {data["summary_type"] for data in of["agent.tool.summary.created"]} == {"short", "long"}
    assert {data["peer_name"] for data in of["dialectic.completed"]} == {"ann", None}
    assert {data["specialist_type"] for data in of["dream.specialist"]} == {
        "deduction",
        "induction",
        "card_refresh",  # after the erasure of the session
    }
    assert of["reconciliation.sync_vectors.completed"][0]["documents_synced"] == 1
    assert of["reconciliation.cleanup_stale_items.completed"][0]["queue_items_cleaned"] > 0

    calls = of["llm.call.completed"]
    assert {data["call_purpose"] for data in calls} <= CALL_PURPOSES
    assert {data["call_purpose"] for data in calls} >= {
        "deriver.representation",
        "summary.short",
        "dialectic.answer",
        "dream.deduction",
    }
    assert {data["call_purpose"] for data in of["embedding.call.completed"]} <= EMBEDDING_PURPOSES
    assert {data["workspace_name"] for data in of["embedding.call.completed"]} == {"w"}
    (failed,) = [data for data in calls if data["outcome"] == "error"]
    assert (failed["error_class"], failed["is_final_attempt"]) == ("ModelFailure 429", False)

    with (
        closing(open_runtime(scene.rt.settings, plugins=scene.rt.plugins)) as reopened,
        reopened.storage.read() as tx,
    ):
        rows = tx.rows.page(Usage)
    assert len(rows) == len(calls) + len(of["embedding.call.completed"]), (
        "the ledger knows every call that was told of"
    )
    assert sum(row.input_tokens for row in rows if row.provider == "scripted") == sum(
        data["provider_input_tokens"] for data in calls
    )

    sent = b"".join(request.body for request in scene.collector.requests).decode()
    for text in (sent, logged.getvalue()):
        assert text
        assert SECRET not in text
        assert "verysecretkey" not in text


@pytest.mark.slow
def test_traces_are_sent_on_request_and_contain_texts(play: Play, logged: io.StringIO) -> None:
    scene = play(TELEMETRY_TRACE_PAYLOADS_ENABLED="true", TELEMETRY_TRACE_MAX_BYTES="20000")
    by_type = scene.events()
    hold_against_the_contract(by_type)
    assert set(by_type) == set(EVENTS)
    contents = {event["data"]["content_hash"]: event["data"] for event in by_type["trace.content"]}
    assert len(contents) == len(by_type["trace.content"]), "a text is sent once"
    assert any(SECRET in content["content"] for content in contents.values())
    assert all(
        content["honcho_authored"] == (content["role"] in ("system", "tool_schema"))
        for content in contents.values()
    )
    traced = [event["data"] for event in by_type["llm.call.traced"]]
    assert len(traced) == len(by_type["llm.call.completed"])
    for data in traced:
        references = [*data["input_message_refs"], *data["tool_schema_refs"]]
        references += [
            data[name] for name in ("system_prompt_ref", "output_content_ref") if data[name]
        ]
        assert set(references) <= set(contents)
    assert {data["trace_id"] for data in traced if data["call_purpose"] == "dream.deduction"} == {
        event["data"]["run_id"]
        for event in by_type["dream.run"]
        if event["data"]["trigger_reason"] != ERASURE
    }
    assert SECRET not in logged.getvalue()
    others = "".join(
        json.dumps(event)
        for kind, events in by_type.items()
        if kind not in TRACES
        for event in events
    )
    assert SECRET not in others


@pytest.mark.slow
def test_traces_of_some_purposes_only_and_cut_to_their_size(play: Play) -> None:
    scene = play(
        TELEMETRY_TRACE_PAYLOADS_ENABLED="true",
        TELEMETRY_TRACE_PURPOSES='["summary.short"]',
        TELEMETRY_TRACE_MAX_BYTES="50",
    )
    events = scene.events()
    assert {event["data"]["call_purpose"] for event in events["llm.call.traced"]} == {
        "summary.short"
    }
    assert {event["data"]["was_truncated"] for event in events["llm.call.traced"]} == {True}
    assert max(len(event["data"]["content"].encode()) for event in events["trace.content"]) <= 50


@pytest.mark.slow
def test_traces_can_be_written_to_a_file(play: Play, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    with pytest.MonkeyPatch.context() as patched:  # the erasures of the scene would remove them
        patched.setattr(trace_file, "remove", lambda *_: 0)
        patched.setattr(trace_file, "has_any", lambda *_: False)
        scene = play(REASONING_TRACES_FILE=str(file), TELEMETRY_ENABLED="false")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["purpose"] for line in lines} >= {
        "deriver.representation",
        "summary.short",
        "dialectic.answer",
        "dream.deduction",
    }
    assert any(SECRET in turn["content"] for line in lines for turn in line["input"])
    assert any(SECRET in (line["output"] or "") for line in lines)
    assert scene.collector.requests == []
