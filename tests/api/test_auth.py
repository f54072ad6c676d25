"""Keys at the edge: what is said of bad ones, what comes before what, and the rules that a table of
routes cannot show."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest

from memservice.app import create_app
from memservice.domain.errors import ConfigurationError
from memservice.runtime import utc_now
from memservice.services.auth import api_keys
from memservice.settings import Settings, load_settings
from support.api.auth_client import (
    ALL,
    OTHER_SECRET,
    SECRET,
    AuthClient,
    by_hand,
    foreign,
    populate,
    settings_with_auth,
    signed,
)
from support.stores.stores import sqlite_store_at

ALICE = signed({"w": "acme", "p": "alice"})
ROOM = signed({"w": "acme", "s": "room"})
W, SESSIONS = "/v3/workspaces/acme", "/v3/workspaces/acme/sessions"


@pytest.fixture(scope="module")
def filled() -> Iterator[AuthClient]:
    opened = AuthClient.open()
    populate(opened)
    yield opened
    opened.close()


@pytest.fixture
def auth_client(filled: AuthClient) -> Iterator[AuthClient]:
    """A world that a test may change: the next one finds it as it was."""
    with filled.undone():
        yield filled


def text_of(
    auth_client: AuthClient, method: str, path: str, token: str | None, **options: Any
) -> tuple[int, Any]:
    answer = auth_client.call(method, path, token, **options)
    return answer.status_code, answer.get_json()["detail"] if answer.status_code >= 400 else None


# What is said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("token", "detail"),
    [
        (None, "No access token provided"),
        ("", "No access token provided"),
        ("garbage", "Invalid JWT"),
        (signed({"ad": True}, OTHER_SECRET), "Invalid JWT"),
        (signed({"ad": True, "exp": 1}), "JWT expired"),
        (signed({"ad": True, "exp": "2020-01-01T00:00:00Z"}), "JWT expired"),
        (signed({"ad": True, "exp": "never"}), "Invalid JWT"),
        (signed({"p": "alice"}), "Invalid JWT scope: peer/session token missing workspace"),
        (signed({"s": "room", "w": ""}), "Invalid JWT scope: peer/session token missing workspace"),
        (signed({"w": "other"}), "Unauthorized access to resource"),
        (signed({"w": "acme", "p": "mallory"}), "JWT not permissioned for this resource"),
        (signed({"ad": True, "jti": "nobody"}), "JWT unknown"),
    ],
)
def test_every_refusal_is_a_401_with_a_reason(
    auth_client: AuthClient, token: str | None, detail: str
) -> None:
    answer = auth_client.call("POST", f"{SESSIONS}/room/messages/list", token)
    assert (answer.status_code, answer.get_json()) == (401, {"detail": detail})
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.slow
def test_admin_routes_report_the_missing_privilege(auth_client: AuthClient) -> None:
    assert text_of(auth_client, "POST", "/v3/workspaces/list", signed({"w": "acme"})) == (
        401,
        "Resource requires admin privileges",
    )


@pytest.mark.parametrize("header", ["Bearer {}", "bearer {}", "BEARER {}", "  Bearer   {}  "])
def test_the_scheme_may_be_written_in_any_case(auth_client: AuthClient, header: str) -> None:
    answer = auth_client.client.post(
        "/v3/workspaces/list", headers={"Authorization": header.format(auth_client.admin)}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "exp",
    [
        int(time.time()) + 3600,
        time.time() + 3600.5,
        99_999_999_999_999,
        (utc_now() + timedelta(hours=1)).isoformat(),
        "2999-01-01",
        None,
    ],
    ids=["whole", "with a fraction", "far away", "ISO", "a day", "never"],
)
def test_keys_work_until_they_expire_in_every_notation(
    auth_client: AuthClient, exp: object
) -> None:
    assert (
        auth_client.call(
            "POST", "/v3/workspaces/list", signed({"ad": True, "exp": exp})
        ).status_code
        == 200
    )


def test_empty_names_in_a_key_count_as_absent(auth_client: AuthClient) -> None:
    assert (
        auth_client.call("PUT", W, signed({"w": "acme", "p": "", "s": ""}), json={}).status_code
        == 200
    )


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_keys_with_names_that_no_store_can_contain_are_refused(
    auth_client: AuthClient, name: str
) -> None:
    for claims in ({"w": "acme", "p": name}, {"w": name}, {"ad": True, "jti": name}):
        assert (
            auth_client.call("GET", f"{SESSIONS}/room/context", signed(claims)).status_code == 401
        )
    assert auth_client.call("GET", f"{SESSIONS}/a%00b/context", ALICE).status_code == 401


# What comes first


def test_authentication_precedes_validation(auth_client: AuthClient) -> None:
    wrong = {"content_type": "application/json", "data": b"{"}
    assert text_of(auth_client, "PUT", W, None, **wrong)[0] == 401
    assert text_of(auth_client, "PUT", W, signed({"w": "other"}), **wrong)[0] == 401
    assert text_of(auth_client, "PUT", W, signed({"w": "acme"}), **wrong)[0] == 422
    assert (
        text_of(auth_client, "POST", "/v3/workspaces/list?page=0", signed({"w": "acme"}))[0] == 401
    )
    assert (
        text_of(
            auth_client,
            "POST",
            f"{SESSIONS}/room/messages/list?page=0",
            signed({"w": "acme", "p": "carol"}),
        )[0]
        == 401
    )
    assert text_of(auth_client, "PUT", "/v3/workspaces/no%20name", None, json={})[0] == 401
    assert (
        text_of(auth_client, "PUT", "/v3/workspaces/no%20name", auth_client.admin, json={})[0]
        == 422
    )


def test_redirects_and_404_and_405_precede_authentication(auth_client: AuthClient) -> None:
    assert auth_client.call("POST", "/v3/workspaces/list/").status_code == 307
    assert auth_client.call("POST", "/v3/nothing").status_code == 404
    assert auth_client.call("PATCH", "/v3/workspaces").status_code == 405


# The rules that handlers have


def test_a_peer_key_creates_new_sessions_and_opens_only_its_own(auth_client: AuthClient) -> None:
    def post(token: str, **body: Any) -> int:
        return auth_client.call("POST", SESSIONS, token, json=body).status_code

    assert post(ALICE, id="new") == 201
    # It is not a member of what it made without joining.
    assert post(ALICE, id="new") == 401
    assert post(ALICE, id="mine", peers={"alice": {}}) == 201
    assert post(ALICE, id="mine", metadata={"a": 1}) == 200
    assert post(ALICE, id="hall") == 401
    assert post(ALICE, id="hall", peers={"alice": {}}) == 401
    assert post(ALICE, id="hall", metadata={"taken": True}) == 401
    answer = auth_client.do("POST", f"{SESSIONS}/list", {"filters": {"id": "hall"}})["items"]
    assert [session["metadata"] for session in answer] == [{}]
    assert {peer["id"] for peer in auth_client.do("GET", f"{SESSIONS}/hall/peers")["items"]} == {
        "mallory"
    }


def test_a_session_key_gets_only_its_session(auth_client: AuthClient) -> None:
    assert (
        auth_client.call(
            "POST", SESSIONS, ROOM, json={"id": "room", "metadata": {"a": 1}}
        ).status_code
        == 200
    )
    assert auth_client.call("POST", SESSIONS, ROOM, json={"id": "new"}).status_code == 401


@pytest.mark.parametrize("token", [ALICE, ROOM])
def test_narrow_keys_add_no_scopes(auth_client: AuthClient, token: str) -> None:
    assert (
        auth_client.call(
            "POST", SESSIONS, token, json={"id": "room", "scopes": ["team"]}
        ).status_code
        == 401
    )
    assert (
        auth_client.call("POST", SESSIONS, token, json={"id": "room", "scopes": []}).status_code
        == 200
    )
    assert (
        auth_client.call(
            "POST", SESSIONS, signed({"w": "acme"}), json={"id": "room", "scopes": ["team"]}
        ).status_code
        == 200
    )


def test_a_session_key_gets_peers_without_changing_them(auth_client: AuthClient) -> None:
    auth_client.do(
        "PUT", f"{W}/peers/bob", {"metadata": {"kept": True}, "configuration": {"observe_me": True}}
    )
    changed = {"id": "bob", "metadata": {"kept": False}, "configuration": {"observe_me": False}}
    answer = auth_client.call("POST", f"{W}/peers", ROOM, json=changed)
    assert (
        answer.status_code,
        answer.get_json()["metadata"],
        answer.get_json()["configuration"],
    ) == (
        200,
        {"kept": True},
        {"observe_me": True},
    )
    assert (
        auth_client.call(
            "POST", f"{W}/peers", ROOM, json={"id": "newcomer", "metadata": {"a": 1}}
        ).status_code
        == 201
    )
    assert auth_client.do("POST", f"{W}/peers", {"id": "bob"})["metadata"] == {"kept": True}
    # The peer itself may.
    assert auth_client.call(
        "POST", f"{W}/peers", signed({"w": "acme", "p": "bob"}), json=changed
    ).get_json()["metadata"] == {"kept": False}


def test_a_peer_key_gets_only_its_peer(auth_client: AuthClient) -> None:
    assert (
        auth_client.call(
            "POST", f"{W}/peers", ALICE, json={"id": "alice", "metadata": {"a": 1}}
        ).status_code
        == 200
    )
    assert auth_client.call("POST", f"{W}/peers", ALICE, json={"id": "bob"}).status_code == 401
    assert auth_client.call("POST", f"{W}/peers", ALICE, json={"id": "newcomer"}).status_code == 401


def test_a_workspace_key_creates_only_its_workspace(auth_client: AuthClient) -> None:
    for claims in ({"w": "fresh"}, {"w": "fresh", "p": "x"}, {"w": "fresh", "s": "x"}):
        assert auth_client.call(
            "POST", "/v3/workspaces", signed(claims), json={"id": "fresh"}
        ).status_code in (200, 201)
        assert (
            auth_client.call(
                "POST", "/v3/workspaces", signed(claims), json={"id": "fresher"}
            ).status_code
            == 401
        )


def test_a_member_key_reads_only_its_own_session_configuration(auth_client: AuthClient) -> None:
    assert auth_client.call("GET", f"{SESSIONS}/room/peers/alice/config", ALICE).status_code == 200
    assert auth_client.call("GET", f"{SESSIONS}/room/peers/bob/config", ALICE).status_code == 401
    assert (
        auth_client.call(
            "GET", f"{SESSIONS}/room/peers/carol/config", signed({"w": "acme", "p": "carol"})
        ).status_code
        == 401
    )


def test_leaving_and_joining_take_effect_at_once(auth_client: AuthClient) -> None:
    def read() -> int:
        return auth_client.call("POST", f"{SESSIONS}/room/messages/list", ALICE).status_code

    assert read() == 200
    auth_client.do("DELETE", f"{SESSIONS}/room/peers", ["alice"])
    assert read() == 401
    auth_client.do("POST", f"{SESSIONS}/room/peers", {"alice": {}})
    assert read() == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 200),
        ("peer_target=alice", 200),
        ("peer_target=bob", 401),
        ("peer_target=bob&peer_perspective=alice", 200),
        ("peer_target=alice&peer_perspective=bob", 401),
        ("peer_target=alice&sessions=room", 200),
        ("peer_target=alice&sessions=room&sessions=hall", 401),
        ("peer_target=alice&sessions=room&sessions=nowhere", 401),
        ("peer_target=alice&scope=team", 401),
    ],
)
def test_a_peer_key_gets_context_only_from_its_own_perspective(
    auth_client: AuthClient, query: str, status: int
) -> None:
    assert auth_client.call("GET", f"{SESSIONS}/room/context?{query}", ALICE).status_code == status
    assert (
        auth_client.call(
            "GET", f"{SESSIONS}/room/context?{query}", signed({"w": "acme"})
        ).status_code
        == 200
    )


def test_a_session_key_gets_no_context_with_a_scope(auth_client: AuthClient) -> None:
    assert (
        auth_client.call(
            "GET", f"{SESSIONS}/room/context?peer_target=alice&scope=team", ROOM
        ).status_code
        == 401
    )
    assert (
        auth_client.call("GET", f"{SESSIONS}/room/context?peer_target=alice", ROOM).status_code
        == 200
    )


def test_a_session_key_gets_conclusions_of_its_session_only(auth_client: AuthClient) -> None:
    """A card cannot be divided by session."""
    pair = {"observer_id": "alice", "observed_id": "alice"}
    conclusions = [
        {"content": f"Alice hums in the {session}.", "session_id": session, **pair}
        for session in ("room", "hall")
    ]
    auth_client.do("POST", f"{W}/conclusions", {"conclusions": conclusions})
    auth_client.do("PUT", f"{W}/peers/alice/card", {"peer_card": ["Sings in a choir."]})
    for query in (
        "peer_target=alice",
        "peer_target=alice&sessions=room",
        "peer_target=alice&search_query=hums",
    ):
        path = f"{SESSIONS}/room/context?{query}"
        narrow, wide = (
            auth_client.call("GET", path, token).get_json()
            for token in (ROOM, signed({"w": "acme"}))
        )
        assert "hums in the room" in narrow["peer_representation"]
        assert "hall" not in narrow["peer_representation"]
        assert narrow["peer_card"] is None
        if "sessions" not in query:
            assert "hums in the hall" in wide["peer_representation"]
            assert wide["peer_card"] == ["Sings in a choir."]
    assert (
        auth_client.call(
            "GET", f"{SESSIONS}/room/context?peer_target=alice&sessions=room&sessions=hall", ROOM
        ).status_code
        == 401
    )


@pytest.mark.slow
@pytest.mark.parametrize("what", ["representation", "chat"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 200),
        ({"session_id": "room"}, 200),
        ({"session_id": "hall"}, 401),
        ({"filters": {"session_id": ["room"]}}, 200),
        ({"filters": {"session_id": ["room", "hall"]}}, 401),
        ({"filters": {"session_id": {"in": ["hall"]}}}, 401),
        ({"filters": {"session_id": "hall"}}, 401),
        ({"scope": "team"}, 401),
        ({"scope": ["team"]}, 401),
        ({"target": "bob"}, 200),
    ],
)
def test_a_peer_key_searches_only_its_own_sessions(
    auth_client: AuthClient, what: str, body: dict[str, Any], status: int
) -> None:
    path = f"{W}/peers/alice/{what}"
    options_body = body | ({"query": "Where does alice live?"} if what == "chat" else {})
    assert (
        auth_client.call("POST", path, signed({"w": "acme"}), json=options_body).status_code == 200
    )
    assert auth_client.call("POST", path, ALICE, json=options_body).status_code == status


def test_a_peer_does_not_learn_which_sessions_exist(auth_client: AuthClient) -> None:
    for named in ("hall", "nowhere"):
        for generation, body in (
            ("v3", {"session_id": named}),
            ("v3", {"filters": {"session_id": named}}),
            ("v2", {"session_id": named}),
        ):
            for what in ("representation", "chat"):
                path = f"/{generation}/workspaces/acme/peers/alice/{what}"
                answer = text_of(auth_client, "POST", path, ALICE, json={"query": "Where?", **body})
                assert answer == (401, "JWT not permissioned for this resource"), (path, body)


@pytest.mark.parametrize("body", [{}, {"metadata": {"a": 1}}, {"peers": {"alice": {}}}])
def test_only_members_learn_that_a_session_is_being_erased(
    auth_client: AuthClient, body: dict[str, Any]
) -> None:
    auth_client.do("DELETE", f"{SESSIONS}/hall")
    refused, missing = (
        (401, "JWT not permissioned for this resource"),
        (404, "Session hall not found in workspace acme"),
    )
    assert text_of(auth_client, "POST", SESSIONS, ALICE, json={"id": "hall", **body}) == refused
    assert (
        text_of(
            auth_client,
            "POST",
            SESSIONS,
            signed({"w": "acme", "p": "mallory"}),
            json={"id": "hall", **body},
        )
        == missing
    )
    assert (
        text_of(auth_client, "POST", SESSIONS, signed({"w": "acme"}), json={"id": "hall", **body})
        == missing
    )


@pytest.mark.slow
def test_messages_after_a_peer_left_are_hidden_from_its_key(auth_client: AuthClient) -> None:
    """The session is closed to the key, and chat gives no further access. A workspace key can still
    ask in carol's name."""
    carol, at = signed({"w": "acme", "p": "carol"}), f"{W}/peers/carol/chat"
    messages = [{"peer_id": "alice", "content": "The vault opens with heliotrope."}]
    auth_client.do("POST", f"{SESSIONS}/hall/peers", {"carol": {}})
    for session in ("room", "hall"):
        auth_client.do("POST", f"{SESSIONS}/{session}/messages", {"messages": messages})
    question = {
        "query": "What does the vault open with?",
        "target": "alice",
        "include_evidence": True,
    }

    def quoted(token: str) -> list[str]:
        answer = auth_client.call("POST", at, token, json=question)
        assert ("heliotrope" in answer.get_json()["content"]) == bool(
            answer.get_json()["evidence"]["messages"]
        )
        return sorted(
            message["session_id"] for message in answer.get_json()["evidence"]["messages"]
        )

    assert quoted(carol) == ["hall"]
    assert quoted(auth_client.admin) == quoted(signed({"w": "acme"})) == ["hall", "room"]
    auth_client.do("DELETE", f"{SESSIONS}/hall/peers", ["carol"])
    assert quoted(carol) == ["hall"]
    auth_client.do("POST", f"{SESSIONS}/room/peers", {"carol": {}})
    assert quoted(carol) == ["hall", "room"]


