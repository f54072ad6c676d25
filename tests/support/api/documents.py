"""The documents of the generations as facts, and how ours differ from those that were published."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from memservice.app import create_app
from memservice.settings import load_settings

DATA = Path(__file__).parent / "data"

_TEXT = {"types": ["string"]}
_PROBLEM: dict[str, Any] = {
    "types": ["object"],
    "fields": {
        "loc": {"types": ["array"], "items": {"types": ["integer", "string"]}},
        "msg": _TEXT,
        "type": _TEXT,
    },
    "required": ["loc", "msg", "type"],
}
REFUSAL: dict[str, Any] = {
    "types": ["object"],
    "fields": {"detail": {"types": ["array"], "items": _PROBLEM}},
    "required": [],
}
"""The body of every 422, whatever was published: what was sent is not repeated in it."""


@cache
def _extract() -> Any:
    spec = importlib.util.spec_from_file_location("extract", DATA / "extract.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def document(generation: str) -> dict[str, Any]:
    """As a server writes it that asks for keys."""
    settings = load_settings(environ={"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40})
    answer = create_app(settings).test_client().get(f"/{generation}/openapi.json")
    assert answer.status_code == 200
    read: dict[str, Any] = json.loads(answer.data)
    return read


@cache
def ours(generation: str) -> dict[str, Any]:
    """What our document says, by operation."""
    facts: dict[str, Any] = _extract().facts(_with_responses(document(generation)))
    return facts


def _with_responses(read: dict[str, Any]) -> dict[str, Any]:
    """The document with references to shared responses followed."""
    copy: dict[str, Any] = json.loads(json.dumps(read))
    for item in copy["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "responses" in operation:
                for status, answer in operation["responses"].items():
                    if "$ref" in answer:
                        operation["responses"][status] = copy["components"]["responses"][
                            answer["$ref"].rpartition("/")[2]
                        ]
    return copy


@cache
def published(generation: str) -> dict[str, Any]:
    """What the published document says, by operation."""
    read: dict[str, Any] = json.loads((DATA / f"{generation}.json").read_text(encoding="utf-8"))
    return read


def differences(theirs: Any, mine: Any, path: str, *, request: bool) -> Iterator[tuple[str, str]]:
    """(`missing` or `added`, path) for each difference between two shapes."""
    their_types, my_types = set(theirs.get("types", ())), set(mine.get("types", ()))
    # A request may be read more leniently, an answer must not surprise. No types would be anything,
    # and says nothing.
    fits = bool(my_types) and (their_types <= my_types if request else my_types <= their_types)
    if their_types and not (fits and (my_types != {"null"} or their_types == {"null"})):
        yield "missing", f"{path}: types {sorted(their_types)}, ours {sorted(my_types)}"
    elif "null" in their_types - my_types:
        yield "added", f"{path}: never null"
    if "enum" in mine and "null" in my_types and None not in mine["enum"]:
        yield "missing", f"{path}: null among {mine['enum']}"
    for bound in _extract().BOUNDS:
        if bound not in theirs:
            if bound in mine and request:
                yield "added", f"{path}: {bound} {mine[bound]}"
            continue
        want, have = theirs[bound], mine.get(bound)
        if bound == "enum":
            want, have = sorted(set(want) - {None}), sorted(set(have or ()) - {None})
        if want != have:
            yield "missing", f"{path}: {bound} {want}, ours {have}"
    # To say that the default is null is to say that there is none.
    if request and (default := theirs.get("default")) != mine.get("default"):
        yield (
            "added" if default is None else "missing",
            f"{path}: default {default}, ours {mine.get('default')}",
        )
    their_fields, my_fields = theirs.get("fields", {}), mine.get("fields", {})
    for name in sorted(their_fields.keys() | my_fields.keys()):
        here = f"{path}.{name}"
        if name not in my_fields:
            yield "missing", here
        elif name not in their_fields:
            yield "added", here
        else:
            yield from differences(their_fields[name], my_fields[name], here, request=request)
    required, have_required = set(theirs.get("required", ())), set(mine.get("required", ()))
    # An answer may promise more.
    if have_required != required if request else not required <= have_required:
        yield "missing", f"{path}: required {sorted(required)}, ours {sorted(have_required)}"
    for inside, mark in (("items", "[]"), ("open", "{}")):
        if inside in theirs:
            if inside not in mine and theirs[inside] == {} and "fields" in mine and not request:
                continue  # any keys at all, which we name
            if inside not in mine:
                yield "missing", f"{path}{mark}"
            else:
                yield from differences(theirs[inside], mine[inside], path + mark, request=request)


def compare(generation: str, name: str) -> Iterator[tuple[str, str]]:
    """(`missing` or `added`, path) for each difference in an operation."""
    theirs, mine = published(generation)[name], ours(generation)[name]
    for parameter in sorted(theirs["parameters"].keys() | mine["parameters"].keys()):
        here = f"{name}: {parameter}"
        if parameter not in mine["parameters"]:
            yield "missing", here
        elif parameter not in theirs["parameters"]:
            yield "added", here
        else:
            want, have = theirs["parameters"][parameter], mine["parameters"][parameter]
            # A query parameter cannot be null, whatever the published types say.
            yield from differences(
                {**want, "types": sorted(set(want["types"]) - {"null"})}, have, here, request=True
            )
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
    for path in theirs["media"].keys() & mine["media"].keys():
        if theirs["media"][path] != mine["media"][path]:
            yield (
                "missing",
                f"{name} {path}: of type {theirs['media'][path]}, ours {mine['media'][path]}",
            )
    for status in sorted(theirs["answers"].keys() | mine["answers"].keys()):
        here = f"{name} answer {status}"
        if status not in mine["answers"]:
            yield "missing", here
        elif status not in theirs["answers"]:
            yield "added", here
        elif status == "422":
            yield from differences(REFUSAL, mine["answers"][status], here, request=False)
        else:
            yield from differences(
                theirs["answers"][status] or {}, mine["answers"][status] or {}, here, request=False
            )
