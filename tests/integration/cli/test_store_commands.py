"""`memservice db`, and what `serve` and `worker` say when they cannot start."""

from __future__ import annotations

import signal
import socket
import sqlite3
import time
from pathlib import Path

import pytest

from integration.cli.conftest import Run
from support.clients.server import Server
from support.processes import preloaded
from support.processes.command import environment


def test_the_schema_is_shown_and_upgraded(memservice: Run, tmp_path: Path) -> None:
    (tmp_path / "memservice.db").touch()
    assert memservice("db", "current").stdout == "empty\n"
    first = memservice("db", "upgrade")
    assert first.returncode == 0
    assert first.stdout.startswith("schema empty -> ")
    revision = first.stdout.split()[-1]
    assert memservice("db", "upgrade").stdout == f"schema {revision}: nothing to do\n"
    assert memservice("db", "current").stdout == f"{revision}\n"


def test_a_newer_schema_is_refused(memservice: Run, tmp_path: Path) -> None:
    memservice("db", "upgrade")
    with sqlite3.connect(tmp_path / "memservice.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    for command in (("serve", "--port", "0"), ("db", "upgrade")):
        result = memservice(*command)
        assert (result.returncode, result.stdout) == (1, "")
        assert f"{tmp_path / 'memservice.db'} has schema 9999" in result.stderr
        assert "of a newer release" in result.stderr
        assert "pip install --upgrade memservice" in result.stderr
    assert memservice("db", "current").stdout == "9999\n"


def test_a_worker_waits_for_the_schema(tmp_path: Path, memservice: Run) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = preloaded.start(["worker"], tmp_path, environment(), log)
        try:
            deadline = time.monotonic() + 30
            while "waiting for the store" not in (tmp_path / "log").read_text():
                assert time.monotonic() < deadline
                assert process.poll() is None, "it does not give up"
                time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    assert not (tmp_path / "memservice.db").exists(), "and it does not migrate"


def test_a_used_port_is_reported(memservice: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = memservice("serve", "--port", port)
    assert result.returncode == 1
    assert result.stderr == (
        f"memservice: cannot listen on 127.0.0.1:{port} (Address already in use): choose "
        "another --host or --port\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--port", "70000"), "70000 is not in the range 0<=x<=65535"),
        (("--port", "http"), "'http' is not a valid integer"),
        (("--threads", "1"), "1 is not in the range"),
        (("--workers", "0"), "0 is not in the range"),
    ],
)
def test_a_wrong_option_is_reported(
    memservice: Run, arguments: tuple[str, ...], sentence: str
) -> None:
    result = memservice("serve", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr


def test_a_storage_inside_one_process_is_refused(memservice: Run) -> None:
    result = memservice("serve", "--port", "0", DB_CONNECTION_URI="memory://")
    assert (result.returncode, result.stdout) == (1, "")
    assert "The storage 'memory' exists in one process only" in result.stderr
    assert (
        "Set DB_CONNECTION_URI to a storage that processes can share, for instance "
        "sqlite:///memservice.db"
    ) in result.stderr
    worker = memservice("worker", DB_CONNECTION_URI="memory://")
    assert worker.returncode == 1
    assert "exists in one process only, so a worker cannot share it" in worker.stderr


def test_a_store_that_cannot_be_opened_is_reported(memservice: Run, tmp_path: Path) -> None:
    absent = memservice(
        "serve", "--port", "0", DB_CONNECTION_URI=f"sqlite:///{tmp_path}/absent/x.db"
    )
    assert absent.returncode == 1
    assert f"mkdir -p {tmp_path}/absent" in absent.stderr
    (tmp_path / "letter.txt").write_text("Dear database," * 100, encoding="utf-8")
    other = memservice("serve", "--port", "0", DB_CONNECTION_URI="sqlite:///letter.txt")
    assert other.returncode == 1
    assert "is not a SQLite database" in other.stderr


def test_serve_logs_its_start_and_end(tmp_path: Path) -> None:
    from memservice import __version__

    server = Server(
        tmp_path,
        "--host",
        "0.0.0.0",
        "--no-worker",
        "--workers",
        "1",
        LOG_LEVEL="warning",
        AUTH_USE_AUTH="false",
    )
    try:
        server.wait_until_healthy()
    finally:
        status = server.stop(signal.SIGINT)
    assert status == 0
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in server.output.splitlines()}
    assert lines["memservice"] == __version__
    assert lines["storage"].startswith("sqlite   sqlite:///memservice.db   schema ")
    assert lines["vectors"] == "in the storage (sqlite)   embedder hashed-v1-384"
    assert lines["reasoner"] == "extractive"
    assert lines["runner"] == "none here: start `memservice worker`"
    assert lines["auth"] == "off"
    assert lines["listening"].endswith("/openapi.json)")
    assert "WARNING     authentication is off and the server listens on 0.0.0.0" in server.log
    assert (tmp_path / "memservice.db").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("doctor",),
        ("db", "current"),
        ("db", "recount"),
        ("export", "-w", "w", "-"),
        ("keys", "list"),
        ("jobs", "list"),
        ("usage",),
        ("reembed", "--to", "hashed"),
    ],
    ids=" ".join,
)
def test_a_mistyped_location_is_reported_and_nothing_is_created(
    memservice: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    result = memservice(*command, DB_CONNECTION_URI="sqlite:///mistyped.db")
    assert result.returncode == 1
    assert (
        f"There is no file {tmp_path / 'mistyped.db'}: check DB_CONNECTION_URI"
        in result.stdout + result.stderr
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", [("db", "upgrade"), ("keys", "create", "--admin")], ids=" ".join
)
def test_commands_that_create_a_store_do_so(
    memservice: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    result = memservice(*command, AUTH_JWT_SECRET="x" * 32)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "memservice.db").stat().st_size


def test_vacuum_frees_disk_space_and_enables_automatic_shrinking(
    memservice: Run, tmp_path: Path
) -> None:
    memservice("db", "upgrade")
    file = tmp_path / "memservice.db"
    with sqlite3.connect(file) as connection:
        # As files were made before.
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.commit()
        connection.execute("VACUUM")
        connection.execute(
            "CREATE TABLE ballast AS WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x "
            "+ 1 FROM n LIMIT 900) "
            "SELECT zeroblob(4000) FROM n"
        )
        connection.commit()
        connection.execute("DROP TABLE ballast")
        connection.commit()
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    connection.close()
    before = file.stat().st_size
    result = memservice("db", "vacuum")
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert file.stat().st_size < before / 2
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    connection.close()
    assert memservice("doctor").returncode == 0


@pytest.mark.parametrize(
    "command",
    [("jobs", "list"), ("db", "current"), ("keys", "list"), ("export", "-w", "w", "-")],
    ids=" ".join,
)
def test_commands_that_read_create_nothing_and_print_where_they_looked(
    memservice: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    result = memservice(*command, HOME=str(home))
    assert (result.returncode, result.stdout) == (1, "")
    assert f"There is no directory {home}/.local/share/memservice. {tmp_path} holds neither" in (
        result.stderr
    )
    assert "name its settings with --config or its store with DB_CONNECTION_URI" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_data_directory_holds_the_store_and_is_private(memservice: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = home / ".local" / "share" / "memservice"
    assert memservice("db", "upgrade", HOME=str(home)).returncode == 0
    assert [path.name for path in folder.iterdir()] == ["memservice.db"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert memservice("jobs", "list", HOME=str(home)).returncode == 0
    assert "ok        storage" in memservice("doctor", HOME=str(home)).stdout
    (tmp_path / ".env").write_text("LOG_LEVEL=info\n", encoding="utf-8")
    here = memservice("doctor", HOME=str(home)).stdout
    assert f"There is no file {tmp_path / 'memservice.db'}" in here
    assert f"-> DB_CONNECTION_URI is not set, so {tmp_path} was looked at" in here


def test_serve_prints_the_place_of_its_store(tmp_path: Path) -> None:
    home = tmp_path / "home"
    server = Server(tmp_path, "--no-worker", "--workers", "1", HOME=str(home))
    try:
        server.wait_until_healthy()
    finally:
        server.stop()
    file = home / ".local" / "share" / "memservice" / "memservice.db"
    assert f"storage     sqlite   sqlite:///{file}   schema " in server.output
    assert file.exists()
    assert not (tmp_path / "memservice.db").exists()
