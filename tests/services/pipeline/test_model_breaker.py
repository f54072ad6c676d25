"""Work waits while the provider of a language model fails, and continues by itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memservice.compose import open_runtime
from memservice.domain.records import Task
from memservice.operations import doctor
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services.paging import Paging
from memservice.services.tasks import jobs, kinds, model_breaker
from memservice.services.tasks.model_breaker import Outage
from memservice.serving.banner import banner
from memservice.settings import load_settings
from memservice.spi.capabilities import Capability
from memservice.spi.llm import CompletionRequest, MalformedAnswer, ModelFailure, Refusal
from memservice.worker import runner
from memservice.worker.housekeeping import Housekeeping
from memservice.worker.polling import Worker
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Clock, Pipeline
from support.pipeline.webhooks import SETTINGS, register
from support.reasoning.model import SCRIPTED, ScriptedModel
from support.receiver import Receiver
from support.stores.stores import sqlite_store_at

MODEL = "scripted scripted-1"
WRONG_KEY = "scripted answered with status 401 Unauthorized: is the key right?"
FOUND = {"statements": [{"content": "Alice likes tea.", "messages": [1]}]}


class Outages:
    """A store whose language model fails as long as `failure` is set."""

    def __init__(self, pipeline: Pipeline, model: ScriptedModel) -> None:
        self.pipeline, self.model = pipeline, model
        self.failure: Callable[[], Exception] | None = None
        self.events: list[tuple[str, dict[str, Any]]] = []
        model.say = self._answer

    def _answer(self, request: CompletionRequest) -> Any:
        return self.failure() if self.failure is not None else json.dumps(FOUND)

    @property
    def calls(self) -> int:
        return len(self.model.requests)

    def say(self, sessions: int = 6, messages: int = 10) -> None:
        for number in range(sessions):
            drafts = [("alice", f"I like tea number {n}.") for n in range(messages)]
            self.pipeline.say(f"s{number}", *drafts)

    def work_for(self, seconds: float, step: float = 5.0) -> None:
        """A worker beside a clock that moves."""
        end = self.pipeline.clock() + timedelta(seconds=seconds)
        while self.pipeline.clock() < end:
            self.pipeline.work()
            self.pipeline.clock.advance(seconds=step)

    def outages(self) -> list[Outage]:
        with self.pipeline.rt.storage.read() as tx:
            return model_breaker.current(tx)

    def states(self) -> dict[str, int]:
        by_state: dict[str, int] = {}
        for task in self.pipeline.tasks(kinds.REPRESENTATION):
            by_state[task.state] = by_state.get(task.state, 0) + 1
        return by_state


OpenPipeline = Callable[..., Outages]


@pytest.fixture
def open_pipeline(local_storage_name: str, tmp_path: Path) -> Iterator[OpenPipeline]:
    opened: list[Runtime] = []

    def open_outages(**settings: str) -> Outages:
        uri = "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "o.db")
        environ = {
            "DB_CONNECTION_URI": uri,
            "REASONER": "llm",
            "LLM_RETRY_PAUSE_SECONDS": "0.001",
            "DERIVER_FLUSH_ENABLED": "true",
            "PEER_CARD_REFRESH": "false",  # its calls are not counted here
            **SCRIPTED,
            **settings,
        }
        loaded = load_settings(environ=environ, cwd=tmp_path)
        model, clock = ScriptedModel(), Clock()
        runtime = open_runtime(loaded, plugins=load_plugins(loaded, extra=[model]), clock=clock)
        opened.append(runtime)
        runtime.storage.migrate()
        return Outages(Pipeline(runtime, clock, ScriptedReasoner()), model)

    yield open_outages
    for runtime in opened:
        runtime.close()


@pytest.fixture
def outages(open_pipeline: OpenPipeline) -> Outages:
    return open_pipeline()


def wrong_key() -> Exception:
    return ModelFailure(WRONG_KEY, retryable=False, status=401)


def unreachable() -> Exception:
    return ModelFailure("scripted could not be reached", retryable=True)


@pytest.mark.slow
@pytest.mark.parametrize("failure", [wrong_key, unreachable])
def test_ten_minutes_without_a_model_lose_nothing_and_cost_few_calls(
    outages: Outages, failure: Callable[[], Exception]
) -> None:
    outages.failure = failure
    outages.say(sessions=6, messages=10)
    outages.pipeline.work()
    # Threads that call before the first failure is stored; how many depends on their timing.
    burst = outages.calls
    outages.work_for(600)
    assert outages.states() == {"pending": 60}
    assert {task.attempts for task in outages.pipeline.tasks(kinds.REPRESENTATION)} == {0}
    assert burst <= 6 * outages.pipeline.rt.settings.llm.max_attempts
    assert outages.calls - burst == 4, "probes"
    outages.failure = None
    outages.work_for(60)
    assert outages.states() == {"done": 60}, "within a minute after the provider is back"
    assert outages.outages() == []


@pytest.mark.slow
def test_pauses_grow_and_one_task_at_a_time_probes(outages: Outages) -> None:
    outages.failure = wrong_key
    outages.say(sessions=6, messages=1)
    outages.pipeline.work()
    pauses = []
    for _ in range(12):
        (outage,) = outages.outages()
        pauses.append((outage.retry_at - outages.pipeline.clock()).total_seconds())
        outages.pipeline.clock.now = outage.retry_at
        before = outages.calls
        outages.pipeline.work()
        assert outages.calls == before + 1
    assert pauses[:5] == [30, 60, 120, 210, 210]
    assert [round(pause) for pause in pauses[5:9]] == [210, 280, 373, 498]
    assert pauses[-1] == 900


@pytest.mark.slow
def test_pauses_have_a_maximum(outages: Outages) -> None:
    outages.failure = wrong_key
    outages.say(sessions=1, messages=1)
    outages.work_for(24 * 3600, step=300)
    (outage,) = outages.outages()
    assert (outage.retry_at - outages.pipeline.clock()).total_seconds() <= 900
    assert outages.calls < 140


@pytest.mark.slow
def test_a_batch_is_not_cut_for_a_failure_of_the_provider(outages: Outages) -> None:
    outages.failure = wrong_key
    outages.say(sessions=1, messages=15)
    outages.pipeline.work()
    assert outages.calls == 1
    outages.failure = None
    outages.pipeline.clock.advance(seconds=31)
    outages.pipeline.work()
    assert outages.calls == 2


@pytest.mark.slow
def test_the_provider_can_ask_for_a_longer_pause(outages: Outages) -> None:
    outages.failure = lambda: ModelFailure("quota", retryable=True, status=429, retry_after=90.0)
    outages.say(sessions=3, messages=1)
    outages.pipeline.work()
    calls = outages.calls
    for seconds in (30, 59):
        outages.pipeline.clock.advance(seconds=seconds)
        outages.pipeline.work()
        assert outages.calls == calls
        outages.pipeline.clock.advance(seconds=-seconds)
    outages.failure = None
    outages.pipeline.clock.advance(seconds=91)
    outages.pipeline.work()
    assert outages.states() == {"done": 3}


def test_failures_of_the_content_count_against_the_task(open_pipeline: OpenPipeline) -> None:
    outages = open_pipeline(WORKER_MAX_ATTEMPTS="1")
    outages.failure = lambda: MalformedAnswer("no JSON in it")
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    assert outages.states() == {"failed": 1}
    assert outages.outages() == []


@pytest.mark.slow
def test_a_failure_of_the_content_shows_that_the_model_is_back(outages: Outages) -> None:
    outages.failure = wrong_key
    outages.say(sessions=3, messages=1)
    outages.pipeline.work()
    outages.failure = lambda: Refusal("the model declined")
    outages.pipeline.clock.advance(seconds=31)
    outages.pipeline.work()
    assert outages.outages() == []
    assert outages.states() == {"done": 3}, "what was refused is recorded, the rest is derived"


@pytest.mark.slow
def test_a_retry_that_succeeds_wakes_what_failed_beside_it(outages: Outages) -> None:
    """A short disturbance costs no pause."""
    together = threading.Barrier(4, action=lambda: setattr(outages, "failure", None))

    def at_the_same_time() -> Exception:
        together.wait(30)
        return unreachable()

    outages.failure = at_the_same_time
    outages.say(sessions=4, messages=1)
    outages.pipeline.work()
    assert outages.states() == {"done": 4}
    assert outages.outages() == []


def test_an_answer_while_a_breaker_opens_closes_it(
    outages: Outages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt that was answered closes breakers that are open; this one is opened later."""
    rt = outages.pipeline.rt
    outages.say(sessions=2, messages=1)
    first, second = (
        model_breaker.attempt(rt, task) for task in outages.pipeline.tasks(kinds.REPRESENTATION)
    )
    assert first is not None
    assert second is not None
    failure = ModelFailure("status 500", retryable=True, status=500)
    failure.model = MODEL
    assert first.may_retry(MODEL)
    open_ = model_breaker.open_

    def open_after_an_answer(*args: Any, **options: Any) -> Outage | None:
        first.answered(MODEL)
        return open_(*args, **options)

    monkeypatch.setattr(model_breaker, "open_", open_after_an_answer)
    assert second.failed(failure) is not None, "the task begins again"
    assert outages.outages() == []


