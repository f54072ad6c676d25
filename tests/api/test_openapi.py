"""Our document against the facts of the published one: nothing is missing, and what we add is listed here."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memservice.api.routing import walk
from memservice.app import GROUPS, create_app
from memservice.settings import load_settings

DATA = Path(__file__).parent / "data"

W = "/v3/workspaces/{workspace_id}"
ADDED_OPERATIONS = {
    f"POST {W}/chat",
    f"GET {W}/conclusions/{{conclusion_id}}",
    "GET /v2/peers/{peer_id}/card",
    f"GET {W}/webhooks/{{endpoint_id}}/deliveries",
    f"GET {W}/webhooks/{{endpoint_id}}/dead_letters",
    f"POST {W}/deliveries/{{delivery_id}}/redeliver",
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
    # A repeated create can be made exact.
    re.escape(f"POST {W}/sessions/{{session_id}}/messages") + "(/upload)?: header Idempotency-Key",
    # What the newest clients read and write.
    r".* answer 20\d(\.items\[\])?\.uid",
    r".*/conclusions.* answer 20\d(\.items)?(\[\])?\.(source_ids|times_derived)",
    r".*/chat body\.include_evidence",
    r".*/chat answer 200\.evidence",
    r".* body\.configuration\.(custom_instructions|dialectic)",
    r".* body\.configuration\.(peer_card|summary|dream)\.custom_instructions",
    # Nothing was said about it.
    r"GET /health answer 200\.status",
    r"DELETE .* answer 202\.message",
    # Errors other than 422 are described as well.
    r".* answer (default|401)",
    # Bounds that were not written down: of paths, of what 64 bits hold, of names in keys; and how a file is marked as one.
    r".*: path [a-z_]+: minLength 1",
    r".*: query page: maximum \d+",
    r"POST /v3/keys: query (workspace|peer|session)_id: .*",
    re.escape(f"POST {W}/sessions/{{session_id}}/messages/upload") + r" body\.(file: format binary|created_at: format date-time)",
    # Keys have labels and ids.
    r"POST /v3/keys: query label",
    r"POST /v3/keys answer 200\.[a-z_]+",
]
"""What we have and the published document has not, as regular expressions over the places below."""


def _extract() -> Any:
    spec = importlib.util.spec_from_file_location("extract", DATA / "extract.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def document() -> dict[str, Any]:
    answer = create_app(load_settings(environ={})).test_client().get("/openapi.json")
    assert answer.status_code == 200
    read: dict[str, Any] = json.loads(answer.data)
    return read


@cache
def ours() -> dict[str, Any]:
    facts: dict[str, Any] = _extract().facts(_with_responses(document()))
    return facts


def _with_responses(read: dict[str, Any]) -> dict[str, Any]:
    """The document with references to shared responses followed."""
    copy: dict[str, Any] = json.loads(json.dumps(read))
    for item in copy["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "responses" in operation:
                for status, answer in operation["responses"].items():
                    if "$ref" in answer:
                        operation["responses"][status] = copy["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return copy


@cache
def published() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((DATA / "v3.json").read_text(encoding="utf-8"))
    return read


def differences(theirs: Any, mine: Any, place: str, *, request: bool) -> Iterator[tuple[str, str]]:
    """(`missing` or `added`, place) for each difference between two shapes."""
    their_types, my_types = set(theirs.get("types", ())), set(mine.get("types", ()))
    # A request may be read more leniently, an answer must not surprise. No types: anything.
    fits = (not my_types or their_types <= my_types) if request else (bool(my_types) and my_types <= their_types)
    if their_types and not fits:
        yield "missing", f"{place}: types {sorted(their_types)}, ours {sorted(my_types)}"
    for bound in ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "enum"):
        if bound not in theirs:
            if bound in mine and request:
                yield "added", f"{place}: {bound} {mine[bound]}"
            continue
        want, have = theirs[bound], mine.get(bound)
        if bound == "enum":
            want, have = set(want), set(have or ()) - {None}
        if want != have:
            yield "missing", f"{place}: {bound} {want}, ours {have}"
    if theirs.get("default") is not None and theirs["default"] != {} and theirs["default"] != mine.get("default") and request:
        yield "missing", f"{place}: default {theirs['default']}, ours {mine.get('default')}"
    their_fields, my_fields = theirs.get("fields", {}), mine.get("fields", {})
    for name in sorted(their_fields.keys() | my_fields.keys()):
        here = f"{place}.{name}"
        if name not in my_fields:
            yield "missing", here
        elif name not in their_fields:
            yield "added", here
        else:
            yield from differences(their_fields[name], my_fields[name], here, request=request)
    required, have_required = set(theirs.get("required", ())), set(mine.get("required", ()))
    if not (have_required <= required if request else required <= have_required):
        yield "missing", f"{place}: required {sorted(required)}, ours {sorted(have_required)}"
    for inside, mark in (("items", "[]"), ("open", "{}")):
        if inside in theirs:
            if inside not in mine:
                yield "missing", f"{place}{mark}"
            else:
                yield from differences(theirs[inside], mine[inside], place + mark, request=request)


def compare(name: str) -> Iterator[tuple[str, str]]:
    theirs, mine = published()[name], ours()[name]
    for parameter in sorted(theirs["parameters"].keys() | mine["parameters"].keys()):
        here = f"{name}: {parameter}"
        if parameter not in mine["parameters"]:
            yield "missing", here
        elif parameter not in theirs["parameters"]:
            yield "added", here
        else:
            want, have = theirs["parameters"][parameter], mine["parameters"][parameter]
            # A query parameter cannot be null, whatever the published types say.
            yield from differences({**want, "types": sorted(set(want["types"]) - {"null"})}, have, here, request=True)
            if want["must"] != have["must"]:
                yield "missing", f"{here}: must be given: {want['must']}"
    if "body" in theirs:
        if "body" not in mine:
            yield "missing", f"{name} body"
        else:
            yield from differences(theirs["body"], mine["body"], f"{name} body", request=True)
            if theirs["body"]["must"] != mine["body"]["must"]:
                yield "missing", f"{name} body: must be given: {theirs['body']['must']}"
    elif "body" in mine:
        yield "added", f"{name} body"
    for status in sorted(theirs["answers"].keys() | mine["answers"].keys()):
        here = f"{name} answer {status}"
        if status not in mine["answers"]:
            yield "missing", here
        elif status not in theirs["answers"]:
            yield "added", here
        elif status == "422":
            entry = mine["answers"][status]["fields"]["detail"]["items"]
            if entry["required"] != ["loc", "msg", "type"]:
                yield "missing", f"{here}.detail[]: {entry}"
        else:
            yield from differences(theirs["answers"][status] or {}, mine["answers"][status] or {}, here, request=False)


def test_the_same_operations() -> None:
    assert ours().keys() - published().keys() == ADDED_OPERATIONS
    assert published().keys() - ours().keys() == set()


@pytest.mark.parametrize("name", sorted(published()))
def test_nothing_is_missing_and_additions_are_listed(name: str) -> None:
    found = list(compare(name))
    assert [place for kind, place in found if kind == "missing"] == []
    assert [place for kind, place in found if kind == "added" and not any(re.fullmatch(pattern, place) for pattern in ADDED)] == []


def test_every_listed_addition_is_there() -> None:
    places = [place for name in published() for kind, place in compare(name) if kind == "added"]
    assert [pattern for pattern in ADDED if not any(re.fullmatch(pattern, place) for place in places)] == []


def test_the_comparison_can_fail() -> None:
    """Each kind of loss is seen."""
    want: dict[str, Any] = {
        "types": ["object"],
        "fields": {"a": {"types": ["string"], "maxLength": 5}, "b": {"types": ["null", "string"]}},
        "required": ["a"],
    }
    changes: list[tuple[Callable[[Any], object], str]] = [
        (lambda mine: mine["fields"].pop("a"), "x.a"),
        (lambda mine: mine["fields"]["a"].pop("maxLength"), "x.a: maxLength 5, ours None"),
        (lambda mine: mine["fields"]["a"].update(types=["integer"]), "x.a: types ['string'], ours ['integer']"),
        (lambda mine: mine.update(required=["a", "b"]), "x: required ['a'], ours ['a', 'b']"),
        (lambda mine: mine["fields"]["b"].update(types=["string"]), "x.b: types ['null', 'string'], ours ['string']"),
    ]
    for change, seen in changes:
        mine = json.loads(json.dumps(want))
        change(mine)
        assert ("missing", seen) in list(differences(want, mine, "x", request=True))
    tighter = {**want, "fields": {**want["fields"], "b": {"types": ["null", "string"], "maxLength": 3}}}
    assert list(differences(want, tighter, "x", request=True)) == [("added", "x.b: maxLength 3")]
    untyped = {**want, "fields": {**want["fields"], "b": {}}}
    assert list(differences(want, untyped, "x", request=False)) == [("missing", "x.b: types ['null', 'string'], ours []")]


def test_every_reference_leads_somewhere() -> None:
    read = document()
    for reference in set(re.findall(r'"\$ref": ?"#/([^"]+)"', json.dumps(read))):
        node: Any = read
        for step in reference.split("/"):
            assert step in node, reference
            node = node[step]


def test_is_openapi_31_with_the_version_of_the_api() -> None:
    read = document()
    assert read["openapi"] == "3.1.0"
    assert read["info"]["version"] == "3.2.1"
    assert {tag["name"] for tag in read["tags"]} == {routes.name for routes in GROUPS}


def test_every_operation_has_a_summary_and_an_id_of_its_own() -> None:
    operations = [operation for item in document()["paths"].values() for operation in item.values() if isinstance(operation, dict)]
    assert len(operations) == len(list(walk(GROUPS)))
    assert all(operation["summary"] for operation in operations)
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))


def test_requests_are_open_where_unknown_keys_are_ignored() -> None:
    for name, schema in document()["components"]["schemas"].items():
        assert schema.get("additionalProperties") is not False, name
