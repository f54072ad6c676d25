"""Names of members, and the workspaces that an account may be limited to."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.records import JsonObject
from memservice.domain.text.normal_forms import normalize
from memservice.services.auth.permissions import Role
from memservice.spi.storage import Transaction

MAX_LENGTH = 200
MAX_WORKSPACES = 100
RESERVED_PREFIX = "key "
UNKNOWN = "unknown name"
"""The actor of an attempt to sign in with an unknown name. The name is not stored: people sometimes
type passwords there."""
RESERVED = frozenset({"everyone", "memservice console", UNKNOWN})
"""Actors in the audit log that are not members."""


def can_exist(text: str) -> bool:
    """Whether the text can be a stored name. No name contains NUL, and some stores cannot search
    for it."""
    return "\0" not in text


def normal(name: str) -> str:
    """The normalised form of a name, independent of case and of the width of characters and
    spaces."""
    return " ".join(normalize("NFKC", name).casefold().split())


def require_name(name: str) -> str:
    """The normalised name. Raises `InvalidInput`."""
    spelling = normal(name[: 4 * MAX_LENGTH])
    message = None
    if not 1 <= len(spelling) <= MAX_LENGTH:
        message = f"A name has 1 to {MAX_LENGTH} characters"
    elif any(unicodedata.category(character).startswith("C") for character in spelling):
        message = "A name has no control characters or other invisible ones"
    elif spelling in RESERVED or spelling.startswith(RESERVED_PREFIX):
        message = "This name is reserved: choose another one"
    if message is not None:
        raise InvalidInput(Problem(("name",), message))
    return spelling


def require_role(role: str) -> Role:
    """Raises `InvalidInput`."""
    try:
        return Role(role)
    except ValueError:
        roles = ", ".join(Role)
        raise InvalidInput(Problem(("role",), f"Choose a role: {roles}")) from None


def require_workspaces(tx: Transaction, ids: Sequence[str] | None) -> list[JsonObject] | None:
    """The workspaces of these ids as an account stores them; None: all. Raises `InvalidInput` for
    an empty list, too many, and unknown ids."""
    if ids is None:
        return None
    unique = sorted(set(ids))
    if not 1 <= len(unique) <= MAX_WORKSPACES:
        raise InvalidInput(
            Problem(("workspaces",), f"Name 1 to {MAX_WORKSPACES} workspaces, or choose all")
        )
    workspaces = []
    for slug in unique:
        workspace = tx.workspaces.by_slug(slug) if can_exist(slug) else None
        if workspace is None:
            raise InvalidInput(Problem(("workspaces",), f"There is no workspace {slug!r}"))
        workspaces.append({"id": workspace.slug, "uid": workspace.uid})
    return workspaces
