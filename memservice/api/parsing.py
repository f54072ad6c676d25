"""Parsing of requests: query string, headers and body as plain values, with all problems reported
together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from flask import Request
from marshmallow import Schema, ValidationError, fields

from memservice.api.fields import Nested, TypedMessage
from memservice.api.schema import AliasedSchema, BaseSchema
from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.values import loads, name_problem, shown
from memservice.settings.unknown_names import did_you_mean

_NOTHING = object()

_UNKNOWN = "extra_forbidden"
_MAX_UNKNOWN = 10
"""Maximum number of unknown names in one error response."""
_MAX_NAMED_BODY = 10_000
"""Maximum bytes of a refused body whose fields are named in the error."""
_MAX_HINTED = 100
"""Maximum number of characters of an unknown name that are compared with the known ones."""


class QueryReader:
    """Parses the query string with a schema. Unknown parameters are ignored; the last of several
    values counts."""

    def __init__(self, schema: type[Schema]) -> None:
        self._schema = schema()
        self._many = {
            field.data_key or name: isinstance(field, fields.List)
            for name, field in self._schema.load_fields.items()
        }

        if isinstance(self._schema, AliasedSchema):
            self._many |= {other: self._many[name] for name, other in self._schema.ALIASES.items()}

    def read(self, request: Request, problems: list[Problem]) -> dict[str, Any]:
        if not request.query_string:
            return self._load({}, problems)
        try:
            arguments = request.args
        except UnicodeDecodeError:
            problems.append(Problem(("query",), "The query string is not UTF-8"))
            return {}
        values = {
            name: arguments.getlist(name) if many else arguments.getlist(name)[-1]
            for name, many in self._many.items()
            if name in arguments
        }
        return self._load(values, problems)

    def _load(self, values: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
        try:
            loaded: dict[str, Any] = self._schema.load(values)
        except ValidationError as error:
            problems.extend(flatten(error.messages, ("query",)))
            return {}
        return loaded


class StrictReader:
    """Refuses unknown and repeated query parameters, and any body, which other routes ignore.

    For routes on which a misspelt or misplaced scope would be the same as no scope, or an ignored
    `dry_run` would erase. An empty body (absent, blank, `null` or `{}`) is accepted: some clients
    send one with every POST.
    """

    def __init__(self, query: type[Schema] | None) -> None:
        fields = {} if query is None else query().load_fields
        self._parameter_names = [field.data_key or name for name, field in fields.items()]
        self._parameters_text = (
            f"Known parameters: {', '.join(self._parameter_names)}"
            if self._parameter_names
            else "This route takes no parameters"
        )

    def check(self, request: Request, problems: list[Problem]) -> None:
        problems.extend(self._parameters(request))
        problems.extend(self._body(request))

    def _parameters(self, request: Request) -> Iterator[Problem]:
        try:
            arguments = request.args
        except UnicodeDecodeError:
            if not self._parameter_names:  # otherwise the reader of the parameters reports it
                yield Problem(("query",), "The query string is not UTF-8")
            return
        unknown = [name for name in arguments if name not in self._parameter_names]
        for name in unknown[:_MAX_UNKNOWN]:
            yield Problem(
                ("query", shown(name)),
                f"Unknown parameter{self._hint(name)} {self._parameters_text}",
                _UNKNOWN,
            )
        for name in self._parameter_names:
            if len(arguments.getlist(name)) > 1:
                yield Problem(("query", name), "The parameter is repeated: send it once")

    def _body(self, request: Request) -> Iterator[Problem]:
        raw = request.get_data(cache=False)
        if not raw or raw.isspace():
            return
        try:
            value = loads(raw, ("body",)) if len(raw) <= _MAX_NAMED_BODY else _NOTHING
        except InvalidInput:
            value = _NOTHING
        if value is None or value == {}:
            return
        names = list(value)[:_MAX_UNKNOWN] if isinstance(value, dict) else []
        for name in names:
            hint = (
                "; send it as a query parameter."
                if name in self._parameter_names
                else self._hint(name)
            )
            yield Problem(
                ("body", shown(name)),
                f"This route reads no body{hint} {self._parameters_text}",
                _UNKNOWN,
            )
        if not names:
            yield Problem(
                ("body",),
                f"This route reads no body; leave it empty. {self._parameters_text}",
                _UNKNOWN,
            )

    def _hint(self, name: str) -> str:
        return did_you_mean(name[:_MAX_HINTED], self._parameter_names, cutoff=0.7) or "."


def refuse(request: Request, refused: Mapping[str, str], problems: list[Problem]) -> None:
    """Report these query parameters, each with the reason."""
    with suppress(UnicodeDecodeError):  # without UTF-8, none of them was sent
        problems.extend(
            Problem(("query", name), reason, _UNKNOWN)
            for name, reason in refused.items()
            if name in request.args
        )


class HeaderReader:
    """Parses headers with a schema whose fields have the header as `data_key`."""

    def __init__(self, schema: type[Schema]) -> None:
        self._schema = schema()
        self._names = [field.data_key or name for name, field in self._schema.load_fields.items()]

    def read(self, request: Request, problems: list[Problem]) -> dict[str, Any]:
        values = {name: request.headers[name] for name in self._names if name in request.headers}
        try:
            loaded: dict[str, Any] = self._schema.load(values)
        except ValidationError as error:
            problems.extend(flatten(error.messages, ("header",)))
            return {}
        return loaded


class BodyReader:
    """Parses a JSON body with a schema, or with a field if the body is not an object with fixed
    keys.

    An `optional` body may be absent, empty or `null`, which all mean `{}`.
    """

    def __init__(self, shape: type[Schema] | fields.Field[Any], optional: bool = False) -> None:
        root = Nested(shape, required=True) if isinstance(shape, type) else shape
        self._schema = BaseSchema.from_dict({"body": root})()
        self._optional = optional

    def read(self, request: Request, problems: list[Problem]) -> Any:
        try:
            value = self._value(request)
        except InvalidInput as error:
            problems.extend(error.problems)
            return None
        if value is _NOTHING and self._optional:
            value = {}
        try:
            return self._schema.load({} if value is _NOTHING else {"body": value})["body"]
        except ValidationError as error:
            problems.extend(flatten(error.messages, ()))
            return None

    @staticmethod
    def _value(request: Request) -> Any:
        raw = request.get_data(cache=False)
        if not raw or raw.isspace():
            return _NOTHING
        if not (claims_json(request) or _is_untyped(request)):
            raise InvalidInput.at(
                "body",
                message="The body must be JSON, sent with Content-Type: application/json",
                kind="model_attributes_type",
            )
        value = loads(raw, ("body",))
        return _NOTHING if value is None else value


def claims_json(request: Request) -> bool:
    """Whether the body is declared as JSON. Browsers send such a body from another origin's page
    only after a preflight."""
    main = (request.content_type or "").partition(";")[0].strip().lower()
    return main == "application/json" or (
        main.startswith("application/") and main.endswith("+json")
    )


def _is_untyped(request: Request) -> bool:
    """Whether the body may be parsed as JSON without a type. Not from a web page: pages of any site
    can send one without a preflight."""
    return not request.content_type and "Origin" not in request.headers


def path_problems(path: Mapping[str, str]) -> Iterator[Problem]:
    """Problems of the path's parameters, before any look-up.

    Most paths contain a workspace and many create it, so its name is validated here. In other names
    only NUL is refused, since some stores cannot search for it: some rows (scopes) have names that
    callers cannot create.
    """
    for name, value in path.items():
        if name == "workspace_id" and (problem := name_problem(value)) is not None:
            yield Problem(("path", name), problem, "string_pattern_mismatch")
        elif "\0" in value:
            yield Problem(("path", name), "Names must not contain NUL")


def flatten(node: Any, loc: tuple[str | int, ...]) -> Iterator[Problem]:
    """Convert marshmallow's tree of messages to problems."""
    if isinstance(node, dict):
        for key, inner in node.items():
            step = key if isinstance(key, int) else shown(key)
            yield from flatten(inner, loc if key == "_schema" else (*loc, step))
    elif isinstance(node, list | tuple):
        for inner in node:
            yield from flatten(inner, loc)
    else:
        yield Problem(
            loc, str(node), node.code if isinstance(node, TypedMessage) else "value_error"
        )