def test_the_short_card_path_uses_the_workspace_of_the_key(auth_client: AuthClient) -> None:
    path = "/v2/peers/alice/card?workspace_id=acme"
    assert auth_client.call("GET", path, ALICE).get_json() == {"peer_card": ["Lives in Ulm"]}
    assert auth_client.call("GET", path, auth_client.admin).get_json() == {
        "peer_card": ["Lives in Ulm"]
    }
    # The other workspace has an alice too, without a card: whatever the query says, the key sees
    # its own.
    assert auth_client.call("GET", path, signed({"w": "other", "p": "alice"})).get_json() == {
        "peer_card": None
    }
    assert auth_client.call("GET", path, signed({"w": "acme", "p": "bob"})).status_code == 401
    assert auth_client.call("GET", path, ROOM).status_code == 401
    assert auth_client.call("GET", path, signed({})).status_code == 401


# Starting


def test_without_a_secret_nothing_starts() -> None:
    recipe = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
    with pytest.raises(ConfigurationError) as refused:
        load_settings(environ={"AUTH_USE_AUTH": "true"})
    assert recipe in str(refused.value)
    plain = Settings()
    with pytest.raises(ConfigurationError) as refused:
        create_app(replace(plain, auth=replace(plain.auth, use_auth=True)))
    assert recipe in str(refused.value)