def rejects_poison(request: CompletionRequest) -> Any:
    """As a provider does that answers a certain text with 500."""
    if any("poison" in turn.content for turn in request.turns):
        return ModelFailure("status 500", retryable=True, status=500)
    return json.dumps(FOUND)


def model_events(receiver: Receiver) -> list[str]:
    return [event["type"] for event in receiver.events if event["type"].startswith("model.")]


@pytest.mark.slow
def test_one_task_that_the_provider_always_rejects_fails_alone(
    open_pipeline: OpenPipeline, receiver: Receiver
) -> None:
    outages = open_pipeline(**SETTINGS)
    outages.model.say = rejects_poison
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    register(outages.pipeline, receiver)
    outages.pipeline.say("bad", ("alice", "Some poison."))
    for hour in range(24):
        outages.pipeline.say(f"good{hour}", ("alice", "I like tea."))
        outages.work_for(60)
        assert outages.states().get("done", 0) == hour + 2
        outages.work_for(600, step=60)
        if "failed" in outages.states():
            break
    assert outages.states()["failed"] == 1
    assert outages.outages() == []
    assert model_events(receiver) in ([], ["model.unavailable", "model.recovered"])


@pytest.mark.slow
def test_a_task_that_always_fails_beside_others_is_no_outage(
    open_pipeline: OpenPipeline, receiver: Receiver
) -> None:
    outages = open_pipeline(**SETTINGS, WORKER_MAX_ATTEMPTS="3")
    outages.model.say = rejects_poison
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    register(outages.pipeline, receiver)
    outages.pipeline.say("bad", ("alice", "Some poison."))
    for number in range(25):
        outages.pipeline.say(f"good{number}", ("alice", "I like tea."))
        outages.pipeline.work()
        assert outages.states()["done"] == number + 2
        outages.pipeline.clock.advance(seconds=10)
    assert outages.states()["failed"] == 1
    assert model_events(receiver) == []


