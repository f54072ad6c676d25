"""The cost of models, in the API and on the command line."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memservice.app import create_app
from memservice.domain.records import Usage
from memservice.services.usage import report as usage_report
from services.conftest import OpenServices
from support.services.services import ME, Services

ROW = Usage(
    day="2026-01-01",
    task="summary.short",
    provider="openai",
    model="small",
    input_tokens=10,
    output_tokens=5,
    cache_read_tokens=3,
    cache_write_tokens=1,
    reasoning_tokens=4,
    duration_ms=120,
    outcome="success",
    created_at=None,  # type: ignore[arg-type]  # set by `fill`
)


def fill(services: Services) -> int:
    services.say("s", ("ann", "hi"))
    with services.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug("w")
    assert workspace is not None
    mine = replace(ROW, workspace_key=workspace.key, created_at=services.clock())
    rows = [
        mine,
        replace(mine, model="large", outcome="error", output_tokens=0),
        replace(mine, day="2025-12-31"),
        replace(mine, day="2025-11-01"),
        replace(mine, workspace_key=workspace.key + 100),
        replace(mine, workspace_key=None),
    ]
    services.rt.storage.write(lambda tx: tx.usage.add(rows))
    return workspace.key


@pytest.mark.slow
def test_a_workspace_reads_its_own_usage_by_day_purpose_and_model(
    open_services: OpenServices,
) -> None:
    services = open_services()
    fill(services)
    client = create_app(runtime=services.rt).test_client()
    report = client.get("/v3/workspaces/w/usage").get_json()
    assert (report["since"], report["until"], report["budget"]) == (
        "2025-12-03",
        "2026-01-01",
        None,
    )
    assert report["total"] == {
        "calls": 3,
        "failed": 1,
        "input_tokens": 30,
        "output_tokens": 10,
        "cache_read_tokens": 9,
        "cache_write_tokens": 3,
        "reasoning_tokens": 12,
        "duration_ms": 360,
    }
    assert [
        (item["day"], item["purpose"], item["model"], item["calls"]) for item in report["items"]
    ] == [
        ("2025-12-31", "summary.short", "small", 1),
        ("2026-01-01", "summary.short", "large", 1),
        ("2026-01-01", "summary.short", "small", 1),
    ]
    today = client.get("/v3/workspaces/w/usage?days=1").get_json()
    assert today["total"]["calls"] == 2
    assert client.get("/v3/workspaces/w/usage?days=400").get_json()["total"]["calls"] == 4
    assert client.get("/v3/workspaces/w/usage?days=0").status_code == 422
    assert client.get("/v3/workspaces/nobody/usage").status_code == 404


def test_a_workspace_without_calls_reads_nothing(open_services: OpenServices) -> None:
    services = open_services()
    services.say("s", ("ann", "hi"))
    report = create_app(runtime=services.rt).test_client().get("/v3/workspaces/w/usage").get_json()
    assert (report["total"]["calls"], report["items"]) == (0, [])


def test_workspaces_are_listed_by_name_and_erased_ones_by_key(open_services: OpenServices) -> None:
    services = open_services()
    key = fill(services)
    lines = usage_report.overall(services.rt, ME, ("workspace_key",), since="2026-01-01")
    assert [(line.workspace, line.total.calls) for line in lines] == [
        (None, 1),
        ("w", 2),
        (f"(deleted, no. {key + 100})", 1),
    ]
