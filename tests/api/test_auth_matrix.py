"""Every route with every kind of key. What is expected is written out here from the contract's
table, not taken from the routes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from memservice.app import create_app
from memservice.runtime import utc_now
from memservice.settings import load_settings
from memservice.spi.base import PROBE_FACT
from memservice.spi.schema import TABLES
from support.api.auth_client import AuthClient, PopulatedIds, foreign, populate, signed
from support.api.prepared_request import PreparedRequest

KEYS: dict[str, dict[str, Any]] = {
    "admin": {"t": "", "ad": True},
    "admin with a name": {"ad": True, "w": "other", "p": "mallory"},
    "workspace": {"w": "acme"},
    "other workspace": {"w": "other"},
    "own peer": {"w": "acme", "p": "alice"},
    "member": {"w": "acme", "p": "bob"},
    "former member": {"w": "acme", "p": "carol"},
    "other peer": {"w": "acme", "p": "mallory"},
    "unknown peer": {"w": "acme", "p": "nobody"},
    "own session": {"w": "acme", "s": "room"},
    "other session": {"w": "acme", "s": "hall"},
    "own session, own peer": {"w": "acme", "p": "alice", "s": "room"},
    "other session, own peer": {"w": "acme", "p": "alice", "s": "hall"},
    "own session, other peer": {"w": "acme", "p": "mallory", "s": "room"},
    "own peer elsewhere": {"w": "other", "p": "alice"},
    "own session elsewhere": {"w": "other", "s": "room"},
    "peer in another case": {"w": "acme", "p": "Alice"},
    "workspace in another case": {"w": "Acme"},
}
"""Keys that are valid as such, by what they are to the resource named in the paths below: workspace
acme, peer alice, session room."""

SOME_KEYS = {
    "admin",
    "workspace",
    "other workspace",
    "own peer",
    "member",
    "other peer",
    "own session",
    "other session",
    "own session, other peer",
    "own peer elsewhere",
}
which_keys = pytest.mark.parametrize(
    "keys",
    [
        pytest.param(SOME_KEYS, id="some keys"),
        pytest.param(set(KEYS), id="all keys", marks=pytest.mark.heavy),
    ],
)
"""By default, routes of generation 2 and tools are tried with one key of each kind. They use the
rules of the routes of generation 3, which are tried with all keys."""

A = {"admin", "admin with a name"}
W = A | {"workspace"}
P = W | {"own peer"}
S = W | {"own session", "own session, own peer", "own session, other peer"}
M = S | {"own peer", "member"}
OF_THE_WORKSPACE = {name for name, claims in KEYS.items() if claims.get("w") == "acme"} | A
ANYBODY = {*KEYS, "nobody"}
OF_OTHER_WORKSPACES = {"other workspace", "own peer elsewhere", "workspace in another case"}
"""On a route without a workspace: they are answered from their own."""
IN_A_SESSION = {name for name in OF_THE_WORKSPACE if "s" in KEYS[name]}


@dataclass(frozen=True)
class Row:
    """A route, a request to it that an admin may make, and with which other keys it may be made."""

    rule: str
    allowed: set[str]
    body: Any = None
    query: str = ""
    status: tuple[int, ...] = (200, 201, 202, 204)


MESSAGES = {"messages": [{"peer_id": "alice", "content": "hello"}]}
CONCLUSIONS = {
    "conclusions": [{"content": "likes tea", "observer_id": "alice", "observed_id": "alice"}]
}
FOUND = {"query": "Where does alice live?"}
BY_PAIR = FOUND | {"filters": {"observer": "alice", "observed": "alice"}}
_W, _P, _S = (
    "/v3/workspaces/acme",
    "/v3/workspaces/acme/peers/alice",
    "/v3/workspaces/acme/sessions/room",
)

ONLY_THE_API = {"CONSOLE_ENABLED": "false", "MCP_ENABLED": "false"}
"""The console's routes and the tools of MCP have matrices of their own."""

