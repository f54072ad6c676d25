"""Who holds a lease: a name by which another process on the same machine can tell whether the
holder is still there."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from memservice.domain.ids import new_uid


def _stat(pid: int) -> list[str]:
    """What the kernel tells of a process, from its state on; nothing where it tells nothing."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return stat.rpartition(")")[2].split()


def _started(pid: int) -> str:
    """When a process started, in the kernel's own count, so that a pid that was given out again is
    not taken for the old process."""
    return "".join(_stat(pid)[19:20])


def _is_zombie(pid: int) -> bool:
    """Has it ended, and does its parent not care? In a container without an init process that may
    go on for ever."""
    return _stat(pid)[:1] in (["Z"], ["X"])


_claims: set[str] = set()
"""Owner names of this process that are in use."""


def _machine() -> str:
    """Where the pids of this process mean something: the host, its present boot, and the PID
    namespace.

    Containers may share a host name and even a kernel, and then a pid of one of them says nothing
    about another. Where the kernel tells neither boot nor namespace, the host name alone decides.
    """
    boot = namespace = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").stat().st_ino)
    return "|".join((socket.gethostname(), boot, namespace))


def this_process() -> str:
    """A new owner name for one claim of this process, in use until `ended`: host, boot, PID
    namespace, pid, its start, a unique part."""
    pid = os.getpid()
    name = "|".join((_machine(), str(pid), _started(pid), new_uid()))
    _claims.add(name)
    return name


def ended(owner: str) -> None:
    """The work under this name is over. A lease that could not be given back, since the store was
    away, is now known to be abandoned."""
    _claims.discard(owner)


def is_gone(owner: str) -> bool:
    """True only if the owner was a process of this machine and PID namespace, since its last boot,
    and either that process or, in this one, the work has certainly ended. Other owners are never
    judged: their leases run out."""
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