def test_a_public_key_is_refused_as_secret() -> None:
    with pytest.raises(ConfigurationError, match="AUTH_JWT_SECRET"):
        create_app(settings_with_auth(AUTH_JWT_SECRET="ssh-rsa AAAAB3NzaC1yc2E"))


@pytest.mark.parametrize("name", ["AUTH_JWT_SECRET", "AUTH_JWT_SECRET_PREVIOUS"])
def test_a_guessable_secret_prevents_the_start(name: str) -> None:
    recipe = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
    with pytest.raises(ConfigurationError) as refused:
        settings_with_auth(**{name: "äöüäöüä1"})
    assert f"{name} is only 15 bytes long, and must be 16 or more" in str(refused.value)
    assert recipe in str(refused.value)
    plain = settings_with_auth()
    values: dict[str, Any] = {name.removeprefix("AUTH_").lower(): "äöüäöüä1"}
    short = replace(plain.auth, **values)
    with pytest.raises(ConfigurationError, match=f"^{name} is only 15 bytes long"):
        create_app(replace(plain, auth=short))


@pytest.mark.slow
def test_a_short_secret_works_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "memservice.auth"):
        short = AuthClient.open(AUTH_JWT_SECRET="äöüäöüäö", AUTH_JWT_SECRET_PREVIOUS="x" * 31)
    assert [record.getMessage()[:50] for record in caplog.records] == [
        "AUTH_JWT_SECRET has only 16 bytes: use 32 or more,",
        "AUTH_JWT_SECRET_PREVIOUS has only 31 bytes: use 32",
    ]
    minted = short.mint()
    assert short.call("POST", "/v3/workspaces/list", minted.token).status_code == 200
    assert sum(record.name == "memservice.auth" for record in caplog.records) == 2
    short.close()
    caplog.clear()
    AuthClient.open(AUTH_JWT_SECRET="x" * 32).close()
    assert caplog.records == []


