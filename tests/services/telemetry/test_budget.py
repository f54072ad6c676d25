"""A daily budget of tokens pauses work and drops none; chat goes on without a model and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from memservice.app import create_app
from memservice.domain.errors import ConfigurationError
from memservice.domain.records import Usage
from memservice.services import workspaces
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.spi.capabilities import Capability
from memservice.spi.llm import ModelCall
from memservice.spi.reasoner import AnswerRequest
from services.pipeline.conftest import open_pipeline as open_pipeline
from services.pipeline.conftest import store_uri as store_uri
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, Pipeline

OpenPipeline = Callable[..., Pipeline]

COSTLY = {"DERIVER_FLUSH_ENABLED": "true"}


class Answers(ScriptedReasoner):
    def answer(self, request: AnswerRequest) -> Iterator[str]:
        yield "the model's answer"


def spend(pipeline: Pipeline, tokens: int, workspace_id: str = "w") -> None:
    with pipeline.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
    assert workspace is not None
    row = Usage(
        workspace_key=workspace.key,
        day=pipeline.clock().date().isoformat(),
        task="deriver.representation",
        provider="openai",
        model="m",
        input_tokens=tokens - 1,
        output_tokens=1,
        outcome="success",
        created_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.usage.add([row]))


def forget_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memservice.services.usage.budget.FRESH_SECONDS", -1.0)


def test_paused_work_is_pending_and_continues_the_next_day(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    forget_what_was_read(monkeypatch)
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY), BUDGET_DAILY_TOKENS="100", **COSTLY
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    spend(pipeline, 100)
    pipeline.say("s", ("alice", "I own a boat."), ("alice", "I sail it."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    assert pipeline.counts() == (3, 1, 0, 2)
    waiting = pipeline.tasks(state="pending")
    assert waiting[0].outcome == {"paused": "the token budget of today is spent"}
    assert [task.attempts for task in waiting] == [0, 0]
    assert caplog.text.count("workspace w: the 100 tokens of today are spent") == 1
    pipeline.clock.advance(minutes=11)
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."], "looked again, and the day is not over"
    pipeline.clock.advance(hours=13)
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea.", "I own a boat.", "I sail it."]
    assert pipeline.counts() == (3, 3, 0, 0)


def test_a_reasoner_that_costs_nothing_is_not_paused(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_what_was_read(monkeypatch)
    pipeline = open_pipeline(BUDGET_DAILY_TOKENS="0")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]


def test_other_work_continues(open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_what_was_read(monkeypatch)
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY), BUDGET_DAILY_TOKENS="0", **COSTLY
    )
    pipeline.say("s", ("alice", "I like tea."))
    client = create_app(runtime=pipeline.rt).test_client()
    assert client.delete("/v3/workspaces/w/sessions/s").status_code == 202
    pipeline.work()
    assert [task.state for task in pipeline.tasks(kinds.ERASE)] == ["done"]


def test_a_workspace_may_have_another_bound(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_what_was_read(monkeypatch)
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY),
        BUDGET_DAILY_TOKENS="0",
        BUDGET_WORKSPACES='{"w": 10}',
        **COSTLY,
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    spend(pipeline, 10)
    pipeline.say("s", ("alice", "I own a boat."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]


@pytest.mark.parametrize("limits", [{}, {"BUDGET_DAILY_TOKENS": "1000"}])
def test_all_workspaces_together_have_a_bound(
    open_pipeline: OpenPipeline,
    limits: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    forget_what_was_read(monkeypatch)
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY),
        BUDGET_TOTAL_DAILY_TOKENS="20",
        **limits,
        **COSTLY,
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    spend(pipeline, 10)
    workspaces.update(pipeline.rt, PRINCIPAL, "other", {}, None)
    spend(pipeline, 10, workspace_id="other")
    pipeline.say("s", ("alice", "I own a boat."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    assert "all workspaces: the 20 tokens of today are spent" in caplog.text
    pipeline.clock.advance(hours=24)
    pipeline.work()
    assert len(pipeline.texts("alice")) == 2


def test_a_workspace_may_be_free_of_the_bound(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_what_was_read(monkeypatch)
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY),
        BUDGET_DAILY_TOKENS="0",
        BUDGET_WORKSPACES='{"w": null}',
        **COSTLY,
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]


def test_calls_that_are_not_stored_yet_count(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memservice.services.usage.ledger.WAIT_SECONDS", 60.0)
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY),
        BUDGET_DAILY_TOKENS="100",
        role="worker",
        **COSTLY,
    )
    pipeline.say("s", ("alice", "I like tea."))
    with pipeline.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug("w")
    assert workspace is not None
    pipeline.rt.events.called(
        ModelCall(
            "deriver.representation",
            "openai",
            "m",
            "success",
            1,
            workspace_key=workspace.key,
            input_tokens=100,
        )
    )
    pipeline.work()
    assert pipeline.texts("alice") == []


def test_chat_answers_without_the_model_and_says_so(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_what_was_read(monkeypatch)
    pipeline = open_pipeline(
        reasoner=Answers(Capability.COSTLY), BUDGET_DAILY_TOKENS="100", **COSTLY
    )
    pipeline.say("s", ("alice", "I like tea."))
    client = create_app(runtime=pipeline.rt).test_client()
    question = {"query": "What does alice like?"}
    first = client.post("/v3/workspaces/w/peers/alice/chat", json=question)
    assert first.get_json()["content"] == "the model's answer"
    assert "X-Memservice-Notice" not in first.headers
    spend(pipeline, 100)
    second = client.post("/v3/workspaces/w/peers/alice/chat", json=question)
    assert "I like tea." in second.get_json()["content"]
    assert second.get_json()["content"].startswith(
        "The language model has no tokens left for today, so here are"
    )
    assert (
        second.headers["X-Memservice-Notice"]
        == "the token budget of today is spent: answered without a model"
    )
    streamed = client.post("/v3/workspaces/w/peers/alice/chat", json={**question, "stream": True})
    assert "X-Memservice-Notice" in streamed.headers
    assert '"done": true' in streamed.text or '"done":true' in streamed.text


def test_the_report_shows_the_budget(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_what_was_read(monkeypatch)
    pipeline = open_pipeline(BUDGET_DAILY_TOKENS="100")
    pipeline.say("s", ("alice", "I like tea."))
    spend(pipeline, 40)
    client = create_app(runtime=pipeline.rt).test_client()
    report = client.get("/v3/workspaces/w/usage").get_json()
    assert report["budget"] == {
        "daily_tokens": 100,
        "spent_today": 40,
        "reached": False,
        "resets_at": "2024-03-02T00:00:00Z",
    }
    spend(pipeline, 60)
    assert client.get("/v3/workspaces/w/usage").get_json()["budget"]["reached"] is True


def test_an_invalid_bound_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="BUDGET_WORKSPACES: the bound of 'w' is 'much'"):
        load_settings(environ={"BUDGET_WORKSPACES": '{"w": "much"}'})
