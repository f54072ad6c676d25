"""Keys, for administrators."""

from __future__ import annotations

from memservice.api.routing import Call, Routes
from memservice.api.v1 import paths, schemas
from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.errors import InvalidInput, Problem
from memservice.services.auth import api_keys
from memservice.services.v1 import key_minting

routes = Routes(
    "keys",
    "API keys, scoped to an app, or to a user, a session or a collection in it.",
    "v1",
)

_OF_V1 = ("app_id", "user_id", "collection_id")
_MIXED = f"Give either workspace_id and peer_id, or {', '.join(_OF_V1)}, not both kinds"


@routes.operation(
    "POST",
    "/v1/keys",
    access=paths.OF_ADMINS,
    strict=True,
    query=schemas.KeyQuery,
    answer=schemas.NewKey,
)
def create_key(call: Call) -> api_keys.Minted:
    """Create a key

    For the narrowest resource that is named; it need not exist. With `workspace_id` or `peer_id` it
    is a key of the later generations, since some of their clients create keys here. An unknown
    parameter, or a body, is an error: a misspelt scope never widens a key. Deleting the resource
    revokes the key.
    """
    api_keys.require_enabled(call.rt)
    query = call.query
    if query["workspace_id"] or query["peer_id"]:
        mixed = [name for name in _OF_V1 if query[name]]
        if mixed:  # ignoring it would create a key that opens more than requested
            raise InvalidInput(*(Problem((name,), _MIXED) for name in mixed))
        key_request = api_keys.KeyRequest(
            workspace_id=query["workspace_id"],
            peer_id=query["peer_id"],
            session_id=query["session_id"],
        )
        return api_keys.mint(call.rt, call.principal, key_request, query["expires_at"])
    names = Claims(
        app_uid=query["app_id"] or None,
        user_uid=query["user_id"] or None,
        owned_session_uid=query["session_id"] or None,
        collection_uid=query["collection_id"] or None,
    )
    return key_minting.mint(call.rt, call.principal, names, query["expires_at"])
