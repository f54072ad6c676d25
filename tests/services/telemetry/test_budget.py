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
from services.pipeline.conftest import start as start
from support.pipeline.fakes import Scripted
from support.pipeline.place import PRINCIPAL, Place

Start = Callable[..., Place]

COSTLY = {"DERIVER_FLUSH_ENABLED": "true"}


class Answers(Scripted):
    def answer(self, request: AnswerRequest) -> Iterator[str]:
        yield "the model's answer"


def spend(place: Place, tokens: int, workspace_id: str = "w") -> None:
    with place.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
    assert workspace is not None
    row = Usage(
        workspace_key=workspace.key,
        day=place.clock().date().isoformat(),
        task="deriver.representation",
        provider="openai",
        model="m",
        input_tokens=tokens - 1,
        output_tokens=1,
        outcome="success",
        created_at=place.clock(),
    )
    place.rt.storage.write(lambda tx: tx.usage.add([row]))


def forget_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memservice.services.usage.budget.FRESH_SECONDS", -1.0)


def test_paused_work_is_pending_and_continues_the_next_day(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    forget_what_was_read(monkeypatch)
    place = start(reasoner=Scripted(Capability.COSTLY), BUDGET_DAILY_TOKENS="100", **COSTLY)
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert place.texts("alice") == ["I like tea."]
    spend(place, 100)
    place.say("s", ("alice", "I own a boat."), ("alice", "I sail it."))
    place.work()
    assert place.texts("alice") == ["I like tea."]
    assert place.counts() == (3, 1, 0, 2)
    waiting = place.tasks(state="pending")
    assert waiting[0].outcome == {"paused": "the token budget of today is spent"}
    assert [task.attempts for task in waiting] == [0, 0]
    assert caplog.text.count("workspace w: the 100 tokens of today are spent") == 1
    place.clock.advance(minutes=11)
    place.work()
    assert place.texts("alice") == ["I like tea."], "looked again, and the day is not over"
    place.clock.advance(hours=13)
    place.work()
    assert place.texts("alice") == ["I like tea.", "I own a boat.", "I sail it."]
    assert place.counts() == (3, 3, 0, 0)


def test_a_reasoner_that_costs_nothing_is_not_paused(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_what_was_read(monkeypatch)
    place = start(BUDGET_DAILY_TOKENS="0")
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert place.texts("alice") == ["I like tea."]


def test_other_work_continues(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_what_was_read(monkeypatch)
    place = start(reasoner=Scripted(Capability.COSTLY), BUDGET_DAILY_TOKENS="0", **COSTLY)
    place.say("s", ("alice", "I like tea."))
    client = create_app(runtime=place.rt).test_client()
    assert client.delete("/v3/workspaces/w/sessions/s").status_code == 202
    place.work()
    assert [task.state for task in place.tasks(kinds.ERASE)] == ["done"]


def test_a_workspace_may_have_another_bound(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_what_was_read(monkeypatch)
    place = start(
        reasoner=Scripted(Capability.COSTLY),
        BUDGET_DAILY_TOKENS="0",
        BUDGET_WORKSPACES='{"w": 10}',
        **COSTLY,
    )
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert place.texts("alice") == ["I like tea."]
    spend(place, 10)
    place.say("s", ("alice", "I own a boat."))
    place.work()
    assert place.texts("alice") == ["I like tea."]


@pytest.mark.parametrize("limits", [{}, {"BUDGET_DAILY_TOKENS": "1000"}])
def test_all_workspaces_together_have_a_bound(
    start: Start,
    limits: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    forget_what_was_read(monkeypatch)
    place = start(
        reasoner=Scripted(Capability.COSTLY), BUDGET_TOTAL_DAILY_TOKENS="20", **limits, **COSTLY
    )
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert place.texts("alice") == ["I like tea."]
    spend(place, 10)
    workspaces.update(place.rt, PRINCIPAL, "other", {}, None)
    spend(place, 10, workspace_id="other")
    place.say("s", ("alice", "I own a boat."))
    place.work()
    assert place.texts("alice") == ["I like tea."]
    assert "all workspaces: the 20 tokens of today are spent" in caplog.text
    place.clock.advance(hours=24)
    place.work()
    assert len(place.texts("alice")) == 2


def test_a_workspace_may_be_free_of_the_bound(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_what_was_read(monkeypatch)
    place = start(
        reasoner=Scripted(Capability.COSTLY),
        BUDGET_DAILY_TOKENS="0",
        BUDGET_WORKSPACES='{"w": null}',
        **COSTLY,
    )
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert place.texts("alice") == ["I like tea."]


def test_calls_that_are_not_stored_yet_count(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memservice.services.usage.ledger.WAIT_SECONDS", 60.0)
    place = start(
        reasoner=Scripted(Capability.COSTLY), BUDGET_DAILY_TOKENS="100", role="worker", **COSTLY
    )
    place.say("s", ("alice", "I like tea."))
    with place.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug("w")
    assert workspace is not None
    place.rt.events.called(
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
    place.work()
    assert place.texts("alice") == []


def test_chat_answers_without_the_model_and_says_so(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_what_was_read(monkeypatch)
    place = start(reasoner=Answers(Capability.COSTLY), BUDGET_DAILY_TOKENS="100", **COSTLY)
    place.say("s", ("alice", "I like tea."))
    client = create_app(runtime=place.rt).test_client()
    question = {"query": "What does alice like?"}
    first = client.post("/v3/workspaces/w/peers/alice/chat", json=question)
    assert first.get_json()["content"] == "the model's answer"
    assert "X-Memservice-Notice" not in first.headers
    spend(place, 100)
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


def test_the_report_shows_the_budget(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_what_was_read(monkeypatch)
    place = start(BUDGET_DAILY_TOKENS="100")
    place.say("s", ("alice", "I like tea."))
    spend(place, 40)
    client = create_app(runtime=place.rt).test_client()
    report = client.get("/v3/workspaces/w/usage").get_json()
    assert report["budget"] == {
        "daily_tokens": 100,
        "spent_today": 40,
        "reached": False,
        "resets_at": "2024-03-02T00:00:00Z",
    }
    spend(place, 60)
    assert client.get("/v3/workspaces/w/usage").get_json()["budget"]["reached"] is True


def test_an_invalid_bound_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="BUDGET_WORKSPACES: the bound of 'w' is 'much'"):
        load_settings(environ={"BUDGET_WORKSPACES": '{"w": "much"}'})
