"""Delivery by HTTP against a real server on loopback that misbehaves."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memservice.domain.errors import InvalidInput
from memservice.spi.webhooks import FetchFailed
from memservice_webhooks import addresses
from memservice_webhooks.http import MAX_RESPONSE_BYTES, HttpTransport
from support.receiver import (
    LOOPBACK,
    Handler,
    Receiver,
    drip,
    drip_body,
    flood,
    flood_headers,
    go_on,
    hang,
    receiving,
)

BODY = b'{"data":{}}'


def transport(seconds: float = 2.0) -> HttpTransport:
    return HttpTransport((LOOPBACK,), seconds)


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: Sequence[str]) -> list[str]:
    """Each look-up gets the next answer, the last one from then on. Returns the names that were
    asked for."""
    names: list[str] = []

    def getaddrinfo(host: str, port: int, *args: object, **kwargs: object) -> list[tuple[Any, ...]]:
        names.append(host)
        answer = answers[min(len(names), len(answers)) - 1]
        return [
            (
                socket.AF_INET6 if ":" in text else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (text, port),
            )
            for text in answer
        ]

    monkeypatch.setattr(addresses.socket, "getaddrinfo", getaddrinfo)  # type: ignore[attr-defined]
    return names


def refuse_to_connect(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Nothing can be connected to; returns what was tried."""
    tried: list[Any] = []

    def create_connection(address: Any, *args: object, **kwargs: object) -> socket.socket:
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", create_connection)
    return tried


def test_the_request_has_the_expected_method_headers_and_body(receiver: Receiver) -> None:
    outcome = transport().deliver(receiver.url("/hook?x=1&y=%20"), BODY, {"webhook-id": "m"})
    assert outcome.status == 204
    (request,) = receiver.requests
    assert (request.method, request.path, request.body) == ("POST", "/hook?x=1&y=%20", BODY)
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-length"] == str(len(BODY))
    assert request.headers["user-agent"] == "memservice"
    assert "authorization" not in request.headers


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_delivered(receiver: Receiver, status: int) -> None:
    receiver.answers(status)
    outcome = transport().deliver(receiver.url(), BODY, {})
    assert (outcome.status, outcome.error, outcome.delivered) == (status, None, True)


@pytest.mark.parametrize("status", [300, 400, 401, 404, 410, 429, 500, 503])
def test_any_other_status_is_a_failure(receiver: Receiver, status: int) -> None:
    receiver.answers(status)
    outcome = transport().deliver(receiver.url(), BODY, {})
    assert (outcome.status, outcome.error, outcome.delivered) == (status, None, False)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    receiver.behave = lambda handler: handler.answer(status, Location="/elsewhere")
    outcome = transport().deliver(receiver.url("/hook"), BODY, {})
    assert (outcome.status, outcome.delivered) == (status, False)
    assert [request.path for request in receiver.requests] == ["/hook"]


@pytest.mark.parametrize("behave", [hang, drip, go_on])
def test_a_missing_answer_times_out(receiver: Receiver, behave: Callable[[Handler], None]) -> None:
    receiver.behave = behave
    began = time.monotonic()
    outcome = transport(0.5).deliver(receiver.url(), BODY, {})
    assert 0.4 < time.monotonic() - began < 5
    assert outcome.status is None
    assert outcome.error is not None
    assert outcome.error.startswith("ReadTimeout")
    assert 400 < outcome.duration_ms < 5_000


def test_an_endless_body_does_not_change_the_status(receiver: Receiver) -> None:
    receiver.behave = drip_body
    began = time.monotonic()
    outcome = transport(0.5).deliver(receiver.url(), BODY, {})
    assert time.monotonic() - began < 5
    assert (outcome.status, outcome.error) == (200, None)


def test_only_the_beginning_of_a_huge_answer_is_read(receiver: Receiver) -> None:
    receiver.behave = flood
    began = time.monotonic()
    outcome = transport(10).deliver(receiver.url(), BODY, {})
    assert outcome.status == 200
    assert time.monotonic() - began < 5
    receiver.close()
    assert receiver.taken < MAX_RESPONSE_BYTES + 16 * 2**20, "what the sockets buffer, and no more"


def test_endless_headers_time_out(receiver: Receiver) -> None:
    receiver.behave = flood_headers
    outcome = transport(5).deliver(receiver.url(), BODY, {})
    assert outcome.status is None
    assert outcome.error is not None


def test_an_answer_that_is_not_http_is_a_failure(receiver: Receiver) -> None:
    def talk(handler: Handler) -> None:
        handler.wfile.write(b"220 smtp.example ESMTP\r\n")

    receiver.behave = talk
    outcome = transport().deliver(receiver.url(), BODY, {})
    assert outcome.status is None
    assert outcome.error is not None
    assert "ProtocolError" in outcome.error


def test_a_connection_that_is_cut_is_a_failure(receiver: Receiver) -> None:
    receiver.behave = lambda handler: handler.connection.close()
    outcome = transport().deliver(receiver.url(), BODY, {})
    assert outcome.status is None
    assert outcome.error


def test_without_leave_loopback_is_not_connected_to(receiver: Receiver) -> None:
    outcome = HttpTransport((), 2).deliver(receiver.url(), BODY, {})
    assert outcome.error == "NoAddress: no public address was found for 127.0.0.1"
    assert receiver.requests == []


