"""Jobs: background work, and what becomes of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from flask import Response, request

from memservice.domain.errors import NotFound, Refused
from memservice.domain.records import FAILED, PENDING
from memservice.runtime import Runtime
from memservice.services.auth.permissions import Permission
from memservice.services.tasks import jobs as service
from memservice.services.tasks import kinds
from memservice.services.tasks.jobs import Job, JobFilter
from memservice.spi import web
from memservice_console.audit import record
from memservice_console.forms import Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes(needs=Permission.VIEW)

STUCK_AFTER = timedelta(seconds=60)
"""A task that was due for longer, and is not worked on, needs a worker."""
WORKING, TIMER, RETRYING, DUE, STUCK = "in progress", "timer", "waits to retry", "due", "stuck"


@routes.get("/console/jobs")
def jobs() -> Response:
    return _show(Form())


def _show(form: Form, status: int = 200) -> Response:
    rt: Runtime = web.runtime()
    which = _filter()
    listing = service.browse(rt, visitor().principal, which, request.args.get("after"))
    now = rt.clock()
    return render(
        "jobs.html",
        status,
        listing=listing,
        conditions={job.task.uid: condition_of(job, now) for job in listing.items},
        which=which,
        filters=Form(dict(request.args)),
        form=form,
        states=service.STATES,
        kinds=sorted(kinds.KINDS),
    )


def _filter() -> JobFilter:
    values = {name: request.values.get(name) or None for name in ("workspace", "kind", "state")}
    allowed = visitor().workspaces
    if values["workspace"] is None and allowed:
        values["workspace"] = allowed[0]
    return JobFilter(**values)


def condition_of(job: Job, now: datetime) -> str:
    """The state of a task; of a pending one, what it waits for."""
    task = job.task
    if task.state != PENDING:
        return task.state
    if job.working:
        return WORKING
    if task.not_before > now:
        return RETRYING if task.attempts else TIMER
    return STUCK if now - task.due_since > STUCK_AFTER else DUE


@routes.post("/console/jobs")
def change_jobs() -> Response:
    form = Form.sent()
    uids = request.form.getlist("uid")
    action = form["action"]
    rt, principal, which = web.runtime(), visitor().principal, _filter()
    changed = len(uids)
    if action == "purge" and which.state != FAILED:
        form.add("", "Show the failed tasks first: only those that the filter shows are erased")
    elif action == "purge":
        with form.refusals():
            changed = service.purge(rt, principal, which)
    elif not uids:
        form.add("", "Choose at least one task")
    else:
        with form.refusals(NotFound):
            if action == "retry":
                service.retry(rt, principal, which, uids)
            elif action == "cancel":
                service.cancel(rt, principal, which, uids)
            else:
                raise Refused(f"There is no action {action}")
    if not form.ok:
        return _show(form, 422)
    record(f"job.{action}", workspace_id=which.workspace, tasks=changed)
    outcome = {"retry": "retried", "cancel": "cancelled", "purge": "purged"}[action]
    return redirect("jobs", **_query_of(which), done=outcome)


def _query_of(which: JobFilter) -> dict[str, str]:
    fields = {"workspace": which.workspace, "kind": which.kind, "state": which.state}
    return {name: value for name, value in fields.items() if value is not None}
