"""Which addresses a delivery may go to: public ones, and those inside networks that the operator allows."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

RESOLVE_SECONDS = 2.0

_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_ALSO_PRIVATE = tuple(
    ipaddress.ip_network(network)
    # Carrier NAT, benchmarking, documentation and "this network": listed here because older Pythons take some of them for global.
    for network in ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", "fec0::/10")
)

_pool = ThreadPoolExecutor(4, thread_name_prefix="resolve")


class Blocked(Exception):
    """An address that nothing may be delivered to."""

    def __init__(self, host: str, address: Address) -> None:
        super().__init__(f"{host} is at {address}, which is not a public address")
        self.host, self.address = host, address


class Unresolved(Exception):
    """A host name that could not be resolved in time."""


class Guard:
    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed: Sequence[Network] = [ipaddress.ip_network(network, strict=False) for network in allowed]

    def permits(self, address: Address) -> bool:
        """False for an address inside a network, in any of the forms in which it can be written."""
        inner = _inner(address)
        if any(form.version == network.version and form in network for network in self._allowed for form in (address, inner)):
            return True
        return all(_is_public(form) for form in {address, inner})

    def resolve(self, host: str, port: int, seconds: float = RESOLVE_SECONDS) -> list[Address]:
        """The host's addresses, each of them checked. Raises `Blocked` if any is not permitted, `Unresolved` without an answer."""
        future = _pool.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            found = future.result(seconds)
        except (Late, OSError, UnicodeError) as error:
            raise Unresolved(f"{host} could not be resolved ({type(error).__name__})") from error
        addresses = list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))
        for address in addresses:
            if not self.permits(address):
                raise Blocked(host, address)
        return addresses


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one carries inside, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _NAT64) or int(address) >> 32 == 0:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if any(address.version == network.version and address in network for network in _ALSO_PRIVATE):
        return False
    if isinstance(address, ipaddress.IPv6Address) and _inner(address) != address:
        return True  # judged by what it carries
    return address.is_global and not address.is_multicast and not address.is_reserved
