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
"""The actor of an attempt to sign in with a name that no member has. The name is not kept: people
type passwords there."""
RESERVED = frozenset({"everyone", "memservice console", UNKNOWN})
"""What the audit log calls callers that are no members."""


def can_exist(text: str) -> bool:
    """Whether anything can be named so. Some stores cannot look for NUL, and nothing has it."""
    return "\0" not in text


def normal(name: str) -> str:
    """The one spelling of a name, whatever its case and the width of its spaces."""
    return " ".join(normalize("NFKC", name).casefold().split())


def require_name(name: str) -> str:
    """The normal spelling. Raises `InvalidInput`."""
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
        known = ", ".join(Role)
        raise InvalidInput(Problem(("role",), f"Choose a role: {known}")) from None


def require_workspaces(tx: Transaction, ids: Sequence[str] | None) -> list[JsonObject] | None:
    """The workspaces of these ids as an account stores them; None: all. Raises `InvalidInput` for
    none at all, too many, and ids that no workspace has."""
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
