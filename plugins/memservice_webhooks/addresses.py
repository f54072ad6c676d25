"""Which addresses a delivery may go to: public ones, and those inside networks that the operator
allows."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue

from memservice.spi.webhooks import sender

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

RESOLVE_SECONDS = 2.0
MAX_CONCURRENT_LOOKUPS = 32
"""Names that may be in resolution. The resolver cannot be interrupted, so one that never answers
keeps its thread for a while."""
MAX_LOOKUPS_PER_WORKSPACE = 8
"""Of these, for one workspace: its slow names leave room for those of others."""

_LOOPBACK = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    # Carrier NAT, benchmarking, documentation, anycast relays and "this network": older Pythons
    # take some of them for global.
    for network in (
        "0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15",
        "240.0.0.0/4", "2001:db8::/32", "3fff::/20",
        # What a machine in Azure asks about itself, at an address that looks like any other.
        "168.63.129.16/32",
    )
)  # fmt: skip


class Places:
    """`most` places, of which one owner has at most `each`."""

    def __init__(self, maximum: int, each: int) -> None:
        self._most, self._each = maximum, each
        self._taken: Counter[int] = Counter()
        self._changed = threading.Condition()

    def acquire(self, owner_key: int, timeout: float) -> bool:
        """False if there was none within so many seconds."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: self._taken.total() < self._most and self._taken[owner_key] < self._each,
                timeout,
            )
            if found:
                self._taken[owner_key] += 1
            return found

    def release(self, owner_key: int) -> None:
        with self._changed:
            self._taken[owner_key] -= 1
            if not self._taken[owner_key]:
                del self._taken[owner_key]
            self._changed.notify_all()


_resolving = Places(MAX_CONCURRENT_LOOKUPS, MAX_LOOKUPS_PER_WORKSPACE)


class Blocked(Exception):
    """An address that nothing may be delivered to."""

    def __init__(self, host: str, address: Address) -> None:
        super().__init__(f"{host} is at {address}, which is not a public address")
        self.host, self.address = host, address


class Unresolved(Exception):
    """A host name that could not be resolved in time."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"{host} could not be resolved{why}")
        self.host = host


class Guard:
    """Raises ValueError for a network that is none."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed: Sequence[Network] = [
            ipaddress.ip_network(network.strip(), strict=False) for network in allowed
        ]

    def permits(self, address: Address) -> bool:
        """False for an address inside a network, in any of the forms in which it can be written."""
        real = _carried(address)
        forms = {address, real}
        if any(
            form.version == network.version and form in network
            for network in self._allowed
            for form in forms
        ):
            return True
        return _is_public(real)

    def permits_name(self, host: str) -> bool:
        """False for a name that says by itself that it lies inside: an address in any spelling, or
        `localhost` and what is below it. No name is looked up: the answer would tell where names
        lie inside the network."""
        name = host.lower().removesuffix(".")
        if name == "localhost" or name.endswith(".localhost"):
            return any(self.permits(address) for address in _LOOPBACK)
        written = _written(host)
        return written is None or self.permits(written)

    def resolve(self, host: str, port: int, seconds: float = RESOLVE_SECONDS) -> list[Address]:
        """The host's addresses, each of them checked. Raises `Blocked` if any is not permitted,
        `Unresolved` without an answer."""
        written = _written(host)
        addresses = _look_up(host, port, seconds) if written is None else [written]
        for address in addresses:
            if not self.permits(address):
                raise Blocked(host, address)
        return addresses


def _written(host: str) -> Address | None:
    """The address that a host spells out, in the short, octal and hexadecimal forms that resolvers
    know, too; None for a name."""
    host = host.removesuffix(".")
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _look_up(host: str, port: int, seconds: float) -> list[Address]:
    """What the system's resolver says within so many seconds, without repetitions."""
    ends, owner_key = time.monotonic() + seconds, sender.get()
    if not _resolving.acquire(owner_key, seconds):
        raise Unresolved(host, " (too many names are being resolved)")
    answers: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put([str(entry[4][0]) for entry in found])
        except (OSError, UnicodeError, ValueError) as error:
            answers.put(error)
        finally:
            _resolving.release(owner_key)

    # A daemon, so that a resolver that hangs does not keep the process from ending.
    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=max(0.0, ends - time.monotonic()))
    except Empty:
        raise Unresolved(host, f" in {seconds:g} s") from None
    if isinstance(answer, Exception):
        raise Unresolved(host, f" ({type(answer).__name__})") from answer
    return list(dict.fromkeys(ipaddress.ip_address(text.partition("%")[0]) for text in answer))


def _carried(address: Address) -> Address:
    """The IPv4 address to which packets to an IPv6 one may really go, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or int(address) >> 32 == 0:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if any(address.version == network.version and address in network for network in _NOT_PUBLIC):
        return False
    # Of IPv6, only what is given out as global unicast; Teredo, too, which leads to whatever IPv4
    # address it likes, is refused.
    if isinstance(address, ipaddress.IPv6Address) and (
        address not in _GLOBAL_UNICAST or address.teredo is not None
    ):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
