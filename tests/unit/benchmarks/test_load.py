"""The load generator: its requests are valid, and its figures are right."""

from __future__ import annotations

import http.server
import json
import os
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.load import __main__ as load
from benchmarks.load import background, data, in_process, processes, report, scenarios, servers
from benchmarks.load.client import Connection, Outcome, Request, closed_loop
from benchmarks.load.measuring import Cell, Plan, Run, Target, measure, percentile
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.settings import load_settings
from support.clients.server import serving

SIZE = data.Size(medium=40, large=20, conclusions=10)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"{}"
        self.send_response(503 if self.path == "/busy" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_every_scenario_is_a_request_that_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(
        environ={"DB_CONNECTION_URI": "memory://", "LOG_LEVEL": "warning"}, cwd=Path("/")
    )
    rt = open_runtime(settings, "api")
    client = create_app(settings, rt).test_client()

    def send(_: Connection, request: Request) -> tuple[int, bytes]:
        answer = client.open(
            request.path,
            method=request.method,
            data=request.body,
            content_type=None if request.body is None else request.content_type,
        )
        return answer.status_code, answer.data

    monkeypatch.setattr(Connection, "send", send)
    try:
        dataset = data.seed("http://127.0.0.1:9", SIZE, connections=1)
        assert data.seed("http://127.0.0.1:9", SIZE) == dataset  # it is not stored again
        connection = Connection("http://127.0.0.1:9")
        dice = random.Random(5)
        for scenario in scenarios.scenarios(dataset):
            connection.json(scenario.request(dice))
    finally:
        rt.close()


@contextmanager
def forked(uri: str, options: Mapping[str, str], workers: int) -> Iterator[servers.Server]:
    """As `servers.service`, but a fork, which starts faster."""
    folder = Path(uri.removeprefix("sqlite:///")).parent
    settings = {"DB_CONNECTION_URI": uri, "WORKERS": str(workers), **options}
    with serving(folder, "--no-worker", **settings) as server:
        yield servers.Server(server.url, server.process.pid)


@pytest.mark.slow
@pytest.mark.parametrize("service", [forked, pytest.param(None, marks=pytest.mark.heavy)])
def test_requests_are_measured_without_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Any
) -> None:
    if service is not None:
        monkeypatch.setattr(servers, "service", service)
    saved = tmp_path / "run.json"
    options = ["--medium", "40", "--large", "20", "--conclusions", "10", "--save", str(saved)]
    options += ["--requests", "3", "--rounds", "2", "--scenarios", "msg_get,msg_create_1"]
    load.main(["run", "--db", f"sqlite:///{tmp_path}/load.db", "--in-process", *options])
    measured = Run.load(json.loads(saved.read_text()))
    assert measured.in_process
    assert [cell.scenario for cell in measured.cells] == ["floor", "msg_get", "msg_create_1"]
    for cell in measured.cells:
        assert (cell.requests, cell.errors, cell.database_cpu) == (6, {}, None)
        assert cell.server_cpu is not None
        assert cell.server_cpu > 0
        # The reference was measured over HTTP.
        assert report.ratio(measured, cell) is None


def test_an_error_in_process_is_counted() -> None:
    def refusing(environment: dict[str, Any], start: Any) -> list[bytes]:
        start("503 Service Unavailable" if "busy" in environment["PATH_INFO"] else "200 OK", [])
        return [b"{}"]

    one = scenarios.Scenario("one", lambda dice: Request("GET", "/busy?a=1"))
    bare, busy = in_process.measure(refusing, refusing, None, [one], in_process.Plan(2, 2))
    assert (bare.requests, bare.errors) == (4, {})
    assert (busy.requests, busy.errors) == (4, {"503": 4})


def test_in_process_needs_a_store() -> None:
    with pytest.raises(SystemExit):
        load.main(["run", "--url", "http://127.0.0.1:9", "--in-process"])


def test_the_database_s_cpu_is_at_least_that_of_its_main_process() -> None:
    before = processes.database_seconds(os.getpid())
    assert 0 < before <= processes.database_seconds(os.getpid())


def test_an_answer_with_an_error_says_what_was_refused(url: str) -> None:
    connection = Connection(url)
    with pytest.raises(RuntimeError, match=r"GET /busy: 503 b'\{\}'"):
        connection.json(Request("GET", "/busy"))
    connection.close()


@pytest.mark.slow
def test_a_loop_counts_answers_and_errors(url: str) -> None:
    outcome = closed_loop(
        url, lambda n: Request("GET", "/busy" if n % 2 else "/"), 2, 0, min_requests=10
    )
    assert outcome.requests >= 10
    assert outcome.errors[503] >= 1
    assert len(outcome.seconds) == outcome.requests - outcome.errors[503]
    unreachable = closed_loop("http://127.0.0.1:9", lambda n: Request("GET", "/"), 1, 0)
    assert unreachable.errors == {0: 1}


