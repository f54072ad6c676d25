"""Tools for sessions and their messages."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from memservice.services import browsing, cloning, deletion, sessions
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.paging import Paging
from memservice.services.peers import display_name
from memservice.services.sessions import MemberConfig, SessionFields
from memservice_mcp.context import ToolContext
from memservice_mcp.tool import Arguments, Effect, Tool
from memservice_mcp.tools import answers, listings
from memservice_mcp.tools.listings import counts_of
from memservice_mcp.tools.operations.shared import (
    MAX_ITEMS,
    Done,
    InWorkspace,
    Metadata,
    Name,
    Names,
    OptionalName,
    Resource,
)


class OfSession(InWorkspace):
    session_id: Name

    def member(self, context: ToolContext) -> Principal:
        """The caller, marked as a member of the session if it is one."""
        with context.rt.storage.read() as tx:
            return policy.as_member(tx, context.principal, self.session_id)


class MemberArguments(Arguments):
    peer_id: Name
    observe_me: bool | None = None
    observe_others: bool | None = None


def _as_list(peers: Any) -> Any:
    """`/v3` has an object instead: id of a peer → its options."""
    if not isinstance(peers, dict):
        return peers
    return [
        {**options, "peer_id": name} if isinstance(options, dict) else options
        for name, options in peers.items()
    ]


Members = Annotated[list[MemberArguments], Field(max_length=MAX_ITEMS), BeforeValidator(_as_list)]


class CreateSessionArguments(OfSession):
    metadata: Metadata = None
    peers: Members = Field(default_factory=list)


def create_session(context: ToolContext, arguments: CreateSessionArguments) -> Resource:
    fields = SessionFields(metadata=arguments.metadata, members=_configs(arguments.peers))
    row, _ = sessions.get_or_create(
        context.rt, context.principal, arguments.workspace(context), arguments.session_id, fields
    )
    return Resource(id=row.slug, metadata=row.metadata, created_at=row.created_at)


def _configs(members: list[MemberArguments]) -> dict[str, MemberConfig]:
    return {
        member.peer_id: MemberConfig(member.observe_me, member.observe_others) for member in members
    }


class ListSessionsArguments(InWorkspace, listings.ListSessionsArguments):
    pass


def list_sessions(
    context: ToolContext, arguments: ListSessionsArguments
) -> listings.SessionsResult:
    return listings.list_sessions(context.within(arguments.workspace(context)), arguments)


def delete_session(context: ToolContext, arguments: OfSession) -> Done:
    deletion.delete_session(
        context.rt, context.principal, arguments.workspace(context), arguments.session_id
    )
    return Done()


class CloneArguments(OfSession):
    message_id: OptionalName = None


def clone_session(context: ToolContext, arguments: CloneArguments) -> Resource:
    row = cloning.clone(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.session_id,
        arguments.message_id,
    )
    return Resource(id=row.slug, metadata=row.metadata, created_at=row.created_at)


class AddPeersArguments(OfSession):
    peers: Members


def add_peers_to_session(context: ToolContext, arguments: AddPeersArguments) -> Done:
    sessions.add_peers(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.session_id,
        _configs(arguments.peers),
    )
    return Done()


class RemovePeersArguments(OfSession):
    peers: Names


def remove_peers_from_session(context: ToolContext, arguments: RemovePeersArguments) -> Done:
    sessions.remove_peers(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.session_id,
        arguments.peers,
    )
    return Done()


class PageOfSession(OfSession, listings.ListArguments):
    pass


def get_session_peers(context: ToolContext, arguments: PageOfSession) -> listings.PeersResult:
    page = sessions.members_page(
        context.rt,
        arguments.member(context),
        arguments.workspace(context),
        arguments.session_id,
        Paging(arguments.page, arguments.size),
    )
    return listings.PeersResult(
        peers=[
            listings.ListedPeer(id=row.slug, name=display_name(row), created_at=row.created_at)
            for row in page.items
        ],
        **counts_of(page),
    )


class SessionResult(Resource):
    messages: int
    peers: list[str] = Field(description="Ids of the peers that are or were members.")


def inspect_session(context: ToolContext, arguments: OfSession) -> SessionResult:
    transcript = browsing.transcript(
        context.rt, context.principal, arguments.workspace(context), arguments.session_id
    )
    row = transcript.session
    return SessionResult(
        id=row.slug,
        metadata=row.metadata,
        created_at=row.created_at,
        messages=row.message_count,
        peers=[member.peer for member in transcript.members],
    )


class SessionContextArguments(OfSession):
    peer_target: OptionalName = None
    tokens: Annotated[int, Field(ge=100, le=answers.MAX_TOKENS)] = 2_000


def get_session_context(
    context: ToolContext, arguments: SessionContextArguments
) -> answers.ContextResult:
    return answers.session_context(
        context,
        arguments.workspace(context),
        arguments.session_id,
        arguments.peer_target,
        arguments.tokens,
    )


TOOLS = (
    Tool(
        "create_session",
        "Create a session",
        "Create a session, or get it if it exists; peers join, and metadata replaces that of the "
        "session.",
        CreateSessionArguments,
        Resource,
        create_session,
        Effect.CHANGES,
        is_idempotent=True,
    ),
    Tool(
        "list_sessions",
        "List sessions",
        "List conversations, newest first, with their ids.",
        ListSessionsArguments,
        listings.SessionsResult,
        list_sessions,
        names={"peer_id": "peer"},
    ),
    Tool(
        "delete_session",
        "Delete a session",
        "Delete a session with its messages, for good.",
        OfSession,
        Done,
        delete_session,
        Effect.CHANGES,
        is_idempotent=True,
    ),
    Tool(
        "clone_session",
        "Copy a session",
        "Copy a session with its messages, up to a message if one is named.",
        CloneArguments,
        Resource,
        clone_session,
        Effect.ADDS,
    ),
    Tool(
        "add_peers_to_session",
        "Add peers to a session",
        "Let peers join a session.",
        AddPeersArguments,
        Done,
        add_peers_to_session,
        Effect.CHANGES,
        is_idempotent=True,
    ),
    Tool(
        "remove_peers_from_session",
        "Remove peers from a session",
        "Let peers leave a session.",
        RemovePeersArguments,
        Done,
        remove_peers_from_session,
        Effect.CHANGES,
        is_idempotent=True,
    ),
    Tool(
        "get_session_peers",
        "Get the peers of a session",
        "List the peers that are members of a session.",
        PageOfSession,
        listings.PeersResult,
        get_session_peers,
    ),
    Tool(
        "inspect_session",
        "Inspect a session",
        "Get a session with its metadata, number of messages and peers.",
        OfSession,
        SessionResult,
        inspect_session,
    ),
    Tool(
        "get_session_context",
        "Get the context of a session",
        "Get the summary and newest messages of a session and, with peer_target, what is known "
        "about that peer.",
        SessionContextArguments,
        answers.ContextResult,
        get_session_context,
    ),
)
