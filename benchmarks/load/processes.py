"""CPU time and memory of trees of processes, from /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

PROC = Path("/proc")


def tree(pid: int) -> list[int]:
    """The process and all of its descendants that run now."""
    children: dict[int, list[int]] = defaultdict(list)
    for folder in PROC.glob("[0-9]*"):
        fields = _fields(int(folder.name))
        if fields:
            children[int(fields[1])].append(int(folder.name))
    pids = [pid]
    for parent in pids:
        pids += children[parent]
    return pids


def cpu_seconds(pid: int) -> float:
    """CPU time of a tree since its start. Children that have ended count once their parent has
    waited for them."""
    ticks = sum(sum(map(int, fields[11:15])) for each in tree(pid) if (fields := _fields(each)))
    return ticks / os.sysconf("SC_CLK_TCK")


def database_seconds(pid: int) -> float:
    """CPU time of a tree whose processes have one thread each, such as PostgreSQL's. Unlike
    `cpu_seconds`, it is exact to the microsecond for processes that run."""
    nanoseconds = ticks = 0
    for each in tree(pid):
        try:
            schedule = (PROC / str(each) / "schedstat").read_text()
        except OSError:
            continue  # it has just ended
        nanoseconds += int(schedule.split()[0])
        ticks += sum(map(int, _fields(each)[13:15]))  # children that have ended
    return nanoseconds / 1e9 + ticks / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int) -> float:
    """Memory of a tree, each shared page divided by the number of processes that share it (PSS)."""
    kilobytes = 0
    for each in tree(pid):
        try:
            lines = (PROC / str(each) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # it has just ended
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1024


def _fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name; empty if the process has ended."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
