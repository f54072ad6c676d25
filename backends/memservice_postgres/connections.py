"""Connections to a PostgreSQL database: configuration, opening, and checks."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import psycopg
from msgspec import Struct
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from memservice.domain.errors import ConfigurationError
from memservice_postgres.integers import IntegerListDumper
from memservice_postgres.json_text import read
from memservice_postgres.reader import Reader
from memservice_postgres.reals import FloatArray, FloatArrayDumper


class Driver(psycopg.Connection[tuple[Any, ...]]):
    """A connection, and the commands that each of its transactions starts with."""

    pooler = False
    """Whether there is a connection pooler before the server: then settings and prepared statements
    may not exist in the next transaction."""
    settings = b""
    """Follows `BEGIN`: applies the settings that a pooler dropped, for one transaction."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.reader = Reader(self)
        """Runs the queries that are repeated."""

    def close(self) -> None:
        self.reader.clear()
        super().close()


PREPARED_AFTER = 3
"""A connection prepares a statement after it has run this many times."""
MAX_PREPARED = 300
"""Maximum number of prepared statements of each connection."""
IDLE_SECONDS = 60.0
"""A connection that was idle for this time is tested before use."""
ABANDONED_SECONDS = 60
"""The server rolls back an idle transaction after this time, for instance of a stopped process."""
TCP_TIMEOUT_SECONDS = 10
"""A connection is closed if a packet is not acknowledged for this time."""

DISTANT_SECONDS = 0.0005
"""A database with a longer round trip is distant. A cheap read makes one to three of them and needs
half a millisecond of a processor: a process that answers one request after the other would leave
it idle."""
SLOW_COMMIT_SECONDS = 0.003
"""A commit that takes longer is worth a wait in which others run: the disk can then write several
commits at once."""
MEASURED = 10
"""Connections that measure the round trip, unless the database is near; further ones do so once in
`MEASURE_SECONDS`, since a busy machine may have delayed all of them."""
MEASURE_SECONDS = 60.0
SETTINGS_REJECTED = "unsupported startup parameter"
"""Part of PgBouncer's error for a connection with settings, unless it is configured to ignore
them."""

READS_AHEAD = "effective_io_concurrency"
"""The setting for how many pages are read ahead, which is faster from a disk. Pages that are in the
system's memory cost more: since PostgreSQL 18, another process reads them."""
_IS_IN_MEMORY = f"""
    SELECT source = 'default' AND pg_database_size(current_database())
        < pg_size_bytes(current_setting('effective_cache_size'))
    FROM pg_settings WHERE name = '{READS_AHEAD}'
""".encode()  # noqa: S608 - a constant


