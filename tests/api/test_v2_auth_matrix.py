"""Every route of the second generation with every kind of key. What is expected is written out
here, by the rules of the third."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from api.test_auth_matrix import (
    BY_PAIR,
    EVERYWHERE,
    FOUND,
    HEADERS,
    IN_A_SESSION,
    KEYS,
    MESSAGES,
    OF_OTHER_WORKSPACES,
    OF_THE_WORKSPACE,
    A,
    M,
    P,
    Row,
    S,
    W,
    _contents,
    which_keys,
)
from memservice.app import create_app
from memservice.settings import load_settings
from support.api.auth_client import AuthClient, PopulatedIds, populate, signed
from support.api.prepared_request import PreparedRequest

OBSERVATIONS = {
    "observations": [
        {
            "content": "likes tea",
            "observer_id": "alice",
            "observed_id": "alice",
            "session_id": "room",
        }
    ]
}
_W, _P, _S = (
    "/v2/workspaces/acme",
    "/v2/workspaces/acme/peers/alice",
    "/v2/workspaces/acme/sessions/room",
)

TABLE = {
    "POST /v2/workspaces/list": Row("/v2/workspaces/list", A),
    "POST /v2/keys": Row("/v2/keys", A),
    "POST /v2/workspaces": Row("/v2/workspaces", OF_THE_WORKSPACE, {"id": "acme"}),
    "POST …/peers": Row(f"{_W}/peers", P | IN_A_SESSION, {"id": "alice"}),
    "POST …/sessions": Row(f"{_W}/sessions", S | {"own peer", "member"}, {"id": "room"}),
    # The workspace
    "PUT …": Row(_W, W, {}),
    "DELETE …": Row(_W, W),
    "POST …/search": Row(f"{_W}/search", W, FOUND),
    "GET …/deriver/status": Row(f"{_W}/deriver/status", W),
    "GET …/queue/status": Row(f"{_W}/queue/status", W),
    "POST …/trigger_dream": Row(
        f"{_W}/trigger_dream", W, {"observer": "alice", "dream_type": "consolidate"}
    ),
    "POST …/schedule_dream": Row(
        f"{_W}/schedule_dream", W, {"observer": "alice", "dream_type": "omni"}
    ),
    "POST …/peers/list": Row(f"{_W}/peers/list", W),
    "POST …/sessions/list": Row(f"{_W}/sessions/list", W),
    "POST …/webhooks": Row(f"{_W}/webhooks", W, {"url": "https://93.184.215.14/other"}),
    "GET …/webhooks": Row(f"{_W}/webhooks", W),
    "DELETE …/webhooks/<endpoint_id>": Row(f"{_W}/webhooks/{{endpoint}}", W),
    "GET …/webhooks/test": Row(f"{_W}/webhooks/test", W),
    # A peer
    "PUT …/peers/<peer_id>": Row(_P, P, {}),
    "POST …/peers/<peer_id>/sessions": Row(f"{_P}/sessions", P),
    "POST …/peers/<peer_id>/chat": Row(f"{_P}/chat", P, FOUND),
    "POST …/peers/<peer_id>/representation": Row(f"{_P}/representation", P, {}),
    "GET …/peers/<peer_id>/card": Row(f"{_P}/card", P),
    "PUT …/peers/<peer_id>/card": Row(f"{_P}/card", P, {"peer_card": ["Lives in Ulm"]}),
    "GET …/peers/<peer_id>/context": Row(f"{_P}/context", P),
    "POST …/peers/<peer_id>/search": Row(f"{_P}/search", P, FOUND),
    "POST …/peers/<peer_id>/messages": Row(f"{_P}/messages", P, MESSAGES),
    "POST …/peers/<peer_id>/messages/list": Row(f"{_P}/messages/list", P),
    "GET /v2/peers/<peer_id>/card": Row(
        "/v2/peers/alice/card", P | OF_OTHER_WORKSPACES, query="workspace_id=acme"
    ),
    # A session
    "PUT …/sessions/<session_id>": Row(_S, S, {}),
    "DELETE …/sessions/<session_id>": Row(_S, S),
    "GET …/sessions/<session_id>/clone": Row(f"{_S}/clone", S),
    "POST …/sessions/<session_id>/clone": Row(f"{_S}/clone", S),
    "POST …/sessions/<session_id>/peers": Row(f"{_S}/peers", S, {"alice": {}}),
    "PUT …/sessions/<session_id>/peers": Row(f"{_S}/peers", S, {"alice": {}, "bob": {}}),
    "DELETE …/sessions/<session_id>/peers": Row(f"{_S}/peers", S, ["mallory"]),
    "PUT …/sessions/<session_id>/peers/<peer_id>/config": Row(f"{_S}/peers/alice/config", S, {}),
    "POST …/sessions/<session_id>/peers/<peer_id>/config": Row(f"{_S}/peers/alice/config", S, {}),
    "POST …/sessions/<session_id>/messages": Row(f"{_S}/messages", S, MESSAGES),
    "POST …/sessions/<session_id>/messages/": Row(f"{_S}/messages/", S, MESSAGES),
    "POST …/sessions/<session_id>/messages/upload": Row(f"{_S}/messages/upload", S, "a file"),
    "PUT …/sessions/<session_id>/messages/<message_id>": Row(f"{_S}/messages/{{message}}", S, {}),
    # What the members of a session may read
    "POST …/sessions/<session_id>/messages/list": Row(f"{_S}/messages/list", M),
    "GET …/sessions/<session_id>/messages/<message_id>": Row(f"{_S}/messages/{{message}}", M),
    "GET …/sessions/<session_id>/context": Row(f"{_S}/context", M),
    "GET …/sessions/<session_id>/summaries": Row(f"{_S}/summaries", M),
    "GET …/sessions/<session_id>/peers": Row(f"{_S}/peers", M),
    "GET …/sessions/<session_id>/peers/<peer_id>/config": Row(
        f"{_S}/peers/alice/config", M - {"member"}
    ),
    "POST …/sessions/<session_id>/search": Row(f"{_S}/search", M, FOUND),
} | {
    f"{method} …/{noun}{rest}": Row(f"{_W}/{noun}{path}", W, body)
    for noun in ("observations", "conclusions")
    for method, rest, path, body in (
        ("POST", "", "", OBSERVATIONS),
        ("POST", "/list", "/list", None),
        ("POST", "/query", "/query", BY_PAIR),
        ("DELETE", "/<observation_id>", "/{conclusion}", None),
    )
}
"""Method and rule, with … for the workspace."""


@cache
def rules(prefix: str) -> frozenset[str]:
    app = create_app(load_settings(environ={}))
    return frozenset(
        f"{method} {rule.rule}".replace(f"{prefix}workspaces/<workspace_id>", "…")
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD"}
        if rule.rule.startswith(prefix) and not rule.rule.endswith("openapi.json")
    )


def test_the_table_has_every_route() -> None:
    missing, extra = rules("/v2/") - TABLE.keys(), TABLE.keys() - rules("/v2/")
    assert not missing, (
        f"add a row to TABLE in {__file__} for each of {sorted(missing)}: its path, and "
        "the KEYS that may use it"
    )
    assert not extra, (
        f"take these rows out of TABLE in {__file__}, no route has them: {sorted(extra)}"
    )


def test_the_earliest_path_has_the_rules_of_workspaces() -> None:
    of_workspaces = {
        name.replace("/v2/", "/v1/")
        for name in rules("/v2/")
        if "…" in name or "/workspaces" in name
    }
    assert of_workspaces <= rules("/v1/")
    assert {name for name in rules("/v1/") if "…" in name} == {
        name for name in of_workspaces if "…" in name
    }


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


@pytest.fixture
def fresh(filled: tuple[AuthClient, PopulatedIds]) -> Iterator[tuple[AuthClient, PopulatedIds]]:
    """A world that a test may change: the next one finds it as it was."""
    auth_client, _ = filled
    with auth_client.undone():
        yield filled


def prepared(
    auth_client: AuthClient, ids: PopulatedIds, name: str, earliest: bool = False
) -> PreparedRequest:
    row = TABLE[name]
    path = re.sub(r"\{(\w+)\}", lambda match: str(getattr(ids, match[1])), row.rule)
    if earliest:
        path = path.replace("/v2/", "/v1/")
    options: dict[str, Any] = {"query_string": row.query}
    if row.body == "a file":
        options["data"] = {
            "file": (io.BytesIO(b"I like tea."), "notes.txt", "text/plain"),
            "peer_id": "alice",
        }
    elif row.body is not None:
        options["json"] = row.body
    return PreparedRequest(auth_client.app, name.split(" ")[0], path, **options)


HAS_AN_EARLIEST_PATH = {name for name in TABLE if "…" in name}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLE))
@which_keys
def test_other_keys_are_refused(
    unchanged: tuple[AuthClient, PopulatedIds],
    name: str,
    keys: set[str],
    subtests: pytest.Subtests,
) -> None:
    auth_client, ids = unchanged
    headers: dict[str | None, str] = {}
    for key in sorted(keys - TABLE[name].allowed):
        headers[f"Bearer {signed(KEYS[key])}"] = key
    for wrong in EVERYWHERE:
        header = HEADERS[wrong]
        if header is not None:
            header = header.format(
                admin=auth_client.admin, revoked=ids.revoked, revoked_foreign=ids.revoked_foreign
            )
        headers[header] = wrong
    requests = [prepared(auth_client, ids, name, earliest) for earliest in (False, True)]
    has_both = name in HAS_AN_EARLIEST_PATH
    for number, (header, key) in enumerate(headers.items(), sorted(TABLE).index(name)):
        # By default, the keys take turns on the two paths of a route.
        paths = (False, True) if keys == KEYS.keys() else (number % 2 == 1,)
        for earliest in paths if has_both else (False,):
            with subtests.test(key=key, earliest=earliest):
                answer = requests[earliest].send_header(header)
                assert answer.status_code == 401, answer.text


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLE))
def test_allowed_keys_are_accepted(
    filled: tuple[AuthClient, PopulatedIds], name: str, subtests: pytest.Subtests
) -> None:
    auth_client, ids = filled
    request = prepared(auth_client, ids, name)
    for key in sorted(TABLE[name].allowed):
        with subtests.test(key=key), auth_client.undone():
            answer = request.send_header(f"bearer {signed(KEYS[key])}")
            assert answer.status_code in TABLE[name].status, answer.text


class TestKeys:
    @pytest.mark.slow
    def test_minted_here_open_every_generation(
        self, fresh: tuple[AuthClient, PopulatedIds]
    ) -> None:
        auth_client, _ = fresh
        for query, path in (
            ("", ""),
            ("&peer_id=alice", "/peers/alice"),
            ("&session_id=room", "/sessions/room"),
        ):
            token = auth_client.do("POST", f"/v2/keys?workspace_id=acme{query}")["key"]
            for generation in ("v2", "v3"):
                assert (
                    auth_client.call(
                        "PUT", f"/{generation}/workspaces/acme{path}", token, json={}
                    ).status_code
                    == 200
                )
                assert (
                    auth_client.call(
                        "PUT", f"/{generation}/workspaces/other{path}", token, json={}
                    ).status_code
                    == 401
                )

    def test_a_key_without_names_is_an_admin_key(
        self, fresh: tuple[AuthClient, PopulatedIds]
    ) -> None:
        auth_client, _ = fresh
        key = auth_client.do("POST", "/v2/keys")
        assert key["admin"] is True
        assert auth_client.call("POST", "/v2/workspaces/list", key["key"]).status_code == 200

    def test_keys_work_until_they_expire(self, fresh: tuple[AuthClient, PopulatedIds]) -> None:
        auth_client, _ = fresh
        token = auth_client.do(
            "POST", "/v2/keys?workspace_id=acme&expires_at=2999-01-01T00:00:00Z"
        )["key"]
        assert auth_client.call("PUT", "/v2/workspaces/acme", token, json={}).status_code == 200
        assert (
            auth_client.call(
                "POST",
                "/v2/keys?workspace_id=acme&expires_at=2020-01-01T00:00:00Z",
                auth_client.admin,
            ).status_code
            == 422
        )
        assert (
            auth_client.call("POST", "/v2/keys?peer_id=alice", auth_client.admin).status_code == 422
        )

    def test_without_authentication_no_keys_are_minted(self) -> None:
        assert (
            create_app(load_settings(environ={"DB_CONNECTION_URI": "memory://"}))
            .test_client()
            .post("/v2/keys")
            .status_code
            == 405
        )

    def test_a_workspaces_key_gets_its_own_workspace(
        self, fresh: tuple[AuthClient, PopulatedIds]
    ) -> None:
        auth_client, _ = fresh
        token = auth_client.mint("acme").token
        assert (
            auth_client.call("POST", "/v2/workspaces", token, json={"id": "acme"}).status_code
            == 200
        )
        assert (
            auth_client.call("POST", "/v2/workspaces", token, json={"id": "other"}).status_code
            == 401
        )

    def test_without_a_workspace_that_of_the_key_is_used(
        self, fresh: tuple[AuthClient, PopulatedIds]
    ) -> None:
        auth_client, _ = fresh
        token = auth_client.mint("acme").token
        card = auth_client.call("GET", "/v2/peers/alice/card?workspace_id=other", token)
        assert card.get_json() == {"peer_card": ["Lives in Ulm"]}
