"""Where the database is, how a connection to it is opened, and what it is told."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import psycopg
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from memservice.domain.errors import ConfigurationError
from memservice_postgres.json_text import read
from memservice_postgres.reals import Reals, RealsDumper


class Driver(psycopg.Connection[tuple[Any, ...]]):
    """A connection, and what each of its transactions has to begin with."""

    pooler = False
    """Whether a connection pooler stands between: what is set, or prepared, may be gone with the
    next transaction."""
    settings = b""
    """Follows `BEGIN`: sets what this connection could not be opened with, for one transaction."""


PREPARED_AFTER = 3
"""A statement that a connection has run so often is prepared."""
STATEMENTS_KEPT = 300
"""Prepared statements that each connection keeps."""
IDLE_SECONDS = 60.0
"""A connection that was not used for so long is asked whether the server still knows it."""
ABANDONED_SECONDS = 60
"""A transaction of a process that has stopped is rolled back by the server after so long."""
DEAD_LINE_SECONDS = 10
"""So long an unanswered packet keeps a connection alive."""


REFUSES_SETTINGS = "unsupported startup parameter"
"""What PgBouncer says of a connection that is to be opened with settings, unless it is told to
ignore them."""


@dataclass(slots=True)
class _Seen:
    """What is known of a place since it was connected to."""

    refuses_settings: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """A database and how to treat it."""

    name: str
    """For messages: host and database, without user or password."""
    arguments: Mapping[str, Any] = field(repr=False)
    """For libpq."""
    schema: str = "public"
    connect_seconds: float = 2.0
    lock_seconds: float = 5.0
    statement_seconds: float = 30.0
    durable: bool = True
    prepares: bool = True
    _seen: _Seen = field(default_factory=_Seen, init=False, repr=False, compare=False)

    def connect(self, application_name: str | None = None, **settings: str) -> Driver:
        """A new connection without implicit transactions, usable from one thread at a time.
        `settings` are further server settings.

        Where a pooler stands between, they hold in transactions that begin with `Driver.settings`,
        and nothing is prepared.
        """
        told = {
            # Extensions that this database has already are in one of the others.
            "search_path": f"{self.schema},public,extensions",
            "timezone": "UTC",
            # Every statement has its index, and a plan is kept with its statement: one that scans
            # or hashes a whole table, because the table is small or its statistics are old, would
            # still do so when it is large.
            **dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"),
            "lock_timeout": _milliseconds(self.lock_seconds),
            "statement_timeout": _milliseconds(self.statement_seconds),
            "idle_in_transaction_session_timeout": _milliseconds(ABANDONED_SECONDS),
            **({} if self.durable else {"synchronous_commit": "off"}),
            **settings,
        }
        given = {
            "application_name": "memservice",
            "keepalives_idle": 30,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        }
        arguments: dict[str, Any] = {
            **given,
            "tcp_user_timeout": DEAD_LINE_SECONDS * 1_000,
            **self.arguments,
        }
        if application_name is not None:
            arguments["application_name"] = application_name
        given_options = str(arguments.pop("options", ""))
        options = " ".join(
            [
                *filter(None, [given_options]),
                *(f"-c {name}={value}" for name, value in told.items()),
            ]
        )
        # libpq counts in whole seconds, and takes 0 for ever.
        arguments["connect_timeout"] = max(1, math.ceil(self.connect_seconds))
        driver = self._connected(arguments, options)
        try:
            _look_for_pooler(driver, told)
        except BaseException:
            driver.close()
            raise
        driver.prepare_threshold = PREPARED_AFTER if self.prepares and not driver.pooler else None
        driver.prepared_max = STATEMENTS_KEPT
        driver.adapters.register_dumper(Reals, RealsDumper)
        # One type for all integers: else each statement is prepared again for small and for large
        # ones.
        for dumper in (Int8Dumper, Int8BinaryDumper):
            driver.adapters.register_dumper(int, dumper)
        set_json_loads(read, driver)
        return driver

    def _connected(self, arguments: Mapping[str, Any], options: str) -> Driver:
        if not self._seen.refuses_settings:
            try:
                return Driver.connect(autocommit=True, options=options, **arguments)
            except psycopg.OperationalError as error:
                if REFUSES_SETTINGS not in str(error):
                    raise
                self._seen.refuses_settings = True
        return Driver.connect(autocommit=True, **arguments)


def _look_for_pooler(driver: Driver, told: Mapping[str, str]) -> None:
    """The server has been told what we asked for, and is the process that it says it is; or
    something stands between."""
    found = execute_pipelined(
        driver,
        (
            b"SELECT pg_backend_pid(), current_setting('search_path'), "
            b"current_setting('enable_seqscan')"
        ),
    )
    pid, path, scans = (
        None if (value := found.get_value(0, column)) is None else value.decode()
        for column in range(3)
    )
    driver.pooler = (pid, path, scans) != (
        str(driver.info.backend_pid),
        told["search_path"],
        told["enable_seqscan"],
    )
    if driver.pooler:
        # Names are ours; of values one is the schema, whose letters are looked at when settings are
        # loaded.
        each = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in told.items())
        driver.settings = f"; SELECT {each}".encode()


def config_of(uri: str, **settings: Any) -> ConnectionConfig:
    """The database that `uri` names. Raises `ConfigurationError`, saying what to write instead."""
    example = "postgresql+psycopg://user:password@localhost:5432/memservice"
    try:
        url = make_url(uri)
    except (ArgumentError, ValueError) as error:
        raise ConfigurationError(f"The connection URI is no URI; write {example}") from error
    if not url.database:
        raise ConfigurationError(f"The connection URI names no database; write {example}")
    _, arguments = PGDialect_psycopg().create_connect_args(url)  # type: ignore[no-untyped-call]
    host = arguments.get("host") or "the local socket"
    port = f":{arguments['port']}" if arguments.get("port") else ""
    return ConnectionConfig(f"{url.database} on {host}{port}", arguments, **settings)


class _Record(Protocol):
    info: dict[str, Any]


def is_alive(driver: Driver, record: _Record) -> bool:
    """Whether a connection that was pooled can be used, without asking the server if it was used a
    moment ago.

    What a server says unasked is that it is closing the connection, so a silent socket is a sound
    one.
    """
    if driver.closed or driver.pgconn.status != ConnStatus.OK:
        return False
    poll = select.poll()
    poll.register(driver.pgconn.socket, select.POLLIN)
    silent = not poll.poll(0)
    if silent and time.monotonic() - record.info.get("used", 0.0) < IDLE_SECONDS:
        return True
    try:
        execute_pipelined(driver, b"SELECT 1")
    except psycopg.Error:
        return False
    return True


def execute_pipelined(driver: Driver, command: bytes) -> PGresult:
    """Run a command that has no parameters, without the cost of a cursor."""
    result = driver.pgconn.exec_(command)
    if driver.pgconn.status != ConnStatus.OK:
        raise psycopg.OperationalError("the connection was lost")
    if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        raise psycopg.errors.error_from_result(result)
    if command == b"COMMIT" and result.command_status != b"COMMIT":
        raise RuntimeError("a transaction in which a statement had failed was to be committed")
    return result


def in_transaction(driver: Driver) -> bool:
    return driver.pgconn.transaction_status in (
        TransactionStatus.INTRANS,
        TransactionStatus.INERROR,
        TransactionStatus.ACTIVE,
    )


def driver_of(connection: Any) -> Driver:
    """The driver's connection below an SQLAlchemy one."""
    return cast(Driver, connection.connection.driver_connection)


def _milliseconds(seconds: float) -> str:
    # 0 would mean no limit at all.
    return str(max(1, int(seconds * 1_000)))
