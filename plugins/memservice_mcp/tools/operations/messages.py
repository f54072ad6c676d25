"""Tools for the messages of sessions."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from memservice.services import messages
from memservice.services.messages import Draft
from memservice.services.paging import Paging
from memservice_mcp.context import ToolContext
from memservice_mcp.tool import Arguments, Effect, Result, Tool
from memservice_mcp.tools import listings
from memservice_mcp.tools.listings import counts_of
from memservice_mcp.tools.operations.sessions import OfSession, PageOfSession
from memservice_mcp.tools.operations.shared import MAX_ITEMS, Metadata, Name
from memservice_mcp.tools.shared import MessageItem, messages_of, parsed_time


class MessageArguments(Arguments):
    peer_id: Annotated[str, Field(min_length=1, description="The author.")]
    content: str
    metadata: Metadata = None
    created_at: Annotated[str | None, Field(description="ISO 8601. Default: now.")] = None

    def draft(self) -> Draft:
        at = parsed_time("created_at", self.created_at)
        return Draft(self.content, self.peer_id, metadata=self.metadata, created_at=at)


class AddMessagesArguments(OfSession):
    messages: Annotated[list[MessageArguments], Field(min_length=1, max_length=MAX_ITEMS)]


class AddMessagesResult(Result):
    ids: list[str]


def add_messages_to_session(
    context: ToolContext, arguments: AddMessagesArguments
) -> AddMessagesResult:
    rows = messages.create(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.session_id,
        [message.draft() for message in arguments.messages],
    )
    return AddMessagesResult(ids=[row.uid for row in rows])


class MessagesArguments(PageOfSession):
    reverse: Annotated[bool, Field(description="Newest first.")] = False


class MessagesResult(listings.PageResult):
    messages: list[MessageItem]


def get_session_messages(context: ToolContext, arguments: MessagesArguments) -> MessagesResult:
    page = messages.page(
        context.rt,
        arguments.member(context),
        arguments.workspace(context),
        arguments.session_id,
        None,
        Paging(arguments.page, arguments.size, arguments.reverse),
    )
    return MessagesResult(messages=messages_of(page.items), **counts_of(page))


class OneMessageArguments(OfSession):
    message_id: Name


class MessageResult(MessageItem):
    metadata: dict[str, Any]


def get_session_message(context: ToolContext, arguments: OneMessageArguments) -> MessageResult:
    row = messages.get(
        context.rt,
        arguments.member(context),
        arguments.workspace(context),
        arguments.session_id,
        arguments.message_id,
    )
    (item,) = messages_of([row])
    return MessageResult(**item.model_dump(mode="python"), metadata=row.metadata)


TOOLS = (
    Tool(
        "add_messages_to_session",
        "Add messages to a session",
        "Store up to 100 messages in order, all or none. Missing sessions and peers are created.",
        AddMessagesArguments,
        AddMessagesResult,
        add_messages_to_session,
        Effect.ADDS,
    ),
    Tool(
        "get_session_messages",
        "Get the messages of a session",
        "List the messages of a session, oldest first.",
        MessagesArguments,
        MessagesResult,
        get_session_messages,
    ),
    Tool(
        "get_session_message",
        "Get a message",
        "Get one message of a session with its metadata.",
        OneMessageArguments,
        MessageResult,
        get_session_message,
    ),
)
