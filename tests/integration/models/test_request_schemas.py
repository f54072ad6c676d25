"""Requests to models fit the public schemas of their APIs. `conftest.py` checks each request of the
other tests; these tests show that the check is strict, and cover the options."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from integration.models.test_behaviours import TASKS, reasoner
from memservice.plugins import Plugins
from memservice.testing.badmodel import bad_model
from support.models.request_schemas import SCHEMAS, violations

TRANSPORTS = ("openai", "openai-responses", "anthropic", "gemini")
MINIMAL: dict[str, Any] = {
    "/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    "/responses": {"model": "m", "input": [{"type": "message", "role": "user", "content": "Hi"}]},
    "/messages": {
        "model": "m",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    },
    "/models/m:generateContent": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
}


@pytest.mark.parametrize("path", SCHEMAS)
def test_the_schemas_are_valid(path: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[path])


@pytest.mark.parametrize("path", MINIMAL)
def test_a_field_that_the_api_does_not_have_is_found(path: str) -> None:
    body = MINIMAL[path]
    assert violations(path, body) == []
    assert violations(path, body | {"temprature": 1})
    nested = deepcopy(body)
    (turns,) = [value for value in nested.values() if isinstance(value, list)]
    turns[0]["name_of_nothing"] = "x"
    assert violations(path, nested)
    assert violations(path, {name: body[name] for name in body if name != next(iter(body))})


OPTIONS = {
    "TEMPERATURE": "0.3",
    "TOP_P": "0.9",
    "THINKING_EFFORT": "max",
    "MAX_OUTPUT_TOKENS": "900",
    "CACHE_POLICY__TTL_SECONDS": "86400",
    "CACHE_POLICY__KEY_VERSION": "v1",
}
MORE_OPTIONS = {"SEED": "7", "STOP_SEQUENCES": '["END"]', "FREQUENCY_PENALTY": "0.1"}
"""The Responses API has none of these fields; they are negotiated away."""


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("task", TASKS)
def test_requests_with_options_fit(
    plugins: Plugins, requests_to_models: list[tuple[str, Any]], transport: str, task: str
) -> None:
    options = OPTIONS | ({} if transport == "openai-responses" else MORE_OPTIONS)
    settings = {
        f"{config}_MODEL_CONFIG__{name}": value
        for config in ("DERIVER", "SUMMARY", "DREAM_DEDUCTION", "DIALECTIC_LEVELS__LOW_")
        for name, value in options.items()
    }
    with bad_model("ok") as model:
        TASKS[task](reasoner(model, plugins, transport, **settings))
    assert any("0.3" in str(body) for _, body in requests_to_models), "the options are sent"


def test_a_wrong_request_fails_its_test(requests_to_models: list[tuple[str, Any]]) -> None:
    requests_to_models.append(("/v1/messages", MINIMAL["/messages"] | {"stop": 1}))
    (path, body) = requests_to_models.pop()
    assert violations(path, body) == [
        "/v1/messages $: Additional properties are not allowed ('stop' was unexpected)"
    ]
