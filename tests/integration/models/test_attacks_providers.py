"""Model servers that mean no good: answers that no reader takes, and redirects to where the key
should not go."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest

from memservice.domain.answers.json_text import read
from memservice.services.chat.response_format import InvalidAnswer, check_answer
from memservice.spi.llm import ModelFailure
from memservice.testing.model_server import Handler, Request, drip_head, scripted
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


def endpoint(answer: httpx.Response, hosts: list[str]) -> Endpoint:
    def handle(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        return answer

    opened = Endpoint(
        "a model",
        "http://models",
        {"authorization": "Bearer geheim"},
        SETTINGS,
        lambda: datetime.now(UTC),
    )
    for connection in opened._connections._idle:
        connection.transport = httpx.MockTransport(handle)
    return opened


class TestJsonDeeperThanAnyReaderGoes:
    def test_in_an_answer(self) -> None:
        answer = httpx.Response(200, text=DEEP, headers={"content-type": "application/json"})
        with pytest.raises(ModelFailure, match="cannot be read"):
            endpoint(answer, []).post("/chat", {})

    def test_in_an_error(self) -> None:
        answer = httpx.Response(500, text=DEEP, headers={"content-type": "application/json"})
        with pytest.raises(ModelFailure, match="status 500"):
            endpoint(answer, []).post("/chat", {})
        failure = failures.from_answer(
            "a model", 400, {}, DEEP.encode(), lambda: datetime.now(UTC), []
        )
        assert "status 400" in str(failure)

    def test_in_arguments_of_a_tool(self) -> None:
        with pytest.raises(ModelFailure, match="no JSON object"):
            arguments_of("a model", DEEP, cut=False)

    def test_in_a_structured_answer(self) -> None:
        with pytest.raises(InvalidAnswer):
            check_answer({"type": "object"}, DEEP)
        with pytest.raises(ValueError, match="no JSON document"):
            read(DEEP, {"type": "object"})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """They would take the key along, and a request to wherever that server likes."""
    hosts: list[str] = []
    answer = httpx.Response(status, headers={"location": "http://169.254.169.254/latest"})
    with pytest.raises(ModelFailure, match="redirects are not followed") as failed:
        endpoint(answer, hosts).post("/chat", {})
    assert hosts == ["models"]
    assert "geheim" not in str(failed.value)


def test_the_time_limit_holds_for_a_connection_that_is_used_again() -> None:
    with scripted() as server:
        provider = Endpoint("a model", server.url, {}, SETTINGS, lambda: datetime.now(UTC))
        server.then(lambda handler, request: handler.json({"answer": 1}))
        assert provider.post("/chat", {}) == {"answer": 1}
        server.then(lambda handler, request: drip_head(handler, interval=0.05))
        began = time.monotonic()
        with pytest.raises(ModelFailure, match=r"took longer than 0\.5 s"):
            provider.post("/chat", {}, timeout=0.5)
        assert time.monotonic() - began < 20
        assert server.left.wait(20)


def test_exchanges_at_the_same_time_have_connections_of_their_own() -> None:
    """The end of one exchange is not the end of another."""
    with scripted() as server, ThreadPoolExecutor(2) as pool:
        provider = Endpoint("a model", server.url, {}, SETTINGS, lambda: datetime.now(UTC))
        both = threading.Barrier(2)

        def answer(handler: Handler, request: Request) -> None:
            both.wait(20)
            if request.body["hangs"]:
                handler.wait_to_be_left()
            time.sleep(0.6)
            handler.json({"answer": 1})

        server.then(answer)
        late = pool.submit(provider.post, "/chat", {"hangs": True}, timeout=0.3)
        assert provider.post("/chat", {"hangs": False}) == {"answer": 1}
        with pytest.raises(ModelFailure, match=r"took longer than 0\.3 s"):
            late.result(20)
