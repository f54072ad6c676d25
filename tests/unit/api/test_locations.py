"""Arguments of services get their locations in the request."""

from __future__ import annotations

import pytest

from memservice.api.locations import ANY, Loc, Locations
from memservice.domain.errors import InvalidInput, Problem

LOCATIONS = Locations(
    path=["workspace_id", "peer_id"],
    query=["target"],
    headers={"idempotency_key": "Idempotency-Key"},
    body=["id", "metadata", "messages"],
    exceptions={("drafts", ANY): ("body",), ("peers",): ("body", "members")},
)


@pytest.mark.parametrize(
    ("argument", "location"),
    [
        (("peer_id",), ("path", "peer_id")),
        (("target",), ("query", "target")),
        (("idempotency_key",), ("header", "Idempotency-Key")),
        (("metadata", "a", 0), ("body", "metadata", "a", 0)),
        (("messages", 3, "peer_id"), ("body", "messages", 3, "peer_id")),
        (("session_id",), ("body", "id")),
        (("unknown",), ("body", "unknown")),
        ((), ("body",)),
        (("drafts", 2, "content"), ("body", "content")),
        (("drafts",), ("body", "drafts")),
        (("peers", "ann"), ("body", "members", "ann")),
    ],
)
def test_an_argument_gets_its_location(argument: Loc, location: Loc) -> None:
    assert LOCATIONS.of(argument) == location


def test_an_id_in_the_body_has_its_own_field_name() -> None:
    assert Locations([], body=["id", "session_id"]).of(("session_id",)) == ("body", "session_id")


def test_a_problem_of_several_items_is_reported_once() -> None:
    error = InvalidInput(*(Problem(("drafts", n, "metadata"), "too large") for n in range(3)))
    assert LOCATIONS.with_locations(error).problems == (Problem(("body", "metadata"), "too large"),)
