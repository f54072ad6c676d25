"""What `memservice serve` does before it serves: what it says, what it refuses, and that refusing
leaves nothing behind."""

from __future__ import annotations

import re
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memservice.api import exposure
from memservice.app import create_app
from memservice.domain.errors import ConfigurationError
from memservice.settings import load_settings
from support.clients.server import serving
from support.processes import preloaded
from support.processes.command import environment
from support.processes.processes import Service, below, command_of, eventually, send

pytestmark = pytest.mark.e2e

Serve = Callable[..., Service]


def refused(folder: Path, *options: str, **settings: str) -> str:
    """What a start that does not succeed says. It is short, and nothing runs afterwards."""
    process = preloaded.start(["serve", *options], folder, environment(**settings))
    children: set[int] = set()
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < 60:
        children |= set(below(process.pid))
        time.sleep(0.02)
    late = process.poll() is None
    for pid in (process.pid, *children) if late else ():
        send(pid, signal.SIGKILL)
    output, errors = process.communicate(timeout=20)
    assert not late, f"it went on instead of saying no:\n{output}{errors}"
    assert process.returncode == 1, errors
    assert "Traceback" not in errors, errors
    assert "listening" not in output
    eventually(
        lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in children),
        what="its children have ended",
    )
    return errors


def test_a_start_without_settings_creates_the_database_and_logs_its_components(
    serve: Serve,
) -> None:
    service = serve("--port", "0")
    output = service.server.output
    for pattern in (
        r"^memservice +\d+\.\d+\.\d+$",
        r"^storage +sqlite +sqlite:///memservice\.db +schema \w+$",
        r"^vectors +in the storage \(sqlite\) +embedder \S+$",
        r"^reasoner +extractive\b",
        r"^auth +off$",
        r"^listening +http://127\.0\.0\.1:\d+ .*/openapi\.json",
    ):
        assert re.search(pattern, output, re.M), f"{pattern} is not in\n{output}"
    assert "runner" in output
    assert service.rows("SELECT version_num FROM alembic_version")
    assert service.rows("SELECT count(*) FROM messages") == [(0,)]
    with urllib.request.urlopen(f"{service.address}/openapi.json", timeout=10) as answer:
        assert answer.status == 200
    assert int(service.address.rpartition(":")[2]) > 1023, "--port 0 finds one that is free"
    assert any(until_derived(service, number) < 2.0 for number in range(10)), (
        "what is said is known within two seconds, unless the machine is busy"
    )
    assert service.server.stop(signal.SIGINT) == 0, "as Ctrl-C does"
    assert "Traceback" not in service.server.log
    assert "WARNING" not in service.server.log


def test_a_first_start_with_keys_prints_a_link_for_the_console(serve: Serve) -> None:
    """Behind which the first owner is made; the served page takes it."""
    service = serve("--port", "0", **WITH_KEYS)
    link = re.search(
        r"^console +(http://127\.0\.0\.1:\d+/console/link\?token=\S+)$", service.server.output, re.M
    )
    assert link is not None, service.server.output
    assert link[1].startswith(service.address)
    with urllib.request.urlopen(link[1], timeout=10) as answer:
        assert b"Create your account" in answer.read()
    assert service.server.stop() == 0
    assert link[1].partition("token=")[2] not in service.server.log


def until_derived(service: Service, number: int) -> float:
    """Seconds from a request to its conclusion's being listed."""
    service.drained()
    began = time.monotonic()
    service.say("s", ("alice", f"I repaired boat number {number} in May."))
    eventually(
        lambda: service.post("/conclusions/list", {})["total"] == number + 1, what="it is derived"
    )
    return time.monotonic() - began


def test_a_used_port_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        errors = refused(tmp_path, "--port", str(port))
    assert f"cannot listen on 127.0.0.1:{port}" in errors
    assert "--port" in errors
    assert not (tmp_path / "memservice.db").exists(), "nothing was touched"


def test_a_foreign_address_is_reported_in_one_sentence(tmp_path: Path) -> None:
    assert "cannot listen on 192.0.2.7:0" in refused(
        tmp_path, "--host", "192.0.2.7", "--port", "0", AUTH_USE_AUTH="false"
    )


def test_a_newer_schema_is_refused_at_once_and_not_changed(serve: Serve) -> None:
    service = serve("--port", "0", "--no-worker")
    assert service.server.stop() == 0
    with closing(sqlite3.connect(service.database)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v9999_from_the_future'")
        connection.commit()
    errors = refused(service.folder, "--port", "0", PYTHONPATH=service.settings["PYTHONPATH"])
    assert "v9999_from_the_future" in errors
    assert "newer" in errors
    assert service.rows("SELECT version_num FROM alembic_version") == [("v9999_from_the_future",)]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"DB_CONNECTION_URI": "memory://"}, "exists in one process only"),
        ({"DB_CONNECTION_URI": "sqlite:////no/such/folder/m.db"}, "mkdir -p /no/such/folder"),
        ({"DB_CONNECTION_URI": "sqlte:///m.db"}, "sqlite"),
        ({"REASONER": "extractiv"}, "did you mean extractive"),
        ({"EMBEDDER": "hushed"}, "did you mean hashed"),
        ({"WORKERS": "many"}, "WORKERS"),
    ],
)
def test_a_mistake_in_the_settings_is_reported_in_one_sentence(
    tmp_path: Path, settings: dict[str, str], sentence: str
) -> None:
    assert sentence in refused(tmp_path, "--port", "0", **settings)


