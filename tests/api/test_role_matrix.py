"""Every route of the services with every role of the console's members. The console calls the
services that these routes call, with the same principals; what is expected is written out here from
the table of roles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api.test_auth_matrix import GUARDED, TABLE, prepared
from memservice.api.auth import Guard
from memservice.domain.errors import Unauthorised
from memservice.services import corrections, release_feed
from memservice.services.auth import policy
from memservice.services.auth.permissions import OF_WORKSPACE_KEY, Permission, Role
from memservice.services.auth.principal import Principal
from memservice.services.members import accounts, audit
from memservice.services.usage import budget_overrides
from memservice.services.usage.budget_overrides import Override
from memservice.spi.schema import TABLES
from support.api.auth_client import AuthClient, PopulatedIds, populate

READS = """
POST /v3/workspaces/list
POST …/search
POST …/chat
GET …/queue/status
GET …/queue/failures
GET …/dreams
GET …/dreams/<dream_id>
GET …/usage
POST …/peers/list
POST …/sessions/list
POST …/conclusions/list
POST …/conclusions/query
GET …/conclusions/<conclusion_id>
GET …/conclusions/<conclusion_id>/history
POST …/scopes/list
GET …/erasures
GET …/erasures/<erasure_id>
GET …/scopes/<scope_id>
POST …/scopes/<scope_id>/sessions/list
GET …/scopes/<scope_id>/status
POST …/peers/<peer_id>/sessions
POST …/peers/<peer_id>/chat
POST …/peers/<peer_id>/representation
GET …/peers/<peer_id>/card
GET …/peers/<peer_id>/context
POST …/peers/<peer_id>/search
POST …/sessions/<session_id>/messages/list
GET …/sessions/<session_id>/messages/<message_id>
GET …/sessions/<session_id>/context
GET …/sessions/<session_id>/summaries
GET …/sessions/<session_id>/peers
GET …/sessions/<session_id>/peers/<peer_id>/config
POST …/sessions/<session_id>/search
""".split("\n")[1:-1]
NEEDS: dict[str, Permission] = (
    dict.fromkeys(READS, Permission.VIEW)
    | {name: Permission.MANAGE_WEBHOOKS for name in TABLE if "webhooks" in name}
    | {name: Permission.VIEW_AUDIT_LOG for name in TABLE if "/v3/erasures" in name}
    | {name: Permission.MANAGE_KEYS for name in TABLE if "/v3/keys" in name}
    | {
        "POST …/deliveries/<delivery_id>/redeliver": Permission.MANAGE_WEBHOOKS,
        "POST …/queue/failures/retry": Permission.MANAGE_JOBS,
        "POST …/schedule_dream": Permission.MANAGE_JOBS,
        "DELETE …": Permission.DELETE_WORKSPACES,
    }
)
"""By route; the other routes edit memory."""

OPERATES = {
    Permission.VIEW,
    Permission.MANAGE_JOBS,
    Permission.MANAGE_WEBHOOKS,
    Permission.MANAGE_BUDGETS,
}
PRINCIPALS: dict[str, tuple[Principal, set[Permission]]] = {
    f"{role.value} of {scope}": (
        policy.principal_of_member(role, workspaces),
        may if workspaces is None or "acme" in workspaces else set(),
    )
    for role, may in (
        (Role.READER, {Permission.VIEW}),
        (Role.OPERATOR, OPERATES),
        (Role.OWNER, set(Permission)),
    )
    for scope, workspaces in (
        ("all", None),
        ("acme", frozenset({"acme"})),
        ("other", frozenset({"other"})),
        ("none", frozenset[str]()),
    )
}


def may(name: str, route: str) -> bool:
    principal, permissions = PRINCIPALS[name]
    if route == "POST /v3/workspaces/list":
        return True  # it shows those that the account may open
    of_store = "/v3/keys" in route or "/v3/erasures" in route
    if of_store and principal.workspaces is not None:
        return False
    return NEEDS.get(route, Permission.EDIT_MEMORY) in permissions


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[AuthClient, PopulatedIds]]:
    auth_client = AuthClient.open()
    yield auth_client, populate(auth_client)
    auth_client.close()


def _correct(auth_client: AuthClient, principal: Principal) -> object:
    with auth_client.runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug("acme")
        assert workspace is not None
        conclusion = tx.conclusions.page(workspace.key, limit=1)[0]
    return corrections.correct(
        auth_client.runtime, principal, "acme", conclusion.uid, "another text"
    )


SERVICES: dict[str, tuple[Permission, bool, Callable[[AuthClient, Principal], object]]] = {
    "correct a conclusion": (Permission.EDIT_MEMORY, False, _correct),
    "set a budget": (
        Permission.MANAGE_BUDGETS,
        True,
        lambda auth_client, principal: budget_overrides.set_override(
            auth_client.runtime, principal, "acme", Override(1)
        ),
    ),
    "see the budget": (
        Permission.VIEW,
        False,
        lambda auth_client, principal: budget_overrides.get(auth_client.runtime, principal, "acme"),
    ),
    "see an available upgrade": (
        Permission.VIEW,
        True,
        lambda auth_client, principal: release_feed.available(auth_client.runtime, principal),
    ),
    "list members": (
        Permission.MANAGE_MEMBERS,
        True,
        lambda auth_client, principal: accounts.browse(auth_client.runtime, principal),
    ),
    "list the audit log": (
        Permission.VIEW_AUDIT_LOG,
        True,
        lambda auth_client, principal: audit.browse(auth_client.runtime, principal),
    ),
}
"""Services of the console that no route of the API calls: the permission, and whether it is needed
in all workspaces."""


def _contents(auth_client: AuthClient) -> list[Any]:
    with auth_client.runtime.storage.read() as tx:
        return [tx.rows.page(spec.record) for spec in TABLES]


def test_the_table_names_routes() -> None:
    assert set(NEEDS) <= set(GUARDED)


@pytest.mark.slow
@pytest.mark.parametrize("route", GUARDED)
def test_a_role_permits_what_the_table_says(
    filled: tuple[AuthClient, PopulatedIds],
    route: str,
    subtests: pytest.Subtests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    auth_client, ids = filled
    request, before = prepared(auth_client, ids, route), _contents(auth_client)
    for name, (principal, _) in PRINCIPALS.items():
        monkeypatch.setattr(Guard, "admit", lambda *_, principal=principal: principal)
        with subtests.test(name=name), auth_client.undone():
            answer = request.send("of a role")
            if may(name, route):
                assert answer.status_code in TABLE[route].status, answer.text
            else:
                assert answer.status_code == 401, answer.text
            if not may(name, route) or NEEDS.get(route) is Permission.VIEW:
                assert _contents(auth_client) == before


@pytest.mark.slow
@pytest.mark.parametrize("service", SERVICES)
def test_a_role_permits_services_that_have_no_route(
    filled: tuple[AuthClient, PopulatedIds], service: str, subtests: pytest.Subtests
) -> None:
    auth_client, _ = filled
    needs, everywhere, call = SERVICES[service]
    keys = {
        "a workspace's key": (Principal(workspace_id="acme"), OF_WORKSPACE_KEY),
        "a peer's key": (Principal(workspace_id="acme", peer_id="alice"), frozenset()),
        "no key": (Principal(), frozenset()),
    }
    for name, (principal, permissions) in {**PRINCIPALS, **keys}.items():
        is_limited = principal.workspaces is not None or not principal.is_member
        with subtests.test(name=name), auth_client.undone():
            before = _contents(auth_client)
            if needs in permissions and not (everywhere and is_limited):
                call(auth_client, principal)
            else:
                with pytest.raises(Unauthorised):
                    call(auth_client, principal)
                assert _contents(auth_client) == before
