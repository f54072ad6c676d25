"""CPU of requests without sockets: the application is called in this process, one request after the
other.

Other programs slow a request down, but hardly change its CPU time. So these figures can be compared
on a machine that also does other work, where a load over HTTP shows only noise. They leave out what
the HTTP server does, which is the same for all scenarios.
"""

from __future__ import annotations

import io
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.load.client import Request
from benchmarks.load.measuring import FLOOR_NAME, Cell, percentile
from benchmarks.load.processes import database_seconds
from benchmarks.load.scenarios import Scenario

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
"""A WSGI application."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    requests: int = 60
    """Of each scenario and round."""
    rounds: int = 7


@dataclass(frozen=True, slots=True)
class _Round:
    seconds: list[float]
    errors: Counter[int]
    application_cpu: float
    database_cpu: float | None


def environ(request: Request, headers: Mapping[str, str]) -> dict[str, Any]:
    """The WSGI environment of a request over a connection on loopback. `headers` have the names
    that WSGI gives them."""
    path, _, query = request.path.partition("?")
    return {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_ACCEPT_ENCODING": "identity",
        **headers,
        "CONTENT_TYPE": request.content_type if request.body is not None else "",
        "CONTENT_LENGTH": str(len(request.body or b"")),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body or b""),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


def answer(application: Application, environment: dict[str, Any]) -> tuple[int, bytes]:
    """Answer a request completely, and return the status and the body."""
    statuses: list[int] = []

    def start(status: str, headers: Sequence[tuple[str, str]], failed: Any = None) -> None:
        statuses.append(int(status[:3]))

    parts = application(environment, start)
    try:
        body = b"".join(parts)
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()
    return statuses[-1], body


def measure(
    application: Application,
    floor: Application,
    database: int | None,
    scenarios: Sequence[Scenario],
    plan: Plan,
    token: str | None = None,
    progress: Progress = lambda line: None,
    before_round: Callable[[], object] = lambda: None,
) -> list[Cell]:
    """The cells of all scenarios and of the floor. Rounds are interleaved, and each has other
    requests. `database` is the process whose tree is the database's server."""
    headers = {"HTTP_AUTHORIZATION": f"Bearer {token}"} if token else {}
    bare = Scenario(FLOOR_NAME, lambda dice: Request("GET", "/"))
    rounds: dict[str, list[_Round]] = {}
    for number in range(plan.rounds):
        before_round()
        for scenario in (bare, *scenarios):
            dice = random.Random(f"{scenario.name} {number}")
            environments = [environ(scenario.request(dice), headers) for _ in range(plan.requests)]
            of_scenario = rounds.setdefault(scenario.name, [])
            if not of_scenario:  # statements are compiled, and caches are filled
                warming = random.Random(f"{scenario.name} at first")
                for _ in range(min(10, plan.requests)):
                    request = scenario.request(warming)
                    answer(floor if scenario is bare else application, environ(request, headers))
            of_scenario.append(
                _round(floor, None, environments)
                if scenario is bare
                else _round(application, database, environments)
            )
            progress(f"round {number + 1}, {scenario.name}")
    return [_cell(name, taken) for name, taken in rounds.items()]


def _round(
    application: Application, database: int | None, environments: Sequence[dict[str, Any]]
) -> _Round:
    seconds: list[float] = []
    errors: Counter[int] = Counter()
    database_before = None if database is None else database_seconds(database)
    before = time.process_time()
    for each in environments:
        began = time.perf_counter()
        status, _ = answer(application, each)
        if 200 <= status < 300:
            seconds.append(time.perf_counter() - began)
        else:
            errors[status] += 1
    spent = time.process_time() - before
    database_spent = (
        None
        if database is None or database_before is None
        else 1000 * (database_seconds(database) - database_before) / len(environments)
    )
    return _Round(seconds, errors, 1000 * spent / len(environments), database_spent)


def _cell(name: str, rounds: Sequence[_Round]) -> Cell:
    """The least CPU time of the rounds, since other programs only make a round slower."""
    errors: Counter[int] = sum((each.errors for each in rounds), Counter())
    times = [second for each in rounds for second in each.seconds]
    p50, p95, p99 = (
        1000 * percentile(times, share) if times else 0.0 for share in (0.5, 0.95, 0.99)
    )
    database = [each.database_cpu for each in rounds if each.database_cpu is not None]
    return Cell(
        scenario=name,
        connections=1,
        requests=len(times) + errors.total(),
        errors={str(status): number for status, number in sorted(errors.items())},
        per_second=len(times) / sum(times) if times else 0.0,
        p50=p50,
        p95=p95,
        p99=p99,
        server_cpu=min(each.application_cpu for each in rounds),
        database_cpu=min(database) if database else None,
    )
