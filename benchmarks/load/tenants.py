"""What other workspaces cost a workspace: `python -m benchmarks.load tenants --db URI`.

`growth` has filled one workspace of a store in PostgreSQL. Another one, the tenant, is filled
through the API. Both are measured as by `growth`; then the tenant is copied
(`benchmarks.load.copies`), and both are measured again.
"""

from __future__ import annotations

from benchmarks.load import growth, in_process
from benchmarks.load.client import post
from benchmarks.load.copies import Store
from benchmarks.load.in_process import Application, Plan, Progress

TENANT = "tenant"


def measure(
    application: Application,
    bare: Application,
    database: int | None,
    store: Store,
    size: int,
    number: int,
    plan: Plan,
    progress: Progress = lambda line: None,
) -> dict[str, list[growth.Point]]:
    """By workspace, the costs alone and among `number` tenants of `size` messages each. Raises
    ValueError if `growth` has not filled the store, or if there is a tenant."""
    listed = growth.answered(application, post("/v3/workspaces/list?size=100", {}))
    if [item["id"] for item in listed["items"]] != [growth.NAME]:
        raise ValueError("use a store that `growth` has filled, and nothing else")
    growth.fill(application, 0, size, growth.path(TENANT), progress)
    points: dict[str, list[growth.Point]] = {growth.NAME: [], TENANT: []}

    def add() -> None:
        messages = store.messages()
        for name, of_workspace in points.items():
            cells = in_process.measure(
                application,
                bare,
                database,
                growth.scenarios(growth.first_message(application, name), growth.path(name)),
                plan,
                progress=progress,
            )
            of_workspace.append(growth.Point(messages, cells))

    add()
    store.copy(TENANT, [f"{TENANT}{copy:03}" for copy in range(1, number)])
    add()
    return points
