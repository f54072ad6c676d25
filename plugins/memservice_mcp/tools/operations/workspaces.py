"""Tools for workspaces, and for the metadata of everything."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from memservice.domain.errors import InvalidInput
from memservice.domain.sizes import MAX_QUERY
from memservice.services import browsing, peers, sessions, workspaces
from memservice.services.auth import policy
from memservice.services.cards import no_observer as no_peer
from memservice.services.paging import Page, Paging
from memservice.services.retrieval.search import SearchOptions
from memservice.services.retrieval.search import search as search_messages
from memservice.services.sessions import not_found as no_session
from memservice_mcp.context import ToolContext
from memservice_mcp.tool import Effect, Result, Tool
from memservice_mcp.tools.listings import ListArguments, ListResult, counts_of
from memservice_mcp.tools.operations.shared import (
    InWorkspace,
    Metadata,
    OptionalName,
    Resource,
)
from memservice_mcp.tools.shared import MessageItem, Time, messages_of


class ListedWorkspace(Result):
    id: str
    created_at: Time


class WorkspacesResult(ListResult):
    workspaces: list[ListedWorkspace]


def list_workspaces(context: ToolContext, arguments: ListArguments) -> WorkspacesResult:
    page = workspaces.page(context.rt, context.principal, None, arguments.paging)
    return WorkspacesResult(
        workspaces=[ListedWorkspace(id=row.slug, created_at=row.created_at) for row in page.items],
        **counts_of(page),
    )


class CreateWorkspaceArguments(InWorkspace):
    metadata: Metadata = None


def create_workspace(context: ToolContext, arguments: CreateWorkspaceArguments) -> Resource:
    row, _ = workspaces.get_or_create(
        context.rt, context.principal, arguments.workspace(context), arguments.metadata, None
    )
    return Resource(id=row.slug, metadata=row.metadata, created_at=row.created_at)


class WorkspaceResult(Resource):
    messages: int
    conclusions: int
    peers: list[str] = Field(description="Ids of the newest peers.")
    sessions: list[str] = Field(description="Ids of the newest sessions.")


def inspect_workspace(context: ToolContext, arguments: InWorkspace) -> WorkspaceResult:
    overview = browsing.overview(context.rt, context.principal, arguments.workspace(context))
    row = overview.workspace
    return WorkspaceResult(
        id=row.slug,
        metadata=row.metadata,
        created_at=row.created_at,
        messages=overview.messages,
        conclusions=overview.conclusions,
        peers=[peer.slug for peer in overview.peers.items],
        sessions=[session.slug for session in overview.sessions.items],
    )


class SearchArguments(InWorkspace):
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY)]
    peer_id: OptionalName = None
    session_id: OptionalName = None
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class SearchResult(Result):
    messages: list[MessageItem] = Field(description="Best first.")


def search(context: ToolContext, arguments: SearchArguments) -> SearchResult:
    principal = context.principal
    if arguments.session_id is not None:
        with context.rt.storage.read() as tx:
            principal = policy.as_member(tx, principal, arguments.session_id)
    hits = search_messages(
        context.rt,
        principal,
        arguments.workspace(context),
        SearchOptions(arguments.query, arguments.limit),
        arguments.session_id,
        arguments.peer_id,
    )
    return SearchResult(messages=messages_of(hits))


class MetadataArguments(InWorkspace):
    """Of a peer, a session or, without both, the workspace."""

    peer_id: OptionalName = None
    session_id: OptionalName = None


def get_metadata(context: ToolContext, arguments: MetadataArguments) -> Resource:
    rt, principal, workspace = context.rt, context.principal, arguments.workspace(context)
    _require_one(arguments)
    one = Paging(size=1)
    page: Page[Any]
    if arguments.peer_id is not None:
        page = peers.page(rt, principal, workspace, {"id": arguments.peer_id}, one)
        if not page.items:
            raise no_peer(workspace, arguments.peer_id)
    elif arguments.session_id is not None:
        page = sessions.page(rt, principal, workspace, {"id": arguments.session_id}, one)
        if not page.items:
            raise no_session(workspace, arguments.session_id)
    else:
        row = browsing.overview(rt, principal, workspace).workspace
        return Resource(id=row.slug, metadata=row.metadata, created_at=row.created_at)
    (item,) = page.items
    return Resource(id=item.slug, metadata=item.metadata, created_at=item.created_at)


class SetMetadataArguments(MetadataArguments):
    metadata: Annotated[dict[str, Any], Field(description="Replaces the whole metadata.")]


def set_metadata(context: ToolContext, arguments: SetMetadataArguments) -> Resource:
    rt, principal, workspace = context.rt, context.principal, arguments.workspace(context)
    _require_one(arguments)
    row: Any
    if arguments.peer_id is not None:
        row = peers.update(rt, principal, workspace, arguments.peer_id, arguments.metadata, None)
    elif arguments.session_id is not None:
        row = sessions.update(
            rt, principal, workspace, arguments.session_id, arguments.metadata, None
        )
    else:
        row = workspaces.update(rt, principal, workspace, arguments.metadata, None)
    return Resource(id=row.slug, metadata=row.metadata, created_at=row.created_at)


def _require_one(arguments: MetadataArguments) -> None:
    if arguments.peer_id is not None and arguments.session_id is not None:
        raise InvalidInput.at("session_id", message="Name a peer or a session, not both")


TOOLS = (
    Tool(
        "list_workspaces",
        "List workspaces",
        "List all workspaces, newest first.",
        ListArguments,
        WorkspacesResult,
        list_workspaces,
    ),
    Tool(
        "create_workspace",
        "Create a workspace",
        "Create a workspace, or get it if it exists.",
        CreateWorkspaceArguments,
        Resource,
        create_workspace,
        Effect.ADDS,
        is_idempotent=True,
    ),
    Tool(
        "inspect_workspace",
        "Inspect a workspace",
        "Get a workspace with its numbers, newest peers and newest sessions.",
        InWorkspace,
        WorkspaceResult,
        inspect_workspace,
    ),
    Tool(
        "search",
        "Search messages",
        "Search the messages of a workspace, of a session, or by one author.",
        SearchArguments,
        SearchResult,
        search,
    ),
    Tool(
        "get_metadata",
        "Get metadata",
        "Get the metadata of a peer, a session or the workspace.",
        MetadataArguments,
        Resource,
        get_metadata,
    ),
    Tool(
        "set_metadata",
        "Set metadata",
        "Replace the metadata of a peer, a session or the workspace.",
        SetMetadataArguments,
        Resource,
        set_metadata,
        Effect.CHANGES,
        is_idempotent=True,
    ),
)
