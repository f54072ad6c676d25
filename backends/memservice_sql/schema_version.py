"""The schema version of this release. In a module of its own, so that checking it does not import
Alembic."""

from __future__ import annotations

HISTORY = (
    *("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009"),
    *("0010", "0011", "0012", "0013", "0014", "0015", "0016", "0017", "0018", "0019", "0020"),
)
"""Every revision, oldest first; the last one is this release's."""

HEAD = HISTORY[-1]


def schema_problem(version: str | None, location: str) -> str | None:
    """The error message for a store with schema `version` (None: no tables); None if it is this
    release's schema."""
    if version == HEAD:
        return None
    if version is None:
        return f"The database {location} has no tables yet. Create them with: memservice db upgrade"
    if version in HISTORY:
        return (
            f"The database {location} has the older schema {version}, not {HEAD}. Upgrade it "
            "with: memservice db upgrade"
        )
    return newer_schema_message(version, location)


def newer_schema_message(version: str, location: str) -> str:
    return (
        f"The database {location} has schema {version} of a newer release of memservice "
        f"(this release has schema {HEAD}). "
        "Upgrade memservice (pip install --upgrade memservice), or name another "
        "database in DB_CONNECTION_URI."
    )
