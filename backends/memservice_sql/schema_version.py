"""Which schema this release works with. Kept apart from the migrations, so that looking costs no
import of Alembic."""

from __future__ import annotations

HISTORY = ("0001", "0002", "0003", "0004")
"""Every revision, oldest first; the last one is this release's."""

HEAD = HISTORY[-1]


def complaint(found: str | None, location: str) -> str | None:
    """What to tell about a store whose schema is `found` (None: empty); None if it is this
    release's."""
    if found == HEAD:
        return None
    if found is None:
        return f"The database {location} has no tables yet. Create them with: memservice db upgrade"
    if found in HISTORY:
        return (
            f"The database {location} has the older schema {found}, not {HEAD}. Bring it up to "
            "date with: memservice db upgrade"
        )
    return newer(found, location)


def newer(found: str, location: str) -> str:
    return (
        f"The database {location} has schema {found}, which this release of memservice "
        f"does not know (its own is {HEAD}): a newer release "
        "wrote it. Upgrade memservice (pip install --upgrade memservice), or name another "
        "database in DB_CONNECTION_URI."
    )
