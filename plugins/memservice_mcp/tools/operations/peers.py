"""Tools for peers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from memservice.domain.sizes import MAX_QUERY
from memservice.services import cards, peers
from memservice.services.chat import chat as chats
from memservice.services.chat.chat import ChatOptions
from memservice.services.retrieval import context as contexts
from memservice.services.retrieval import representation
from memservice.services.retrieval.representation import RepresentationOptions
from memservice_mcp.context import ToolContext
from memservice_mcp.tool import Effect, Result, Tool
from memservice_mcp.tools import listings
from memservice_mcp.tools.answers import AboutResult, AskResult, answer_of
from memservice_mcp.tools.operations.shared import (
    InWorkspace,
    Metadata,
    Name,
    OptionalName,
    PeerName,
    Resource,
)
from memservice_mcp.tools.shared import MAX_TEXT, shortened

Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY)]


class CreatePeerArguments(InWorkspace):
    peer_id: Name
    metadata: Metadata = None


def create_peer(context: ToolContext, arguments: CreatePeerArguments) -> Resource:
    workspace = arguments.workspace(context)
    row, _ = peers.get_or_create(
        context.rt, context.principal, workspace, arguments.peer_id, arguments.metadata, None
    )
    return Resource(id=row.slug, metadata=row.metadata, created_at=row.created_at)


class ListPeersArguments(InWorkspace, listings.ListArguments):
    pass


def list_peers(context: ToolContext, arguments: ListPeersArguments) -> listings.PeersResult:
    return listings.list_peers(context.within(arguments.workspace(context)), arguments)


class OfPeer(InWorkspace):
    peer_id: PeerName = None
    target_peer_id: Annotated[
        str | None,
        Field(
            min_length=1,
            description="The peer that it is about, if not peer_id itself.",
            validation_alias=AliasChoices("target_peer_id", "target"),  # `/v3` has `target`
        ),
    ] = None

    def peer(self, context: ToolContext) -> str:
        return self.peer_id or context.peer


class ChatArguments(OfPeer):
    query: Query
    session_id: OptionalName = None
    reasoning_level: Literal["minimal", "low", "medium", "high", "max"] = "low"


def chat(context: ToolContext, arguments: ChatArguments) -> AskResult:
    options = ChatOptions(
        arguments.query,
        target=arguments.target_peer_id,
        session=arguments.session_id,
        level=arguments.reasoning_level,
    )
    return answer_of(
        context,
        lambda: chats.ask_peer(
            context.rt,
            context.principal,
            arguments.workspace(context),
            arguments.peer(context),
            options,
        ),
    )


class CardResult(Result):
    peer_card: list[str] | None


def get_peer_card(context: ToolContext, arguments: OfPeer) -> CardResult:
    card = cards.get(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.peer(context),
        arguments.target_peer_id,
    )
    return CardResult(peer_card=card)


class SetCardArguments(OfPeer):
    peer_card: Annotated[list[str], Field(max_length=40, description="Replaces all lines.")]


def set_peer_card(context: ToolContext, arguments: SetCardArguments) -> CardResult:
    card = cards.put(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.peer(context),
        arguments.target_peer_id,
        arguments.peer_card,
    )
    return CardResult(peer_card=card)


class RepresentationArguments(OfPeer):
    search_query: Annotated[str | None, Field(max_length=MAX_QUERY)] = None
    max_conclusions: Annotated[int, Field(ge=1, le=100)] = 25

    def options(self, session_id: str | None = None) -> RepresentationOptions:
        return RepresentationOptions(
            target=self.target_peer_id,
            session=session_id,
            search_query=self.search_query,
            max_conclusions=self.max_conclusions,
        )


def get_peer_context(context: ToolContext, arguments: RepresentationArguments) -> AboutResult:
    peer_context = contexts.of_peer(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.peer(context),
        arguments.options(),
    )
    return AboutResult(
        peer=arguments.target_peer_id or arguments.peer(context),
        card=peer_context.card or [],
        representation=shortened(peer_context.representation, MAX_TEXT),
    )


class SessionRepresentationArguments(RepresentationArguments):
    session_id: OptionalName = None


class RepresentationResult(Result):
    representation: str = Field(description="As Markdown.")


def get_representation(
    context: ToolContext, arguments: SessionRepresentationArguments
) -> RepresentationResult:
    text = representation.of_peer(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.peer(context),
        arguments.options(arguments.session_id),
    )
    return RepresentationResult(representation=shortened(text, MAX_TEXT))


TOOLS = (
    Tool(
        "create_peer",
        "Create a peer",
        "Create a peer, or get it if it exists; metadata, if given, replaces that of the peer.",
        CreatePeerArguments,
        Resource,
        create_peer,
        Effect.CHANGES,
        is_idempotent=True,
    ),
    Tool(
        "list_peers",
        "List peers",
        "List the people and agents that the memory knows, newest first, with their ids.",
        ListPeersArguments,
        listings.PeersResult,
        list_peers,
    ),
    Tool(
        "chat",
        "Chat with a peer's memory",
        "Get an answer to a question about a peer, or about target_peer_id as that peer knows it.",
        ChatArguments,
        AskResult,
        chat,
    ),
    Tool(
        "get_peer_card",
        "Get a peer card",
        "Get the most important facts about a peer, or about target_peer_id as that peer knows it.",
        OfPeer,
        CardResult,
        get_peer_card,
    ),
    Tool(
        "set_peer_card",
        "Set a peer card",
        "Replace the card of a peer.",
        SetCardArguments,
        CardResult,
        set_peer_card,
        Effect.CHANGES,
        is_idempotent=True,
    ),
    Tool(
        "get_peer_context",
        "Get a peer's context",
        "Get the card and the representation of a peer.",
        RepresentationArguments,
        AboutResult,
        get_peer_context,
    ),
    Tool(
        "get_representation",
        "Get a representation",
        "Get what is known about a peer, as Markdown; with a query, what fits it best.",
        SessionRepresentationArguments,
        RepresentationResult,
        get_representation,
    ),
)
