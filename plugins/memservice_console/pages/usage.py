"""Usage: what models were called for, how many tokens and how much money that took, and budgets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from flask import Response, request

from memservice.domain.times import day_of
from memservice.domain.values import INT_MAX
from memservice.runtime import Runtime
from memservice.services.auth.permissions import Permission
from memservice.services.usage import budget, budget_overrides, report
from memservice.services.usage.budget_overrides import Override
from memservice.services.usage.report import Line
from memservice.spi import web
from memservice_console.audit import record
from memservice_console.forms import Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes(needs=Permission.VIEW)

DAYS = 30
BY_SETTINGS, BY_TOKENS, UNLIMITED = "settings", "tokens", "none"
"""Values of the field `limit`."""


@routes.get("/console/usage")
def usage() -> Response:
    allowed = visitor().workspaces
    workspace_id = request.args.get("workspace") or (allowed[0] if allowed else None)
    return _show(workspace_id)


def _show(workspace_id: str | None, form: Form | None = None, status: int = 200) -> Response:
    rt: Runtime = web.runtime()
    now = rt.clock()
    since, until = day_of(now - timedelta(days=DAYS - 1)), day_of(now)
    has_prices = bool(rt.settings.llm.prices)
    unpriced: set[str] = set()

    def sums(field: str, with_costs: bool = has_prices) -> list[Line]:
        principal, by = visitor().principal, (field,)
        period = {"workspace_id": workspace_id, "since": since, "until": until}
        if not with_costs:
            return report.overall(rt, principal, by, **period)
        lines, without_price = report.with_costs(rt, principal, by, **period)
        unpriced.update(without_price)
        return lines

    by_model = sums("model")
    return render(
        "usage.html",
        status,
        workspace_id=workspace_id,
        days=_days(sums("day", with_costs=False), since),
        tables=(("model", by_model), ("task", sums("task"))),
        workspaces=sums("workspace_key") if workspace_id is None else (),
        number_of_days=DAYS,
        has_prices=has_prices,
        cost=sum(line.cost or 0.0 for line in by_model),
        unpriced=sorted(unpriced),
        **_budget(rt, workspace_id, form),
    )


def _budget(rt: Runtime, workspace_id: str | None, form: Form | None) -> dict[str, object]:
    """What the page shows of a workspace's budget."""
    if workspace_id is None:
        return {"budget": None, "form": None, "limits": ()}
    principal = visitor().principal
    override = budget_overrides.get(rt, principal, workspace_id)
    default = budget.from_settings(rt, workspace_id)
    of_settings = "no limit" if default is None else f"{default:,} tokens a day"
    return {
        "budget": report.of_workspace(rt, principal, workspace_id, DAYS).budget,
        "form": form or Form(_typed(override)),
        "limits": (
            (BY_SETTINGS, f"As in the settings: {of_settings}"),
            (BY_TOKENS, "This number of tokens a day"),
            (UNLIMITED, "No limit"),
        ),
    }


def _typed(override: Override | None) -> dict[str, str]:
    """An override as the form's fields."""
    if override is None:
        return {"limit": BY_SETTINGS, "daily_tokens": ""}
    if override.daily_tokens is None:
        return {"limit": UNLIMITED, "daily_tokens": ""}
    return {"limit": BY_TOKENS, "daily_tokens": str(override.daily_tokens)}


@routes.post("/console/workspaces/<workspace_id>/budget")
def set_budget(workspace_id: str) -> Response:
    visitor().require(Permission.MANAGE_BUDGETS)
    form = Form.sent()
    override = _override(form)
    if form.ok:
        with form.refusals():
            budget_overrides.set_override(
                web.runtime(), visitor().principal, workspace_id, override
            )
    if not form.ok:
        return _show(workspace_id, form, 422)
    tokens = None if override is None else override.daily_tokens
    record("budget.change", workspace_id=workspace_id, limit=form["limit"], daily_tokens=tokens)
    return redirect("usage", workspace=workspace_id, done="saved")


def _override(form: Form) -> Override | None:
    if form["limit"] == BY_TOKENS:
        tokens = form.integer("daily_tokens", 0, INT_MAX)
        if tokens is None and form.ok:
            form.add("daily_tokens", "Enter the number of tokens, or choose another limit")
        return Override(tokens)
    if form["limit"] == UNLIMITED:
        return Override(None)
    if form["limit"] != BY_SETTINGS:
        form.add("limit", "Choose one of the limits")
    return None


def _days(lines: Sequence[Line], since: str) -> list[tuple[str, int]]:
    """Every day with its tokens, also those without any."""
    tokens = {line.total.day: line.total.input_tokens + line.total.output_tokens for line in lines}
    first = date.fromisoformat(since)
    days = [(first + timedelta(days=number)).isoformat() for number in range(DAYS)]
    return [(day, tokens.get(day, 0)) for day in days]
