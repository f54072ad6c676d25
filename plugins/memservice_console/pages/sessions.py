"""A session: its transcript, and what its context gives for a number of tokens."""

from __future__ import annotations

from flask import Response, request

from memservice.runtime import Runtime
from memservice.services import browsing
from memservice.services.retrieval import context
from memservice.services.retrieval.context import SessionContextOptions
from memservice.spi import web
from memservice_console.forms import Form
from memservice_console.rendering import render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes()

_SESSION = "/console/workspaces/<workspace_id>/sessions/<session_id>"
DEFAULT_TOKENS = 2_000


@routes.get(_SESSION)
def session(workspace_id: str, session_id: str) -> Response:
    before = request.args.get("before", "")
    transcript = browsing.transcript(
        web.runtime(),
        visitor().principal,
        workspace_id,
        session_id,
        int(before) if before.isdecimal() and len(before) < 16 else None,
    )
    return render(
        "session.html",
        workspace_id=workspace_id,
        transcript=transcript,
        before=before if before.isdecimal() else None,
        tokens=DEFAULT_TOKENS,
    )


@routes.get(_SESSION + "/context")
def session_context(workspace_id: str, session_id: str) -> Response:
    rt: Runtime = web.runtime()
    most = rt.settings.app.get_context_max_tokens
    form = Form({"tokens": str(min(DEFAULT_TOKENS, most)), **request.args})
    tokens = form.integer("tokens", 0, most)
    preview = None
    if form.ok:
        options = SessionContextOptions(
            tokens=tokens,
            peer_target=form.text("target"),
            peer_perspective=form.text("observer") if form.text("target") else None,
            search_query=form.text("query"),
        )
        with form.refusals(peer_target="target", peer_perspective="observer"):
            preview = context.of_session(rt, visitor().principal, workspace_id, session_id, options)
    transcript = browsing.transcript(rt, visitor().principal, workspace_id, session_id)
    return render(
        "context.html",
        200 if form.ok else 422,
        workspace_id=workspace_id,
        session=transcript.session,
        members=transcript.members,
        form=form,
        most=most,
        preview=preview,
        tokens=_tokens(preview),
    )


def _tokens(preview: context.SessionContext | None) -> dict[str, int]:
    """Of each part of a context."""
    if preview is None:
        return {}
    return {
        "summary": preview.summary.tokens if preview.summary else 0,
        "messages": sum(message.tokens for message in preview.messages),
    }