@pytest.mark.slow
def test_other_tasks_do_not_wait_for_a_task_that_fails_alone(outages: Outages) -> None:
    """Not even if they arrive while that one probes."""
    rt = outages.pipeline.rt
    outages.model.say = rejects_poison
    outages.pipeline.say("bad", ("alice", "Some poison."))
    outages.pipeline.work()
    outages.pipeline.clock.advance(seconds=31)
    (bad,) = outages.pipeline.tasks(kinds.REPRESENTATION)
    probe = model_breaker.attempt(rt, bad)
    assert probe is not None
    outages.pipeline.say("good", ("alice", "I like tea."))
    outages.pipeline.work()
    assert outages.states() == {"pending": 2}, "one probe at a time"
    failure = ModelFailure("status 500", retryable=True, status=500)
    failure.model = MODEL
    assert probe.failed(failure) is not None
    outages.pipeline.work()
    assert outages.states() == {"pending": 1, "done": 1}


@pytest.mark.slow
def test_a_new_outage_does_not_use_up_the_tries_of_a_task_that_failed_before(
    outages: Outages,
) -> None:
    outages.failure = unreachable
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    model_breaker.close(outages.pipeline.rt, MODEL)  # another process had an answer
    outages.work_for(12 * 3600, step=900)
    (task,) = outages.pipeline.tasks(kinds.REPRESENTATION)
    assert (task.state, task.attempts) == ("pending", 1)
    assert len(outages.outages()) == 1


def test_a_recorded_failure_names_its_model(outages: Outages) -> None:
    """A task that then waits for another model has not failed with that one."""
    rt = outages.pipeline.rt
    outages.failure = unreachable
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    (task,) = outages.pipeline.tasks(kinds.REPRESENTATION)
    failure = ModelFailure("status 500", retryable=True, status=500)
    outage = model_breaker.open_(rt, "scripted scripted-2", failure, task)
    assert outage is not None
    error = model_breaker.ModelUnavailable(outage)
    with rt.storage.read() as tx:
        waiting = model_breaker.postponed(tx, task, error)
    assert waiting.outcome[model_breaker.FAILED_BEFORE] == MODEL


