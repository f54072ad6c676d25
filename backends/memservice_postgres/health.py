"""Health checks of a reachable database. Each runs one query, in the connection's transaction."""

from __future__ import annotations

from collections.abc import Iterator

from memservice.spi.base import RESTORE
from memservice.spi.storage import Finding
from memservice_postgres.connections import Driver

NOTIFIER_NAME = "memservice-notifier"
"""The application name of each process's connection for notifications
(`memservice_postgres.notifier`)."""

_WRITABLE = "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'"
_CHECKSUMS = "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
_CAPACITY = """
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
        problem = (
            "the server makes transactions read-only (default_transaction_read_only), so it "
            "takes no writes"
        )
        yield Finding(
            "failed",
            problem,
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
                f"the database {location} is behind a connection pooler: settings are sent "
                "with each transaction, statements are not prepared, and "
                "large spaces get no vector index"
            ),
            (
                "connect to PostgreSQL directly, and limit the connections with "
                "`DB_POOL_SIZE` and `DB_MAX_OVERFLOW`"
            ),
        )


def checksums(driver: Driver) -> Iterator[Finding]:
    (failures,) = driver.execute(_CHECKSUMS).fetchall()[0]
    if failures:
        yield Finding(
            "degraded", f"the server has read {failures} damaged page(s) of this database", RESTORE
        )


def connections(driver: Driver, each: int) -> Iterator[Finding]:
    """`each`: the maximum number of connections of one process."""
    capacity, processes = driver.execute(_CAPACITY, (NOTIFIER_NAME,)).fetchall()[0]
    if processes * each > capacity:
        yield Finding(
            "degraded",
            (
                f"{processes} processes may open {each} connections each, but the server "
                f"allows {capacity}: under load, some processes have to wait"
            ),
            "raise the server's `max_connections`, or lower `DB_POOL_SIZE` and `DB_MAX_OVERFLOW`",
        )
