"""Usage: what models were called for, and how many tokens that took."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from flask import Response, request

from memservice.domain.times import day_of
from memservice.runtime import Runtime
from memservice.services.auth.permissions import Permission
from memservice.services.usage import report
from memservice.services.usage.report import Line
from memservice.spi import web
from memservice_console.rendering import render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes(needs=Permission.VIEW)

DAYS = 30


@routes.get("/console/usage")
def usage() -> Response:
    rt: Runtime = web.runtime()
    allowed = visitor().workspaces
    workspace_id = request.args.get("workspace") or (allowed[0] if allowed else None)
    now = rt.clock()
    since, until = day_of(now - timedelta(days=DAYS - 1)), day_of(now)

    def sums(field: str) -> list[Line]:
        return report.overall(
            rt,
            visitor().principal,
            (field,),
            workspace_id=workspace_id,
            since=since,
            until=until,
        )

    budget = (
        None
        if workspace_id is None
        else report.of_workspace(rt, visitor().principal, workspace_id, DAYS).budget
    )
    return render(
        "usage.html",
        workspace_id=workspace_id,
        days=_days(sums("day"), since),
        tables=(("model", sums("model")), ("task", sums("task"))),
        workspaces=sums("workspace_key") if workspace_id is None else (),
        budget=budget,
        number_of_days=DAYS,
    )


def _days(lines: Sequence[Line], since: str) -> list[tuple[str, int]]:
    """Every day with its tokens, also those without any."""
    tokens = {line.total.day: line.total.input_tokens + line.total.output_tokens for line in lines}
    first = date.fromisoformat(since)
    days = [(first + timedelta(days=number)).isoformat() for number in range(DAYS)]
    return [(day, tokens.get(day, 0)) for day in days]
