"""Keys, for administrators."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.schemas import keys as schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import ApiKey
from memservice.services.auth import api_keys
from memservice.services.paging import Page

routes = Routes(
    "keys",
    "What callers show to be let in: tokens for a workspace, or for one peer or session in it.",
)

_KEYS = "/v3/keys"
_ADMIN = RouteAccess(admin=True)


@routes.operation(
    "POST", _KEYS, access=_ADMIN, strict=True, query=schemas.KeyQuery, answer=schemas.NewKey
)
def create_key(call: Call) -> api_keys.Minted:
    """Make a key

    For a workspace, or with a peer or session besides for that alone; what it names need not exist.
    Without any parameter the key opens everything (`admin` is true in the answer). An unknown
    parameter, or a body, is an error: a misspelt scope never widens a key. The key goes with what
    it names: a deletion revokes it. The token is not kept: it cannot be shown again.
    """
    api_keys.require_enabled(call.rt)
    query = call.query
    key_request = api_keys.KeyRequest(
        workspace_id=query["workspace_id"], peer_id=query["peer_id"], session_id=query["session_id"]
    )
    return api_keys.mint(call.rt, call.principal, key_request, query["expires_at"], query["label"])


@routes.operation(
    "GET", _KEYS, access=_ADMIN, strict=True, query=PageQuery, answer=page_of(schemas.Key)
)
def list_keys(call: Call) -> Page[ApiKey]:
    """List keys

    Those that were made here, whether they still work or not, and those that were revoked; without
    their tokens.
    """
    api_keys.require_enabled(call.rt)
    return api_keys.page(call.rt, call.principal, paging(call.query))


@routes.operation("DELETE", _KEYS + "/<key_id>", access=_ADMIN, strict=True, status=(204,))
def revoke_key(call: Call, key_id: str) -> None:
    """Revoke a key

    At once, and for good. Revoking it again changes nothing.
    """
    api_keys.require_enabled(call.rt)
    api_keys.revoke(call.rt, call.principal, key_id)
