"""Keys at the edge: what is said of bad ones, what comes before what, and the rules that a table of
routes cannot show."""

from __future__ import annotations

import logging
import subprocess
import sys
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
from support.api.auth_world import (
    ALL,
    OTHER_SECRET,
    SECRET,
    Keyed,
    asking,
    by_hand,
    foreign,
    populate,
    signed,
)
from support.stores.stores import sqlite_store_at

ALICE = signed({"w": "acme", "p": "alice"})
ROOM = signed({"w": "acme", "s": "room"})
W, SESSIONS = "/v3/workspaces/acme", "/v3/workspaces/acme/sessions"


@pytest.fixture(scope="module")
def filled() -> Iterator[Keyed]:
    opened = Keyed.open()
    populate(opened)
    yield opened
    opened.close()


@pytest.fixture
def keyed(filled: Keyed) -> Iterator[Keyed]:
    """A world that a test may change: the next one finds it as it was."""
    with filled.undone():
        yield filled


def told(
    keyed: Keyed, method: str, path: str, token: str | None, **options: Any
) -> tuple[int, Any]:
    answer = keyed.call(method, path, token, **options)
    return answer.status_code, answer.get_json()["detail"] if answer.status_code >= 400 else None


# What is said


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
def test_every_refusal_is_a_401_with_a_reason(keyed: Keyed, token: str | None, detail: str) -> None:
    answer = keyed.call("POST", f"{SESSIONS}/room/messages/list", token)
    assert (answer.status_code, answer.get_json()) == (401, {"detail": detail})
    assert "WWW-Authenticate" not in answer.headers


def test_admin_routes_report_the_missing_privilege(keyed: Keyed) -> None:
    assert told(keyed, "POST", "/v3/workspaces/list", signed({"w": "acme"})) == (
        401,
        "Resource requires admin privileges",
    )


