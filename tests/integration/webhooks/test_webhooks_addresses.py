"""Which URLs may be registered, and which addresses may be connected to."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.errors import InvalidInput
from memservice.spi.webhooks import sender
from memservice_webhooks import addresses
from memservice_webhooks.addresses import BlockedAddress, Guard, UnresolvedHost
from memservice_webhooks.http import HttpTransport

PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.254",
    "168.63.129.16",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.1.2.3",
    "64:ff9b:1::8.8.8.8",
    "64:ff9b:1:7f00:0:100:808:808",
    "100::1",
    "2001::1",
    "2001:0:5ef5:79fd:0:0:f7f7:f7f7",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a00:1::",
    "2002:c0a8:101::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "8.8.8.8",
    "93.184.215.14",
    "100.63.255.255",
    "100.128.0.1",
    "168.63.129.17",
    "172.32.0.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]

NO_URL = "Invalid URL format"
NO_SCHEME = "Only HTTP and HTTPS URLs are allowed"
NO_USER = "The URL must not carry a user name or a password"
INTERNAL = "The URL's host is at a private or internal address"

Answer = Callable[..., list[tuple[Any, ...]]]


def resolver(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], Sequence[str]]) -> list[str]:
    """Names are resolved by `answer`; returns the list of those that were asked for."""
    names: list[str] = []

    def getaddrinfo(host: str, port: int, *args: object, **kwargs: object) -> list[tuple[Any, ...]]:
        names.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, port)) for text in answer(host)]

    monkeypatch.setattr(addresses.socket, "getaddrinfo", getaddrinfo)  # type: ignore[attr-defined]
    return names


def refusal(url: str, *networks: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        HttpTransport(networks).check(url)
    assert [problem.loc for problem in caught.value.problems] == [("url",)]
    return str(caught.value)


def host_of(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_that_is_not_public_is_refused(address: str, scheme: str) -> None:
    assert refusal(f"{scheme}://{host_of(address)}/hook") == INTERNAL
    assert not Guard(()).permits(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_accepted(address: str) -> None:
    HttpTransport().check(f"https://{host_of(address)}:8443/hook?x=1")


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "10.1",
        "127.0.0.1.",
        "0X7F.1.",
        "localhost",
        "LocalHost",
        "localhost.",
        "LOCALHOST.",
        "app.localhost",
        "a.b.localhost.",
    ],
)
def test_other_spellings_of_internal_hosts_are_detected(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = resolver(monkeypatch, lambda host: ["8.8.8.8"])
    assert refusal(f"http://{host}/") == INTERNAL
    assert refusal(f"http://{host}:8443/hook") == INTERNAL
    assert names == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://", NO_URL),
        ("http:///path", NO_URL),
        ("http:example.com", NO_URL),
        ("http://example.com:0/", NO_URL),
        ("http://example.com:65536/", NO_URL),
        ("http://example.com:port/", NO_URL),
        ("http://exa mple.com/", NO_URL),
        ("http://example.com/a b", NO_URL),
        ("http://example.com/\r\nHost: other", NO_URL),
        ("http://example.com/\t", NO_URL),
        ("http://exämple.com/", NO_URL),
        ("http://example.com/ä", NO_URL),
        ("http://example.com\\.evil.com/", NO_URL),
        ("http://example.com%2eevil.com/", NO_URL),
        ("http://[::1", NO_URL),
        ("http://[example.com]/", NO_URL),
        ("http://[8.8.8.8]/", NO_URL),
        ("http://[2606:4700::1111]evil.com/", NO_URL),
        ("http://evil.com[2606:4700::1111]/", NO_URL),
        ("http://[2606:4700::1111%25eth0]/", NO_URL),
        ("http://[2606:4700::1111%eth0]/", NO_URL),
        ("http://a..b/", NO_URL),
        ("http://.example.com/", NO_URL),
        ("http://example.com../", NO_URL),
        ("http://" + "a" * 64 + ".com/", NO_URL),
        ("http://" + "a" * 254 + "/", NO_URL),
        ("ftp://example.com/", NO_SCHEME),
        ("file:///etc/passwd", NO_SCHEME),
        ("gopher://example.com/", NO_SCHEME),
        ("http://user@example.com/", NO_USER),
        ("http://user:secret@example.com/", NO_USER),
        ("http://@example.com/", NO_USER),
        ("http://example.com@127.0.0.1/", NO_USER),
        ("http://example.com\\@127.0.0.1/", NO_USER),
    ],
)
def test_an_invalid_url_is_refused_with_a_reason(url: str, message: str) -> None:
    assert refusal(url) == message


@pytest.mark.parametrize(
    "leads_to", [["10.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["93.184.215.14"], None]
)
def test_registration_resolves_no_name(
    leads_to: Sequence[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer, and its duration, would reveal the names inside the network."""

    def answer(host: str) -> Sequence[str]:
        if leads_to is None:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return leads_to

    names = resolver(monkeypatch, answer)
    HttpTransport().check("https://some.example/")
    HttpTransport().check("https://intranet/")
    assert names == []