TABLE = {
    "GET /health": Row("/health", ANYBODY),
    "GET /health/ready": Row("/health/ready", ANYBODY),
    "GET /openapi.json": Row("/openapi.json", ANYBODY),
    "GET /v3/openapi.json": Row("/v3/openapi.json", ANYBODY),
    "GET /metrics": Row("/metrics", ANYBODY),
    "GET /docs": Row("/docs", ANYBODY),
    "GET /docs/<name>": Row("/docs/start.js", ANYBODY),
    # Administrators
    "POST /v3/workspaces/list": Row("/v3/workspaces/list", A),
    "POST /v3/keys": Row("/v3/keys", A),
    "GET /v3/keys": Row("/v3/keys", A),
    "DELETE /v3/keys/<key_id>": Row("/v3/keys/{key}", A),
    "GET /v3/erasures": Row("/v3/erasures", A),
    "GET /v3/erasures/<erasure_id>": Row("/v3/erasures/unknown", A, status=(404,)),
    # The handler decides
    "POST /v3/workspaces": Row("/v3/workspaces", OF_THE_WORKSPACE, {"id": "acme"}),
    "POST …/peers": Row(f"{_W}/peers", P | IN_A_SESSION, {"id": "alice"}),
    "POST …/sessions": Row(f"{_W}/sessions", S | {"own peer", "member"}, {"id": "room"}),
    # The workspace
    "PUT …": Row(_W, W, {}),
    "DELETE …": Row(_W, W, status=(409,)),
    "POST …/search": Row(f"{_W}/search", W, FOUND),
    "POST …/chat": Row(f"{_W}/chat", W, FOUND),
    "GET …/queue/status": Row(f"{_W}/queue/status", W),
    "GET …/queue/failures": Row(f"{_W}/queue/failures", W),
    "GET …/usage": Row(f"{_W}/usage", W),
    "POST …/queue/failures/retry": Row(f"{_W}/queue/failures/retry", W),
    "POST …/schedule_dream": Row(
        f"{_W}/schedule_dream", W, {"observer": "alice", "dream_type": "omni"}
    ),
    "GET …/dreams": Row(f"{_W}/dreams", W),
    "GET …/dreams/<dream_id>": Row(f"{_W}/dreams/unknown", W, status=(404,)),
    "POST …/dreams/<dream_id>/apply": Row(f"{_W}/dreams/unknown/apply", W, status=(404,)),
    "POST …/dreams/<dream_id>/discard": Row(f"{_W}/dreams/unknown/discard", W, status=(404,)),
    "POST …/dreams/<dream_id>/undo": Row(f"{_W}/dreams/unknown/undo", W, status=(404,)),
    "GET …/erasures": Row(f"{_W}/erasures", W),
    "GET …/erasures/<erasure_id>": Row(f"{_W}/erasures/unknown", W, status=(404,)),
    "POST …/peers/list": Row(f"{_W}/peers/list", W),
    "POST …/sessions/list": Row(f"{_W}/sessions/list", W),
    "POST …/conclusions": Row(f"{_W}/conclusions", W, CONCLUSIONS),
    "POST …/conclusions/list": Row(f"{_W}/conclusions/list", W),
    "POST …/conclusions/query": Row(f"{_W}/conclusions/query", W, BY_PAIR),
    "GET …/conclusions/<conclusion_id>": Row(f"{_W}/conclusions/{{conclusion}}", W),
    "GET …/conclusions/<conclusion_id>/history": Row(f"{_W}/conclusions/{{conclusion}}/history", W),
    "PUT …/conclusions/<conclusion_id>": Row(
        f"{_W}/conclusions/{{conclusion}}", W, {"content": "likes green tea"}
    ),
    "POST …/conclusions/<conclusion_id>/invalidate": Row(
        f"{_W}/conclusions/{{conclusion}}/invalidate", W
    ),
    "POST …/conclusions/<conclusion_id>/restore": Row(
        f"{_W}/conclusions/{{conclusion}}/restore", W
    ),
    "DELETE …/conclusions/<conclusion_id>": Row(f"{_W}/conclusions/{{conclusion}}", W),
    "POST …/webhooks": Row(f"{_W}/webhooks", W, {"url": "https://93.184.215.14/other"}),
    "GET …/webhooks": Row(f"{_W}/webhooks", W),
    "DELETE …/webhooks/<endpoint_id>": Row(f"{_W}/webhooks/{{endpoint}}", W),
    "GET …/webhooks/test": Row(f"{_W}/webhooks/test", W),
    "GET …/webhooks/<endpoint_id>/deliveries": Row(f"{_W}/webhooks/{{endpoint}}/deliveries", W),
    "GET …/webhooks/<endpoint_id>/dead_letters": Row(f"{_W}/webhooks/{{endpoint}}/dead_letters", W),
    "POST …/deliveries/<delivery_id>/redeliver": Row(
        f"{_W}/deliveries/unknown/redeliver", W, status=(404,)
    ),
    "POST …/scopes": Row(f"{_W}/scopes", W, {"id": "team"}),
    "POST …/scopes/list": Row(f"{_W}/scopes/list", W),
    "GET …/scopes/<scope_id>": Row(f"{_W}/scopes/team", W),
    "POST …/scopes/<scope_id>/sessions": Row(
        f"{_W}/scopes/team/sessions", W, {"session_ids": ["room"]}
    ),
    "DELETE …/scopes/<scope_id>/sessions/<session_id>": Row(f"{_W}/scopes/team/sessions/room", W),
    "POST …/scopes/<scope_id>/sessions/list": Row(f"{_W}/scopes/team/sessions/list", W),
    "GET …/scopes/<scope_id>/status": Row(f"{_W}/scopes/team/status", W),
    # A peer
    "PUT …/peers/<peer_id>": Row(_P, P, {}),
    "POST …/peers/<peer_id>/sessions": Row(f"{_P}/sessions", P),
    "POST …/peers/<peer_id>/chat": Row(f"{_P}/chat", P, FOUND),
    "POST …/peers/<peer_id>/representation": Row(f"{_P}/representation", P, {}),
    "GET …/peers/<peer_id>/card": Row(f"{_P}/card", P),
    "PUT …/peers/<peer_id>/card": Row(f"{_P}/card", P, {"peer_card": ["Lives in Ulm"]}),
    "DELETE …/peers/<peer_id>": Row(f"{_W}/peers/unknown", W, status=(404,)),
    "GET …/peers/<peer_id>/export": Row(f"{_P}/export", W),
    "GET …/peers/<peer_id>/context": Row(f"{_P}/context", P),
    "POST …/peers/<peer_id>/search": Row(f"{_P}/search", P, FOUND),
    # A session
    "PUT …/sessions/<session_id>": Row(_S, S, {}),
    "DELETE …/sessions/<session_id>": Row(_S, S),
    "POST …/sessions/<session_id>/clone": Row(f"{_S}/clone", S),
    "POST …/sessions/<session_id>/peers": Row(f"{_S}/peers", S, {"alice": {}}),
    "PUT …/sessions/<session_id>/peers": Row(f"{_S}/peers", S, {"alice": {}}),
    "DELETE …/sessions/<session_id>/peers": Row(f"{_S}/peers", S, ["bob"]),
    "PUT …/sessions/<session_id>/peers/<peer_id>/config": Row(f"{_S}/peers/alice/config", S, {}),
    "POST …/sessions/<session_id>/messages": Row(f"{_S}/messages", S, MESSAGES),
    "POST …/sessions/<session_id>/messages/": Row(f"{_S}/messages/", S, MESSAGES),
    "POST …/sessions/<session_id>/messages/upload": Row(f"{_S}/messages/upload", S, "a file"),
    "PUT …/sessions/<session_id>/messages/<message_id>": Row(f"{_S}/messages/{{message}}", S, {}),
    # What the members of a session may read
    "DELETE …/sessions/<session_id>/messages/<message_id>": Row(
        f"{_S}/messages/unknown", S, status=(404,)
    ),
    "POST …/sessions/<session_id>/messages/list": Row(f"{_S}/messages/list", M),
    "GET …/sessions/<session_id>/messages/<message_id>": Row(f"{_S}/messages/{{message}}", M),
    "GET …/sessions/<session_id>/context": Row(f"{_S}/context", M),
    "GET …/sessions/<session_id>/summaries": Row(f"{_S}/summaries", M),
    "GET …/sessions/<session_id>/peers": Row(f"{_S}/peers", M),
    "GET …/sessions/<session_id>/peers/<peer_id>/config": Row(
        f"{_S}/peers/alice/config", M - {"member"}
    ),
    "POST …/sessions/<session_id>/search": Row(f"{_S}/search", M, FOUND),
}
"""Method and rule, with … for the workspace."""

