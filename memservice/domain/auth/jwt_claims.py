"""The claims of a key (a JSON Web Token): parsing with checks, and writing.

| claim | meaning |
| --- | --- |
| `jti` | the key's id in our store; tokens minted by other servers of this API have none |
| `t` | when it was issued, ISO 8601; not checked |
| `exp` | when it expires: Unix seconds, or ISO 8601 as some servers write it |
| `ad` | true: an admin key, without restrictions |
| `w`, `p`, `s` | names of the workspace, and of the peer or session in it, that the key is for |
| `ap`, `us`, `se`, `co` | the first generation's app, user, session and collection, by uid |

Null and empty text mean that a claim is absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from memservice.domain.errors import Unauthorised
from memservice.domain.times import parse_iso, parse_time, wire_seconds

INVALID = "Invalid JWT"
EXPIRED = "JWT expired"
HOMELESS = "Invalid JWT scope: peer/session token missing workspace"

_LAST_SECOND = 253_402_300_799
"""The end of the year 9999. Later times in tokens count as this one."""


class Claims(Struct, frozen=True, kw_only=True):
    id: str | None = None
    issued: str = ""
    expires_at: datetime | None = None
    admin: bool = False
    workspace: str | None = None
    peer: str | None = None
    session: str | None = None
    app_uid: str | None = None
    """This and the next three: the uids in a key of the first generation. The store resolves
    them."""
    user_uid: str | None = None
    owned_session_uid: str | None = None
    collection_uid: str | None = None


_TEXTS = {
    "w": "workspace",
    "p": "peer",
    "s": "session",
    "ap": "app_uid",
    "us": "user_uid",
    "se": "owned_session_uid",
    "co": "collection_uid",
    "jti": "id",
}


def read_claims(payload: Mapping[str, Any], now: datetime) -> Claims:
    """Parse claims whose signature has been verified. Raises `Unauthorised` if they are malformed,
    expired or not yet valid."""
    texts = {
        field: _text(payload[claim]) if claim in payload else None
        for claim, field in _TEXTS.items()
    }
    if payload.get("aud") is not None:
        raise Unauthorised(INVALID)  # it was issued for another service
    for claim in ("iat", "nbf"):
        since = payload.get(claim)
        if since is not None and _seconds(since) > now.timestamp():
            raise Unauthorised(INVALID)
    expires_at = _end(payload.get("exp"))
    if expires_at is not None and expires_at <= now:
        raise Unauthorised(EXPIRED)
    admin = payload.get("ad")
    if admin is not None and not isinstance(admin, bool):
        raise Unauthorised(INVALID)
    if (texts["peer"] or texts["session"]) and not texts["workspace"]:
        raise Unauthorised(HOMELESS)
    issued = payload.get("t")
    return Claims(
        issued=issued if isinstance(issued, str) else "",
        expires_at=expires_at,
        admin=bool(admin),
        **texts,
    )


def write_claims(claims: Claims) -> dict[str, Any]:
    """The payload of a new token, without absent claims; `exp` is whole Unix seconds."""
    payload: dict[str, Any] = {"t": claims.issued}
    if claims.expires_at is not None:
        payload["exp"] = int(claims.expires_at.timestamp())
    if claims.admin:
        payload["ad"] = True
    for claim, field in _TEXTS.items():
        value = getattr(claims, field)
        if value:
            payload[claim] = value
    return payload


def claims_for(
    id: str,
    now: datetime,
    expires_at: datetime | None,
    workspace_id: str | None,
    peer_id: str | None,
    session_id: str | None,
) -> Claims:
    """The claims of a key issued now. Without a workspace it is an admin key."""
    return Claims(
        id=id,
        issued=wire_seconds(now),
        expires_at=expires_at,
        admin=workspace_id is None,
        workspace=workspace_id,
        peer=peer_id,
        session=session_id,
    )


def _text(value: object) -> str | None:
    """A name, or None for null and empty text. Raises `Unauthorised` for a name that no store can
    contain (NUL, lone surrogates)."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or "\0" in value or not _is_utf8(value):
        raise Unauthorised(INVALID)
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _seconds(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (isinstance(value, float) and not math.isfinite(value))
    ):
        raise Unauthorised(INVALID)
    return min(max(value, 0), _LAST_SECOND)


def _end(value: object) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return parse_time(_seconds(value))
    try:
        return parse_iso(value)
    except ValueError:
        raise Unauthorised(INVALID) from None
