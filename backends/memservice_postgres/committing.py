"""Commit with a known outcome, even if the connection is lost during COMMIT.

A client repeats a request that failed. So an error must mean that nothing was stored.
"""

from __future__ import annotations

import time

import psycopg

from memservice.spi.waiting import about_to_wait
from memservice_postgres.connections import ConnectionConfig, Driver, execute_directly

STATUS_TIMEOUT = 10.0
"""How long to query the outcome of a transaction, while the server is unreachable or the
transaction is in progress."""
PAUSE_SECONDS = 0.1

# After a crash the server resets its statistics, and reuses transaction ids of which it had written
# nothing to disk.
_NUMBER = b"SELECT pg_current_xact_id_if_assigned(), pg_stat_get_bgwriter_stat_reset_time()"
_STATUS = "SELECT pg_xact_status(%s::xid8), pg_stat_get_bgwriter_stat_reset_time()::text"


def commit(driver: Driver, config: ConnectionConfig) -> None:
    """Commit the transaction. If the connection is lost during that, query the outcome on another
    connection.

    Raises psycopg.OperationalError if the transaction was not committed. Raises it too if the
    outcome is not known within `STATUS_TIMEOUT`, and says so in the message.
    """
    number, stats_reset_at = _number(driver)
    if config.commits_slowly:
        about_to_wait()
    began = time.perf_counter()
    try:
        execute_directly(driver, b"COMMIT")
        if number is not None:
            config.committed(time.perf_counter() - began)
    except psycopg.OperationalError as error:
        if number is None or not driver.closed:
            raise
        outcome = _outcome(config, number, stats_reset_at)
        if outcome == "committed":
            return
        unknown = (
            ""
            if outcome == "aborted"
            else " while committing: the outcome of the transaction is not known"
        )
        raise psycopg.OperationalError(f"the connection was lost{unknown}") from error


def _number(driver: Driver) -> tuple[str | None, str | None]:
    """The transaction's id (None if it has written nothing), and the time of the last reset of the
    server's statistics."""
    result = execute_directly(driver, _NUMBER)
    number, stats_reset = (
        None if (value := result.get_value(0, column)) is None else value.decode()
        for column in (0, 1)
    )
    return number, stats_reset


def _outcome(config: ConnectionConfig, number: str, stats_reset_at: str | None) -> str | None:
    """`committed`, `aborted`, or None if it cannot be determined."""
    deadline = time.monotonic() + STATUS_TIMEOUT
    while True:
        try:
            with config.connect() as other:
                status, stats_reset = other.execute(_STATUS, (number,)).fetchall()[0]
        except psycopg.OperationalError:
            status, stats_reset = "in progress", None  # as far as known
        except psycopg.errors.InvalidParameterValue:
            # The server has not assigned that id yet: it crashed before anything of the transaction
            # was on disk.
            return "aborted"
        if status != "in progress":
            # The id may now belong to another transaction: this one was not on disk, so it was not
            # committed.
            return (
                status
                if status == "aborted" or (status == "committed" and stats_reset == stats_reset_at)
                else None
            )
        if time.monotonic() > deadline:
            return None
        time.sleep(PAUSE_SECONDS)
