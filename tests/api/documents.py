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


def _extract() -> Any:
    spec = importlib.util.spec_from_file_location("extract", DATA / "extract.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def document(generation: str) -> dict[str, Any]:
    answer = create_app(load_settings(environ={})).test_client().get(f"/{generation}/openapi.json")
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
                        operation["responses"][status] = copy["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return copy


@cache
def published(generation: str) -> dict[str, Any]:
    """What the published document says, by operation."""
    read: dict[str, Any] = json.loads((DATA / f"{generation}.json").read_text(encoding="utf-8"))
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


def compare(generation: str, name: str) -> Iterator[tuple[str, str]]:
    """(`missing` or `added`, place) for each difference in an operation."""
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