@pytest.mark.slow
def test_a_run_has_a_cell_for_each_scenario_and_the_floor(url: str) -> None:
    target = Target(url, os.getpid())
    one = scenarios.Scenario("one", lambda dice: Request("GET", "/"))
    cells = measure(target, target, [one], Plan([1, 2], seconds=0.02, rounds=2))
    assert {(cell.scenario, cell.connections) for cell in cells} == {
        (name, number) for name in ("floor", "one") for number in (1, 2)
    }
    assert all(cell.requests and cell.p50 <= cell.p95 <= cell.p99 for cell in cells)
    assert all(cell.server_cpu is not None and cell.database_cpu is None for cell in cells)


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 2), (0.51, 3), (0.95, 4), (0.99, 4), (0.25, 1), (1.0, 4)]
)
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(
    share: float, value: int
) -> None:
    assert percentile([4, 2, 3, 1], share) == value


@pytest.mark.slow
def test_cpu_and_memory_of_this_process_are_read() -> None:
    pid = os.getpid()
    assert pid in processes.tree(pid)
    assert processes.cpu_seconds(pid) > 0
    assert processes.megabytes(pid) > 10


def _run(cpu: float, bare: float = 0.39) -> Run:
    def cell(name: str, server: float, database: float | None = None) -> Cell:
        return Cell(name, 8, 100, {"503": 2}, 50.0, 1.0, 2.0, 3.0, server, database)

    return Run({"commit": "abc"}, [cell("floor", bare), cell("msg_get", cpu / 2, cpu / 2)])


def test_the_ratio_to_the_reference_is_of_floors() -> None:
    # The reference takes 3.72 ms at a floor of 0.39 ms.
    run, slower_machine = _run(0.93), _run(1.86, bare=0.78)
    for each in (run, slower_machine):
        assert report.ratio(each, each.cells[1]) == pytest.approx(4.0)
    row = report.table(run).splitlines()[3]
    assert row == "| msg_get | 8 | 50 | 1.0 | 2.0 | 3.0 | 0.47 | 0.47 | 2.4 | 4.0 | 2 |"
    assert report.table(run).endswith("geometric mean of the ratios 4.0, lowest 4.0")


def test_the_growth_of_p99_is_reported() -> None:
    cells = [
        Cell(name, connections, 100, {}, 50.0, 1.0, 2.0, p99, None, None)
        for name, connections, p99 in (("get", 8, 10.0), ("get", 32, 25.0), ("alone", 32, 1.0))
    ]
    line = "get: p99 10.0 ms at 8 connections, 25.0 ms at 32: 2.5 times"
    assert report.table(Run({}, cells)).splitlines()[-2:] == ["", line]


def test_runs_are_compared_in_floors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, run in (("a", _run(1.0)), ("b", _run(1.0, bare=0.78))):
        (tmp_path / name).write_text(json.dumps(run.dump()))
    load.main(["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == "| msg_get | 8 | 1.00 | 1.00 | 2.6 | 1.3 | 2.00 |"
    )


def test_a_chart_shows_ours_and_the_reference() -> None:
    picture = report.chart(_run(0.93), 8)
    assert picture.count("<rect") == 3  # two bars and one mark
    with pytest.raises(ValueError, match="no cells with 32 connections"):
        report.chart(_run(0.93), 32)


def test_an_unknown_scenario_is_answered_with_the_known_ones() -> None:
    one_scenario = [scenarios.Scenario("one", lambda dice: Request("GET", "/"))]
    with pytest.raises(SystemExit, match="unknown scenarios: two; known: one"):
        load.chosen(one_scenario, "one,two")


def test_every_figure_of_the_reference_belongs_to_a_scenario() -> None:
    names = {scenario.name for scenario in scenarios.scenarios(data.Stored(SIZE, "m"))}
    figures = json.loads(report.REFERENCE.read_text())["cpu"]
    assert all(set(cpu) <= names for cpu in figures.values())


def test_an_outcome_counts_all_requests() -> None:
    outcome = Outcome([0.1])
    outcome.errors[500] += 2
    assert outcome.requests == 3


@pytest.mark.slow
def test_background_work_is_measured_until_none_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "background.json"
    load.main(
        [
            "background",
            "--db",
            f"sqlite:///{tmp_path / 'load.db'}",
            "--messages",
            "200",
            "--sessions",
            "2",
            "--delays",
            "0,20",
            "--option",
            "DERIVER_FLUSH_ENABLED=true",
            "--save",
            str(saved),
        ]
    )
    _, rows = json.loads(saved.read_text())
    assert [row["model_ms"] for row in rows] == [0.0, 20.0]
    for row in rows:
        assert row["messages"] == 200
        assert row["calls"] >= 10, "at most 20 messages fit in one call"
        assert 0 < row["posted"] <= row["done"]
        assert row["server_cpu"] > 0
    assert "| 20 | 200 |" in capsys.readouterr().out


def test_background_messages_are_spread_over_the_sessions() -> None:
    bodies = list(background.requests("w", 100, 3))
    assert [request.path.split("/")[5] for request in bodies] == ["s0", "s1", "s2", "s0", "s1"]
    assert sum(len(json.loads(request.body or b"")["messages"]) for request in bodies) == 100