HEADERS = {
    "nothing": None,
    "a scheme alone": "Bearer",
    "a scheme and blanks": "Bearer   ",
    "another scheme": "Basic {admin}",
    "no scheme": "{admin}",
    "two tokens": "Bearer {admin} {admin}",
    "revoked": "Bearer {revoked}",
    "revoked, of another server": "Bearer {revoked_foreign}",
} | {name: f"Bearer {token}" for name, token in foreign(utc_now()).items()}
"""What opens nothing, by what is wrong with it."""
EVERYWHERE = (
    "nothing",
    "garbage",
    "alg none",
    "wrong signature",
    "expired, a number",
    "expired, ISO",
    "revoked",
    "empty claims",
)
"""Tried on every route; the others on one of each kind."""
ONE_OF_EACH = {
    "POST /v3/workspaces",
    "POST …/peers",
    "GET …/sessions/<session_id>/context",
    "POST /v3/keys",
}


@cache
def served() -> frozenset[str]:
    app = create_app(load_settings(environ=ONLY_THE_API))
    return frozenset(
        f"{method} {rule.rule}".replace("/v3/workspaces/<workspace_id>", "…")
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD"}
        # the older generations have tables of their own
        if not rule.rule.startswith(("/v1/", "/v2/"))
    )


def test_the_table_has_every_route() -> None:
    missing = served() - TABLE.keys()
    assert not missing, (
        f"add a row to TABLE in {__file__} for each of {sorted(missing)}: its path, and "
        "the KEYS that may use it"
    )


