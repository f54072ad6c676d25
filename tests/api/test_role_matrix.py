"""Every route of the services with every role of the console's members. The console calls the
services that these routes call, with the same principals; what is expected is written out here from
the table of roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from api.test_auth_matrix import GUARDED, TABLE, ask
from memservice.api.auth import Guard
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission, Role
from memservice.services.auth.principal import Principal
from memservice.spi.schema import TABLES
from support.api.auth_world import Keyed, Places, populate

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
POST …/scopes/list
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
    | {name: Permission.MANAGE_KEYS for name in TABLE if "/v3/keys" in name}
    | {
        "POST …/deliveries/<delivery_id>/redeliver": Permission.MANAGE_WEBHOOKS,
        "POST …/queue/failures/retry": Permission.MANAGE_JOBS,
        "POST …/schedule_dream": Permission.MANAGE_JOBS,
        "DELETE …": Permission.DELETE_WORKSPACES,
    }
)
"""By route; the other routes edit memory."""

OPERATES = {Permission.VIEW, Permission.MANAGE_JOBS, Permission.MANAGE_WEBHOOKS}
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
    principal, held = PRINCIPALS[name]
    if route == "POST /v3/workspaces/list":
        return True  # it shows those that the account may open
    if "/v3/keys" in route and principal.workspaces is not None:
        return False
    return NEEDS.get(route, Permission.EDIT_MEMORY) in held


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[Keyed, Places]]:
    keyed = Keyed.open()
    yield keyed, populate(keyed)
    keyed.close()


def _contents(keyed: Keyed) -> list[Any]:
    with keyed.runtime.storage.read() as tx:
        return [tx.rows.page(spec.record) for spec in TABLES]


def test_the_table_names_routes() -> None:
    assert set(NEEDS) <= set(GUARDED)


@pytest.mark.parametrize("route", GUARDED)
def test_a_role_permits_what_the_table_says(
    filled: tuple[Keyed, Places],
    route: str,
    subtests: pytest.Subtests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keyed, places = filled
    for name, (principal, _) in PRINCIPALS.items():
        monkeypatch.setattr(Guard, "admit", lambda *_, principal=principal: principal)
        with subtests.test(name=name), keyed.undone():
            before = _contents(keyed)
            status, text = ask(keyed, places, route, "Bearer of a role")
            if may(name, route):
                assert status in TABLE[route].status, text
            else:
                assert status == 401, text
            if not may(name, route) or NEEDS.get(route) is Permission.VIEW:
                assert _contents(keyed) == before
