"""Owner names of leases. From a name, another process on the same machine can detect that the owner
has ended."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from memservice.domain.ids import new_uid


def _stat(pid: int) -> list[str]:
    """The kernel's fields for a process, from its state on; empty if unavailable."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return stat.rpartition(")")[2].split()


def _started(pid: int) -> str:
    """Start time of a process in kernel ticks, to distinguish a reused pid from the old process."""
    return "".join(_stat(pid)[19:20])


def _is_zombie(pid: int) -> bool:
    """Whether the process has ended without being reaped by its parent. In a container without an
    init process a zombie can remain indefinitely."""
    return _stat(pid)[:1] in (["Z"], ["X"])


_claims: set[str] = set()
"""Owner names of this process in use."""


def _machine() -> str:
    """The namespace of this process's pids: the host, its current boot, and the PID namespace.

    Containers can share a host name and even a kernel, and then a pid in one of them is meaningless
    in another. Without boot id and namespace, only the host name counts.
    """
    boot = namespace = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").stat().st_ino)
    return "|".join((socket.gethostname(), boot, namespace))


def start_claim() -> str:
    """A new owner name for one claim of this process, in use until `end_claim`: host, boot, PID
    namespace, pid, its start time, a unique part."""
    pid = os.getpid()
    name = "|".join((_machine(), str(pid), _started(pid), new_uid()))
    _claims.add(name)
    return name


def end_claim(owner: str) -> None:
    """End the claim. If its lease could not be released because the store was unavailable, it now
    counts as abandoned."""
    _claims.discard(owner)


def has_ended(owner: str) -> bool:
    """True only if the owner was a process of this machine and PID namespace, since its last boot,
    and that process, or the claim in this one, has certainly ended. False for all other owners:
    their leases expire."""
    machine, *parts = owner.rsplit("|", 3)
    if len(parts) != 3 or machine != _machine() or not parts[0].isdecimal():
        return False
    pid = int(parts[0])
    if pid == os.getpid() and parts[1] == _started(pid):
        return owner not in _claims
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    if _is_zombie(pid):
        return True
    started = _started(pid)
    return bool(started and parts[1]) and started != parts[1]
