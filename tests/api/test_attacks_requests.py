"""Requests that a page of another origin makes a browser send, including GET requests that change
something."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from memservice.api.generations import GROUPS
from memservice.api.routing import walk
from memservice.domain.filters import equals
from memservice.domain.records import Task
from support.api.v1_client import V1Client

if TYPE_CHECKING:
    from api.conftest import Api

CHANGING = {
    "/v1/apps/get_or_create/<name>", "/v1/apps/<app_id>/users/get_or_create/<name>",
    "/v1/apps/<app_id>/users/<user_id>/sessions/<session_id>/clone",
    "/v2/workspaces/<workspace_id>/sessions/<session_id>/clone",
    "/v2/workspaces/<workspace_id>/webhooks/test", "/v3/workspaces/<workspace_id>/webhooks/test",
}  # fmt: skip


def test_get_routes_that_write_are_declared() -> None:
    """And say so; of the others, `test_attacks_across` shows nothing, so their names have to."""
    declared = {
        operation.rule: operation.writes
        for operation, _ in walk(GROUPS)
        if operation.method == "GET"
    }
    assert {rule for rule, writes in declared.items() if writes} == CHANGING
    others = "|".join(declared.keys() - CHANGING)
    assert not re.search(r"clone|create|test|retry|emit|trigger|redeliver", others)


@pytest.fixture
def paths(api: Api) -> list[str]:
    api.post("/sessions", {"id": "s", "peers": {"alice": {}}})
    api.post("/webhooks", {"url": "https://93.184.215.14/hook"})
    first = V1Client(api)
    user = first.user(first.app(f"{api.workspace}-first"))
    session = first.session(user)
    at = f"/v2/workspaces/{api.workspace}"
    return [
        f"/v1{session}/clone",
        f"{at}/sessions/s/clone",
        f"{at}/webhooks/test",
        f"/v3/workspaces/{api.workspace}/webhooks/test",
    ]


def state(api: Api) -> Any:
    hook = api.get("/webhooks").get_json()["items"][0]["id"]
    return [
        api.post("/sessions/list", {}).get_json()["total"],
        api.get(f"/webhooks/{hook}/deliveries").get_json()["total"],
        len([unit for unit in _units(api) if unit.startswith("webhook")]),
    ]


def _units(api: Api) -> list[str]:
    with api.runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug(api.workspace)
        assert workspace is not None
        return [task.unit for task in tx.rows.page(Task, equals(workspace_key=workspace.key))]


def test_head_changes_nothing(api: Api, paths: list[str]) -> None:
    before = state(api)
    for path in paths:
        answer = api.client.head(path)
        assert answer.status_code == 405, path
        assert answer.headers["Allow"] == "GET"
    assert state(api) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
    ],
)
def test_get_requests_from_other_origins_change_nothing(
    api: Api, paths: list[str], headers: dict[str, str]
) -> None:
    """As `<img src=…>` would."""
    before = state(api)
    for path in paths:
        assert api.client.get(path, headers=headers).status_code // 100 == 4, path
    assert state(api) == before


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://localhost"},
    ],
)
def test_get_requests_from_allowed_origins_are_answered(
    api: Api, paths: list[str], headers: dict[str, str]
) -> None:
    for path in paths:
        assert api.client.get(path, headers=headers).status_code // 100 == 2, path


CHANGES = [
    (operation.method, operation.rule) for operation, _ in walk(GROUPS) if operation.method != "GET"
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_writes_from_other_origins_must_be_json(api: Api, kind: str | None) -> None:
    """A browser sends all of it without a preflight. The routes whose body may be absent (clone,
    redeliver, retry) would act on it."""
    headers = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} | (
        {} if kind is None else {"Content-Type": kind}
    )
    for method, rule in CHANGES:
        answer = api.client.open(re.sub(r"<\w+>", "x", rule), method=method, headers=headers)
        assert (answer.status_code, answer.get_json()) == (
            400,
            {"detail": "Disallowed CORS origin"},
        ), (method, rule)


def test_a_request_from_another_origin_cannot_clone(api: Api) -> None:
    api.post("/sessions", {"id": "s", "peers": {"alice": {}}})
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert api.post("/sessions/s/clone", headers=headers).status_code == 400
    assert api.post("/sessions/list", {}).get_json()["total"] == 1
    for others in ({}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}):
        assert api.post("/sessions/s/clone", headers=others).status_code == 201


@pytest.mark.parametrize(
    "request_id", ["a\tb", "a b", "x" * 129, "\u00e9", "a;b", '"}', "", "../x"]
)
def test_invalid_request_ids_are_replaced(api: Api, request_id: str) -> None:
    answer = api.client.get(
        "/health", headers={"X-Request-Id": request_id.encode("latin-1").decode("latin-1")}
    )
    assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["X-Request-Id"])
