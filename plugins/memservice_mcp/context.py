"""For whom a tool runs: the caller, and the workspace and peer that its arguments leave out."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from memservice.runtime import Runtime
from memservice.services.auth.principal import Principal


class ToolContext(Struct, frozen=True):
    """One caller."""

    rt: Runtime
    principal: Principal
    workspace: str
    peer: str
    """The peer that a tool is about if its arguments name none."""
    hold_slot: Callable[[], Callable[[], None]]
    """Reserves a place for an answer that takes seconds; returns the function that frees it."""

    def within(self, workspace: str) -> ToolContext:
        """The same caller in a workspace."""
        return replace(self, workspace=workspace)

    @property
    def session(self) -> str | None:
        """The only session that the caller's key opens, if it is a session's key."""
        return self.principal.session_id if self.principal.is_session else None


def for_principal(
    rt: Runtime,
    principal: Principal,
    workspace: str | None,
    peer: str | None,
    hold_slot: Callable[[], Callable[[], None]],
) -> ToolContext:
    """`workspace` and `peer` as the caller named them; if not, those of its key, and else those of
    the settings."""
    defaults = rt.settings.mcp
    return ToolContext(
        rt,
        principal,
        workspace or principal.workspace_id or defaults.workspace,
        peer or principal.peer_id or defaults.peer,
        hold_slot,
    )