def down(outages: Outages, *models: str) -> Task:
    """Open breakers of all these models for a task that needs them; the task, which may probe."""
    outages.say(sessions=1, messages=1)
    (task,) = outages.pipeline.tasks(kinds.REPRESENTATION)
    for model in models:
        failure = ModelFailure("status 500", retryable=True, status=500)
        model_breaker.open_(outages.pipeline.rt, model, failure, task)
    outages.pipeline.clock.advance(seconds=31)
    return task


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_task_that_cannot_probe_all_its_models_probes_none(
    outages: Outages, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    rt = outages.pipeline.rt
    monkeypatch.setattr(model_breaker, "models_of", lambda rt, kind: ("one", "two"))
    task = down(outages, "one", "two")
    begin = model_breaker._begin_probe
    if when == "before":
        assert begin(rt, "two", task)
    else:
        # Another worker takes the probe after the check.
        monkeypatch.setattr(
            model_breaker,
            "_begin_probe",
            lambda rt, model, task: begin(rt, model, task) and model != "two",
        )
    with pytest.raises(model_breaker.ModelUnavailable):
        model_breaker.attempt(rt, task)
    assert {outage.model: outage.probing for outage in outages.outages()} == {
        "one": False,
        "two": True,
    }


def test_an_answer_closes_the_breaker_of_its_model_alone(
    outages: Outages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_breaker, "models_of", lambda rt, kind: ("one", "two"))
    attempt = model_breaker.attempt(outages.pipeline.rt, down(outages, "one", "two"))
    assert attempt is not None
    attempt.answered("one")
    assert [outage.model for outage in outages.outages()] == ["two"]
    assert list(outages.pipeline.rt.models_answered) == ["one"]
    attempt.ended()
    assert [outage.probing for outage in outages.outages()] == [False]


def test_an_answer_of_the_first_model_closes_the_breaker_of_its_fallback(
    open_pipeline: OpenPipeline,
) -> None:
    """The fallback has no call then that could close it, and tasks would run one at a time."""
    fallback = "DERIVER_MODEL_CONFIG__FALLBACK__"
    outages = open_pipeline(
        **{fallback + "TRANSPORT": "scripted", fallback + "MODEL": "scripted-2"},
    )
    outages.failure = wrong_key
    outages.say(sessions=2, messages=1)
    outages.pipeline.work()
    assert [outage.model for outage in outages.outages()] == ["scripted scripted-2"]
    outages.failure = None
    outages.pipeline.clock.advance(seconds=31)
    outages.pipeline.work()
    assert {request.model for request in outages.model.requests[-2:]} == {"scripted-1"}
    assert (outages.states(), outages.outages()) == ({"done": 2}, [])


def test_a_worker_that_starts_tries_at_once(outages: Outages, open_pipeline: OpenPipeline) -> None:
    outages.failure = wrong_key
    outages.say(sessions=2, messages=1)
    outages.pipeline.work()
    (before,) = outages.outages()
    outages.failure = None
    model_breaker.retry_now(outages.pipeline.rt)
    (outage,) = outages.outages()
    assert (outage.since, outage.failures) == (before.since, before.failures)
    outages.pipeline.work()
    assert outages.states() == {"done": 2}


def test_an_outage_of_a_model_that_is_no_longer_configured_is_forgotten(
    outages: Outages, monkeypatch: pytest.MonkeyPatch
) -> None:
    outages.failure = wrong_key
    outages.say(sessions=2, messages=1)
    outages.pipeline.work()
    monkeypatch.setattr(model_breaker, "models_of", lambda rt, kind: ("scripted other",))
    model_breaker.retry_now(outages.pipeline.rt)
    assert outages.outages() == []
    assert len(outages.pipeline.ready()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("hours", [5, 9_000])
def test_an_outage_of_a_clock_that_was_ahead_ends(outages: Outages, hours: int) -> None:
    outages.failure = wrong_key
    clock = outages.pipeline.clock
    clock.advance(hours=hours)
    outages.say(sessions=2, messages=1)
    outages.pipeline.work()
    clock.advance(hours=-hours)
    Housekeeping(outages.pipeline.rt).run_due()
    (outage,) = outages.outages()
    assert outage.since == outage.retry_at == clock()
    outages.failure = None
    outages.pipeline.work()
    assert (outages.states(), outages.outages()) == ({"done": 2}, [])


def test_tasks_of_a_clock_that_was_ahead_probe_without_housekeeping(outages: Outages) -> None:
    """They are due: if they waited for the breaker, a worker would try them without a pause."""
    outages.failure = wrong_key
    outages.pipeline.clock.advance(days=400)
    outages.say(sessions=2, messages=1)
    outages.pipeline.work()
    outages.pipeline.clock.advance(days=-400)
    calls = outages.calls
    outages.pipeline.work()
    assert outages.calls == calls + 1
    assert outages.states() == {"pending": 2}


@pytest.mark.slow
@pytest.mark.parametrize("retry_after", [None, 3600.0])
def test_housekeeping_leaves_outages_that_wait_as_they_should(
    outages: Outages, retry_after: float | None
) -> None:
    outages.failure = lambda: ModelFailure(
        "quota", retryable=True, status=429, retry_after=retry_after
    )
    outages.say(sessions=2, messages=1)
    outages.work_for(100)
    before = outages.outages()
    Housekeeping(outages.pipeline.rt).run_due()
    assert outages.outages() == before != []


def test_housekeeping_forgets_an_outage_of_a_model_that_is_no_longer_configured(
    outages: Outages, monkeypatch: pytest.MonkeyPatch
) -> None:
    outages.failure = wrong_key
    outages.say(sessions=2, messages=1)
    outages.pipeline.work()
    monkeypatch.setattr(model_breaker, "models_of", lambda rt, kind: ("scripted other",))
    Housekeeping(outages.pipeline.rt).run_due()
    assert outages.outages() == []
    assert len(outages.pipeline.ready()) == 2


def test_a_probe_that_calls_no_model_leaves_the_next_one_to_another_task(
    outages: Outages, monkeypatch: pytest.MonkeyPatch
) -> None:
    outages.failure = wrong_key
    outages.say(sessions=2, messages=1)
    outages.pipeline.work()
    outages.pipeline.clock.advance(seconds=31)
    one, other = outages.pipeline.tasks(kinds.REPRESENTATION)
    attempt = model_breaker.attempt(outages.pipeline.rt, one)
    assert attempt is not None
    assert outages.pipeline.ready() == [], "one probe at a time"
    with pytest.raises(model_breaker.ModelUnavailable):
        model_breaker.attempt(outages.pipeline.rt, other)
    attempt.ended()
    assert len(outages.pipeline.ready()) == 2


def test_a_probe_whose_process_was_killed_is_repeated(outages: Outages) -> None:
    outages.failure = wrong_key
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    outages.pipeline.clock.advance(seconds=31)
    (task,) = outages.pipeline.tasks(kinds.REPRESENTATION)
    outages.pipeline.clock.advance(seconds=1)
    assert model_breaker.attempt(outages.pipeline.rt, task) is not None
    outages.failure = None
    outages.pipeline.work()
    assert outages.states() == {"pending": 1}
    outages.pipeline.clock.advance(seconds=model_breaker.PROBE_SECONDS)
    outages.pipeline.work()
    assert outages.states() == {"done": 1}


def test_a_reasoner_of_a_plugin_has_a_breaker_too(open_pipeline: OpenPipeline) -> None:
    outages = open_pipeline()
    rt = outages.pipeline.rt
    scripted = ScriptedReasoner(Capability.REMOTE)
    loaded = load_plugins(rt.settings, extra=[outages.model, scripted])
    rt.plugins = loaded
    rt.reasoners = dict.fromkeys(rt.reasoners, "scripted")

    def fail(request: object) -> None:
        raise unreachable()

    scripted.act = fail
    outages.say(sessions=2, messages=1)
    outages.pipeline.work()
    assert [outage.model for outage in outages.outages()] == ["reasoner scripted"]
    scripted.act = None
    outages.pipeline.clock.advance(seconds=31)
    outages.pipeline.work()
    assert (outages.states(), outages.outages()) == ({"done": 2}, [])


def test_other_models_and_local_work_go_on(open_pipeline: OpenPipeline) -> None:
    outages = open_pipeline(SUMMARY_MODEL_CONFIG__MODEL="scripted-2")

    def answer(request: CompletionRequest) -> Any:
        return wrong_key() if request.model == "scripted-1" else "A short summary."

    outages.model.say = answer
    outages.say(sessions=1, messages=20)
    outages.pipeline.work()
    assert outages.states() == {"pending": 20}
    assert [task.state for task in outages.pipeline.tasks(kinds.SUMMARY)] == ["done"]
    assert [outage.model for outage in outages.outages()] == [MODEL]


@pytest.mark.slow
def test_status_shows_the_time_and_cause_of_an_outage(outages: Outages) -> None:
    outages.failure = wrong_key
    outages.say(sessions=6, messages=1)
    outages.pipeline.work()
    rt = outages.pipeline.rt
    (check,) = [check for check in doctor.look(rt) if check.name == "models"]
    assert check.state == doctor.DEGRADED
    assert check.found == (
        f"scripted scripted-1 is unavailable since 2024-03-01 12:00:00 UTC: {WRONG_KEY}; next try "
        "at 2024-03-01 12:00:30 UTC; 6 work units wait"
    )
    assert WRONG_KEY not in check.advice, "/health/ready shows the advice to anyone"
    assert any(WRONG_KEY in line for line in banner(rt, with_worker=True))
    outages.failure = None
    outages.pipeline.clock.advance(seconds=31)
    outages.pipeline.work()
    (check,) = [check for check in doctor.look(rt) if check.name == "models"]
    assert check.state == doctor.OK
    assert not any(line.startswith("models ") for line in banner(rt, with_worker=True))


def test_waiting_work_is_listed_among_the_failures_on_request(outages: Outages) -> None:
    outages.failure = wrong_key
    outages.say(sessions=3, messages=1)
    outages.pipeline.work()
    rt, paging = outages.pipeline.rt, Paging(page=1, size=50)
    assert jobs.failures(rt, PRINCIPAL, WORKSPACE, paging).items == []
    failures = jobs.failures(rt, PRINCIPAL, WORKSPACE, paging, retrying=True)
    assert {job.session for job in failures.items} == {"s0", "s1", "s2"}
    for job in failures.items:
        assert (job.task.state, job.task.attempts) == ("pending", 0)
        assert job.task.last_error == f"scripted scripted-1 is unavailable: {WRONG_KEY}"
        assert job.next_try_at is not None
        wait = (job.next_try_at - outages.pipeline.clock()).total_seconds()
        assert wait in (30, 31), "tasks that failed come last"


@pytest.mark.slow
def test_endpoints_of_every_workspace_receive_an_outage_once(
    open_pipeline: OpenPipeline, receiver: Receiver
) -> None:
    outages = open_pipeline(**SETTINGS)
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    register(outages.pipeline, receiver)
    outages.failure = wrong_key
    outages.say(sessions=3, messages=1)
    outages.work_for(100)
    outages.failure = None
    outages.work_for(1000, step=100)
    events = [event for event in receiver.events if event["type"].startswith("model.")]
    assert [event["type"] for event in events] == ["model.unavailable", "model.recovered"]
    assert events[0]["data"] == {
        "model": MODEL,
        "since": "2024-03-01T12:00:00+00:00",
    }
    assert events[1]["data"]["since"] == events[0]["data"]["since"]


def test_the_outage_of_a_single_task_is_reported_at_its_second_failure(
    open_pipeline: OpenPipeline, receiver: Receiver
) -> None:
    outages = open_pipeline(**SETTINGS)
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    register(outages.pipeline, receiver)
    outages.failure = unreachable
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    assert model_events(receiver) == []
    outages.pipeline.clock.advance(seconds=32)
    outages.pipeline.work()
    assert model_events(receiver) == ["model.unavailable"]


def test_a_recovery_before_a_task_begins_to_wait_is_not_missed(
    outages: Outages, monkeypatch: pytest.MonkeyPatch
) -> None:
    outages.failure = wrong_key
    real = runner._wait_for_model  # the moment between two transactions

    def after_recovery(rt: Runtime, *arguments: Any) -> None:
        outages.failure = None
        for outage in outages.outages():
            model_breaker.close(rt, outage.model)
        real(rt, *arguments)

    monkeypatch.setattr(runner, "_wait_for_model", after_recovery)
    outages.say(sessions=1, messages=1)
    outages.pipeline.work()
    assert outages.states() == {"done": 1}


def test_a_worker_without_work_probes_nothing(outages: Outages) -> None:
    Worker(outages.pipeline.rt).run_until_idle(10)
    assert outages.calls == 0
