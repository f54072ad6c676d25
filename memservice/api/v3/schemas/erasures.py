"""Receipts of erasures."""

from __future__ import annotations

from memservice.api.fields import DateTime, JsonObject, String
from memservice.api.schema import BaseSchema


class Erasure(BaseSchema):
    id = String(attribute="uid", required=True)
    kind = String(
        required=True,
        metadata={
            "description": "`message`, `peer`, `session` or `workspace`; by retention `messages` "
            "or `conclusions`"
        },
    )
    workspace_id = String(attribute="workspace", required=True)
    session_id = String(attribute="session", allow_none=True, required=True)
    target_id = String(attribute="target", required=True)
    requested_by = String(
        required=True,
        metadata={"description": "`key ID`, `member ID`, `command line`, `retention` …"},
    )
    options = JsonObject(required=True)
    state = String(
        required=True, metadata={"description": "`accepted`, `erasing`, `done` or `failed`"}
    )
    reason = String(
        allow_none=True,
        required=True,
        metadata={"description": "Why it failed; null in other states"},
    )
    counts = JsonObject(
        required=True,
        metadata={"description": "Number of erased rows by table; empty until it is done"},
    )
    job_id = String(
        attribute="task",
        required=True,
        metadata={"description": "Its background task: a failed one can be retried"},
    )
    created_at = DateTime(required=True)
    finished_at = DateTime(allow_none=True, required=True)


class PeerErasure(Erasure):
    """The receipt, or for a dry run only what would be erased."""

    id = String(attribute="uid", allow_none=True, required=True)
    requested_by = String(allow_none=True, required=True)
    state = String(
        required=True,
        metadata={"description": "As in other receipts; `dry_run`: nothing was changed"},
    )
    job_id = String(attribute="task", allow_none=True, required=True)
    created_at = DateTime(allow_none=True, required=True)
