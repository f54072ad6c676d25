"""What operators are told of requests: called after the commit, or after reading, and cheap where
nobody listens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memservice.domain.records import Message
from memservice.runtime import Runtime
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.telemetry.events import (
    ContextRetrieved,
    DeletionCompleted,
    FileUploaded,
    MessageCreated,
)

if TYPE_CHECKING:
    from memservice.services.retrieval.context import (
        PeerContext,
        SessionContext,
        SessionContextOptions,
    )


def messages_created(rt: Runtime, workspace_id: str, messages: Sequence[Message]) -> None:
    """One request stored these, of one session; as a file, if their author sent one."""
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


def session_context(
    rt: Runtime,
    workspace_id: str,
    options: SessionContextOptions,
    session_context: SessionContext,
    began: float,
) -> None:
    """`began`: of `time.perf_counter`."""
    if not rt.hears_events:
        return
    rt.emit(
        ContextRetrieved(
            workspace_name=workspace_id,
            context_scope="session",
            session_name=session_context.session,
            peer_name=options.peer_perspective or None,
            target_name=options.peer_target or None,
            tokens_requested=options.tokens,
            message_count=len(session_context.messages),
            has_summary=session_context.summary is not None,
            has_representation=bool(session_context.representation),
            has_peer_card=bool(session_context.card),
            search_query_provided=bool(options.search_query),
            search_top_k=options.search_top_k,
            search_max_distance=options.search_max_distance,
            include_most_frequent=options.include_most_frequent,
            max_conclusions=options.max_conclusions,
            include_summary=options.summary,
            limit_to_session=options.limit_to_session,
            peer_perspective_provided=bool(options.peer_perspective),
            total_duration_ms=_milliseconds(began),
        )
    )


def peer_context(
    rt: Runtime,
    workspace_id: str,
    options: RepresentationOptions,
    peer_context: PeerContext,
    began: float,
) -> None:
    if not rt.hears_events:
        return
    rt.emit(
        ContextRetrieved(
            workspace_name=workspace_id,
            context_scope="peer",
            peer_name=peer_context.peer,
            target_name=options.target or None,
            message_count=0,
            has_summary=False,
            has_representation=bool(peer_context.representation),
            has_peer_card=bool(peer_context.card),
            search_query_provided=bool(options.search_query),
            search_top_k=options.search_top_k,
            search_max_distance=options.search_max_distance,
            include_most_frequent=options.include_most_frequent,
            max_conclusions=options.max_conclusions,
            limit_to_session=False,
            peer_perspective_provided=False,
            total_duration_ms=_milliseconds(began),
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


def _milliseconds(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