@pytest.mark.parametrize("header", ["Bearer {}", "bearer {}", "BEARER {}", "  Bearer   {}  "])
def test_the_scheme_may_be_written_in_any_case(keyed: Keyed, header: str) -> None:
    answer = keyed.client.post(
        "/v3/workspaces/list", headers={"Authorization": header.format(keyed.admin)}
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
def test_keys_work_until_they_expire_in_every_notation(keyed: Keyed, exp: object) -> None:
    assert (
        keyed.call("POST", "/v3/workspaces/list", signed({"ad": True, "exp": exp})).status_code
        == 200
    )


def test_empty_names_in_a_key_count_as_absent(keyed: Keyed) -> None:
    assert keyed.call("PUT", W, signed({"w": "acme", "p": "", "s": ""}), json={}).status_code == 200


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_keys_with_names_that_no_store_can_contain_are_refused(keyed: Keyed, name: str) -> None:
    for claims in ({"w": "acme", "p": name}, {"w": name}, {"ad": True, "jti": name}):
        assert keyed.call("GET", f"{SESSIONS}/room/context", signed(claims)).status_code == 401
    assert keyed.call("GET", f"{SESSIONS}/a%00b/context", ALICE).status_code == 401


# What comes first


def test_authentication_precedes_validation(keyed: Keyed) -> None:
    wrong = {"content_type": "application/json", "data": b"{"}
    assert told(keyed, "PUT", W, None, **wrong)[0] == 401
    assert told(keyed, "PUT", W, signed({"w": "other"}), **wrong)[0] == 401
    assert told(keyed, "PUT", W, signed({"w": "acme"}), **wrong)[0] == 422
    assert told(keyed, "POST", "/v3/workspaces/list?page=0", signed({"w": "acme"}))[0] == 401
    assert (
        told(
            keyed,
            "POST",
            f"{SESSIONS}/room/messages/list?page=0",
            signed({"w": "acme", "p": "carol"}),
        )[0]
        == 401
    )
    assert told(keyed, "PUT", "/v3/workspaces/no%20name", None, json={})[0] == 401
    assert told(keyed, "PUT", "/v3/workspaces/no%20name", keyed.admin, json={})[0] == 422


def test_redirects_and_404_and_405_precede_authentication(keyed: Keyed) -> None:
    assert keyed.call("POST", "/v3/workspaces/list/").status_code == 307
    assert keyed.call("POST", "/v3/nothing").status_code == 404
    assert keyed.call("PATCH", "/v3/workspaces").status_code == 405


# The rules that handlers have


def test_a_peer_key_creates_new_sessions_and_opens_only_its_own(keyed: Keyed) -> None:
    def post(token: str, **body: Any) -> int:
        return keyed.call("POST", SESSIONS, token, json=body).status_code

    assert post(ALICE, id="new") == 201
    # It is not a member of what it made without joining.
    assert post(ALICE, id="new") == 401
    assert post(ALICE, id="mine", peers={"alice": {}}) == 201
    assert post(ALICE, id="mine", metadata={"a": 1}) == 200
    assert post(ALICE, id="hall") == 401
    assert post(ALICE, id="hall", peers={"alice": {}}) == 401
    assert post(ALICE, id="hall", metadata={"taken": True}) == 401
    listed = keyed.do("POST", f"{SESSIONS}/list", {"filters": {"id": "hall"}})["items"]
    assert [session["metadata"] for session in listed] == [{}]
    assert {peer["id"] for peer in keyed.do("GET", f"{SESSIONS}/hall/peers")["items"]} == {
        "mallory"
    }


def test_a_session_key_gets_only_its_session(keyed: Keyed) -> None:
    assert (
        keyed.call("POST", SESSIONS, ROOM, json={"id": "room", "metadata": {"a": 1}}).status_code
        == 200
    )
    assert keyed.call("POST", SESSIONS, ROOM, json={"id": "new"}).status_code == 401


@pytest.mark.parametrize("token", [ALICE, ROOM])
def test_narrow_keys_add_no_scopes(keyed: Keyed, token: str) -> None:
    assert (
        keyed.call("POST", SESSIONS, token, json={"id": "room", "scopes": ["team"]}).status_code
        == 401
    )
    assert keyed.call("POST", SESSIONS, token, json={"id": "room", "scopes": []}).status_code == 200
    assert (
        keyed.call(
            "POST", SESSIONS, signed({"w": "acme"}), json={"id": "room", "scopes": ["team"]}
        ).status_code
        == 200
    )


def test_a_session_key_gets_peers_without_changing_them(keyed: Keyed) -> None:
    keyed.do(
        "PUT", f"{W}/peers/bob", {"metadata": {"kept": True}, "configuration": {"observe_me": True}}
    )
    changed = {"id": "bob", "metadata": {"kept": False}, "configuration": {"observe_me": False}}
    answer = keyed.call("POST", f"{W}/peers", ROOM, json=changed)
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
        keyed.call(
            "POST", f"{W}/peers", ROOM, json={"id": "newcomer", "metadata": {"a": 1}}
        ).status_code
        == 201
    )
    assert keyed.do("POST", f"{W}/peers", {"id": "bob"})["metadata"] == {"kept": True}
    # The peer itself may.
    assert keyed.call(
        "POST", f"{W}/peers", signed({"w": "acme", "p": "bob"}), json=changed
    ).get_json()["metadata"] == {"kept": False}


def test_a_peer_key_gets_only_its_peer(keyed: Keyed) -> None:
    assert (
        keyed.call(
            "POST", f"{W}/peers", ALICE, json={"id": "alice", "metadata": {"a": 1}}
        ).status_code
        == 200
    )
    assert keyed.call("POST", f"{W}/peers", ALICE, json={"id": "bob"}).status_code == 401
    assert keyed.call("POST", f"{W}/peers", ALICE, json={"id": "newcomer"}).status_code == 401


def test_a_workspace_key_creates_only_its_workspace(keyed: Keyed) -> None:
    for claims in ({"w": "fresh"}, {"w": "fresh", "p": "x"}, {"w": "fresh", "s": "x"}):
        assert keyed.call(
            "POST", "/v3/workspaces", signed(claims), json={"id": "fresh"}
        ).status_code in (200, 201)
        assert (
            keyed.call("POST", "/v3/workspaces", signed(claims), json={"id": "fresher"}).status_code
            == 401
        )


def test_a_member_key_reads_only_its_own_session_configuration(keyed: Keyed) -> None:
    assert keyed.call("GET", f"{SESSIONS}/room/peers/alice/config", ALICE).status_code == 200
    assert keyed.call("GET", f"{SESSIONS}/room/peers/bob/config", ALICE).status_code == 401
    assert (
        keyed.call(
            "GET", f"{SESSIONS}/room/peers/carol/config", signed({"w": "acme", "p": "carol"})
        ).status_code
        == 401
    )


