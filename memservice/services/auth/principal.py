"""Who asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """The bearer of a request: everything (`admin`), or what its key names. Of several names the
    narrowest counts.

    Services hand it to `memservice.services.auth.policy` before anything else. One that names
    nothing may do nothing. A request's is made by `access.principal_of` alone, a command's is
    `memservice.cli.operator.OPERATOR`; no service makes one for itself.
    """

    admin: bool = False
    workspace_id: str | None = None
    peer_id: str | None = None
    session_id: str | None = None
    collection: str | None = None
    """The uid of generation 1's collection, on its routes: then the key is that collection's
    alone."""
    member_of: str | None = None
    """A session of which the peer was found to be an active member, in this request
    (`access.as_member`)."""
    has_user_claim: bool = False
    """The key is one of generation 1 and names its peer by the claim `us`: it opens the user's
    collections, as it always did."""

    @property
    def is_peer(self) -> bool:
        """A key of one peer: neither admin, nor of a workspace or a session."""
        return not self.admin and self.peer_id is not None and self.session_id is None

    @property
    def is_session(self) -> bool:
        return not self.admin and self.session_id is not None
