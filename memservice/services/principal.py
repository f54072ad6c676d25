"""Who asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """The bearer of a request: everything (`admin`), or the narrowest of the names that its key carries."""

    admin: bool = False
    workspace: str | None = None
    peer: str | None = None
    session: str | None = None

    @classmethod
    def all(cls) -> Principal:
        """May do everything: the caller while authentication is off, and the service itself."""
        return cls(admin=True)

    @property
    def is_peer(self) -> bool:
        """A key of one peer: neither admin, nor of a workspace or a session."""
        return not self.admin and self.peer is not None and self.session is None

    @property
    def is_session(self) -> bool:
        return not self.admin and self.session is not None
