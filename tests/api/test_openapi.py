"""Our document against the facts of the published one: nothing is missing, and what we add is
listed here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from memservice.api import health, v3
from memservice.api.routing import walk
from support.api.documents import compare, differences, document, ours, published

GROUPS = (health.routes, *v3.GROUPS)

W = "/v3/workspaces/{workspace_id}"
ADDED_OPERATIONS = {
    f"POST {W}/chat",
    f"GET {W}/conclusions/{{conclusion_id}}",
    f"GET {W}/webhooks/{{endpoint_id}}/deliveries",
    f"GET {W}/webhooks/{{endpoint_id}}/dead_letters",
    f"POST {W}/deliveries/{{delivery_id}}/redeliver",
    f"GET {W}/dreams",
    f"GET {W}/dreams/{{dream_id}}",
    f"POST {W}/dreams/{{dream_id}}/apply",
    f"POST {W}/dreams/{{dream_id}}/discard",
    f"POST {W}/dreams/{{dream_id}}/undo",
    f"POST {W}/conclusions/{{conclusion_id}}/restore",
    f"DELETE {W}/sessions/{{session_id}}/messages/{{message_id}}",
    f"DELETE {W}/peers/{{peer_id}}",
    f"GET {W}/erasures",
    f"GET {W}/peers/{{peer_id}}/export",
    f"GET {W}/erasures/{{erasure_id}}",
    "GET /v3/erasures",
    "GET /v3/erasures/{erasure_id}",
    f"POST {W}/conclusions/{{conclusion_id}}/invalidate",
    f"GET {W}/conclusions/{{conclusion_id}}/history",
    f"PUT {W}/conclusions/{{conclusion_id}}",
    f"GET {W}/queue/failures",
    f"GET {W}/usage",
    f"POST {W}/queue/failures/retry",
    "GET /health/ready",
    "GET /v3/keys",
    "DELETE /v3/keys/{key_id}",
}

ADDED = [
    # Listings can all be reversed.
    re.escape(f"GET {W}/sessions/{{session_id}}/peers: query reverse"),
    re.escape(f"GET {W}/webhooks: query reverse"),
    # An endpoint has a state, and a secret that is shown once.
    r".*/webhooks answer 20\d(\.items\[\])?\.state",
    r"POST .*/webhooks answer 20\d\.secret",
    re.escape(f"POST {W}/webhooks") + r" answer 20\d\.workspace_id: never null",
    re.escape(f"GET {W}/webhooks") + r" answer 200\.items\[\]\.workspace_id: never null",
    # A repeated create can be made exact.
    re.escape(f"POST {W}/sessions/{{session_id}}/messages") + "(/upload)?: header Idempotency-Key",
    # What the newest clients read and write.
    r".* answer 20\d(\.items\[\])?\.uid",
    r".*/conclusions.* answer 20\d(\.items)?(\[\])?\.(source_ids|times_derived)",
    r".*/conclusions.* answer 20\d(\.items)?(\[\])?\.(kind|when|certainty|said_at)",
    # Superseded conclusions can be listed, and what was known at a time can be read.
    re.escape(f"POST {W}/conclusions/list: query include") + "(_messages)?",
    r"POST .*/conclusions/list answer 200\.items\[\]\.message_ids",
    r"POST .*/conclusions/(list|query) answer 200(\.items)?\[\]\.(state|superseded_(at|by))",
    r".*/(conclusions/list|context): query as_of",
    r".*/(conclusions/query|representation|chat) body\.as_of",
    # A search explains its results.
    r".*/(search|query) body\.explain",
    r".*/(search|query) answer 200\[\]\.explanation",
    r".*/chat body\.include_evidence",
    r".*/chat answer 200\.evidence",
    r".* body\.configuration\.(custom_instructions|dialectic)",
    r".* body\.configuration\.(peer_card|summary|dream)\.custom_instructions",
    # Old data can be erased, and peers may erase themselves.
    r".* body\.configuration\.(retention|self_service).*",
    # Nothing was said about it.
    r"GET /health answer 200\.status",
    r"DELETE .* answer 202\.message",
    # Said to be one of any keys.
    re.escape(f"GET {W}/scopes/{{scope_id}}/status")
    + r" answer 200\.backfill_status\{\}\.(state|updated_at|docs_copied)",
    # Errors other than 422 are described as well.
    r".* answer (default|401)",
    # Bounds that were not written down: of paths, of what 64 bits hold, of names in keys; and how a
    # file is marked as one.
    r".*: path [a-z_]+: minLength 1",
    r".*: query page: maximum \d+",
    r"POST /v3/keys: query (workspace|peer|session)_id: .*",
    r".*/(search|query) body\.query: maxLength 10000",
    r".*/(context: query |representation body\.)search_query: maxLength 10000",
    r"PUT .*/card body\.peer_card\[\]: maxLength 500",
    re.escape(f"POST {W}/sessions/{{session_id}}/messages/upload")
    + r" body\.(file: format binary|created_at: format date-time)",
    # Keys have labels and ids.
    r"POST /v3/keys: query label",
    r"POST /v3/keys answer 200\.[a-z_]+",
]
"""What we have and the published document has not, as regular expressions over the paths below."""


@pytest.mark.slow
def test_all_published_operations_are_served() -> None:
    added = ours("v3").keys() - published("v3").keys()
    assert added == ADDED_OPERATIONS, (
        f"an operation that is ours alone needs a line in ADDED_OPERATIONS in {__file__}"
    )
    assert published("v3").keys() - ours("v3").keys() == set()


@pytest.mark.parametrize("name", sorted(published("v3")))
def test_nothing_is_missing_and_additions_are_listed(name: str) -> None:
    differences_found = list(compare("v3", name))
    assert [path for kind, path in differences_found if kind == "missing"] == []
    assert [
        path
        for kind, path in differences_found
        if kind == "added" and not any(re.fullmatch(pattern, path) for pattern in ADDED)
    ] == []


@pytest.mark.parametrize("name", sorted(published("v3")))
def test_published_operations_require_keys_as_published(name: str) -> None:
    assert ours("v3")[name]["keys"] == published("v3")[name]["keys"]


def test_added_operations_require_keys() -> None:
    assert [
        name for name in sorted(ADDED_OPERATIONS) if ours("v3")[name]["keys"] != [["HTTPBearer"]]
    ] == ["GET /health/ready"]
    assert document("v3")["components"]["securitySchemes"] == {
        "HTTPBearer": {"type": "http", "scheme": "bearer"}
    }


def test_every_listed_addition_is_there() -> None:
    paths = [
        path for name in published("v3") for kind, path in compare("v3", name) if kind == "added"
    ]
    assert [
        pattern for pattern in ADDED if not any(re.fullmatch(pattern, path) for path in paths)
    ] == []


WANTED: dict[str, Any] = {
    "types": ["object"],
    "fields": {
        "a": {"types": ["string"], "maxLength": 5, "default": "x"},
        "b": {"types": ["null", "string"], "enum": ["y", None]},
        "c": {"types": ["object"], "default": {}},
    },
    "required": ["a"],
}
LOSSES: list[tuple[Callable[[Any], object], str]] = [
    (lambda mine: mine["fields"].pop("a"), "x.a"),
    (lambda mine: mine["fields"]["a"].pop("maxLength"), "x.a: maxLength 5, ours None"),
    (lambda mine: mine["fields"]["a"].update(maxLength=6), "x.a: maxLength 5, ours 6"),
    (
        lambda mine: mine["fields"]["a"].update(types=["integer"]),
        "x.a: types ['string'], ours ['integer']",
    ),
    (lambda mine: mine["fields"]["a"].pop("types"), "x.a: types ['string'], ours []"),
    (lambda mine: mine["fields"]["a"].pop("default"), "x.a: default x, ours None"),
    (lambda mine: mine["fields"]["c"].pop("default"), "x.c: default {}, ours None"),
    (
        lambda mine: mine["fields"]["b"].update(types=["string"]),
        "x.b: types ['null', 'string'], ours ['string']",
    ),
    (lambda mine: mine["fields"]["b"].update(enum=["y"]), "x.b: null among ['y']"),
    (lambda mine: mine["fields"]["b"].update(enum=["z", None]), "x.b: enum ['y'], ours ['z']"),
    (lambda mine: mine.update(required=["a", "b"]), "x: required ['a'], ours ['a', 'b']"),
    (lambda mine: mine.update(required=[]), "x: required ['a'], ours []"),
]


@pytest.mark.parametrize(
    ("change", "difference"), LOSSES, ids=[difference for _, difference in LOSSES]
)
def test_the_comparison_sees_each_kind_of_loss(
    change: Callable[[Any], object], difference: str
) -> None:
    mine = json.loads(json.dumps(WANTED))
    assert list(differences(WANTED, mine, "x", request=True)) == []
    change(mine)
    assert ("missing", difference) in list(differences(WANTED, mine, "x", request=True))


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda mine: mine["fields"]["b"].update(maxLength=3), "x.b: maxLength 3"),
        (lambda mine: mine["fields"]["b"].update(exclusiveMinimum=3), "x.b: exclusiveMinimum 3"),
        (lambda mine: mine["fields"]["b"].update(default="y"), "x.b: default None, ours y"),
        (lambda mine: mine["fields"].update(d={}), "x.d"),
    ],
)
def test_the_comparison_sees_each_kind_of_addition(
    change: Callable[[Any], object], difference: str
) -> None:
    mine = json.loads(json.dumps(WANTED))
    change(mine)
    assert list(differences(WANTED, mine, "x", request=True)) == [("added", difference)]


def test_an_answer_may_add_but_not_drop_fields() -> None:
    mine = json.loads(json.dumps(WANTED))
    mine["required"] = ["a", "b"]
    mine["fields"]["b"] = {"types": ["string"], "enum": ["y"]}
    assert list(differences(WANTED, mine, "x", request=False)) == [("added", "x.b: never null")]
    mine["required"] = ["b"]
    mine["fields"]["b"] = {}
    losses = [
        path for kind, path in differences(WANTED, mine, "x", request=False) if kind == "missing"
    ]
    assert losses == [
        "x.b: types ['null', 'string'], ours []",
        "x.b: enum ['y'], ours []",
        "x: required ['a'], ours ['b']",
    ]
    mine["fields"]["b"] = {"types": ["null"], "enum": ["y", None]}
    assert ("missing", "x.b: types ['null', 'string'], ours ['null']") in list(
        differences(WANTED, mine, "x", request=False)
    )


def test_every_reference_resolves() -> None:
    openapi = document("v3")
    for reference in set(re.findall(r'"\$ref": ?"#/([^"]+)"', json.dumps(openapi))):
        node: Any = openapi
        for step in reference.split("/"):
            assert step in node, reference
            node = node[step]


def test_other_errors_than_422_are_described_too() -> None:
    openapi = document("v3")
    detail = {
        "type": "object",
        "properties": {"detail": {"type": "string"}},
        "required": ["detail"],
    }
    assert {
        key: value
        for key, value in openapi["components"]["schemas"]["HTTPError"].items()
        if key != "description"
    } == detail
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/HTTPError"}}}
    assert openapi["components"]["responses"]["DEFAULT_ERROR"]["content"] == error
    for path, item in openapi["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            answers = operation["responses"]
            assert answers["default"] == {"$ref": "#/components/responses/DEFAULT_ERROR"}, (
                method,
                path,
            )
            assert ("401" in answers) == bool(operation.get("security")), (method, path)
            assert "401" not in answers or answers["401"]["content"] == error, (method, path)


def test_document_is_openapi_31_with_the_version_of_the_api() -> None:
    openapi = document("v3")
    assert openapi["openapi"] == "3.1.0"
    assert openapi["info"]["version"] == "3.2.1"
    assert {tag["name"] for tag in openapi["tags"]} == {routes.tag for routes in GROUPS}


def test_every_operation_has_a_summary_and_a_unique_id() -> None:
    operations = [
        operation
        for item in document("v3")["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
    ]
    assert len(operations) == len(list(walk(GROUPS)))
    assert all(operation["summary"] for operation in operations)
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))


def test_request_schemas_allow_unknown_keys_that_are_ignored() -> None:
    strict = {"RetentionConfiguration", "SelfServiceConfiguration"}  # test_configuration.py
    for name, schema in document("v3")["components"]["schemas"].items():
        assert (schema.get("additionalProperties") is False) == (name in strict), name