def test_a_name_that_changes_to_an_internal_address_is_blocked(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    """DNS rebinding: public at the first delivery, private at the second."""
    tried = refuse_to_connect(monkeypatch)
    names = resolve_to(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    guarded = HttpTransport((), 2)
    url = receiver.url(host="rebound.example")
    guarded.check(url)
    first, second = (guarded.deliver(url, BODY, {}).error for _ in range(2))
    assert first == "ConnectError"
    assert second == "NoAddress: no public address was found for rebound.example"
    assert names == ["rebound.example"] * 2
    assert [address for address, _ in tried] == ["93.184.215.14"]


def test_only_the_log_names_the_address_of_a_blocked_host(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise a caller that may register endpoints could look up names of the inner network."""
    resolve_to(monkeypatch, ["10.20.30.40"])
    with caplog.at_level(logging.WARNING, "memservice.webhooks"):
        outcome = HttpTransport((), 2).deliver("http://inner.example/", BODY, {})
    assert outcome.error is not None
    assert "10.20.30.40" not in outcome.error
    assert "inner.example is at 10.20.30.40, which is not a public address" in caplog.text


def test_the_checked_address_is_the_connected_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look-up for each delivery: there is no second one without a check."""
    tried = refuse_to_connect(monkeypatch)
    names = resolve_to(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    HttpTransport((), 2).deliver("http://rebound.example/", BODY, {})
    assert names == ["rebound.example"]
    assert tried == [("93.184.215.14", 80)]


def test_one_internal_address_among_public_ones_blocks_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = refuse_to_connect(monkeypatch)
    resolve_to(monkeypatch, ["93.184.215.14", "169.254.169.254"])
    outcome = HttpTransport((), 2).deliver("http://both.example/", BODY, {})
    assert outcome.error is not None
    assert outcome.error.startswith("NoAddress")
    assert tried == []


def test_every_address_of_a_host_is_tried(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    resolve_to(monkeypatch, ["127.0.0.9", "::1", "127.0.0.1"])
    outcome = HttpTransport((LOOPBACK, "::1/128"), 5).deliver(
        receiver.url(host="several.example"), BODY, {}
    )
    assert outcome.status == 204
    assert receiver.requests[0].headers["host"] == f"several.example:{receiver.port}"


def test_a_proxy_of_the_environment_is_not_used(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert transport().deliver(receiver.url(), BODY, {}).status == 204


def test_a_host_in_brackets_is_named_in_brackets() -> None:
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    received: list[bytes] = []
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("there is no IPv6 loopback here")
    with listening:

        def serve() -> None:
            taken, _ = listening.accept()
            with taken:
                received.append(taken.recv(65536))
                taken.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        outcome = HttpTransport(("::1/128",), 2).deliver(f"http://[::1]:{port}/", BODY, {})
        thread.join(30)
    assert outcome.status == 204
    assert f"Host: [::1]:{port}\r\n".encode() in received[0]


def test_https_is_never_spoken_in_the_clear(receiver: Receiver) -> None:
    outcome = transport().deliver(receiver.url().replace("http:", "https:"), BODY, {})
    assert outcome.status is None
    assert outcome.error is not None
    assert "SSL" in outcome.error
    assert receiver.requests == []


def test_endpoints_that_hang_do_not_delay_others(receiver: Receiver) -> None:
    with receiving() as stuck:
        stuck.behave = hang
        shared = transport(60)
        threads = [
            threading.Thread(target=shared.deliver, args=(stuck.url(), BODY, {})) for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        while len(stuck.requests) < 12:
            time.sleep(0.01)
        began = time.monotonic()
        assert shared.deliver(receiver.url(), BODY, {}).delivered
        assert time.monotonic() - began < 30, "less than those wait"
        stuck.close()
        for thread in threads:
            thread.join(30)


# --- reading documents


def test_a_document_is_read(receiver: Receiver) -> None:
    receiver.behave = lambda handler: handler.answer(200, b'{"a": 1}')
    assert transport().fetch(receiver.url("/feed"), 100) == b'{"a": 1}'
    (request,) = receiver.requests
    assert (request.method, request.path, request.body) == ("GET", "/feed", b"")


@pytest.mark.parametrize("behave", [hang, drip, drip_body, go_on, flood, flood_headers])
def test_reading_a_document_is_bounded_in_time_and_size(
    receiver: Receiver, behave: Callable[[Handler], None]
) -> None:
    receiver.behave = behave
    began = time.monotonic()
    with pytest.raises(FetchFailed):
        transport(1.0).fetch(receiver.url(), 10_000)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("status", [204, 301, 302, 307, 404, 500])
def test_only_200_gives_a_document_and_redirects_are_not_followed(
    receiver: Receiver, status: int
) -> None:
    with receiving() as inside:
        receiver.behave = lambda handler: handler.answer(status, Location=inside.url())
        with pytest.raises(FetchFailed, match=str(status)):
            transport().fetch(receiver.url(), 10_000)
        assert inside.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1"])
def test_a_document_at_an_inner_address_is_not_read(receiver: Receiver, host: str) -> None:
    with pytest.raises(InvalidInput):
        HttpTransport().fetch(f"http://{host}:{receiver.port}/", 10_000)
    assert receiver.requests == []


def test_a_document_behind_a_name_of_an_inner_address_is_not_read(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, ["127.0.0.1"])
    with pytest.raises(FetchFailed, match="no public address"):
        HttpTransport().fetch(f"http://releases.example:{receiver.port}/", 10_000)
    assert receiver.requests == []
