"""Tools that list peers and sessions, and tell how far the background work is."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

import memservice
from memservice.services import peers, sessions
from memservice.services.auth import policy
from memservice.services.paging import Page, Paging
from memservice.services.peers import display_name
from memservice.services.tasks import queue_status
from memservice_mcp.context import ToolContext
from memservice_mcp.tool import Arguments, Result, Tool
from memservice_mcp.tools.shared import Time

PageNumber = Annotated[int, Field(ge=1, le=100_000, description="Counts from 1.")]
PageSize = Annotated[int, Field(ge=1, le=100, description="Most items of a page.")]


class ListArguments(Arguments):
    page: PageNumber = 1
    size: PageSize = 50

    @property
    def paging(self) -> Paging:
        return Paging(self.page, self.size, reverse=True)


class PageResult(Result):
    total: int
    page: int
    pages: int


class ListResult(PageResult):
    """Newest first."""


class ListedPeer(Result):
    id: str
    name: str | None
    created_at: Time


class PeersResult(ListResult):
    peers: list[ListedPeer]


def list_peers(context: ToolContext, arguments: ListArguments) -> PeersResult:
    rt, principal, workspace = context.rt, context.principal, context.workspace
    if context.session is not None:
        page = sessions.members_page(rt, principal, workspace, context.session, arguments.paging)
    else:
        page = peers.page(rt, principal, workspace, None, arguments.paging)
    return PeersResult(
        peers=[
            ListedPeer(id=row.slug, name=display_name(row), created_at=row.created_at)
            for row in page.items
        ],
        **counts_of(page),
    )


class ListSessionsArguments(ListArguments):
    peer: Annotated[
        str | None,
        Field(min_length=1, description="Only the sessions of this peer. Default: all."),
    ] = None


class ListedSession(Result):
    id: str
    messages: int
    created_at: Time


class SessionsResult(ListResult):
    sessions: list[ListedSession]


def list_sessions(context: ToolContext, arguments: ListSessionsArguments) -> SessionsResult:
    """A peer's key lists the sessions of its peer."""
    rt, principal, workspace = context.rt, context.principal, context.workspace
    peer = arguments.peer or (context.peer if principal.is_peer else None)
    if peer is None:
        page = sessions.page(rt, principal, workspace, None, arguments.paging)
    else:
        page = peers.sessions(rt, principal, workspace, peer, None, arguments.paging)
    return SessionsResult(
        sessions=[
            ListedSession(id=row.slug, messages=row.message_count, created_at=row.created_at)
            for row in page.items
        ],
        **counts_of(page),
    )


def counts_of(page: Page[Any]) -> dict[str, int]:
    return {"total": page.total, "page": page.page, "pages": page.pages}


class StatusArguments(Arguments):
    pass


class StatusResult(Result):
    version: str
    workspace: str
    peer: str = Field(description="The peer that tools are about if they name none.")
    is_worked_in: bool | None = Field(
        description="Whether all messages have been worked in; null: this key may not see it."
    )
    pending: int | None = Field(description="Background tasks that wait.")
    in_progress: int | None


def status(context: ToolContext, arguments: StatusArguments) -> StatusResult:
    policy.require_key_of(context.principal, context.workspace)
    pending = in_progress = None
    if context.principal.admin or context.principal.opens_whole_workspace:
        counts = queue_status.status(context.rt, context.principal, context.workspace)
        pending, in_progress = counts.pending, counts.in_progress
    return StatusResult(
        version=memservice.__version__,
        workspace=context.workspace,
        peer=context.peer,
        is_worked_in=None if pending is None else pending + (in_progress or 0) == 0,
        pending=pending,
        in_progress=in_progress,
    )


TOOLS = (
    Tool(
        "list_peers",
        "List peers",
        "List the people and agents that the memory knows, newest first, with their ids.",
        ListArguments,
        PeersResult,
        list_peers,
    ),
    Tool(
        "list_sessions",
        "List sessions",
        "List conversations, newest first, with their ids.",
        ListSessionsArguments,
        SessionsResult,
        list_sessions,
        names={"peer_id": "peer"},
    ),
    Tool(
        "status",
        "Status",
        "Tell which workspace and peer the tools use, and whether new messages have been worked "
        "in yet.",
        StatusArguments,
        StatusResult,
        status,
    ),
)
