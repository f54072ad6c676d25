"""Resources, which a person can attach in a client: the card of a peer, and a session."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from memservice.services import cards
from memservice_mcp.context import ToolContext
from memservice_mcp.tool import text_of
from memservice_mcp.tools import answers

JSON = "application/json"
TEMPLATES = [
    types.ResourceTemplate(
        name="card",
        title="Peer card",
        description="The most important facts about a peer, as a list of lines.",
        uri_template="memory://{workspace}/peers/{peer}/card",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        name="session",
        title="Session",
        description="The summary and the newest messages of a session.",
        uri_template="memory://{workspace}/sessions/{session}",
        mime_type=JSON,
    ),
]
_CARD = re.compile(r"memory://([^/]+)/peers/([^/]+)/card")
_SESSION = re.compile(r"memory://([^/]+)/sessions/([^/]+)")


def listed(context: ToolContext) -> list[types.Resource]:
    """The card of the caller's own peer; the rest is found by its template."""
    workspace, peer = quote(context.workspace, safe=""), quote(context.peer, safe="")
    return [
        types.Resource(
            name="card",
            title=f"Card of {context.peer}",
            description=TEMPLATES[0].description,
            uri=f"memory://{workspace}/peers/{peer}/card",
            mime_type=JSON,
        )
    ]


def read(context: ToolContext, uri: str) -> types.ReadResourceResult:
    try:
        content = _content(context, uri)
    except Exception as error:
        raise MCPError(code=types.INVALID_PARAMS, message=text_of(error, "resource")) from error
    if content is None:
        templates = ", ".join(template.uri_template for template in TEMPLATES)
        raise MCPError(
            code=types.INVALID_PARAMS,
            message=f"There is no resource {uri[:300]!r}; resources are: {templates}",
        )
    text = json.dumps(content, ensure_ascii=False)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type=JSON, text=text)]
    )


def _content(context: ToolContext, uri: str) -> Any:
    if match := _CARD.fullmatch(uri):
        workspace, peer = map(unquote, match.groups())
        return {"card": cards.get(context.rt, context.principal, workspace, peer) or []}
    if match := _SESSION.fullmatch(uri):
        workspace, session = map(unquote, match.groups())
        context_text = answers.session_context(
            context, workspace, session, None, answers.MAX_TOKENS
        )
        return context_text.model_dump(mode="json")
    return None
