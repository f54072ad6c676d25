"""No service lets a key reach beyond its names, whichever caller uses it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

from memservice import services
from memservice.domain.errors import Unauthorised
from memservice.domain.records import Conclusion
from memservice.services.auth import policy
from memservice.services.auth.bounds import bounds_for
from memservice.services.auth.principal import Principal
from memservice.services.tasks.jobs import JobFilter
from memservice.services.v1 import collections
from memservice.spi.storage import Transaction
from services.conftest import OpenServices
from support.services.services import WORKSPACE as ID

NAMES = {
    "workspace_id": "acme",
    "slug": "acme",
    "peer_id": "alice",
    "session_id": "room",
    "job_filter": JobFilter(workspace="acme"),
}

STRANGERS = {
    "nothing": Principal(),
    "another workspace": Principal(workspace_id="other"),
    "a peer of another workspace": Principal(workspace_id="other", peer_id="alice"),
    "a session of another workspace": Principal(workspace_id="other", session_id="room"),
    "a member elsewhere": Principal(workspace_id="other", peer_id="alice", member_of="room"),
    "a name in another case": Principal(workspace_id="Acme"),
}


GENERATION_1 = "memservice.services.v1."
"""Its services take uids, so they look up what is meant first: tests/api/test_v1_auth_matrix.py
calls them."""


OF_THE_CALLER = {"browsing.list_workspaces"}
"""Services that name no workspace: they return what the caller may see, which their own tests
check."""


class Untouchable:
    """A storage that must not be used: refused callers are refused before any access."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name} was used before it was asked who may do this")


def _services() -> Iterator[tuple[str, Callable[..., Any]]]:
    for module in pkgutil.walk_packages(services.__path__, f"{services.__name__}."):
        if module.name.startswith(GENERATION_1):
            continue
        imported = importlib.import_module(module.name)
        for name, function in inspect.getmembers(imported, inspect.isfunction):
            takes = inspect.signature(function).parameters
            path = f"{module.name.removeprefix(services.__name__ + '.')}.{name}"
            if (
                function.__module__ == imported.__name__
                and not name.startswith("_")
                and list(takes)[:2] == ["rt", "principal"]
                and path not in OF_THE_CALLER
            ):
                yield path, function


SERVICES = dict(_services())


def test_the_walk_finds_the_services() -> None:
    assert len(SERVICES) > 45


@pytest.mark.parametrize("name", SERVICES)
def test_unauthorised_callers_are_refused_before_any_effect(
    name: str, subtests: pytest.Subtests
) -> None:
    function = SERVICES[name]
    required = [
        parameter
        for parameter in list(inspect.signature(function).parameters.values())[2:]
        if parameter.default is parameter.empty
    ]
    arguments = {parameter.name: NAMES.get(parameter.name, Untouchable()) for parameter in required}
    for stranger, principal in STRANGERS.items():
        with subtests.test(stranger=stranger), pytest.raises(Unauthorised):
            function(Untouchable(), principal, **arguments)


ADMIN = Principal(admin=True)
WORKSPACE = Principal(workspace_id="acme")
ALICE = Principal(workspace_id="acme", peer_id="alice")
IN_ROOM = Principal(workspace_id="acme", peer_id="alice", member_of="room")
ROOM = Principal(workspace_id="acme", session_id="room")
ALICE_IN_ROOM = Principal(workspace_id="acme", peer_id="alice", session_id="room")


@pytest.mark.parametrize(
    ("names", "let_in"),
    [
        ({}, {"admin", "workspace"}),
        ({"peer_id": "alice"}, {"admin", "workspace", "alice", "in room"}),
        ({"peer_id": "bob"}, {"admin", "workspace"}),
        ({"session_id": "room"}, {"admin", "workspace", "room", "both"}),
        ({"session_id": "hall"}, {"admin", "workspace"}),
        ({"session_id": "room", "member": True}, {"admin", "workspace", "room", "both", "in room"}),
        ({"session_id": "hall", "member": True}, {"admin", "workspace"}),
        ({"member": True}, {"admin", "workspace"}),
    ],
)
def test_the_narrowest_name_counts(names: dict[str, Any], let_in: set[str]) -> None:
    callers = {
        "admin": ADMIN,
        "workspace": WORKSPACE,
        "alice": ALICE,
        "in room": IN_ROOM,
        "room": ROOM,
        "both": ALICE_IN_ROOM,
    }
    permitted = set()
    for name, principal in callers.items():
        try:
            policy.require(principal, "acme", **names)
        except Unauthorised:
            continue
        permitted.add(name)
    assert permitted == let_in


def read_with(tx: Transaction, **names: Any) -> set[str]:
    """The conclusions that a key with these names may read."""
    workspace = tx.workspaces.by_slug(ID)
    assert workspace is not None
    bounds = bounds_for(tx, Principal(workspace_id=ID, **names), workspace)
    return {row.content for row in tx.rows.page(Conclusion, bounds.condition)}


def test_the_narrowest_name_decides_which_conclusions_are_read(open_services: OpenServices) -> None:
    services = open_services()
    services.say("room", ("ann", "hello"), ("bob", "hello"))
    services.conclude("ann", "ann", "likes tea", session="room")
    services.conclude("ann", "ann", "likes rain")
    services.conclude("ann", "bob", "bob likes tea")
    services.conclude("bob", "ann", "ann likes tea")
    rt = services.rt
    with rt.storage.read() as tx:
        located = tx.workspaces.locate(ID, peer_id="ann")
    assert located.peer is not None
    ann = located.peer
    derived = rt.storage.write(lambda tx: collections.ensure_derived(rt, tx, ann))
    with rt.storage.read() as tx:
        assert read_with(tx, peer_id="ann") == {"likes tea", "likes rain", "bob likes tea"}
        assert read_with(tx, peer_id="ann", session_id="room") == {"likes tea"}
        assert read_with(tx, collection=derived.uid) == {"likes tea", "likes rain"}