def test_a_store_that_cannot_be_opened_is_reported_once(tmp_path: Path) -> None:
    errors = refused(
        tmp_path,
        *("--port", "0", "--workers", "4"),
        DB_CONNECTION_URI="sqlite:////no/such/folder/m.db",
    )
    assert errors.count("does not exist") == 1
    assert len(errors.strip().splitlines()) == 1


OPEN, LOOPBACK = (
    ["0.0.0.0", "example.org", "::", "192.168.1.7"],
    ["127.0.0.1", "127.0.0.2", "::1", "localhost"],
)
WITH_KEYS = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40}


@pytest.mark.parametrize("host", [*OPEN, *LOOPBACK])
def test_a_public_address_without_keys_is_refused_unless_confirmed(host: str) -> None:
    by_default, decided, with_keys = (
        load_settings(environ=environ, cwd=Path("/"))
        for environ in ({}, {"AUTH_USE_AUTH": "false"}, WITH_KEYS)
    )
    exposure.require_decision(decided, host)
    exposure.require_decision(with_keys, host)
    assert exposure.warnings(with_keys, host) == []
    if host in LOOPBACK:
        exposure.require_decision(by_default, host)
        assert exposure.warnings(by_default, host) == exposure.warnings(decided, host) == []
        return
    with pytest.raises(
        ConfigurationError,
        match=f"listens on {host}: .*AUTH_USE_AUTH=true and AUTH_JWT_SECRET.*AUTH_USE_AUTH=false",
    ):
        exposure.require_decision(by_default, host)
    assert host in exposure.warnings(decided, host)[0]


def test_all_processes_are_forks_that_share_what_the_first_has_imported(tmp_path: Path) -> None:
    with serving(tmp_path, PYTHONUNBUFFERED="1") as server:
        supervisor = server.process
        assert isinstance(supervisor, subprocess.Popen)

        def roles() -> list[str]:
            commands = [command_of(pid) for pid in below(supervisor.pid)]
            assert all("memservice serve" in command for command in commands)
            return sorted(command.partition("serve")[2].split()[-1] for command in commands)

        eventually(lambda: roles() == ["gunicorn", "gunicorn", "gunicorn", "work"])


def test_serve_refuses_an_open_address_without_keys(tmp_path: Path) -> None:
    errors = refused(tmp_path, "--host", "0.0.0.0", "--port", "0")
    assert "authentication is off and the server listens on 0.0.0.0" in errors
    assert "AUTH_USE_AUTH=false" in errors
    assert not (tmp_path / "memservice.db").exists()
    assert "0.0.0.0" in refused(tmp_path, "--port", "0", HOST="0.0.0.0")


@pytest.mark.parametrize("where", [".env", "memservice.toml"])
def test_the_confirmation_may_be_in_any_source(tmp_path: Path, where: str) -> None:
    text = "AUTH_USE_AUTH=false\n" if where == ".env" else "[auth]\nuse_auth = false\n"
    (tmp_path / where).write_text(text, encoding="utf-8")
    exposure.require_decision(load_settings(environ={}, cwd=tmp_path), "0.0.0.0")


@pytest.mark.parametrize(
    ("variables", "warned"), [({}, True), ({"AUTH_USE_AUTH": "false"}, True), (WITH_KEYS, False)]
)
def test_the_application_under_another_server_warns(
    variables: dict[str, str], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    create_app(
        load_settings(
            environ={"HOST": "0.0.0.0", "DB_CONNECTION_URI": "memory://", **variables},
            cwd=Path("/"),
        )
    )
    assert ("authentication is off and the server listens on 0.0.0.0" in caplog.text) is warned


def test_a_worker_waits_for_the_schema_and_works_then(serve: Serve) -> None:
    service = serve("--port", "0", "--no-worker", DERIVER_POLLING_STARTUP_JITTER_SECONDS="0")
    assert service.server.stop() == 0
    for file in service.folder.glob("memservice.db*"):
        file.unlink()
    worker = service.add_worker()
    log = service.folder / "worker-0.log"
    eventually(
        lambda: "waiting for the store" in log.read_text(encoding="utf-8"),
        what="it says that it waits",
    )
    assert worker.poll() is None
    service.restart()
    service.say("s", ("alice", "I keep bees behind the house."))
    eventually(
        lambda: service.texts() == [("alice", "I keep bees behind the house.", 1)], what="it works"
    )
    worker.terminate()
    assert worker.wait(30) == 0
