"""Every call of a model is one row of usage. A background thread stores it, and an orderly shutdown
loses none."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain.errors import Unavailable
from memservice.domain.records import Usage
from memservice.services.usage.ledger import Ledger
from memservice.spi.llm import ModelCall
from memservice.telemetry.context import Reason, embedding_for
from memservice.telemetry.events import EmbeddingCallCompleted, Event, LlmCallCompleted
from services.conftest import OpenServices
from support.services.services import Services

CALL = ModelCall(
    purpose="summary.short",
    transport="openai",
    model="small",
    outcome="success",
    duration_ms=120,
    workspace_key=1,
    workspace="w",
    input_tokens=10,
    output_tokens=5,
    cache_read_tokens=3,
    cache_write_tokens=2,
    reasoning_tokens=4,
)


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def rows(services: Services) -> list[Usage]:
    with services.rt.storage.read() as tx:
        return tx.rows.page(Usage)


@pytest.mark.slow
def test_a_call_is_stored_soon_and_unchanged(open_services: OpenServices) -> None:
    services = open_services(role="api")
    services.rt.events.called(CALL)
    until(lambda: len(rows(services)) == 1)
    (row,) = rows(services)
    assert replace(row, key=0) == Usage(
        workspace_key=1,
        day="2026-01-01",
        task="summary.short",
        provider="openai",
        model="small",
        input_tokens=10,
        output_tokens=5,
        cache_read_tokens=3,
        cache_write_tokens=2,
        reasoning_tokens=4,
        duration_ms=120,
        outcome="success",
        created_at=services.clock(),
    )


def test_failed_and_cancelled_calls_are_stored(open_services: OpenServices) -> None:
    services = open_services()
    ledger = Ledger(services.rt.storage, services.clock)
    ledger(dataclasses.replace(CALL, outcome="error", input_tokens=0))
    ledger(dataclasses.replace(CALL, outcome="cancelled"))
    ledger.close()
    assert [row.outcome for row in rows(services)] == ["error", "cancelled"]


def test_closing_stores_queued_calls(
    open_services: OpenServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memservice.services.usage.ledger.WAIT_SECONDS", 60.0)
    monkeypatch.setattr("memservice.services.usage.ledger.BATCH_SIZE", 1_000)
    services = open_services()
    ledger = Ledger(services.rt.storage, services.clock)
    writes: list[int] = []
    write = services.rt.storage.write

    def counted(fn: Callable[[Any], Any]) -> Any:
        writes.append(1)
        return write(fn)

    monkeypatch.setattr(services.rt.storage, "write", counted)
    for _ in range(700):
        ledger(CALL)
    assert rows(services) == []
    assert ledger.unwritten(1, "2026-01-01") == 700 * 15
    ledger.close()
    assert len(rows(services)) == 700
    assert len(writes) == 1
    assert ledger.unwritten(1, "2026-01-01") == 0


@pytest.mark.slow
def test_calls_wait_for_an_unreachable_store(
    open_services: OpenServices, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memservice.services.usage.ledger.PAUSE_SECONDS", 0.02)
    services = open_services()
    ledger = Ledger(services.rt.storage, services.clock)
    away = threading.Event()
    away.set()
    tried: list[int] = []
    write = services.rt.storage.write

    def maybe(fn: Callable[[Any], Any]) -> Any:
        tried.append(1)
        if away.is_set():
            raise Unavailable("not now")
        return write(fn)

    monkeypatch.setattr(services.rt.storage, "write", maybe)
    for number in range(3):
        ledger(dataclasses.replace(CALL, input_tokens=number))
    until(lambda: len(tried) > 3)
    away.clear()
    until(lambda: len(rows(services)) == 3)
    assert [row.input_tokens for row in rows(services)] == [0, 1, 2]
    assert caplog.text.count("cannot record usage now") == 1
    ledger.close()


@pytest.mark.slow
def test_calls_that_cannot_be_stored_before_the_end_are_logged(
    open_services: OpenServices, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memservice.services.usage.ledger.LAST_SECONDS", 0.05)
    services = open_services()
    ledger = Ledger(services.rt.storage, services.clock)

    def refuse(fn: Callable[[Any], Any]) -> None:
        raise Unavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(services.rt.storage, "write", refuse)
        ledger(CALL)
        ledger.close()
    assert "could not record 1 model call(s): gone" in caplog.text


@pytest.mark.slow
def test_calls_of_many_threads_are_all_stored(open_services: OpenServices) -> None:
    services = open_services()
    ledger = Ledger(services.rt.storage, services.clock)

    def call_often() -> None:
        for _ in range(200):
            ledger(CALL)

    threads = [threading.Thread(target=call_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    with services.rt.storage.read() as tx:
        assert tx.usage.tokens(1, "2026-01-01") == 8 * 200 * 15
    assert ledger.unwritten(1, "2026-01-01") == 0


def test_calls_are_events_too(open_services: OpenServices) -> None:
    rt = open_services(role="api").rt
    events: list[Event] = []
    rt.events.on_event(lambda event, at: events.append(event))
    rt.events.called(
        dataclasses.replace(
            CALL, outcome="error", error_class="ModelFailure 429", attempt=1, attempts=3
        )
    )
    rt.events.called(dataclasses.replace(CALL, attempt=3, attempts=3, is_fallback=True))
    with embedding_for(Reason("message_create", 7, "shop")):
        rt.events.called(
            ModelCall(
                "document",
                "openai",
                "embed",
                "success",
                9,
                embedding=True,
                input_tokens=40,
                input_count=4,
            )
        )
    failed, passed, embedded = events
    assert isinstance(failed, LlmCallCompleted)
    assert (failed.outcome, failed.is_final_attempt, failed.error_class, failed.retry_attempts) == (
        "error",
        False,
        "ModelFailure 429",
        3,
    )
    assert isinstance(passed, LlmCallCompleted)
    assert (passed.is_final_attempt, passed.was_fallback, passed.parent_category) == (
        True,
        True,
        "summary",
    )
    assert isinstance(embedded, EmbeddingCallCompleted)
    assert (
        embedded.workspace_name,
        embedded.call_purpose,
        embedded.input_count,
        embedded.input_tokens_estimate,
    ) == (
        "shop",
        "message_create",
        4,
        40,
    )
