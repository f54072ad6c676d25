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
    "API keys, scoped to a workspace, or to one peer or session in it.",
)

_KEYS = "/v3/keys"
_ADMIN = RouteAccess(admin=True)


@routes.operation(
    "POST", _KEYS, access=_ADMIN, strict=True, query=schemas.KeyQuery, answer=schemas.NewKey
)
def create_key(call: Call) -> api_keys.Minted:
    """Create a key

    For a workspace, or for one peer or session in it, which need not exist. Without any parameter
    the key opens everything (`admin` is true in the response). An unknown parameter, or a body, is
    an error: a misspelt scope never widens a key. Deleting the workspace, peer or session revokes
    the key. The token is not stored: it cannot be shown again.
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

    All keys created here, valid or not, and all revoked keys; without their tokens.
    """
    api_keys.require_enabled(call.rt)
    return api_keys.page(call.rt, call.principal, paging(call.query))


@routes.operation("DELETE", _KEYS + "/<key_id>", access=_ADMIN, strict=True, status=(204,))
def revoke_key(call: Call, key_id: str) -> None:
    """Revoke a key

    Immediately and permanently. Revoking it again changes nothing.
    """
    api_keys.require_enabled(call.rt)
    api_keys.revoke(call.rt, call.principal, key_id)
