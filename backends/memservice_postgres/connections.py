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

Driver = psycopg.Connection[tuple[Any, ...]]

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


@dataclass(frozen=True, slots=True)
class Place:
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

    def connect(self, **settings: str) -> Driver:
        """A new connection without implicit transactions, usable from one thread at a time. `settings` are further server settings."""
        told = {
            # Extensions that this database has already are in one of the others.
            "search_path": f"{self.schema},public,extensions",
            "timezone": "UTC",
            # Every statement has its index, and a plan is kept with its statement: one that scans or hashes a whole table, because the
            # table is small or its statistics are old, would still do so when it is large.
            **dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"),
            "lock_timeout": _milliseconds(self.lock_seconds),
            "statement_timeout": _milliseconds(self.statement_seconds),
            "idle_in_transaction_session_timeout": _milliseconds(ABANDONED_SECONDS),
            **({} if self.durable else {"synchronous_commit": "off"}),
            **settings,
        }
        given = {"application_name": "memservice", "keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3}
        arguments: dict[str, Any] = {**given, "tcp_user_timeout": DEAD_LINE_SECONDS * 1_000, **self.arguments}
        options = [str(arguments.get("options", "")), *(f"-c {name}={value}" for name, value in told.items())]
        arguments["options"] = " ".join(option for option in options if option)
        # libpq counts in whole seconds, and takes 0 for ever.
        arguments["connect_timeout"] = max(1, math.ceil(self.connect_seconds))
        made = psycopg.connect(autocommit=True, prepare_threshold=PREPARED_AFTER if self.prepares else None, **arguments)
        made.prepared_max = STATEMENTS_KEPT
        made.adapters.register_dumper(Reals, RealsDumper)
        # One type for all integers: else each statement is prepared again for small and for large ones.
        for dumper in (Int8Dumper, Int8BinaryDumper):
            made.adapters.register_dumper(int, dumper)
        set_json_loads(read, made)
        return made


def place_of(uri: str, **settings: Any) -> Place:
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
    return Place(f"{url.database} on {host}{port}", arguments, **settings)


class _Record(Protocol):
    info: dict[str, Any]


def is_alive(driver: Driver, record: _Record) -> bool:
    """Whether a connection that was pooled can be used, without asking the server if it was used a moment ago.

    What a server says unasked is that it is closing the connection, so a silent socket is a sound one.
    """
    if driver.closed or driver.pgconn.status != ConnStatus.OK:
        return False
    poll = select.poll()
    poll.register(driver.pgconn.socket, select.POLLIN)
    silent = not poll.poll(0)
    if silent and time.monotonic() - record.info.get("used", 0.0) < IDLE_SECONDS:
        return True
    try:
        tell(driver, b"SELECT 1")
    except psycopg.Error:
        return False
    return True


def tell(driver: Driver, command: bytes) -> PGresult:
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
    return driver.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR, TransactionStatus.ACTIVE)


def driver_of(connection: Any) -> Driver:
    """The driver's connection below an SQLAlchemy one."""
    return cast(Driver, connection.connection.driver_connection)


def _milliseconds(seconds: float) -> str:
    # 0 would mean no limit at all.
    return str(max(1, int(seconds * 1_000)))
