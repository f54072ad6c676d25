"""The proxies of the templates in front of a served process: streams arrive piece by piece, and the
host name that the client asked for arrives too."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from e2e.test_streaming import PATIENCE, next_event
from e2e.test_streaming import slow_server as slow_server
from support.clients.server import Server
from support.proxies import NAME, PROXIES, missing, proxying

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("streaming")]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            name, marks=pytest.mark.skipif(missing(name) is not None, reason=missing(name) or "-")
        )
        for name in PROXIES
    ],
)
def proxy(
    request: pytest.FixtureRequest,
    root: Path,
    slow_server: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp(request.param)
    templates = root / "config" / "memservice_deployment" / "proxy"
    with proxying(request.param, templates, urlsplit(slow_server.url).netloc, folder) as address:
        yield address


@contextmanager
def answer_when_free(proxy: str, query: str) -> Iterator[http.client.HTTPResponse]:
    """An answer that was given before has its slot for a moment longer, and then this is 503."""
    body = json.dumps({"query": query, "stream": True})
    headers = {"Content-Type": "application/json"}
    deadline = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPConnection(proxy, timeout=PATIENCE)
        connection.request("POST", "/v3/workspaces/w/peers/alice/chat", body, headers)
        with closing(connection), closing(connection.getresponse()) as answer:
            if answer.status != 503:
                yield answer
                return
        assert time.monotonic() < deadline, "the slot was never freed"
        time.sleep(0.05)


def status(proxy: str, path: str, host: str | None = None) -> int:
    with closing(http.client.HTTPConnection(proxy, timeout=PATIENCE)) as connection:
        connection.request("GET", path, headers={"Host": host} if host else {})
        return connection.getresponse().status


def test_a_stream_arrives_in_pieces_through_a_proxy(proxy: str, tmp_path: Path) -> None:
    marker = tmp_path / "heard"
    with answer_when_free(proxy, str(marker)) as answer:
        assert answer.status == 200
        assert next_event(answer) == {"delta": {"content": "first"}, "done": False}
        marker.touch()
        assert next_event(answer) == {"delta": {"content": " and second"}, "done": False}
        assert next_event(answer) == {"done": True}


def test_the_host_name_arrives(proxy: str) -> None:
    assert status(proxy, "/health") == 200
    assert status(proxy, "/v3/workspaces/list", NAME) == 421, "a name that ALLOWED_HOSTS lacks"


def test_metrics_are_not_published(proxy: str) -> None:
    assert status(proxy, "/metrics") == 404


def test_the_largest_body_is_accepted(root: Path) -> None:
    from memservice.domain.sizes import MAX_LARGE_BODY

    templates = root / "config" / "memservice_deployment" / "proxy"
    mebibytes = MAX_LARGE_BODY // 2**20
    assert MAX_LARGE_BODY % 2**20 == 0
    nginx = (templates / "nginx.conf").read_text(encoding="utf-8")
    assert f"client_max_body_size {mebibytes}m;" in nginx
    assert f"max_size {mebibytes}MiB" in (templates / "Caddyfile").read_text(encoding="utf-8")
