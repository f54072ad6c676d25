"""One run: every scenario at each number of connections, round by round, and the floor."""

from __future__ import annotations

import os
import platform
import random
import statistics
import subprocess
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.load.client import Outcome, Request, closed_loop
from benchmarks.load.processes import cpu_seconds, megabytes
from benchmarks.load.scenarios import Scenario

FLOOR_NAME = "floor"
SCENARIOS_PER_FLOOR = 3
"""The floor is measured again after so many scenarios: one sample of it differs from another by up
to a factor of two, and every ratio depends on it."""


@dataclass(slots=True)
class Cell:
    """A scenario at one number of connections. Times are in milliseconds; medians of the rounds."""

    scenario: str
    connections: int
    requests: int
    errors: dict[str, int]
    per_second: float
    p50: float
    p95: float
    p99: float
    server_cpu: float | None
    """CPU of the server's processes per request; None if they are elsewhere."""
    database_cpu: float | None

    @property
    def cpu(self) -> float | None:
        """CPU of the server and the database per request."""
        parts = [part for part in (self.server_cpu, self.database_cpu) if part is not None]
        return sum(parts) if parts else None


@dataclass(slots=True)
class Run:
    about: dict[str, Any]
    """Machine, commit, size of the data, memory in MB, seconds to start."""
    cells: list[Cell] = field(default_factory=list)

    @property
    def in_process(self) -> bool:
        """Whether the requests went through no HTTP server."""
        return bool(self.about.get("in_process"))

    def cell(self, scenario: str, connections: int) -> Cell | None:
        return next(
            (c for c in self.cells if (c.scenario, c.connections) == (scenario, connections)), None
        )

    def floor(self, connections: int) -> float | None:
        """CPU per request of the bare application."""
        cell = self.cell(FLOOR_NAME, connections)
        return None if cell is None else cell.cpu

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Run:
        return cls(dict(dumped["about"]), [Cell(**cell) for cell in dumped["cells"]])


@dataclass(frozen=True, slots=True)
class Target:
    """What requests are sent to, and the processes whose CPU is measured."""

    url: str
    server: int | None = None
    database: int | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    connections: Sequence[int] = (1, 8, 32)
    seconds: float = 1.5
    """Of each cell and round."""
    rounds: int = 3


@dataclass(frozen=True, slots=True)
class _Sample:
    outcome: Outcome
    elapsed: float
    server_cpu: float | None
    database_cpu: float | None


def measure(
    target: Target,
    floor: Target | None,
    scenarios: Sequence[Scenario],
    plan: Plan,
    progress: Callable[[str], None] = lambda line: None,
) -> list[Cell]:
    """The cells of all scenarios. Rounds, and samples of the floor, are interleaved, so that a
    change of the machine's speed meets all alike."""
    samples: dict[tuple[str, int], list[_Sample]] = defaultdict(list)
    bare = Scenario(FLOOR_NAME, lambda dice: Request("GET", "/"))
    for number in range(plan.rounds):
        for connections in plan.connections:
            for index, scenario in enumerate(scenarios):
                if floor is not None and index % SCENARIOS_PER_FLOOR == 0:
                    of_floor = _sample(floor, bare, connections, plan, number)
                    samples[FLOOR_NAME, connections].append(of_floor)
                sample = _sample(target, scenario, connections, plan, number)
                samples[scenario.name, connections].append(sample)
                progress(f"round {number + 1}, {connections} connections, {scenario.name}")
    return [_cell(*key, taken) for key, taken in samples.items()]


def _sample(
    target: Target, scenario: Scenario, connections: int, plan: Plan, number: int
) -> _Sample:
    dice = random.Random(f"{scenario.name} {connections} {number}")
    lock = threading.Lock()

    def next_request(_: int) -> Request:
        with lock:
            return scenario.request(dice)

    def loop(seconds: float) -> Outcome:
        return closed_loop(target.url, next_request, connections, seconds, token=target.token)

    loop(plan.seconds / 10)  # opens connections, prepares statements
    pids = (target.server, target.database)
    before = [None if pid is None else cpu_seconds(pid) for pid in pids]
    outcome = loop(plan.seconds)
    elapsed = sum(outcome.seconds) / connections
    spent = [
        None
        if pid is None or began is None
        else 1000 * (cpu_seconds(pid) - began) / max(1, outcome.requests)
        for pid, began in zip(pids, before, strict=True)
    ]
    return _Sample(outcome, elapsed, *spent)


def _cell(scenario: str, connections: int, taken: Sequence[_Sample]) -> Cell:
    errors: Counter[int] = sum((sample.outcome.errors for sample in taken), Counter())
    times = [sample.outcome.seconds for sample in taken if sample.outcome.seconds]
    p50, p95, p99 = (
        statistics.median([1000 * percentile(each, share) for each in times]) if times else 0.0
        for share in (0.5, 0.95, 0.99)
    )
    rates = [len(s.outcome.seconds) / s.elapsed for s in taken if s.elapsed]
    return Cell(
        scenario,
        connections,
        sum(sample.outcome.requests for sample in taken),
        {str(status): number for status, number in sorted(errors.items())},
        statistics.median(rates) if rates else 0.0,
        p50,
        p95,
        p99,
        _median([sample.server_cpu for sample in taken]),
        _median([sample.database_cpu for sample in taken]),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def _median(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if numbers else None


def machine() -> dict[str, Any]:
    """The machine and the commit."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "commit": commit or None,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
    }


def memory(target: Target) -> dict[str, float]:
    """Megabytes (PSS) of the measured processes."""
    pids = {"server": target.server, "database": target.database}
    return {name: round(megabytes(pid), 1) for name, pid in pids.items() if pid is not None}
