"""Events of requests. Call these after the commit; they cost little without a listener."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.records import Message
from memservice.runtime import Runtime
from memservice.telemetry.events import DeletionCompleted, FileUploaded, MessageCreated


def messages_created(rt: Runtime, workspace_id: str, messages: Sequence[Message]) -> None:
    """Report the messages that one request stored in one session, and their file if any."""
    if not messages or not rt.hears_events:
        return
    last, file = messages[-1], messages[-1].internal
    total = sum(message.tokens for message in messages)
    is_file = "file_id" in file
    if is_file:
        rt.emit(
            FileUploaded(
                workspace_name=workspace_id,
                session_name=last.session,
                peer_name=last.author,
                file_id=str(file["file_id"]),
                filename=file.get("filename"),
                content_type=file.get("content_type"),
                file_size_bytes=file.get("original_file_size"),
                message_count=len(messages),
                total_tokens=total,
            )
        )
    rt.emit(
        MessageCreated(
            workspace_name=workspace_id,
            session_name=last.session,
            message_count=len(messages),
            total_tokens=total,
            source="file_upload" if is_file else "api",
            last_message_id=last.uid,
        )
    )


def conclusion_deleted(rt: Runtime, workspace_id: str, uid: str) -> None:
    rt.emit(
        DeletionCompleted(
            workspace_name=workspace_id,
            deletion_type="observation",
            resource_id=uid,
            success=True,
            peers_deleted=0,
            sessions_deleted=0,
            messages_deleted=0,
            conclusions_deleted=1,
        )
    )
