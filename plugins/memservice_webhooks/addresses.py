"""The guard against deliveries to internal addresses: only public addresses, and networks that the
operator allows, are permitted."""

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
"""Maximum concurrent look-ups of names. The resolver cannot be interrupted, so a look-up without
an answer keeps its thread."""
MAX_LOOKUPS_PER_WORKSPACE = 8
"""Maximum concurrent look-ups of one workspace, so that its slow names do not block others."""

_LOOPBACK = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    # Carrier NAT, benchmarking, documentation, anycast relays and "this network": older versions
    # of Python treat some of them as global.
    for network in (
        "0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15",
        "240.0.0.0/4", "2001:db8::/32", "3fff::/20",
        # The metadata service of Azure, at an address that is otherwise public.
        "168.63.129.16/32",
    )
)  # fmt: skip


class LookupSlots:
    """A semaphore of `maximum` slots, of which one owner has at most `each`."""

    def __init__(self, maximum: int, each: int) -> None:
        self._maximum, self._each = maximum, each
        self._taken: Counter[int] = Counter()
        self._changed = threading.Condition()

    def acquire(self, owner_key: int, timeout: float) -> bool:
        """Take a slot; False if none was free within `timeout` seconds."""
        with self._changed:
            acquired = self._changed.wait_for(
                lambda: self._taken.total() < self._maximum and self._taken[owner_key] < self._each,
                timeout,
            )
            if acquired:
                self._taken[owner_key] += 1
            return acquired

    def release(self, owner_key: int) -> None:
        with self._changed:
            self._taken[owner_key] -= 1
            if not self._taken[owner_key]:
                del self._taken[owner_key]
            self._changed.notify_all()


_lookup_slots = LookupSlots(MAX_CONCURRENT_LOOKUPS, MAX_LOOKUPS_PER_WORKSPACE)


class BlockedAddress(Exception):
    """The address is not permitted."""

    def __init__(self, host: str, address: Address) -> None:
        super().__init__(f"{host} is at {address}, which is not a public address")
        self.host, self.address = host, address


class UnresolvedHost(Exception):
    """The host name could not be resolved in time."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"{host} could not be resolved{why}")
        self.host = host


class Guard:
    """Decides which addresses are permitted."""

    def __init__(self, allowed: Iterable[str]) -> None:
        """`allowed`: networks in CIDR notation. Raises ValueError for an invalid one."""
        self._allowed: Sequence[Network] = [
            ipaddress.ip_network(network.strip(), strict=False) for network in allowed
        ]

    def permits(self, address: Address) -> bool:
        """False for an internal address, including internal IPv4 addresses inside IPv6 ones."""
        target = _embedded_ipv4(address)
        forms = {address, target}
        if any(
            form.version == network.version and form in network
            for network in self._allowed
            for form in forms
        ):
            return True
        return _is_public(target)

    def permits_name(self, host: str) -> bool:
        """False for a literal internal address in any notation, for `localhost` and for its
        subdomains. Does not look up names: the result would reveal internal names."""
        name = host.lower().removesuffix(".")
        if name == "localhost" or name.endswith(".localhost"):
            return any(self.permits(address) for address in _LOOPBACK)
        address = _literal_address(host)
        return address is None or self.permits(address)

    def resolve(self, host: str, port: int, seconds: float = RESOLVE_SECONDS) -> list[Address]:
        """The host's addresses. Raises `BlockedAddress` if any of them is not permitted, and
        `UnresolvedHost` without an answer."""
        literal = _literal_address(host)
        addresses = _look_up(host, port, seconds) if literal is None else [literal]
        for address in addresses:
            if not self.permits(address):
                raise BlockedAddress(host, address)
        return addresses


def _literal_address(host: str) -> Address | None:
    """The literal address in a host, also in the short, octal and hexadecimal notations that
    resolvers accept; None for a name."""
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
    """The addresses that the system's resolver returns within `seconds`, without duplicates."""
    deadline, owner_key = time.monotonic() + seconds, sender.get()
    if not _lookup_slots.acquire(owner_key, seconds):
        raise UnresolvedHost(host, " (too many names are being resolved)")
    answers: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def resolve_host() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put([str(entry[4][0]) for entry in entries])
        except (OSError, UnicodeError, ValueError) as error:
            answers.put(error)
        finally:
            _lookup_slots.release(owner_key)

    # A daemon thread, so that a hanging resolver does not keep the process alive.
    threading.Thread(target=resolve_host, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
    except Empty:
        raise UnresolvedHost(host, f" in {seconds:g} s") from None
    if isinstance(answer, Exception):
        raise UnresolvedHost(host, f" ({type(answer).__name__})") from answer
    return list(dict.fromkeys(ipaddress.ip_address(text.partition("%")[0]) for text in answer))


def _embedded_ipv4(address: Address) -> Address:
    """The IPv4 address embedded in an IPv6 one, to which packets may be routed; else the address
    itself."""
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
    # Of IPv6, only global unicast. Teredo is rejected: it can lead to any IPv4 address.
    if isinstance(address, ipaddress.IPv6Address) and (
        address not in _GLOBAL_UNICAST or address.teredo is not None
    ):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