@pytest.mark.parametrize("leads_to", [["10.0.0.1"], ["93.184.215.14", "10.0.0.1"], None])
def test_a_delivery_does_not_reveal_whether_a_name_is_internal(
    leads_to: Sequence[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(host: str) -> Sequence[str]:
        if leads_to is None:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return leads_to

    resolver(monkeypatch, answer)
    outcome = HttpTransport().deliver("https://some.example/", b"{}", {})
    assert (outcome.status, outcome.error) == (
        None,
        "NoAddress: no public address was found for some.example",
    )


def test_a_resolver_that_never_answers_costs_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def slow(host: str) -> Sequence[str]:
        over.wait(20)
        return ["8.8.8.8"]

    resolver(monkeypatch, slow)
    began = time.monotonic()
    with pytest.raises(UnresolvedHost):
        Guard(()).resolve("slow.example", 443)
    took = time.monotonic() - began
    over.set()
    assert 1.9 < took < 15, "the resolver would take twenty"


def test_slow_names_of_one_workspace_do_not_block_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over, slots = (
        threading.Event(),
        addresses.LookupSlots(
            addresses.MAX_CONCURRENT_LOOKUPS, addresses.MAX_LOOKUPS_PER_WORKSPACE
        ),
    )

    def answer(host: str) -> Sequence[str]:
        if host.startswith("slow"):
            over.wait(20)
        return ["8.8.8.8"]

    resolver(monkeypatch, answer)
    monkeypatch.setattr(addresses, "_lookup_slots", slots)

    def look_up(workspace: int, host: str, seconds: float) -> object:
        before = sender.set(workspace)
        try:
            return Guard(()).resolve(host, 80, seconds)
        except UnresolvedHost as error:
            return str(error)
        finally:
            sender.reset(before)

    try:
        with ThreadPoolExecutor(2 * addresses.MAX_CONCURRENT_LOOKUPS) as pool:
            waiting = [
                pool.submit(look_up, 1, f"slow{n}", 0.3)
                for n in range(2 * addresses.MAX_CONCURRENT_LOOKUPS)
            ]
            errors = [str(future.result(30)) for future in waiting]
        assert (
            sum("too many names" in text for text in errors)
            == 2 * addresses.MAX_CONCURRENT_LOOKUPS - addresses.MAX_LOOKUPS_PER_WORKSPACE
        )
        # They time out, and their resolvers still hang.
        assert "too many names" in str(look_up(1, "quick", 0.1))
        assert look_up(2, "quick", 5.0) == [ipaddress.ip_address("8.8.8.8")]
    finally:
        over.set()
    deadline = time.monotonic() + 30
    while look_up(1, "quick", 0.1) != [ipaddress.ip_address("8.8.8.8")]:
        assert time.monotonic() < deadline, "slots are released"


def test_the_timeout_of_a_look_up_includes_waiting_for_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    class Busy:
        """Others come first, for three tenths of a second."""

        def acquire(self, owner: int, timeout: float) -> bool:
            time.sleep(0.3)
            return True

        def release(self, owner: int) -> None:
            """Nothing."""

    class Silent(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            assert timeout is not None
            waited.append(timeout)
            raise Empty

    resolver(monkeypatch, lambda host: ["8.8.8.8"])
    monkeypatch.setattr(addresses, "_lookup_slots", Busy())
    monkeypatch.setattr(addresses, "SimpleQueue", Silent)
    with pytest.raises(UnresolvedHost):
        Guard(()).resolve("slow.example", 80, 1.0)
    (seconds,) = waited
    assert 0 <= seconds <= 0.7


def test_slow_names_do_not_prevent_other_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def answer(host: str) -> Sequence[str]:
        if host.startswith("slow"):
            over.wait(20)
        return ["8.8.8.8"]

    monkeypatch.setattr(
        addresses,
        "_lookup_slots",
        addresses.LookupSlots(addresses.MAX_CONCURRENT_LOOKUPS, addresses.MAX_CONCURRENT_LOOKUPS),
    )
    resolver(monkeypatch, answer)
    guard = Guard(())
    with ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(guard.resolve, f"slow{n}", 80, 0.5) for n in range(10)]
        assert guard.resolve("quick", 80, 1.0) == [ipaddress.ip_address("8.8.8.8")]
        for future in waiting:
            assert isinstance(future.exception(5), UnresolvedHost)
    over.set()


def test_an_allowed_network_is_allowed_in_every_notation() -> None:
    allowed = ("127.0.0.0/8", "fd00::/8")
    for url in (
        "http://127.0.0.1:9/",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fd00::1]/",
        "http://localhost/",
    ):
        HttpTransport(allowed).check(url)
    assert refusal("http://10.0.0.1/", *allowed) == INTERNAL
    assert refusal("http://[fe80::1]/", *allowed) == INTERNAL


def test_an_invalid_network_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/33"):
        HttpTransport(("10.0.0.0/33",))


@given(
    inner=st.ip_addresses(v=4),
    outside=st.sampled_from(["::ffff:0:0/96", "64:ff9b::/96", "2002::/16"]),
)
def test_an_embedded_ipv4_address_is_checked(inner: ipaddress.IPv4Address, outside: str) -> None:
    network = ipaddress.ip_network(outside)
    shift = 128 - network.prefixlen - 32
    wrapped = ipaddress.IPv6Address(int(network.network_address) | int(inner) << shift)
    guard = Guard(())
    assert guard.permits(wrapped) == guard.permits(inner)
    assert guard.permits(inner) <= (inner.is_global and not inner.is_multicast)


@given(address=st.ip_addresses())
def test_allowing_everything_allows_everything(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    assert Guard(("0.0.0.0/0", "::/0")).permits(address)


def test_the_error_for_a_blocked_host_names_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, lambda host: ["192.168.0.7"])
    with pytest.raises(
        BlockedAddress,
        match=r"intranet.example is at 192\.168\.0\.7, which is not a public address",
    ):
        Guard(()).resolve("intranet.example", 80)