@pytest.mark.slow
def test_the_secret_can_be_changed_without_failing_requests(tmp_path: Path) -> None:
    """As docs/operations.md says it, on one store: accept the new one, sign with it, make new keys,
    forget the old one."""
    uri, new = sqlite_store_at(tmp_path / "m.db"), OTHER_SECRET

    def status(auth_client: AuthClient, token: str) -> int:
        return auth_client.call("PUT", "/v3/workspaces/acme", token, json={}).status_code

    before = AuthClient.open(uri)
    old_key, without_id = before.mint("acme").token, signed({"w": "acme"})
    accepting = AuthClient.open(uri, AUTH_JWT_SECRET_PREVIOUS=new)
    signing = AuthClient.open(uri, AUTH_JWT_SECRET=new, AUTH_JWT_SECRET_PREVIOUS=SECRET)
    new_key = signing.mint("acme").token
    assert jwt.decode(new_key, new, ["HS256"])["w"] == "acme"
    for auth_client in (accepting, signing):
        assert [status(auth_client, token) for token in (old_key, without_id, new_key)] == [200] * 3
    assert status(before, new_key) == 401
    api_keys.revoke_token(signing.runtime, ALL, without_id)
    assert [status(auth_client, without_id) for auth_client in (before, accepting, signing)] == [
        401
    ] * 3
    after = AuthClient.open(uri, AUTH_JWT_SECRET=new)
    assert [status(after, token) for token in (old_key, without_id, new_key)] == [401, 401, 200]
    for auth_client in (before, accepting, signing, after):
        auth_client.close()