class _Observed(Struct):
    """Properties of the server that were observed while connecting."""

    rejects_settings: bool = False
    round_trip_seconds: float = math.inf
    """The quickest of those measured: other threads delay most of them."""
    measured: int = 0
    """Number of connections that measured it."""
    measured_at: float = -math.inf
    """When the last of them did, in monotonic seconds."""
    commit_seconds: float = 0.0
    """Of the quickest of the last commits."""


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
    _observed: _Observed = field(default_factory=_Observed, init=False, repr=False, compare=False)

    @property
    def is_distant(self) -> bool:
        """Whether threads wait for this database so long that others should run meanwhile."""
        return self._observed.round_trip_seconds > DISTANT_SECONDS

    @property
    def commits_slowly(self) -> bool:
        """Whether threads wait for a commit so long that others should run meanwhile."""
        return self._observed.commit_seconds > SLOW_COMMIT_SECONDS

    def committed(self, seconds: float) -> None:
        """A commit took this time. The quickest one is forgotten little by little."""
        quickest = self._observed.commit_seconds * 1.1 or seconds
        self._observed.commit_seconds = min(quickest, seconds)

    def connect(self, application_name: str | None = None, **settings: str) -> Driver:
        """A new connection without implicit transactions, usable from one thread at a time.
        `settings` are further server settings.

        Behind a pooler, the settings apply to transactions that begin with `Driver.settings`, and
        no statement is prepared.
        """
        server_settings = {
            # Existing extensions of this database are in one of the other schemas.
            "search_path": f"{self.schema},public,extensions",
            "timezone": "UTC",
            # Every statement has its index, and its plan is cached. A plan that scans or hashes a
            # whole table, because the table is small or its statistics are old, would still do so
            # when the table is large.
            **dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"),
            "lock_timeout": _milliseconds(self.lock_seconds),
            "statement_timeout": _milliseconds(self.statement_seconds),
            "idle_in_transaction_session_timeout": _milliseconds(ABANDONED_SECONDS),
            **({} if self.durable else {"synchronous_commit": "off"}),
            **settings,
        }
        defaults = {
            "application_name": "memservice",
            "keepalives_idle": 30,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        }
        arguments: dict[str, Any] = {
            **defaults,
            "tcp_user_timeout": TCP_TIMEOUT_SECONDS * 1_000,
            **self.arguments,
        }
        if application_name is not None:
            arguments["application_name"] = application_name
        given_options = str(arguments.pop("options", ""))
        options = " ".join(
            [
                *filter(None, [given_options]),
                *(f"-c {name}={value}" for name, value in server_settings.items()),
            ]
        )
        # libpq takes whole seconds, and 0 means no timeout.
        arguments["connect_timeout"] = max(1, math.ceil(self.connect_seconds))
        driver = self._connected(arguments, options)
        self._observe(driver, server_settings)
        driver.prepare_threshold = PREPARED_AFTER if self.prepares and not driver.pooler else None
        driver.prepared_max = MAX_PREPARED
        driver.adapters.register_dumper(FloatArray, FloatArrayDumper)
        driver.adapters.register_dumper(list, IntegerListDumper)
        # One type for all integers: otherwise each statement is prepared separately for small and
        # for large ones.
        for dumper in (Int8Dumper, Int8BinaryDumper):
            driver.adapters.register_dumper(int, dumper)
        set_json_loads(read, driver)
        return driver

    def _observe(self, driver: Driver, server_settings: Mapping[str, str]) -> None:
        """Detect a pooler, whether the database is in memory, and how distant the server is."""
        observed = self._observed
        try:
            _detect_pooler(driver, server_settings)
            changed = {READS_AHEAD: "0"} if _is_in_memory(driver) else {}
            if driver.pooler:
                driver.settings = b"; " + _set({**server_settings, **changed}, local=True)
            elif changed:
                execute_directly(driver, _set(changed, local=False))
            now = time.monotonic()
            is_due = observed.measured < MEASURED or now - observed.measured_at >= MEASURE_SECONDS
            if self.is_distant and is_due:
                observed.measured += 1
                observed.measured_at = now
                seconds = _round_trip(driver)
                observed.round_trip_seconds = min(observed.round_trip_seconds, seconds)
        except BaseException:
            driver.close()
            raise

    def _connected(self, arguments: Mapping[str, Any], options: str) -> Driver:
        if not self._observed.rejects_settings:
            try:
                return Driver.connect(autocommit=True, options=options, **arguments)
            except psycopg.OperationalError as error:
                if SETTINGS_REJECTED not in str(error):
                    raise
                self._observed.rejects_settings = True
        return Driver.connect(autocommit=True, **arguments)


def _round_trip(driver: Driver) -> float:
    """Seconds. Not of the first query of a connection, for which the server reads its catalogs."""
    began = time.perf_counter()
    execute_directly(driver, b"SELECT 1")
    return time.perf_counter() - began


def _detect_pooler(driver: Driver, server_settings: Mapping[str, str]) -> None:
    """Set `driver.pooler` if the server process is not the one that was connected to, or does not
    have the requested settings."""
    result = execute_directly(
        driver,
        (
            b"SELECT pg_backend_pid(), current_setting('search_path'), "
            b"current_setting('enable_seqscan')"
        ),
    )
    pid, path, scans = (
        None if (value := result.get_value(0, column)) is None else value.decode()
        for column in range(3)
    )
    driver.pooler = (pid, path, scans) != (
        str(driver.info.backend_pid),
        server_settings["search_path"],
        server_settings["enable_seqscan"],
    )


