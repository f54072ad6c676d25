"""Faults of the provider and faults of the content, by what the provider answered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memservice.spi.llm import (
    ContextTooLong,
    MalformedAnswer,
    ModelFailure,
    Refusal,
    ToolsUnsupported,
)
from memservice_http.failures import Rejected, from_answer

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def failure(status: int, error: Any, **headers: str) -> ModelFailure:
    result = from_answer(
        "p", status, headers, json.dumps({"error": error}).encode(), lambda: NOW, ()
    )
    return result.failure if isinstance(result, Rejected) else result


@pytest.mark.parametrize("status", [401, 402, 403, 404, 408, 409, 429, 500, 502, 503, 529])
def test_a_status_that_every_request_gets_is_a_fault_of_the_provider(status: int) -> None:
    assert failure(status, {"message": "no"}).fault == "provider"


@pytest.mark.parametrize("status", [400, 413, 415, 422, 501])
def test_an_invalid_request_is_a_fault_of_the_content(status: int) -> None:
    assert failure(status, {"message": "no"}).fault == "content"


@pytest.mark.parametrize(
    "error",
    [
        {"type": "invalid_request_error", "message": "Your credit balance is too low to access"},
        {
            "status": "INVALID_ARGUMENT",
            "message": "API key not valid. Please pass a valid API key.",
        },
        {"code": "insufficient_quota", "message": "You exceeded your current quota"},
    ],
)
def test_an_account_without_credit_is_a_fault_of_the_provider_also_with_status_400(
    error: Any,
) -> None:
    assert failure(400, error).fault == "provider"


def test_the_text_of_a_quoted_message_does_not_decide() -> None:
    """A message about billing must not make the whole provider count as unavailable."""
    quoted = "Invalid value in messages: " + "x" * 200 + " my credit balance, context length"
    assert (failure(400, {"message": quoted}).fault, type(failure(400, {"message": quoted}))) == (
        "content",
        ModelFailure,
    )


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "Too long"},
        {"message": "This model's maximum context length is 4096 tokens. However, you"},
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"message": "The input token count (1200000) exceeds the maximum number of tokens"},
        "the request exceeds the available context size. try increasing it",
    ],
)
def test_a_request_that_is_too_long_has_its_own_class(error: Any) -> None:
    assert isinstance(failure(400, error), ContextTooLong)


@pytest.mark.parametrize(
    "error",
    [Refusal("no"), MalformedAnswer("no"), ContextTooLong("no"), ToolsUnsupported("no")],
)
def test_failures_of_content_are_not_retried(error: ModelFailure) -> None:
    assert (error.fault, error.retryable) == ("content", False)


@pytest.mark.parametrize(("retryable", "fault"), [(True, "provider"), (False, "content")])
def test_retryable_failures_without_status_are_faults_of_the_provider(
    retryable: bool, fault: str
) -> None:
    assert ModelFailure("no", retryable=retryable).fault == fault
    assert ModelFailure("no", retryable=retryable, fault="content").fault == "content"


def test_the_pause_requested_by_the_provider_is_recorded() -> None:
    error = failure(429, {"message": "slow down"}, **{"retry-after": "90"})
    assert (error.fault, error.retry_after) == ("provider", 90.0)
