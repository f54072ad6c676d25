"""The first generation's document against the facts of the published one: nothing is missing, and
what we add is listed here."""

from __future__ import annotations

import re

import pytest

from memservice.api import v1
from memservice.api.routing import walk
from memservice.app import create_app
from memservice.settings import load_settings
from support.api.documents import compare, document, ours, published

ADDED = [
    # Errors other than 422 are described as well.
    r".* answer (default|401)",
    # Bounds that were not written down: of paths, and of what 64 bits hold.
    r".*: path [a-z_]+: minLength 1",
    r".*: query page: maximum \d+",
    # As for a new one.
    r"PUT .*/metamessages/{metamessage_id} body.metamessage_type: (minLength 1|maxLength 50)",
    # Nothing was said about it.
    r"DELETE .* answer 200\.message",
    r"POST /v1/keys answer 200\.key",
    r"POST .*/messages(/batch)?: header Idempotency-Key",
    # Clients of the second generation under this prefix ask for keys by these names.
    r"POST /v1/keys: query (workspace|peer)_id",
]
"""What we have and the published document has not."""

DIFFERENT = "PUT .*/documents/{document_id} body.metadata: maxProperties 10000, ours None"
"""A hundred keys are allowed, in all generations and in whatever is written."""

COMPARED = sorted(published("v1"))


def _is_listed(path: str) -> bool:
    return any(re.fullmatch(pattern, path) for pattern in ADDED)


@pytest.mark.slow
def test_all_published_operations_are_served() -> None:
    assert ours("v1").keys() == published("v1").keys()


@pytest.mark.parametrize("name", COMPARED)
def test_nothing_is_missing_and_additions_are_listed(name: str) -> None:
    differences_found = list(compare("v1", name))
    assert [
        path
        for kind, path in differences_found
        if kind == "missing" and not re.fullmatch(DIFFERENT, path)
    ] == []
    assert [
        path for kind, path in differences_found if kind == "added" and not _is_listed(path)
    ] == []


def test_every_listed_addition_is_there() -> None:
    paths = [path for name in COMPARED for kind, path in compare("v1", name) if kind == "added"]
    assert [
        pattern for pattern in ADDED if not any(re.fullmatch(pattern, path) for path in paths)
    ] == []


def test_document_is_openapi_31_with_the_version_of_the_api() -> None:
    openapi = document("v1")
    assert openapi["openapi"] == "3.1.0"
    assert openapi["info"]["version"] == "1.1.0"
    assert {tag["name"] for tag in openapi["tags"]} == {routes.tag for routes in v1.GROUPS}


def test_the_document_makes_the_key_of_one_operation_optional() -> None:
    keys_by_operation = {name: operation["keys"] for name, operation in ours("v1").items()}
    assert [
        name.rpartition("/")[2]
        for name, keys in keys_by_operation.items()
        if keys != [["HTTPBearer"]]
    ] == ["{message_id}"]
    assert keys_by_operation.pop(
        next(name for name, keys in keys_by_operation.items() if keys != [["HTTPBearer"]])
    ) == [
        [],
        ["HTTPBearer"],
    ]


@pytest.mark.slow
def test_without_authentication_the_document_requires_no_keys() -> None:
    read = create_app(load_settings(environ={})).test_client().get("/v1/openapi.json").get_json()
    assert all(
        {} in operation["security"]
        for item in read["paths"].values()
        for operation in item.values()
        if "security" in operation
    )


def test_every_operation_has_a_summary_and_a_unique_id() -> None:
    operations = [
        operation
        for item in document("v1")["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
    ]
    assert len(operations) == len(list(walk(v1.GROUPS)))
    assert all(operation["summary"] for operation in operations)
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
