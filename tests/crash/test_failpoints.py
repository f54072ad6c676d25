"""The fail-points themselves."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from memservice.domain.errors import ConfigurationError, Unavailable
from memservice.testing.failpoints import LOG, POINTS, Failpoint, FailpointStorage, announce, chosen
from memservice_memory.storage import MemoryStorage
from support.processes import preloaded
from support.processes.processes import python_path


def storage(*points: str, log: Path | None = None) -> FailpointStorage:
    return FailpointStorage(MemoryStorage(), [Failpoint.read(point) for point in points], log)


def fact(opened_storage: FailpointStorage, name: str) -> str | None:
    with opened_storage.read() as tx:
        return tx.facts.get(name)


@pytest.mark.parametrize("text", ["kill:before:3", "stop:begin:1@worker", "refuse:before:12"])
def test_a_point_survives_formatting_and_parsing(text: str) -> None:
    assert str(Failpoint.read(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kill",
        "kill:before",
        "kill:before:0",
        "kill:before:x",
        "kill:later:1",
        "die:before:1",
        "refuse:after:1",
    ],
)
def test_an_invalid_point_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a fail-point"):
        Failpoint.read(text)


def test_points_apply_to_the_named_processes() -> None:
    environ = {POINTS: "kill:before:3@worker stop:after:1 kill:before:9@serve"}
    assert [str(point) for point in chosen(environ, ["memservice", "worker"])] == [
        "kill:before:3@worker",
        "stop:after:1",
    ]
    assert chosen({}, ["memservice"]) == []


@pytest.mark.parametrize("point", ["begin", "before"])
def test_a_refused_write_stores_nothing_and_other_writes_succeed(point: str) -> None:
    failing_storage = storage(f"refuse:{point}:2")
    failing_storage.write(lambda tx: tx.facts.set("first", "1"))
    with pytest.raises(Unavailable, match="fail-point refuse"):
        failing_storage.write(lambda tx: tx.facts.set("second", "2"))
    failing_storage.write(lambda tx: tx.facts.set("third", "3"))
    assert [fact(failing_storage, name) for name in ("first", "second", "third")] == [
        "1",
        None,
        "3",
    ]
    assert failing_storage.writes == 3


def test_a_point_in_the_log_is_skipped(tmp_path: Path) -> None:
    log = tmp_path / "log"
    failing_storage = storage("refuse:before:1", log=log)
    with pytest.raises(Unavailable):
        failing_storage.write(lambda tx: tx.facts.set("first", "1"))
    again = storage("refuse:before:1", log=log)
    again.write(lambda tx: tx.facts.set("first", "1"))
    assert fact(again, "first") == "1"
    assert log.read_text(encoding="utf-8") == "refuse:before:1\n"


WRITES = """
from pathlib import Path
from memservice.compose import open_runtime
rt = open_runtime()
rt.storage.migrate()
for number in (1, 2, 3):
    rt.storage.write(lambda view: view.facts.set(str(number), "written"))
    print(number, flush=True)
"""


@pytest.mark.parametrize(
    ("point", "output", "stored"),
    [("kill:before:2", "1\n", ["1"]), ("kill:after:2", "1\n", ["1", "2"])],
)
def test_a_process_with_the_plugin_ends_at_its_point(
    tmp_path: Path, point: str, output: str, stored: list[str]
) -> None:
    site = announce(tmp_path / "site", failpoints="memservice.testing.failpoints")
    uri = f"sqlite:///{tmp_path}/m.db"
    log = tmp_path / "log"
    environ = {
        "PYTHONPATH": python_path(site),
        "DB_CONNECTION_URI": f"failpoint+{uri}",
        POINTS: point,
    }
    logged = {**environ, LOG: str(log)}
    first = preloaded.run_python(WRITES, folder=tmp_path, settings=logged)
    assert (first.returncode, first.stdout) == (-signal.SIGKILL, output), first.stderr
    look = (
        "from memservice.compose import open_runtime\nwith open_runtime().storage.read() as view:\n"
    )
    look += " print([name for name in '123' if view.facts.get(name)])"
    process = preloaded.run_python(look, folder=tmp_path, settings=environ)
    assert process.stdout.strip() == str(stored)
    again = preloaded.run_python(WRITES, folder=tmp_path, settings=logged)
    assert (again.returncode, again.stdout) == (0, "1\n2\n3\n"), again.stderr
