"""What is wrong with a database that answers. Each asks the server one thing, in the connection's
transaction."""

from __future__ import annotations

from collections.abc import Iterator

from memservice.spi.base import RESTORE
from memservice.spi.storage import Finding
from memservice_postgres.connections import Driver

NOTIFIER_NAME = "memservice-bell"
"""The name of the one connection by which each process is told of work
(`memservice_postgres.notifier`)."""

_WRITABLE = "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'"
_CHECKSUMS = "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
_ROOM = """
    SELECT current_setting('max_connections')::int -
        current_setting('superuser_reserved_connections')::int
           - coalesce(nullif(current_setting('reserved_connections', true), ''), '0')::int,
           (SELECT count(*) FROM pg_stat_activity WHERE application_name = %s
               AND datname = current_database())
"""


def writable(driver: Driver) -> Iterator[Finding]:
    standby, read_only = driver.execute(_WRITABLE).fetchall()[0]
    if standby:
        yield Finding(
            "failed",
            "the server is a standby and takes no writes",
            "name the primary, or promote this server",
        )
    elif read_only:
        found = (
            "the server makes transactions read-only (default_transaction_read_only), so it "
            "takes no writes"
        )
        yield Finding(
            "failed",
            found,
            (
                "let this user write: the setting `default_transaction_read_only` of the "
                "server forbids it"
            ),
        )


def pooler(driver: Driver, location: str) -> Iterator[Finding]:
    if driver.pooler:
        yield Finding(
            "degraded",
            (
                f"a connection pooler stands before the database {location}: settings are sent "
                "with each transaction, nothing is prepared, and "
                "large spaces get no vector index"
            ),
            (
                "connect to PostgreSQL itself, and bound the connections with `DB_POOL_SIZE` "
                "and `DB_MAX_OVERFLOW`"
            ),
        )


def checksums(driver: Driver) -> Iterator[Finding]:
    (failures,) = driver.execute(_CHECKSUMS).fetchall()[0]
    if failures:
        yield Finding(
            "degraded", f"the server has read {failures} damaged page(s) of this database", RESTORE
        )


def connections(driver: Driver, each: int) -> Iterator[Finding]:
    """`each`: so many connections may one process open."""
    room, processes = driver.execute(_ROOM, (NOTIFIER_NAME,)).fetchall()[0]
    if processes * each > room:
        yield Finding(
            "degraded",
            (
                f"{processes} processes may open {each} connections each, and the server has "
                f"{room} to give: when busy, some have to wait"
            ),
            "raise the server's `max_connections`, or lower `DB_POOL_SIZE` and `DB_MAX_OVERFLOW`",
        )