def test_leaving_and_joining_take_effect_at_once(keyed: Keyed) -> None:
    def read() -> int:
        return keyed.call("POST", f"{SESSIONS}/room/messages/list", ALICE).status_code

    assert read() == 200
    keyed.do("DELETE", f"{SESSIONS}/room/peers", ["alice"])
    assert read() == 401
    keyed.do("POST", f"{SESSIONS}/room/peers", {"alice": {}})
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
    keyed: Keyed, query: str, status: int
) -> None:
    assert keyed.call("GET", f"{SESSIONS}/room/context?{query}", ALICE).status_code == status
    assert (
        keyed.call("GET", f"{SESSIONS}/room/context?{query}", signed({"w": "acme"})).status_code
        == 200
    )


def test_a_session_key_gets_no_context_with_a_scope(keyed: Keyed) -> None:
    assert (
        keyed.call("GET", f"{SESSIONS}/room/context?peer_target=alice&scope=team", ROOM).status_code
        == 401
    )
    assert keyed.call("GET", f"{SESSIONS}/room/context?peer_target=alice", ROOM).status_code == 200


def test_a_session_key_gets_conclusions_of_its_session_only(keyed: Keyed) -> None:
    """A card cannot be divided by session."""
    pair = {"observer_id": "alice", "observed_id": "alice"}
    held = [
        {"content": f"Alice hums in the {session}.", "session_id": session, **pair}
        for session in ("room", "hall")
    ]
    keyed.do("POST", f"{W}/conclusions", {"conclusions": held})
    keyed.do("PUT", f"{W}/peers/alice/card", {"peer_card": ["Sings in a choir."]})
    for query in (
        "peer_target=alice",
        "peer_target=alice&sessions=room",
        "peer_target=alice&search_query=hums",
    ):
        path = f"{SESSIONS}/room/context?{query}"
        narrow, wide = (
            keyed.call("GET", path, token).get_json() for token in (ROOM, signed({"w": "acme"}))
        )
        assert "hums in the room" in narrow["peer_representation"]
        assert "hall" not in narrow["peer_representation"]
        assert narrow["peer_card"] is None
        if "sessions" not in query:
            assert "hums in the hall" in wide["peer_representation"]
            assert wide["peer_card"] == ["Sings in a choir."]
    assert (
        keyed.call(
            "GET", f"{SESSIONS}/room/context?peer_target=alice&sessions=room&sessions=hall", ROOM
        ).status_code
        == 401
    )


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
    keyed: Keyed, what: str, body: dict[str, Any], status: int
) -> None:
    path = f"{W}/peers/alice/{what}"
    given = body | ({"query": "Where does alice live?"} if what == "chat" else {})
    assert keyed.call("POST", path, signed({"w": "acme"}), json=given).status_code == 200
    assert keyed.call("POST", path, ALICE, json=given).status_code == status


def test_a_peer_does_not_learn_which_sessions_exist(keyed: Keyed) -> None:
    for named in ("hall", "nowhere"):
        for generation, body in (
            ("v3", {"session_id": named}),
            ("v3", {"filters": {"session_id": named}}),
            ("v2", {"session_id": named}),
        ):
            for what in ("representation", "chat"):
                path = f"/{generation}/workspaces/acme/peers/alice/{what}"
                answer = told(keyed, "POST", path, ALICE, json={"query": "Where?", **body})
                assert answer == (401, "JWT not permissioned for this resource"), (path, body)


@pytest.mark.parametrize("body", [{}, {"metadata": {"a": 1}}, {"peers": {"alice": {}}}])
def test_only_members_learn_that_a_session_is_being_erased(
    keyed: Keyed, body: dict[str, Any]
) -> None:
    keyed.do("DELETE", f"{SESSIONS}/hall")
    refused, missing = (
        (401, "JWT not permissioned for this resource"),
        (404, "Session hall not found in workspace acme"),
    )
    assert told(keyed, "POST", SESSIONS, ALICE, json={"id": "hall", **body}) == refused
    assert (
        told(
            keyed,
            "POST",
            SESSIONS,
            signed({"w": "acme", "p": "mallory"}),
            json={"id": "hall", **body},
        )
        == missing
    )
    assert (
        told(keyed, "POST", SESSIONS, signed({"w": "acme"}), json={"id": "hall", **body}) == missing
    )


