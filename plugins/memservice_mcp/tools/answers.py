"""Tools that read the memory as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from memservice.domain.sizes import MAX_QUERY
from memservice.services.auth import policy
from memservice.services.chat import chat
from memservice.services.chat.chat import Answer, ChatOptions
from memservice.services.retrieval import context as contexts
from memservice.services.retrieval.context import SessionContextOptions
from memservice.services.retrieval.representation import RepresentationOptions
from memservice_mcp.context import ToolContext
from memservice_mcp.tool import Arguments, Result, Tool
from memservice_mcp.tools.shared import (
    MAX_TEXT,
    About,
    AsOf,
    ConclusionItem,
    MessageItem,
    SessionId,
    conclusions_of,
    messages_of,
    shortened,
)

MAX_TOKENS = 8_000
MAX_EVIDENCE = 10


class AskArguments(Arguments):
    question: Annotated[
        str, Field(min_length=1, max_length=MAX_QUERY, description="In plain language.")
    ]
    about: About = None
    as_of: AsOf = None


class AskResult(Result):
    answer: str | None
    conclusions: list[ConclusionItem] = Field(description="What the answer is based on.")
    messages: list[MessageItem] = Field(description="What the answer is based on.")
    notice: str | None = Field(description="How the answer was made, if not as configured.")


def ask(context: ToolContext, arguments: AskArguments) -> AskResult:
    return answer_of(
        context,
        lambda: chat.ask_peer(
            context.rt,
            context.principal,
            context.workspace,
            arguments.about or context.peer,
            ChatOptions(arguments.question, as_of=arguments.as_of),
        ),
    )


def answer_of(context: ToolContext, begin: Callable[[], Answer]) -> AskResult:
    """The whole answer. It takes a slot while it is generated."""
    release_slot = context.hold_slot()
    try:
        answer = begin()
        content = answer.content()
        evidence = answer.evidence
        return AskResult(
            answer=content,
            conclusions=conclusions_of(evidence.conclusions[:MAX_EVIDENCE]),
            messages=messages_of(evidence.messages[:MAX_EVIDENCE]),
            notice=answer.notice,
        )
    finally:
        release_slot()


class AboutArguments(Arguments):
    peer: About = None
    as_of: AsOf = None


class AboutResult(Result):
    peer: str
    card: list[str] = Field(description="The most important facts.")
    representation: str = Field(description="What is known, as Markdown.")


def about(context: ToolContext, arguments: AboutArguments) -> AboutResult:
    return _about(context, arguments.peer or context.peer, arguments.as_of)


def _about(context: ToolContext, peer: str, as_of: str | None) -> AboutResult:
    peer_context = contexts.of_peer(
        context.rt,
        context.principal,
        context.workspace,
        peer,
        RepresentationOptions(max_conclusions=_max_conclusions(context), as_of=as_of),
    )
    return AboutResult(
        peer=peer,
        card=peer_context.card or [],
        representation=shortened(peer_context.representation, MAX_TEXT),
    )


class ContextArguments(Arguments):
    session: SessionId = None
    about: About = None
    tokens: Annotated[
        int, Field(ge=100, le=MAX_TOKENS, description="How long the texts may be together.")
    ] = 2_000
    as_of: AsOf = None


class ContextResult(Result):
    peer: str | None
    card: list[str] = Field(description="The most important facts about the peer.")
    representation: str = Field(description="What is known about the peer, as Markdown.")
    session: str | None
    summary: str | None = Field(description="Of the session, up to the messages below.")
    messages: list[MessageItem] = Field(description="The newest of the session, oldest first.")


def get_context(context: ToolContext, arguments: ContextArguments) -> ContextResult:
    session = arguments.session or context.session
    peer = arguments.about or (None if context.session else context.peer)
    if session is not None:
        return session_context(
            context, context.workspace, session, peer, arguments.tokens, arguments.as_of
        )
    about = _about(context, peer or context.peer, arguments.as_of)
    # A token has about four characters.
    return ContextResult(
        peer=about.peer,
        card=about.card,
        representation=shortened(about.representation, arguments.tokens * 4),
        session=None,
        summary=None,
        messages=[],
    )


def session_context(
    context: ToolContext,
    workspace: str,
    session: str,
    peer: str | None,
    tokens: int,
    as_of: str | None = None,
) -> ContextResult:
    """A session, and what is known about a peer. The key of a member opens it, too."""
    with context.rt.storage.read() as tx:
        principal = policy.as_member(tx, context.principal, session)
    session_context = contexts.of_session(
        context.rt,
        principal,
        workspace,
        session,
        SessionContextOptions(
            tokens=tokens,
            peer_target=peer,
            max_conclusions=_max_conclusions(context),
            as_of=as_of,
        ),
    )
    return ContextResult(
        peer=peer,
        card=session_context.card or [],
        representation=shortened(session_context.representation or "", MAX_TEXT),
        session=session,
        summary=None
        if session_context.summary is None
        else shortened(session_context.summary.content, MAX_TEXT),
        messages=messages_of(session_context.messages),
    )


def _max_conclusions(context: ToolContext) -> int:
    return context.rt.settings.deriver.working_representation_max_observations


TOOLS = (
    Tool(
        "ask",
        "Ask the memory",
        "Get an answer, from everything that is stored, to a question about a person or agent. "
        "Slower than `recall`, and better for questions that need several memories together.",
        AskArguments,
        AskResult,
        ask,
        names={"query": "question", "peer_id": "about"},
    ),
    Tool(
        "get_context",
        "Get context",
        "Get what is worth knowing at the beginning of a conversation: the facts about a person "
        "and, for a session, its summary and newest messages.",
        ContextArguments,
        ContextResult,
        get_context,
        names={"peer_target": "about", "peer_id": "about", "session_id": "session"},
    ),
    Tool(
        "about",
        "About a peer",
        "Get the card and the representation of one person or agent: everything important that is "
        "known.",
        AboutArguments,
        AboutResult,
        about,
        names={"peer_id": "peer"},
    ),
)
