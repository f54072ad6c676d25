"""`memservice jobs`: inspection and control of background tasks. The server may be running or
stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import Duration, State, json_lines, limit_option
from memservice.cli.stores import opened
from memservice.cli.tables import show_rest, show_table
from memservice.domain.records import DONE, PENDING
from memservice.domain.times import wire_seconds
from memservice.domain.values import printable
from memservice.services.paging import Paging
from memservice.services.tasks import jobs as service
from memservice.services.tasks.jobs import Job, JobFilter
from memservice.services.tasks.kinds import KINDS

F = TypeVar("F", bound=Callable[..., Any])


def _filters(*, state: bool) -> Callable[[F], F]:
    """The options that select tasks."""
    options = [
        click.option("--workspace", "-w", help="Only tasks of this workspace."),
        click.option("--kind", type=click.Choice(list(KINDS)), help="Only tasks of this kind."),
        click.option("--unit", help="Only tasks of this work unit (see `memservice jobs list`)."),
    ]
    if state:
        options.append(
            click.option(
                "--state", type=click.Choice(service.STATES), help="Only tasks in this state."
            )
        )

    def add(command: F) -> F:
        for option in options:
            command = option(command)
        return command

    return add


@click.group()
def jobs() -> None:
    """Manage background tasks: list them, show errors, retry, cancel and purge."""


@jobs.command("list")
@_filters(state=True)
@limit_option("tasks")
@json_lines
@click.pass_obj
def list_(state_: State, /, limit: int, as_json: bool, **filters: str | None) -> None:
    """List tasks, newest first."""
    with opened(state_) as rt:
        rt.storage.check()
        page = service.page(rt, OPERATOR, JobFilter(**filters), Paging(size=limit))
    if as_json:
        for job in page.items:
            click.echo(json.dumps(_fields(job), ensure_ascii=False))
        return
    rows = [
        (
            job.task.uid,
            job.task.kind,
            _state(job),
            wire_seconds(job.task.not_before) if job.waits else "-",
            str(job.task.attempts),
            job.task.unit,
            job.workspace or "-",
            job.session or "-",
            job.observed or "-",
            wire_seconds(job.task.created_at),
            # The error's text may quote users' messages; `show` prints it.
            "" if job.task.state == DONE else (job.task.last_error or "").partition(":")[0],
        )
        for job in page.items
    ]
    show_table(
        (
            "ID",
            "KIND",
            "STATE",
            "DUE",
            "TRIES",
            "UNIT",
            "WORKSPACE",
            "SESSION",
            "ABOUT",
            "CREATED AT",
            "ERROR",
        ),
        rows,
    )
    show_rest(len(rows), page.total)


@jobs.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def show(state_: State, /, id: str, as_json: bool) -> None:
    """Show a task: its unit, attempts, last error and outcome."""
    with opened(state_) as rt:
        rt.storage.check()
        fields = _fields(service.show(rt, OPERATOR, id))
    if as_json:
        click.echo(json.dumps(fields, ensure_ascii=False))
        return
    for name, value in fields.items():
        text = (
            ", ".join(f"{key} {number}" for key, number in value.items())
            if isinstance(value, dict)
            else value
        )
        click.echo(f"{name:<12}{'-' if text in (None, '') else printable(str(text))}")


@jobs.command()
@click.argument("ids", nargs=-1)
@_filters(state=False)
@click.option("--all", "all_tasks", is_flag=True, help="All failed tasks.")
@click.pass_obj
def retry(state_: State, /, ids: tuple[str, ...], all_tasks: bool, **filters: str | None) -> None:
    """Retry failed tasks, by ID or by options. The count of attempts starts again."""
    _one_of(ids, all_tasks, filters)
    with opened(state_) as rt:
        rt.storage.check()
        click.echo(
            f"{service.retry(rt, OPERATOR, JobFilter(**filters), ids or None)} will be retried"
        )


@jobs.command()
@click.argument("ids", nargs=-1)
@_filters(state=False)
@click.option("--all", "all_tasks", is_flag=True, help="All pending tasks.")
@click.pass_obj
def cancel(state_: State, /, ids: tuple[str, ...], all_tasks: bool, **filters: str | None) -> None:
    """Cancel pending tasks, by ID or by options: they become failed, and can be retried later."""
    _one_of(ids, all_tasks, filters)
    with opened(state_) as rt:
        rt.storage.check()
        click.echo(f"{service.cancel(rt, OPERATOR, JobFilter(**filters), ids or None)} cancelled")


@jobs.command()
@_filters(state=False)
@click.option(
    "--state",
    type=click.Choice(("failed", "done")),
    default="failed",
    show_default=True,
    help="State of the tasks to erase.",
)
@click.option(
    "--older-than",
    "age",
    type=Duration(),
    help="Only tasks that finished at least this long ago: 7d, 12h.",
)
@click.option("--all", "all_tasks", is_flag=True, help="All finished tasks.")
@click.pass_obj
def purge(
    state_: State, /, state: str, age: timedelta | None, all_tasks: bool, **filters: str | None
) -> None:
    """Erase finished tasks permanently."""
    _one_of((), all_tasks, {**filters, "age": None if age is None else str(age)})
    with opened(state_) as rt:
        rt.storage.check()
        before: datetime | None = None if age is None else rt.clock() - age
        click.echo(
            f"{service.purge(rt, OPERATOR, JobFilter(state=state, **filters), before)} erased"
        )


def _one_of(ids: tuple[str, ...], all_tasks: bool, filters: dict[str, str | None]) -> None:
    """Require exactly one way to select tasks, so that a missing option does not change all of
    them."""
    is_filtered = any(value is not None for value in filters.values())
    if sum((bool(ids), is_filtered, all_tasks)) != 1:
        raise click.UsageError("Select tasks by ID, by options, or with --all.")


def _state(job: Job) -> str:
    if job.working:
        return "working"
    if job.task.state == PENDING and "paused" in job.task.outcome:
        return "paused"
    return service.WAITING if job.waits else job.task.state


def _fields(job: Job) -> dict[str, Any]:
    task = job.task
    return {
        "id": task.uid,
        "kind": task.kind,
        "state": _state(job),
        "unit": task.unit,
        "workspace": job.workspace,
        "session": job.session,
        "observer": job.observer,
        "observed": job.observed,
        "attempts": task.attempts,
        "error": task.last_error,
        "outcome": dict(task.outcome),
        "not_before": wire_seconds(task.due_since),
        "made": wire_seconds(task.created_at),
        "finished": None if task.finished_at is None else wire_seconds(task.finished_at),
    }
