"""Model servers that mean no good: answers that no reader takes, and redirects to where the key
should not go."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest

from memservice.domain.answers.json_text import read
from memservice.services.chat.response_format import InvalidAnswer, check_answer
from memservice.spi.llm import ModelFailure
from memservice_http import failures
from memservice_http.chat import arguments_of
from memservice_http.client import Endpoint

DEEP = "[" * 200_000
SETTINGS = {
    "api_key": "geheim",
    "extra_body": {},
    "extra_query": {},
    "extra_headers": {},
    "timeout": 5.0,
}


def endpoint(answer: httpx.Response, asked: list[str]) -> Endpoint:
    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return answer

    made = Endpoint(
        "a model",
        "http://models",
        {"authorization": "Bearer geheim"},
        SETTINGS,
        lambda: datetime.now(UTC),
    )
    made._client = httpx.Client(
        transport=httpx.MockTransport(handle), follow_redirects=made._client.follow_redirects
    )
    return made


class TestJsonDeeperThanAnyReaderGoes:
    def test_as_an_answer(self) -> None:
        answer = httpx.Response(200, text=DEEP, headers={"content-type": "application/json"})
        with pytest.raises(ModelFailure, match="cannot be read"):
            endpoint(answer, []).post("/chat", {})

    def test_as_an_error(self) -> None:
        answer = httpx.Response(500, text=DEEP, headers={"content-type": "application/json"})
        with pytest.raises(ModelFailure, match="status 500"):
            endpoint(answer, []).post("/chat", {})
        found = failures.from_answer(
            "a model", 400, {}, DEEP.encode(), lambda: datetime.now(UTC), []
        )
        assert "status 400" in str(found)

    def test_as_arguments_of_a_tool(self) -> None:
        with pytest.raises(ModelFailure, match="no JSON object"):
            arguments_of("a model", DEEP, cut=False)

    def test_as_an_answer_of_a_form(self) -> None:
        with pytest.raises(InvalidAnswer):
            check_answer({"type": "object"}, DEEP)
        with pytest.raises(ValueError, match="no JSON document"):
            read(DEEP, {"type": "object"})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """They would take the key along, and a request to wherever that server likes."""
    asked: list[str] = []
    answer = httpx.Response(status, headers={"location": "http://169.254.169.254/latest"})
    with pytest.raises(ModelFailure, match="redirects are not followed") as failed:
        endpoint(answer, asked).post("/chat", {})
    assert asked == ["models"]
    assert "geheim" not in str(failed.value)
