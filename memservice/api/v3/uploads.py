"""Upload of files as messages."""

from __future__ import annotations

import io
from collections.abc import Sequence

from memservice.api.auth import RouteAccess
from memservice.api.locations import ANY
from memservice.api.routing import Call
from memservice.api.v3 import messages
from memservice.api.v3.schemas import messages as schemas
from memservice.domain.records import Message
from memservice.services import uploads
from memservice.services.uploads import Frame, Upload

routes = messages.routes


@routes.operation(
    "POST",
    "/v3/workspaces/<workspace_id>/sessions/<session_id>/messages/upload",
    access=RouteAccess(workspace="workspace_id", session="session_id"),
    headers=schemas.MessageHeaders,
    form=schemas.MessageUpload,
    large=True,
    answer=schemas.Message,
    many=True,
    status=(201,),
    locations={("messages", ANY): ("body",)},
)
def create_messages_with_file(call: Call, workspace_id: str, session_id: str) -> Sequence[Message]:
    """Store a file's text as messages, all or none

    Plain text of any kind, JSON, PDF and Word (.docx). A text that is too long for one message is
    split at a blank line, or at the end of a line, a sentence or a word; all messages get the same
    metadata, configuration and time.
    """
    form = call.body
    stream = form["file"].stream
    # Check the size before the file is read into memory.
    uploads.check_size(call.rt, stream.seek(0, io.SEEK_END))
    stream.seek(0)
    file = Upload(stream.read(), form["file"].filename or "", form["file"].mimetype)
    frame = Frame(form["peer_id"], form["metadata"], form["configuration"], form["created_at"])
    return uploads.create(
        call.rt,
        call.principal,
        workspace_id,
        session_id,
        file,
        frame,
        call.headers["idempotency_key"],
    )
