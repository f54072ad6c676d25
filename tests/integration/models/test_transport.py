"""The way to an endpoint: direct, or through the proxy that the environment names."""

from __future__ import annotations

from base64 import b64encode

import pytest

from memservice.domain.errors import ConfigurationError
from memservice.spi.llm import ModelFailure
from memservice.testing.model_server import Handler, Request, Server
from support.models.fixtures import OpenEmbedder
from support.models.vectors import openai_vectors

NOWHERE = "http://models.invalid/v1"
"""Only a proxy can answer for this host."""
VARIABLES = ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_the_proxy_of_the_environment_is_used(
    server: Server,
    open_embedder: OpenEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    scheme: str,
) -> None:
    monkeypatch.setenv(variable, scheme + server.url.removeprefix("http://"))
    server.then(openai_vectors)
    assert open_embedder("openai", model="m", base_url=NOWHERE).embed(["a"], "query")
    assert [request.path for request in server.requests] == [f"{NOWHERE}/embeddings"]


@pytest.mark.parametrize("hosts", ["*", "127.0.0.1", "example.org, 127.0.0.1"])
def test_a_host_without_proxy_is_reached_directly(
    server: Server, open_embedder: OpenEmbedder, monkeypatch: pytest.MonkeyPatch, hosts: str
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", hosts)
    server.then(openai_vectors)
    assert open_embedder("openai", "/v1", model="m").embed(["a"], "query")
    assert [request.path for request in server.requests] == ["/v1/embeddings"]


@pytest.mark.parametrize(
    "address", ["ftp://me:geheim@127.0.0.1", "http://me:geheim@127.0.0.1:port"]
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(
    open_embedder: OpenEmbedder, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("http_proxy", address)
    with pytest.raises(ConfigurationError, match="HTTP_PROXY or ALL_PROXY is not") as failed:
        open_embedder("openai", model="m", base_url=NOWHERE)
    assert "geheim" not in str(failed.value)


def test_user_and_password_of_the_base_url_are_sent(
    server: Server, open_embedder: OpenEmbedder
) -> None:
    server.then(openai_vectors)
    url = server.url.replace("http://", "http://me:se%20cret@") + "/v1"
    assert open_embedder("openai", model="m", base_url=url).embed(["a"], "query")
    [request] = server.requests
    assert request.headers["authorization"] == f"Basic {b64encode(b'me:se cret').decode()}"


def test_cookies_of_a_provider_are_not_sent_back(
    server: Server, open_embedder: OpenEmbedder
) -> None:
    def with_cookie(handler: Handler, request: Request) -> None:
        handler.send_response(500)
        handler.send_header("set-cookie", "followed=1")
        handler.send_header("connection", "close")
        handler.send_header("content-length", "0")
        handler.end_headers()

    embedder = open_embedder("openai", "/v1", model="m")
    server.then(with_cookie)
    with pytest.raises(ModelFailure):
        embedder.embed(["a"], "query")
    server.then(openai_vectors)
    assert embedder.embed(["a"], "query")
    assert [request.headers.get("cookie") for request in server.requests] == [None] * len(
        server.requests
    )
