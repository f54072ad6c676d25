"""`/v3/keys`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest

from memservice.app import create_app
from memservice.settings import load_settings
from support.api.auth_client import SECRET, AuthClient, signed
from support.stores.stores import sqlite_store_at

KEYS = "/v3/keys"


@pytest.fixture
def auth_client(local_storage_name: str, tmp_path: Path) -> Iterator[AuthClient]:
    opened = AuthClient.open(
        "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "keys.db")
    )
    yield opened
    opened.close()


def mint(auth_client: AuthClient, **query: Any) -> Any:
    return auth_client.do("POST", KEYS, query_string=query)


def test_the_answer_contains_key_id_and_label(auth_client: AuthClient) -> None:
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(days=90)
    key = mint(
        auth_client,
        workspace_id="acme",
        peer_id="alice",
        expires_at=end.isoformat(),
        label="kitchen",
    )
    assert list(key) == [
        "key",
        "id",
        "label",
        "admin",
        "workspace_id",
        "peer_id",
        "session_id",
        "expires_at",
        "created_at",
    ]
    wire = end.isoformat().replace("+00:00", "Z")
    assert {
        name: key[name]
        for name in ("label", "admin", "workspace_id", "peer_id", "session_id", "expires_at")
    } == {
        "label": "kitchen",
        "admin": False,
        "workspace_id": "acme",
        "peer_id": "alice",
        "session_id": None,
        "expires_at": wire,
    }
    claims = jwt.decode(key["key"], SECRET, ["HS256"])
    assert claims == {
        "t": claims["t"],
        "exp": int(end.timestamp()),
        "w": "acme",
        "p": "alice",
        "jti": key["id"],
    }
    assert (
        auth_client.call(
            "POST", "/v3/workspaces/acme/peers", key["key"], json={"id": "alice"}
        ).status_code
        == 201
    )
    assert (
        auth_client.call(
            "POST", "/v3/workspaces/acme/peers", key["key"], json={"id": "bob"}
        ).status_code
        == 401
    )


@pytest.mark.slow
def test_a_key_without_names_is_an_admin_key(auth_client: AuthClient) -> None:
    key = mint(auth_client)
    assert (key["admin"], key["label"], key["workspace_id"]) == (True, "admin", None)
    assert auth_client.call("POST", "/v3/workspaces/list", key["key"]).status_code == 200
    assert auth_client.call("POST", KEYS, key["key"]).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("peer_id=alice", "workspace_id"),
        ("session_id=room", "workspace_id"),
        ("workspace_id=", "workspace_id"),
        ("workspace_id=acme&peer_id=", "peer_id"),
        ("workspace_id=no%20name", "workspace_id"),
        ("workspace_id=acme&expires_at=soon", "expires_at"),
        ("workspace_id=acme&expires_at=2020-01-01", "expires_at"),
        ("workspace_id=acme&label=" + "x" * 201, "label"),
    ],
)
def test_invalid_parameters_are_refused(auth_client: AuthClient, query: str, field: str) -> None:
    answer = auth_client.call("POST", f"{KEYS}?{query}", auth_client.admin)
    assert answer.status_code == 422
    assert [problem["loc"] for problem in answer.get_json()["detail"]] == [["query", field]]
    assert auth_client.do("GET", KEYS)["total"] == 0


KNOWN = "workspace_id, peer_id, session_id, expires_at, label"
KNOWN_V1 = "app_id, user_id, session_id, collection_id, expires_at, workspace_id, peer_id"
SLIPS = [
    (
        "/v3/keys?workspaceId=acme",
        "query",
        "workspaceId",
        f"Unknown parameter; did you mean workspace_id? Known parameters: {KNOWN}",
    ),
    (
        "/v3/keys?workspace=acme",
        "query",
        "workspace",
        f"Unknown parameter; did you mean workspace_id? Known parameters: {KNOWN}",
    ),
    ("/v3/keys?app_id=acme", "query", "app_id", f"Unknown parameter. Known parameters: {KNOWN}"),
    (
        "/v3/keys?workspace_id=acme&peerid=bob",
        "query",
        "peerid",
        f"Unknown parameter; did you mean peer_id? Known parameters: {KNOWN}",
    ),
    (
        "/v2/keys?workspaceid=acme",
        "query",
        "workspaceid",
        f"Unknown parameter; did you mean workspace_id? Known parameters: {KNOWN}",
    ),
    (
        "/v2/keys?workspace_id=acme&sesion_id=",
        "query",
        "sesion_id",
        f"Unknown parameter; did you mean session_id? Known parameters: {KNOWN}",
    ),
    (
        "/v1/keys?app_id=acme&userid=u",
        "query",
        "userid",
        f"Unknown parameter; did you mean user_id? Known parameters: {KNOWN_V1}",
    ),
    (
        "/v1/keys?workspace_id=acme&peer=p",
        "query",
        "peer",
        f"Unknown parameter; did you mean peer_id? Known parameters: {KNOWN_V1}",
    ),
    (
        "/v1/keys?workspace_id=acme&user_id=u",
        "query",
        "user_id",
        "Give either workspace_id and peer_id, or app_id, user_id, collection_id, not both kinds",
    ),
    (
        "/v3/keys?workspace_id=acme&workspace_id=other",
        "query",
        "workspace_id",
        "The parameter is repeated: send it once",
    ),
]


@pytest.mark.parametrize(
    ("path", "location", "name", "message"), SLIPS, ids=[slip[0] for slip in SLIPS]
)
@pytest.mark.slow
def test_an_unknown_or_misplaced_parameter_creates_no_key(
    auth_client: AuthClient, path: str, location: str, name: str, message: str
) -> None:
    answer = auth_client.call("POST", path, auth_client.admin)
    assert answer.status_code == 422
    assert [(problem["loc"], problem["msg"]) for problem in answer.get_json()["detail"]] == [
        ([location, name], message)
    ]
    assert auth_client.do("GET", KEYS)["total"] == 0


BODIES: dict[str, tuple[dict[str, Any], list[list[str]]]] = {
    "fields": (
        {"json": {"workspace_id": "acme", "zzz": 1}},
        [["body", "workspace_id"], ["body", "zzz"]],
    ),
    "list": ({"json": ["acme"]}, [["body"]]),
    "zero": ({"json": 0}, [["body"]]),
    "untyped": ({"data": '{"workspace_id": "acme"}'}, [["body", "workspace_id"]]),
    "form": ({"data": {"workspace_id": "acme"}}, [["body"]]),
    "multipart": (
        {"data": {"workspace_id": "acme"}, "content_type": "multipart/form-data"},
        [["body"]],
    ),
    "broken": ({"data": "{"}, [["body"]]),
    "long": ({"json": {"x" * 200: None, "y": "z" * 20_000}}, [["body"]]),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "/v1/keys?app_id=a",
        "/v2/keys",
        "/v2/keys?workspace_id=acme",
        "/v3/keys",
        "/v3/keys?workspace_id=acme",
    ],
)
def test_a_request_with_a_body_creates_no_key(
    auth_client: AuthClient, path: str, subtests: pytest.Subtests
) -> None:
    for name, (options, locs) in BODIES.items():
        with subtests.test(body=name):
            answer = auth_client.call("POST", path, auth_client.admin, **options)
            assert answer.status_code == 422
            assert [problem["loc"] for problem in answer.get_json()["detail"]] == locs
            assert all(
                "This route reads no body" in problem["msg"]
                for problem in answer.get_json()["detail"]
            )
            assert auth_client.do("GET", KEYS)["total"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    ["/v1/keys?workspace_id=acme", "/v2/keys?workspace_id=acme", "/v3/keys?workspace_id=acme"],
)
def test_an_empty_body_is_accepted(
    auth_client: AuthClient, path: str, subtests: pytest.Subtests
) -> None:
    nothing: list[dict[str, Any]] = [
        {},
        {"json": {}},
        {"data": "null"},
        {"data": " \n"},
        {"data": b"{}", "content_type": "text/plain"},
    ]
    for options in nothing:
        with subtests.test(**options):
            key = auth_client.call("POST", path, auth_client.admin, **options).get_json()
            assert (
                auth_client.call("PUT", "/v3/workspaces/acme", key["key"], json={}).status_code
                == 200
            )
            assert (
                auth_client.call("PUT", "/v3/workspaces/other", key["key"], json={}).status_code
                == 401
            )


def test_many_unknown_names_have_a_short_answer(auth_client: AuthClient) -> None:
    query = "&".join(f"x{number}=1" for number in range(100))
    answer = auth_client.call(
        "POST",
        f"{KEYS}?{query}",
        auth_client.admin,
        json={f"y{number}": 1 for number in range(100)},
    )
    assert answer.status_code == 422
    assert len(answer.get_json()["detail"]) == 20


@pytest.mark.parametrize(
    ("method", "path", "options", "loc"),
    [
        ("GET", f"{KEYS}?pages=2", {}, ["query", "pages"]),
        ("GET", f"{KEYS}?workspace_id=acme", {}, ["query", "workspace_id"]),
        ("GET", f"{KEYS}?size=1&size=2", {}, ["query", "size"]),
        ("GET", KEYS, {"json": {"filters": {}}}, ["body", "filters"]),
        ("DELETE", f"{KEYS}/x?dry_run=true", {}, ["query", "dry_run"]),
        ("DELETE", f"{KEYS}/x", {"json": {"dry_run": True}}, ["body", "dry_run"]),
    ],
)
@pytest.mark.slow
def test_listing_and_revoking_refuse_unknown_parameters(
    auth_client: AuthClient, method: str, path: str, options: Any, loc: list[str]
) -> None:
    answer = auth_client.call(method, path, auth_client.admin, **options)
    assert (answer.status_code, [problem["loc"] for problem in answer.get_json()["detail"]]) == (
        422,
        [loc],
    )


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_without_parameters_an_admin_key_is_created_and_labelled(
    auth_client: AuthClient, generation: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", "memservice.keys"):
        key = auth_client.do("POST", f"/{generation}/keys")
    assert {
        name: key[name] for name in ("admin", "label", "workspace_id", "peer_id", "session_id")
    } == {
        "admin": True,
        "label": "admin",
        "workspace_id": None,
        "peer_id": None,
        "session_id": None,
    }
    assert [record.getMessage() for record in caplog.records] == [
        f"created the admin key {key['id']}, which gives access to everything"
    ]
    assert (
        auth_client.call("POST", f"/{generation}/workspaces/list", key["key"], json={}).status_code
        == 200
    )


@pytest.mark.slow
def test_listing_and_revoking(auth_client: AuthClient) -> None:
    keys = [mint(auth_client, workspace_id="acme", label=f"number {n}") for n in range(3)]
    page = auth_client.do("GET", KEYS, query_string={"size": 2})
    assert {name: page[name] for name in ("total", "page", "size", "pages")} == {
        "total": 3,
        "page": 1,
        "size": 2,
        "pages": 2,
    }
    assert [item["id"] for item in page["items"]] == [keys[0]["id"], keys[1]["id"]]
    assert list(page["items"][0]) == [
        *(
            "id",
            "label",
            "admin",
            "workspace_id",
            "peer_id",
            "session_id",
            "expires_at",
            "revoked_at",
            "last_used_at",
            "created_at",
        )
    ]
    assert keys[0]["key"] not in str(page)
    assert [
        item["id"] for item in auth_client.do("GET", KEYS, query_string={"reverse": True})["items"]
    ] == [each["id"] for each in keys[::-1]]

    def used(token: str) -> int:
        return auth_client.call("PUT", "/v3/workspaces/acme", token, json={}).status_code

    assert [used(each["key"]) for each in keys] == [200] * 3
    answer = auth_client.call("DELETE", f"{KEYS}/{keys[1]['id']}", auth_client.admin)
    assert (answer.status_code, answer.data) == (204, b"")
    assert [used(each["key"]) for each in keys] == [200, 401, 200]
    assert (
        auth_client.call("DELETE", f"{KEYS}/{keys[1]['id']}", auth_client.admin).status_code == 204
    )
    assert [item["revoked_at"] is not None for item in auth_client.do("GET", KEYS)["items"]] == [
        False,
        True,
        False,
    ]
    answer = auth_client.call("DELETE", f"{KEYS}/unknown", auth_client.admin)
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "Key unknown not found"})


@pytest.mark.slow
def test_a_key_can_revoke_itself(auth_client: AuthClient) -> None:
    key = mint(auth_client)
    assert auth_client.call("DELETE", f"{KEYS}/{key['id']}", key["key"]).status_code == 204
    assert auth_client.call("DELETE", f"{KEYS}/{key['id']}", key["key"]).status_code == 401


def test_uses_are_recorded(auth_client: AuthClient) -> None:
    used, unused = mint(auth_client, workspace_id="acme"), mint(auth_client, workspace_id="acme")
    before = datetime.now(UTC)
    for _ in range(5):
        auth_client.call("PUT", "/v3/workspaces/acme", used["key"], json={})
    auth_client.app.extensions["memservice"].guard.close()  # which writes what is pending
    items = {item["id"]: item["last_used_at"] for item in auth_client.do("GET", KEYS)["items"]}
    assert items[unused["id"]] is None
    assert before <= datetime.fromisoformat(items[used["id"]]) <= datetime.now(UTC)


def test_a_refused_request_does_not_count_as_use(auth_client: AuthClient) -> None:
    key = mint(auth_client, workspace_id="acme")
    assert auth_client.call("PUT", "/v3/workspaces/other", key["key"], json={}).status_code == 401
    auth_client.app.extensions["memservice"].guard.close()
    assert [item["last_used_at"] for item in auth_client.do("GET", KEYS)["items"]] == [None]


@pytest.mark.slow
def test_revoking_takes_effect_at_once_in_every_process(tmp_path: Path) -> None:
    """Two applications on one store, as two processes are."""
    uri = sqlite_store_at(tmp_path / "shared.db")
    one, two = AuthClient.open(uri), AuthClient.open(uri)
    key = mint(one, workspace_id="acme")

    def used(auth_client: AuthClient) -> int:
        return auth_client.call("PUT", "/v3/workspaces/acme", key["key"], json={}).status_code

    for _ in range(3):
        assert (used(one), used(two)) == (200, 200)
    two.do("DELETE", f"{KEYS}/{key['id']}")
    assert (used(one), used(two)) == (401, 401)
    one.close()
    two.close()


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", KEYS), ("GET", KEYS), ("DELETE", f"{KEYS}/x"), ("POST", f"{KEYS}?workspace_id=w")],
)
def test_without_authentication_keys_are_disabled(method: str, path: str) -> None:
    client = create_app(
        load_settings(environ={}, overrides={"DB_CONNECTION_URI": "memory://"})
    ).test_client()
    answer = client.open(
        path, method=method, headers={"Authorization": f"Bearer {signed({'ad': True})}"}
    )
    assert (answer.status_code, answer.get_json()) == (405, {"detail": "Feature is disabled"})
