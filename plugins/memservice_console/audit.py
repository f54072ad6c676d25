"""Entries of the audit log for what pages change."""

from __future__ import annotations

from typing import Any

from memservice.services.members import audit
from memservice.spi import web
from memservice_console.sign_in import browser
from memservice_console.visitors import visitor


def record(
    action: str, *, target: str | None = None, workspace_id: str | None = None, **detail: Any
) -> None:
    """Note an action of the current visitor, after it. `action` is `noun.verb`."""
    audit.record(
        web.runtime(),
        visitor(),
        browser(),
        action,
        target=target,
        workspace_id=workspace_id,
        detail=detail,
    )
