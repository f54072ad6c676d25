"""The webhook routes: registering, listing, deleting, testing, and looking after deliveries."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.runtime import Runtime
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.receiver import LOOPBACK, Receiver
from support.stores.stores import sqlite_store_at

if TYPE_CHECKING:
    from api.conftest import Api

URL = "https://93.184.215.14/hook"
KEYS = ["id", "workspace_id", "url", "created_at", "state"]


def register(api: Api, url: str = URL, status: int = 201) -> Any:
    return api.ok(api.post("/webhooks", {"url": url}), status)


def test_a_new_endpoint_shows_its_secret_once(api: Api) -> None:
    api.create()
    endpoint = register(api)
    assert list(endpoint) == [*KEYS, "secret"]
    assert endpoint["workspace_id"] == api.workspace
    assert endpoint["url"] == URL
    assert endpoint["state"] == "active"
    assert endpoint["created_at"].endswith("Z")
    assert endpoint["secret"].startswith("whsec_")
    again = register(api, status=200)
    assert again.pop("secret") is None
    assert again == {key: endpoint[key] for key in KEYS}
    (listed,) = api.ok(api.get("/webhooks"))["items"]
    assert list(listed) == KEYS
    assert listed == again


def test_an_endpoint_belongs_to_its_workspace(api: Api) -> None:
    api.create()
    endpoint = register(api)
    other = f"{api.workspace}-other"
    api.ok(api.post("//v3/workspaces", {"id": other}), 201)
    assert api.ok(api.get(f"//v3/workspaces/{other}/webhooks"))["total"] == 0
    api.missing(api.delete(f"//v3/workspaces/{other}/webhooks/{endpoint['id']}"), endpoint["id"])
    api.missing(
        api.get(f"//v3/workspaces/{other}/webhooks/{endpoint['id']}/deliveries"), endpoint["id"]
    )
    assert (
        api.ok(api.post(f"//v3/workspaces/{other}/webhooks", {"url": URL}), 201)["id"]
        != endpoint["id"]
    )


def test_a_workspace_must_exist_to_have_endpoints(api: Api) -> None:
    api.missing(api.post("/webhooks", {"url": URL}), api.workspace)
    assert api.ok(api.get("/webhooks")) == {
        "items": [],
        "total": 0,
        "page": 1,
        "size": 50,
        "pages": 0,
    }
    answer = api.get("/webhooks/test")
    assert (answer.status_code, answer.text) == (200, "null")
    assert (
        api.ok(api.post("//v3/workspaces/list", {"filters": {"id": api.workspace}}))["total"] == 0
    )


def test_the_limit_counts_new_endpoints_only(api: Api) -> None:
    api.create()
    endpoints = [register(api, f"{URL}/{n}") for n in range(10)]
    detail = api.ok(api.post("/webhooks", {"url": f"{URL}/10"}), 409)["detail"]
    assert "10" in detail
    assert register(api, f"{URL}/3", 200)["id"] == endpoints[3]["id"]
    api.delete(f"/webhooks/{endpoints[0]['id']}")
    register(api, f"{URL}/10")


@pytest.mark.slow
def test_the_limit_holds_for_concurrent_registrations(api: Api) -> None:
    api.create()
    statuses: list[int] = []
    start = threading.Barrier(6)

    def one(n: int) -> None:
        client = api.app.test_client()
        start.wait(20)
        for k in range(4):
            answer = client.post(
                f"/v3/workspaces/{api.workspace}/webhooks", json={"url": f"{URL}/{n}/{k}"}
            )
            statuses.append(answer.status_code)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(statuses) == [201] * 10 + [409] * 14
    assert api.ok(api.get("/webhooks"))["total"] == 10


def test_endpoints_are_listed_in_order_by_pages(api: Api) -> None:
    api.create()
    uids = [register(api, f"{URL}/{n}")["id"] for n in range(5)]
    page = api.ok(api.get("/webhooks", query_string={"size": 2, "page": 2}))
    assert [item["id"] for item in page["items"]] == uids[2:4]
    assert (page["total"], page["pages"]) == (5, 3)
    assert [
        item["id"]
        for item in api.ok(api.get("/webhooks", query_string={"reverse": "true"}))["items"]
    ] == uids[::-1]


def test_delete_removes_an_endpoint(api: Api) -> None:
    api.create()
    endpoint = register(api)
    answer = api.delete(f"/webhooks/{endpoint['id']}")
    assert (answer.status_code, answer.data) == (204, b"")
    api.missing(api.delete(f"/webhooks/{endpoint['id']}"), endpoint["id"])
    assert api.ok(api.get("/webhooks"))["total"] == 0


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://127.0.0.1/", "private or internal"),
        ("http://localhost:8000/", "private or internal"),
        ("http://10.1.2.3/", "private or internal"),
        ("http://169.254.169.254/latest/meta-data/", "private or internal"),
        ("http://100.64.0.1/", "private or internal"),
        ("http://224.0.0.1/", "private or internal"),
        ("http://[::1]/", "private or internal"),
        ("http://[::ffff:10.0.0.1]/", "private or internal"),
        ("http://[2002:7f00:1::]/", "private or internal"),
        ("http://[64:ff9b::7f00:1]/", "private or internal"),
        ("http://2130706433/", "private or internal"),
        ("http://0x7f.1/", "private or internal"),
        ("http://0177.0.0.1/", "private or internal"),
        ("http://user:pw@93.184.215.14/", "user name or a password"),
        ("http://93.184.215.14:0/", "Invalid URL"),
        ("http://exämple.com/", "Invalid URL"),
        ("", "Invalid URL"),
        ("   ", "Invalid URL"),
        ("example.com/hook", "Invalid URL"),
        ("/hook", "Invalid URL"),
        ("http://", "Invalid URL"),
        ("ftp://example.com/", "Only HTTP and HTTPS"),
        ("javascript:alert(1)", "Only HTTP and HTTPS"),
        ("file:///etc/passwd", "Only HTTP and HTTPS"),
        ("http:", "Invalid URL"),
        ("jsonl:mine", "PLUGIN_JSONL__DIRECTORY"),
        ("https://93.184.215.14/" + "a" * 2027, "at most 2048"),
    ],
)
def test_invalid_urls_are_refused(api: Api, url: str, says: str) -> None:
    api.create()
    (problem,) = api.refused(api.post("/webhooks", {"url": url}), ["body", "url"])
    assert says in problem["msg"]
    assert api.ok(api.get("/webhooks"))["total"] == 0


def test_the_longest_url_is_accepted(api: Api) -> None:
    api.create()
    assert len(register(api, "https://93.184.215.14/" + "a" * 2026)["url"]) == 2048


@pytest.mark.parametrize("body", [{}, {"url": None}, {"url": 5}, {"url": ["https://a"]}, [], "x"])
def test_a_body_without_a_url_is_refused(api: Api, body: Any) -> None:
    api.create()
    api.refused(api.post("/webhooks", body))


def test_unknown_endpoints_and_deliveries_are_404(api: Api) -> None:
    api.create()
    for path in ("/webhooks/nobody/deliveries", "/webhooks/nobody/dead_letters"):
        api.missing(api.get(path), "nobody")
    api.missing(api.post("/deliveries/nobody/redeliver"), "nobody")


@pytest.fixture
def open_to_loopback(tmp_path: Path) -> Iterator[Runtime]:
    overrides = {
        "DB_CONNECTION_URI": sqlite_store_at(tmp_path / "w.db"),
        "WEBHOOK_ALLOW_NETWORKS": f'["{LOOPBACK}"]',
        "WEBHOOK_MAX_ATTEMPTS": "1",
        "WEBHOOK_PAUSE_AFTER": "1",
    }
    opened = open_runtime(load_settings(environ={}, cwd=tmp_path, overrides=overrides), "api")
    opened.storage.migrate()
    yield opened
    opened.close()


@pytest.mark.slow
def test_from_registration_to_redelivery(open_to_loopback: Runtime, receiver: Receiver) -> None:
    from api.conftest import Api

    api = Api(create_app(runtime=open_to_loopback), open_to_loopback, "w")
    work = Worker(open_to_loopback).run_until_idle
    api.create()
    endpoint = register(api, receiver.url())
    receiver.answers(503)
    assert api.ok(api.get("/webhooks/test")) is None
    work()
    (attempt,) = api.ok(api.get(f"/webhooks/{endpoint['id']}/deliveries"))["items"]
    assert list(attempt) == [
        "id",
        "event_id",
        "type",
        "attempt",
        "status",
        "error",
        "duration_ms",
        "created_at",
    ]
    assert (attempt["type"], attempt["attempt"], attempt["status"], attempt["error"]) == (
        "test.event",
        1,
        503,
        None,
    )
    (letter,) = api.ok(api.get(f"/webhooks/{endpoint['id']}/dead_letters"))["items"]
    assert list(letter) == ["id", "event_id", "type", "attempts", "error", "created_at"]
    assert letter["event_id"] == attempt["event_id"] == receiver.requests[0].headers["webhook-id"]
    assert api.ok(api.get("/webhooks"))["items"][0]["state"] == "paused"
    receiver.answers(200)
    accepted = api.ok(api.post(f"/deliveries/{letter['id']}/redeliver"), 202)
    assert list(accepted) == ["id", "created_at"]
    work()
    assert [
        item["status"]
        for item in api.ok(api.get(f"/webhooks/{endpoint['id']}/deliveries"))["items"]
    ] == [200, 503]
    assert api.ok(api.get(f"/webhooks/{endpoint['id']}/dead_letters"))["total"] == 0
    assert api.ok(api.get("/webhooks"))["items"][0]["state"] == "active"
    api.ok(api.post(f"/deliveries/{attempt['id']}/redeliver"), 202)
    work()
    assert len(receiver.requests) == 3
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
