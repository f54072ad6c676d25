"""Asking about a peer: the answer with its evidence beside it, whole or streamed."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

from flask import Response, g, stream_with_context

from memservice.domain.errors import MemserviceError
from memservice.domain.failures import error_types, redacted_traceback
from memservice.services.chat import chat
from memservice.services.chat.chat import Answer, ChatOptions
from memservice.spi import web
from memservice_console.forms import Form
from memservice_console.rendering import address, environment, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

log = logging.getLogger("memservice.console")

routes = Routes()

_ASK = "/console/workspaces/<workspace_id>/peers/<peer_id>/ask"
BROKEN = "The answer could not be finished; the server's log says why."
LINES = "application/x-ndjson"
"""A streamed answer: a JSON object on each line, with `text` (a piece of the answer), at the end
`evidence` (HTML), or `error`."""


@routes.post(_ASK)
def ask(workspace_id: str, peer_id: str) -> Response:
    form = Form.sent()
    content, evidence = None, None
    free = web.hold_slot()
    try:
        with form.refusals(query="query"):
            answer = _answer(form, workspace_id, peer_id)
            content = answer.content()
            evidence = answer.evidence
    finally:
        free()
    return render(
        "answer.html",
        200 if form.ok else 422,
        workspace_id=workspace_id,
        peer_id=peer_id,
        form=form,
        content=content,
        evidence=evidence,
    )


@routes.post(_ASK + "/stream")
def stream_answer(workspace_id: str, peer_id: str) -> Response:
    """For the script of the peer's page."""
    form = Form.sent()
    free = web.hold_slot()
    try:
        answer = _answer(form, workspace_id, peer_id, stream=True)
    except BaseException:
        free()
        raise
    # Links of the evidence are relative to the page that shows it.
    g.console_page = address("peer", workspace_id=workspace_id, peer_id=peer_id)
    lines = stream_with_context(_lines(answer, workspace_id))
    response = Response(lines, mimetype=LINES)
    response.headers["X-Accel-Buffering"] = "no"
    response.headers["Cache-Control"] = "no-store"
    response.call_on_close(free)
    return response


def _answer(form: Form, workspace_id: str, peer_id: str, *, stream: bool = False) -> Answer:
    observer = form.text("observer") or peer_id
    options = ChatOptions(
        query=form["query"],
        target=None if observer == peer_id else peer_id,
        stream=stream,
    )
    return chat.ask_peer(web.runtime(), visitor().principal, workspace_id, observer, options)


def _lines(answer: Answer, workspace_id: str) -> Iterator[str]:
    try:
        for piece in answer.pieces():
            yield _line({"text": piece})
        template = environment().get_template("evidence.html")
        html = template.render(workspace_id=workspace_id, evidence=answer.evidence)
        yield _line({"evidence": html})
    except MemserviceError as error:
        yield _line({"error": str(error)})
    except Exception as error:  # whatever a reasoner raises in the middle of an answer
        log.error(
            "a streamed answer failed: %s\n%s",
            " from ".join(error_types(error)),
            redacted_traceback(error),
        )
        yield _line({"error": BROKEN})


def _line(value: dict[str, str]) -> str:
    return json.dumps(value) + "\n"