def test_messages_after_a_peer_left_are_hidden_from_its_key(keyed: Keyed) -> None:
    """The session is closed to the key, and chat gives no further access. A workspace key can still
    ask in carol's name."""
    carol, at = signed({"w": "acme", "p": "carol"}), f"{W}/peers/carol/chat"
    said = [{"peer_id": "alice", "content": "The vault opens with heliotrope."}]
    keyed.do("POST", f"{SESSIONS}/hall/peers", {"carol": {}})
    for session in ("room", "hall"):
        keyed.do("POST", f"{SESSIONS}/{session}/messages", {"messages": said})
    asked = {"query": "What does the vault open with?", "target": "alice", "include_evidence": True}

    def quoted(token: str) -> list[str]:
        answer = keyed.call("POST", at, token, json=asked)
        assert ("heliotrope" in answer.get_json()["content"]) == bool(
            answer.get_json()["evidence"]["messages"]
        )
        return sorted(
            message["session_id"] for message in answer.get_json()["evidence"]["messages"]
        )

    assert quoted(carol) == ["hall"]
    assert quoted(keyed.admin) == quoted(signed({"w": "acme"})) == ["hall", "room"]
    keyed.do("DELETE", f"{SESSIONS}/hall/peers", ["carol"])
    assert quoted(carol) == ["hall"]
    keyed.do("POST", f"{SESSIONS}/room/peers", {"carol": {}})
    assert quoted(carol) == ["hall", "room"]


def test_the_short_card_path_uses_the_workspace_of_the_key(keyed: Keyed) -> None:
    path = "/v2/peers/alice/card?workspace_id=acme"
    assert keyed.call("GET", path, ALICE).get_json() == {"peer_card": ["Lives in Ulm"]}
    assert keyed.call("GET", path, keyed.admin).get_json() == {"peer_card": ["Lives in Ulm"]}
    # The other workspace has an alice too, without a card: whatever the query says, the key sees
    # its own.
    assert keyed.call("GET", path, signed({"w": "other", "p": "alice"})).get_json() == {
        "peer_card": None
    }
    assert keyed.call("GET", path, signed({"w": "acme", "p": "bob"})).status_code == 401
    assert keyed.call("GET", path, ROOM).status_code == 401
    assert keyed.call("GET", path, signed({})).status_code == 401


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
        create_app(asking(AUTH_JWT_SECRET="ssh-rsa AAAAB3NzaC1yc2E"))


@pytest.mark.parametrize("name", ["AUTH_JWT_SECRET", "AUTH_JWT_SECRET_PREVIOUS"])
def test_a_guessable_secret_prevents_the_start(name: str) -> None:
    recipe = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
    with pytest.raises(ConfigurationError) as refused:
        asking(**{name: "äöüäöüä1"})
    assert f"{name} is only 15 bytes long, and must be 16 or more" in str(refused.value)
    assert recipe in str(refused.value)
    plain = asking()
    given: dict[str, Any] = {name.removeprefix("AUTH_").lower(): "äöüäöüä1"}
    short = replace(plain.auth, **given)
    with pytest.raises(ConfigurationError, match=f"^{name} is only 15 bytes long"):
        create_app(replace(plain, auth=short))


def test_a_short_secret_works_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "memservice.auth"):
        short = Keyed.open(AUTH_JWT_SECRET="äöüäöüäö", AUTH_JWT_SECRET_PREVIOUS="x" * 31)
    assert [record.getMessage()[:50] for record in caplog.records] == [
        "AUTH_JWT_SECRET has only 16 bytes: use 32 or more,",
        "AUTH_JWT_SECRET_PREVIOUS has only 31 bytes: use 32",
    ]
    minted = short.mint()
    assert short.call("POST", "/v3/workspaces/list", minted.token).status_code == 200
    assert sum(record.name == "memservice.auth" for record in caplog.records) == 2
    short.close()
    caplog.clear()
    Keyed.open(AUTH_JWT_SECRET="x" * 32).close()
    assert caplog.records == []


