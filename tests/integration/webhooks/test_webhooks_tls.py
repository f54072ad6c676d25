"""Delivery by HTTPS: only to a server with a valid certificate for the host, and within the
timeout."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memservice_webhooks import addresses
from memservice_webhooks.http import HttpTransport
from support.receiver import LOOPBACK, Receiver, receiving

BODY = b'{"data":{}}'
CERTIFICATE = Path(__file__).with_name("receiver.pem")
NAME = "receiver.test"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Found under every name."""

    def getaddrinfo(host: str, port: int, *args: object, **kwargs: object) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(addresses.socket, "getaddrinfo", getaddrinfo)  # type: ignore[attr-defined]
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(CERTIFICATE)
    with receiving(secured) as opened:
        yield opened


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


def https(receiver: Receiver, host: str = NAME) -> str:
    return receiver.url(host=host).replace("http:", "https:")


@pytest.mark.usefixtures("trusted")
def test_a_valid_certificate_is_accepted(receiver: Receiver) -> None:
    outcome = HttpTransport((LOOPBACK,), 20).deliver(https(receiver), BODY, {"webhook-id": "m"})
    assert (outcome.status, outcome.error) == (204, None)
    (request,) = receiver.requests
    assert (request.body, request.headers["host"]) == (BODY, f"{NAME}:{receiver.port}")


def test_a_self_signed_certificate_is_not_accepted(receiver: Receiver) -> None:
    outcome = HttpTransport((LOOPBACK,), 20).deliver(https(receiver), BODY, {})
    assert outcome.status is None
    assert outcome.error is not None
    assert "CERTIFICATE_VERIFY_FAILED" in outcome.error
    assert receiver.requests == []


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("host", ["other.test", "127.0.0.1"])
def test_a_certificate_of_another_host_is_not_accepted(receiver: Receiver, host: str) -> None:
    outcome = HttpTransport((LOOPBACK,), 20).deliver(https(receiver, host), BODY, {})
    assert outcome.status is None
    assert outcome.error is not None
    assert "certificate is not valid for" in outcome.error
    assert receiver.requests == []


@pytest.mark.usefixtures("trusted")
def test_trusted_certificates_are_read_once(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = HttpTransport((LOOPBACK,), 20)
    read: list[object] = []
    monkeypatch.setattr(
        ssl.SSLContext, "load_verify_locations", lambda *args, **named: read.append(args)
    )
    monkeypatch.setattr(
        ssl.SSLContext, "load_default_certs", lambda *args, **named: read.append(args)
    )
    for _ in range(3):
        assert transport.deliver(https(receiver), BODY, {}).status == 204
    assert read == []


def test_an_endless_handshake_times_out() -> None:
    """A byte now and then of a first record that is said to be long."""
    over = threading.Event()

    def serve() -> None:
        taken, _ = listening.accept()
        with taken, suppress(OSError):  # whoever delivers hangs up
            taken.sendall(b"\x16\x03\x03\x3e\x80")
            while not over.wait(0.05):
                taken.sendall(b"\x02")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        began = time.monotonic()
        outcome = HttpTransport((LOOPBACK,), 0.5).deliver(
            f"https://127.0.0.1:{listening.getsockname()[1]}/", BODY, {}
        )
        assert time.monotonic() - began < 10
        over.set()
        thread.join(30)
    assert outcome.status is None
    assert outcome.error is not None
    assert outcome.error.startswith("ConnectTimeout")