def _is_in_memory(driver: Driver) -> bool:
    """Whether the database is smaller than the memory that its administrator says it has for caches
    (`effective_cache_size`), and reads ahead because nobody decided whether it should."""
    try:
        result = execute_directly(driver, _IS_IN_MEMORY)
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise
        return False  # a server of another kind, which has no such settings
    return result.get_value(0, 0) == b"t"


def _set(settings: Mapping[str, str], *, local: bool) -> bytes:
    """A command that changes settings; `local`: until the transaction ends. Names are constants.
    Values are constants or numbers, except the schema, whose characters are validated when settings
    are loaded."""
    is_local = str(local).lower()
    calls = (f"set_config('{name}', '{value}', {is_local})" for name, value in settings.items())
    return f"SELECT {', '.join(calls)}".encode()


def config_of(uri: str, **settings: Any) -> ConnectionConfig:
    """The database that `uri` names. Raises `ConfigurationError` with an example of a valid URI."""
    example = "postgresql+psycopg://user:password@localhost:5432/memservice"
    try:
        url = make_url(uri)
    except (ArgumentError, ValueError) as error:
        raise ConfigurationError(f"The connection URI is not a URI; write {example}") from error
    if not url.database:
        raise ConfigurationError(f"The connection URI names no database; write {example}")
    _, arguments = PGDialect_psycopg().create_connect_args(url)  # type: ignore[no-untyped-call]
    host = arguments.get("host") or "the local socket"
    port = f":{arguments['port']}" if arguments.get("port") else ""
    return ConnectionConfig(f"{url.database} on {host}{port}", arguments, **settings)


class _Record(Protocol):
    info: dict[str, Any]


def is_alive(driver: Driver, record: _Record) -> bool:
    """Whether a pooled connection is usable. Queries the server only if the connection was idle for
    `IDLE_SECONDS` or has unread data.

    A server sends data unrequested only when it closes the connection, so a socket without data is
    usable.
    """
    if driver.closed or driver.pgconn.status != ConnStatus.OK:
        return False
    poll = select.poll()
    poll.register(driver.pgconn.socket, select.POLLIN)
    silent = not poll.poll(0)
    if silent and time.monotonic() - record.info.get("used", 0.0) < IDLE_SECONDS:
        return True
    try:
        execute_directly(driver, b"SELECT 1")
    except psycopg.Error:
        return False
    return True


def execute_directly(driver: Driver, command: bytes) -> PGresult:
    """Run a command without parameters through libpq, without the cost of a cursor."""
    # fast path: see docs/decisions/fast-paths.md#commands
    result = driver.pgconn.exec_(command)
    if driver.pgconn.status != ConnStatus.OK:
        raise psycopg.OperationalError("the connection was lost")
    if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        error = psycopg.errors.error_from_result(result)
        if error.sqlstate is None:  # reported by libpq, not by the server: the connection failed
            raise psycopg.OperationalError(str(error).strip())
        raise error
    if command == b"COMMIT" and result.command_status != b"COMMIT":
        raise RuntimeError("COMMIT of a transaction in which a statement had failed")
    return result


def in_transaction(driver: Driver) -> bool:
    return driver.pgconn.transaction_status in (
        TransactionStatus.INTRANS,
        TransactionStatus.INERROR,
        TransactionStatus.ACTIVE,
    )


def driver_of(connection: Any) -> Driver:
    """The driver's connection of an SQLAlchemy connection."""
    return cast(Driver, connection.connection.driver_connection)


def _milliseconds(seconds: float) -> str:
    # 0 would mean no limit.
    return str(max(1, int(seconds * 1_000)))