def test_the_secret_can_be_changed_without_failing_requests(tmp_path: Path) -> None:
    """As docs/operations.md says it, on one store: accept the new one, sign with it, make new keys,
    forget the old one."""
    uri, new = sqlite_store_at(tmp_path / "m.db"), OTHER_SECRET

    def status(keyed: Keyed, token: str) -> int:
        return keyed.call("PUT", "/v3/workspaces/acme", token, json={}).status_code

    before = Keyed.open(uri)
    old_key, without_id = before.mint("acme").token, signed({"w": "acme"})
    accepting = Keyed.open(uri, AUTH_JWT_SECRET_PREVIOUS=new)
    signing = Keyed.open(uri, AUTH_JWT_SECRET=new, AUTH_JWT_SECRET_PREVIOUS=SECRET)
    new_key = signing.mint("acme").token
    assert jwt.decode(new_key, new, ["HS256"])["w"] == "acme"
    for keyed in (accepting, signing):
        assert [status(keyed, token) for token in (old_key, without_id, new_key)] == [200] * 3
    assert status(before, new_key) == 401
    api_keys.revoke_token(signing.runtime, ALL, without_id)
    assert [status(keyed, without_id) for keyed in (before, accepting, signing)] == [401] * 3
    after = Keyed.open(uri, AUTH_JWT_SECRET=new)
    assert [status(after, token) for token in (old_key, without_id, new_key)] == [401, 401, 200]
    for keyed in (before, accepting, signing, after):
        keyed.close()


def test_a_key_costs_one_additional_read(keyed: Keyed, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    original = keyed.runtime.storage.read

    def counting() -> Any:
        nonlocal reads
        reads += 1
        return original()

    monkeypatch.setattr(keyed.runtime.storage, "read", counting)
    for token, cost in (
        (signed({"w": "acme"}), 2),
        (keyed.mint("acme").token, 2),
        (None, 0),
        ("garbage", 0),
        (signed({"w": "other"}), 0),
    ):
        reads = 0
        keyed.call("GET", f"{W}/queue/status", token)
        assert reads == cost
    reads = 0
    assert keyed.call("GET", f"{SESSIONS}/room/summaries", ALICE).status_code == 200
    assert reads == 2


@pytest.mark.slow
def test_without_authentication_no_jwt_library_is_imported() -> None:
    program = (
        "import sys; from memservice.app import create_app; from memservice.settings "
        "import load_settings;"
        "app = create_app(load_settings(environ={}, overrides={'DB_CONNECTION_URI': "
        "'memory://'}));"
        "assert app.test_client().post('/v3/workspaces/list', headers={'Authorization': "
        "'Bearer x'}).status_code == 200;"
        "print('jwt' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "False"


# The document


def document(settings: Settings) -> Any:
    return create_app(settings).test_client().get("/openapi.json").get_json()


def operations(read: Any) -> list[tuple[str, Any]]:
    found = [
        (path, operation)
        for path, item in read["paths"].items()
        for operation in item.values()
        if isinstance(operation, dict)
    ]
    assert len(found) > 40
    return found


def test_the_document_requires_keys_if_authentication_is_on() -> None:
    read = document(asking())
    assert read["components"]["securitySchemes"] == {
        "HTTPBearer": {"type": "http", "scheme": "bearer"}
    }
    for path, operation in operations(read):
        if path.startswith("/health"):
            assert "security" not in operation
            assert "401" not in operation["responses"]
        else:
            assert operation["security"] == [{"HTTPBearer": []}], path
            assert operation["responses"]["401"], path


def test_the_document_makes_keys_optional_if_authentication_is_off() -> None:
    read = document(load_settings(environ={}))
    for path, operation in operations(read):
        assert operation.get("security") == (
            None if path.startswith("/health") else [{"HTTPBearer": []}, {}]
        ), path


def test_each_wrong_key_of_these_tests_has_exactly_one_fault() -> None:
    """They would be let in otherwise: the same claims, rightly signed and dated, open the route."""
    keyed = Keyed.open()
    for right in (signed({"t": "", "ad": True}), by_hand({"t": "", "ad": True}, "HS256")):
        assert keyed.call("POST", "/v3/workspaces/list", right).status_code == 200
    for wrong in foreign(datetime.now(UTC)).values():
        assert keyed.call("POST", "/v3/workspaces/list", wrong).status_code == 401
    keyed.close()
