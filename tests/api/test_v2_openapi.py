"""The second generation's document against the facts of the published one: nothing is missing, and
what we add is listed here."""

from __future__ import annotations

import re

import pytest

from memservice.api import v2
from memservice.api.routing import walk
from support.api.documents import compare, document, ours, published

W = "/v2/workspaces/{workspace_id}"
ADDED_OPERATIONS = {
    # By a key's own workspace.
    "GET /v2/peers/{peer_id}/card",
    # What the first clients have, and the last ones.
    f"POST {W}/peers/{{peer_id}}/messages",
    f"POST {W}/peers/{{peer_id}}/messages/list",
    f"POST {W}/schedule_dream",
    f"POST {W}/sessions/{{session_id}}/clone",
    f"PUT {W}/sessions/{{session_id}}/peers/{{peer_id}}/config",
}
ELSEWHERE = {"GET /metrics"}
"""Belongs to no generation."""

DIFFERENT = [
    # Names may be longer in all generations.
    r"POST .*/(workspaces|peers|sessions) body\.id: maxLength 100, ours 512",
    # The published document tells of a body that is not there.
    r"POST .*/peers/{peer_id}/config 200: of type \['application/json'\], ours \[\]",
]
"""What the published document says otherwise, on purpose."""

ADDED = [
    r".*/(list|peers|sessions|search|webhooks): query reverse",
    r".*/webhooks answer 200(\.items\[\])?\.state",
    r"POST .*/webhooks answer 200\.secret",
    r"POST .*/messages/?(upload)?: header Idempotency-Key",
    r".* answer 200(\.items\[\])?\.uid",
    (
        r".* "
        r"body(\.messages\[\])?\.configuration\.(custom_instructions|dialectic|(peer_card|summary|dream)\.custom_instructions)"
    ),
    r".* body\.configuration\.(retention|self_service).*",
    r"DELETE .* answer 20[02]\.message",
    r".*/representation answer 200\.(representation|explicit|deductive)",
    r".*/chat body\.reasoning_level",
    # The first clients turn pages of what they search for, and ask for the status of a peer.
    r".*/search: query (page|size)",
    r".*/deriver/status: query (peer_id|include_sender)",
    # What was always meant where nothing is given.
    r"GET .*/context: query max_observations: default None, ours 50",
    # What is always known.
    r".* answer 200\.(page|size|pages|total): never null",
    r".*/webhooks answer 200(\.items\[\])?\.workspace_id: never null",
    # As in the third generation's document.
    r".* answer (default|401)",
    r".*/(search|query) body\.query: maxLength 10000",
    r".*/(context: query |representation body\.)(search_query|last_message): maxLength 10000",
    r"PUT .*/card body\.peer_card\[\]: maxLength 500",
    r".*: path [a-z_]+: minLength 1",
    r".*: query page: maximum \d+",
    r"POST /v2/keys: query (label|(workspace|peer|session)_id: .*)",
    r"POST /v2/keys answer 200\.[a-z_]+",
    r".*/messages/upload body\.created_at: format date-time",
]
"""What we have and the published document has not."""


def _fits(path: str, patterns: list[str]) -> bool:
    return any(re.fullmatch(pattern, path) for pattern in patterns)


COMPARED = sorted(published("v2").keys() - ELSEWHERE)


@pytest.mark.slow
def test_all_published_operations_are_served() -> None:
    assert ours("v2").keys() - published("v2").keys() == ADDED_OPERATIONS
    assert published("v2").keys() - ours("v2").keys() == ELSEWHERE


@pytest.mark.parametrize("name", COMPARED)
def test_nothing_is_missing_and_additions_are_listed(name: str) -> None:
    differences_found = list(compare("v2", name))
    assert [
        path for kind, path in differences_found if kind == "missing" and not _fits(path, DIFFERENT)
    ] == []
    assert [
        path for kind, path in differences_found if kind == "added" and not _fits(path, ADDED)
    ] == []


@pytest.mark.parametrize(("kind", "patterns"), [("missing", DIFFERENT), ("added", ADDED)])
def test_every_listed_difference_exists(kind: str, patterns: list[str]) -> None:
    paths = [
        path for name in COMPARED for difference, path in compare("v2", name) if difference == kind
    ]
    assert [
        pattern for pattern in patterns if not any(re.fullmatch(pattern, path) for path in paths)
    ] == []


def test_document_is_openapi_31_with_the_version_of_the_api() -> None:
    openapi = document("v2")
    assert openapi["openapi"] == "3.1.0"
    assert openapi["info"]["version"] == "2.5.1"


def test_every_operation_has_a_summary_and_a_unique_id() -> None:
    operations = [
        operation
        for item in document("v2")["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
    ]
    assert len(operations) == len(list(walk(v2.GROUPS)))
    assert all(operation["summary"] for operation in operations)
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