def test_a_key_costs_one_additional_read(
    auth_client: AuthClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    original = auth_client.runtime.storage.read

    def counting() -> Any:
        nonlocal reads
        reads += 1
        return original()

    monkeypatch.setattr(auth_client.runtime.storage, "read", counting)
    for token, cost in (
        (signed({"w": "acme"}), 2),
        (auth_client.mint("acme").token, 2),
        (None, 0),
        ("garbage", 0),
        (signed({"w": "other"}), 0),
    ):
        reads = 0
        auth_client.call("GET", f"{W}/queue/status", token)
        assert reads == cost
    reads = 0
    assert auth_client.call("GET", f"{SESSIONS}/room/summaries", ALICE).status_code == 200
    assert reads == 2


# The document


def document(settings: Settings) -> Any:
    return create_app(settings).test_client().get("/openapi.json").get_json()


def operations(read: Any) -> list[tuple[str, Any]]:
    described = [
        (path, operation)
        for path, item in read["paths"].items()
        for operation in item.values()
        if isinstance(operation, dict)
    ]
    assert len(described) > 40
    return described


@pytest.mark.slow
def test_the_document_requires_keys_if_authentication_is_on() -> None:
    openapi = document(settings_with_auth())
    assert openapi["components"]["securitySchemes"] == {
        "HTTPBearer": {"type": "http", "scheme": "bearer"}
    }
    for path, operation in operations(openapi):
        if path.startswith("/health"):
            assert "security" not in operation
            assert "401" not in operation["responses"]
        else:
            assert operation["security"] == [{"HTTPBearer": []}], path
            assert operation["responses"]["401"], path


@pytest.mark.slow
def test_the_document_makes_keys_optional_if_authentication_is_off() -> None:
    openapi = document(load_settings(environ={}))
    for path, operation in operations(openapi):
        assert operation.get("security") == (
            None if path.startswith("/health") else [{"HTTPBearer": []}, {}]
        ), path


@pytest.mark.slow
def test_each_wrong_key_of_these_tests_has_exactly_one_fault() -> None:
    """They would be let in otherwise: the same claims, rightly signed and dated, open the route."""
    auth_client = AuthClient.open()
    for right in (signed({"t": "", "ad": True}), by_hand({"t": "", "ad": True}, "HS256")):
        assert auth_client.call("POST", "/v3/workspaces/list", right).status_code == 200
    for wrong in foreign(datetime.now(UTC)).values():
        assert auth_client.call("POST", "/v3/workspaces/list", wrong).status_code == 401
    auth_client.close()
