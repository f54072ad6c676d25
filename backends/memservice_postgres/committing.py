"""Committing so that it is known whether something was stored, also if the connection is lost
meanwhile.

A client that gets an error sends its request again. So an error must mean that nothing was stored.
"""

from __future__ import annotations

import time

import psycopg

from memservice_postgres.connections import ConnectionConfig, Driver, execute_pipelined

SECONDS = 10.0
"""How long the server is asked what became of a transaction, while it is away or still at it."""
PAUSE_SECONDS = 0.1

# A server that recovered from a crash has begun to count anew, and gives numbers again of which it
# had written nothing to disk.
_NUMBER = b"SELECT pg_current_xact_id_if_assigned(), pg_stat_get_bgwriter_stat_reset_time()"
_STATUS = "SELECT pg_xact_status(%s::xid8), pg_stat_get_bgwriter_stat_reset_time()::text"


def commit(driver: Driver, config: ConnectionConfig) -> None:
    """Commit the transaction. If the connection is lost while that is under way, another one is
    asked whether it was.

    Raises psycopg.OperationalError if it was not; also if nobody could say so within `SECONDS`,
    which its text tells.
    """
    number, counting_since = _number(driver)
    try:
        execute_pipelined(driver, b"COMMIT")
    except psycopg.OperationalError as error:
        if number is None or not driver.closed:
            raise
        became = _became(config, number, counting_since)
        if became == "committed":
            return
        unknown = (
            ""
            if became == "aborted"
            else " while committing: it is not known whether that was stored"
        )
        raise psycopg.OperationalError(f"the connection was lost{unknown}") from error


def _number(driver: Driver) -> tuple[str | None, str | None]:
    """Of the transaction (None if it has written nothing), and since when the server counts."""
    told = execute_pipelined(driver, _NUMBER)
    number, since = (
        None if (found := told.get_value(0, column)) is None else found.decode()
        for column in (0, 1)
    )
    return number, since


def _became(config: ConnectionConfig, number: str, counting_since: str | None) -> str | None:
    """`committed`, `aborted`, or None where that cannot be said."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with config.connect() as other:
                found, since = other.execute(_STATUS, (number,)).fetchall()[0]
        except psycopg.OperationalError:
            found, since = "in progress", None  # for all we know
        except psycopg.errors.InvalidParameterValue:
            # The server has not given that number yet: it crashed before anything of the
            # transaction was on disk.
            return "aborted"
        if found != "in progress":
            # Whoever has the number now: what was not written to disk was not committed.
            return (
                found
                if found == "aborted" or (found == "committed" and since == counting_since)
                else None
            )
        if time.monotonic() > deadline:
            return None
        time.sleep(PAUSE_SECONDS)
