"""A thread reports that it is going to wait for something outside of its process."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from memservice.reasoning.client import ModelClient
from memservice.spi.llm import Turn
from memservice.spi.reasoner import Origin
from memservice.spi.waiting import about_to_wait, on_wait
from memservice.timed_calls import TimedCalls
from support.reasoning.model import ModelHarness, ScriptedModel


@pytest.fixture
def reports() -> Iterator[list[str]]:
    reports: list[str] = []
    on_wait(lambda: reports.append(threading.current_thread().name))
    yield reports
    on_wait(None)


@pytest.fixture
def client() -> ModelClient:
    harness = ModelHarness(
        ScriptedModel("Fine."),
        DERIVER_MODEL_CONFIG__TRANSPORT="scripted",
        DERIVER_MODEL_CONFIG__MODEL="first-1",
    )
    config = harness.models.settings.deriver.model_config
    return ModelClient(harness.models, "deriver.representation", config, Origin())


def test_a_report_is_of_one_thread(reports: list[str]) -> None:
    about_to_wait()
    other = threading.Thread(target=about_to_wait)
    other.start()
    other.join()
    assert reports == [threading.current_thread().name]


def test_the_caller_of_a_remote_service_reports_it(reports: list[str]) -> None:
    calls = TimedCalls("embed")
    assert calls.call("name", 30.0, lambda: "answer") == "answer"
    calls.close()
    assert reports == [threading.current_thread().name]


@pytest.mark.parametrize("is_timed", [True, False])
def test_a_call_that_ends_in_time_by_itself_needs_no_other_thread(
    reports: list[str], is_timed: bool
) -> None:
    calls = TimedCalls("embed")
    name = calls.call("name", 30.0, lambda: threading.current_thread().name, is_timed=is_timed)
    calls.close()
    assert (name == threading.current_thread().name) == is_timed
    assert reports == [threading.current_thread().name]


def test_the_caller_of_a_model_reports_it(reports: list[str], client: ModelClient) -> None:
    client.complete([Turn("user", "How are you?")])
    assert len(reports) == 1


def test_the_reader_of_a_models_stream_reports_it(reports: list[str], client: ModelClient) -> None:
    list(client.stream([Turn("user", "How are you?")]))
    assert len(reports) == 1