def test_paths_of_the_table_are_the_routes() -> None:
    app = create_app(load_settings(environ=ONLY_THE_API))
    adapter = app.url_map.bind("localhost")
    for name in served():
        method, rule = name.replace("…", "/v3/workspaces/<workspace_id>").split(" ")
        assert adapter.match(TABLE[name].rule, method, return_rule=True)[0].rule == rule


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[AuthClient, PopulatedIds]]:
    auth_client = AuthClient.open()
    yield auth_client, populate(auth_client)
    auth_client.close()


@pytest.fixture
def unchanged(filled: tuple[AuthClient, PopulatedIds]) -> Iterator[tuple[AuthClient, PopulatedIds]]:
    """Data that refused requests must not change."""
    auth_client, _ = filled
    before = _contents(auth_client)
    yield filled
    assert _contents(auth_client) == before


def _contents(auth_client: AuthClient) -> list[Any]:
    """All rows, without that by which `/health/ready` tries whether the store can be written."""
    with auth_client.runtime.storage.read() as tx:
        return [
            [row for row in tx.rows.page(spec.record) if getattr(row, "name", None) != PROBE_FACT]
            for spec in TABLES
        ]


def prepared(auth_client: AuthClient, ids: PopulatedIds, name: str) -> PreparedRequest:
    row = TABLE[name]
    path = re.sub(r"\{(\w+)\}", lambda match: str(getattr(ids, match[1])), row.rule)
    options: dict[str, Any] = {"query_string": row.query}
    if row.body == "a file":
        options["data"] = {
            "file": (io.BytesIO(b"I like tea."), "notes.txt", "text/plain"),
            "peer_id": "alice",
        }
    elif row.body is not None:
        options["json"] = row.body
    return PreparedRequest(auth_client.app, name.split(" ")[0], path, **options)


CHECKED = sorted(served() & TABLE.keys())
GUARDED = [name for name in CHECKED if TABLE[name].allowed is not ANYBODY]


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDED)
def test_allowed_keys_are_accepted(
    filled: tuple[AuthClient, PopulatedIds], name: str, subtests: pytest.Subtests
) -> None:
    auth_client, ids = filled
    request = prepared(auth_client, ids, name)
    for key in KEYS.keys() & TABLE[name].allowed:
        with subtests.test(key=key), auth_client.undone():
            answer = request.send(signed(KEYS[key]))
            assert answer.status_code in TABLE[name].status, answer.text


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDED)
def test_other_keys_are_refused(
    unchanged: tuple[AuthClient, PopulatedIds], name: str, subtests: pytest.Subtests
) -> None:
    auth_client, ids = unchanged
    request = prepared(auth_client, ids, name)
    for key in KEYS.keys() - TABLE[name].allowed:
        with subtests.test(key=key):
            answer = request.send_header(f"bearer {signed(KEYS[key])}")
            assert answer.status_code == 401, answer.text


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDED)
def test_missing_and_invalid_keys_are_refused(
    unchanged: tuple[AuthClient, PopulatedIds], name: str, subtests: pytest.Subtests
) -> None:
    auth_client, ids = unchanged
    request = prepared(auth_client, ids, name)
    for wrong in HEADERS if name in ONE_OF_EACH else EVERYWHERE:
        header = HEADERS[wrong]
        if header is not None:
            header = header.format(
                admin=auth_client.admin, revoked=ids.revoked, revoked_foreign=ids.revoked_foreign
            )
        with subtests.test(wrong=wrong):
            answer = request.send_header(header)
            assert answer.status_code == 401, answer.text


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CHECKED) - set(GUARDED)))
def test_open_routes_need_no_key(
    unchanged: tuple[AuthClient, PopulatedIds], name: str, subtests: pytest.Subtests
) -> None:
    auth_client, ids = unchanged
    request = prepared(auth_client, ids, name)
    for header in (None, "Bearer garbage", f"Bearer {signed({'ad': True})}"):
        with subtests.test(header=header):
            assert request.send_header(header).status_code == 200
