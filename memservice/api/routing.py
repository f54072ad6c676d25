"""Routes: each is one declaration of its access, its input and its response; view and documentation
are derived from it.

A handler is a function `handler(call, **path)`; it returns the data for the response's schema, or
`(data, status)`, or a complete response. At import the declaration becomes a view. What the view
parses, validates and encodes with is made for its first request, and the description from which
flask-smorest generates the document for the first request of that: a server has two hundred
routes, and few processes serve them all.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import flask_smorest
from flask import Response, current_app, request
from flask.sansio.blueprints import BlueprintSetupState
from marshmallow import Schema, fields
from msgspec import Struct, field
from werkzeug.exceptions import MethodNotAllowed

from memservice.api import auth
from memservice.api.answers import empty_answer, json_answer
from memservice.api.auth import RouteAccess
from memservice.api.encoding import encoder
from memservice.api.fields import List, Map
from memservice.api.forms import FORM, FormReader, refuse_cross_site
from memservice.api.locations import Loc, Locations
from memservice.api.parsing import (
    BodyReader,
    HeaderReader,
    QueryReader,
    StrictReader,
    claims_json,
    path_problems,
    refuse,
)
from memservice.api.service_schemas import HTTPError, HTTPValidationError
from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.sizes import MAX_LARGE_BODY
from memservice.services.auth.principal import Principal

if TYPE_CHECKING:
    from memservice.runtime import Runtime

EXTENSION = "memservice"
"""Key of the application's `Opened` in `app.extensions`."""

Handler = TypeVar("Handler", bound=Callable[..., Any])
_Read = Callable[[Mapping[str, str]], tuple[Any, Any, Any]]
_Respond = Callable[[Any, Mapping[str, str]], Response]


class Call(Struct, frozen=True):
    """One request, parsed and validated."""

    rt: Runtime
    principal: Principal
    query: Mapping[str, Any]
    headers: Mapping[str, Any]
    body: Any


class Operation(Struct, frozen=True):
    """The declaration of a route."""

    method: str
    rule: str
    access: RouteAccess
    query: type[Schema] | None = None
    headers: type[Schema] | None = None
    body: type[Schema] | fields.Field[Any] | None = None
    body_optional: bool = False
    form: type[Schema] | None = None
    """The body is a form with this schema instead."""
    large: bool = False
    """The body has long texts, so its limit is `MAX_LARGE_BODY` instead of `MAX_BODY`."""
    answer: type[Schema] | None = None
    """The schema of the response body; None: no body."""
    many: bool = False
    """The response is a list of `answer`."""
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that the response can have, with their descriptions."""
    status: Sequence[int] = field(default=(200,))
    """All statuses of success; the first is the default."""
    null: bool = False
    """The response body is `null`."""
    writes: bool = False
    """A GET with side effects, of which this API has some. It accepts no HEAD, and no request of a
    page that is not permitted."""
    reads: bool = False
    """A POST that only reads. It may be answered from a replica, as every GET without side effects
    may."""
    stream: bool = False
    """The response can also be a stream of events."""
    file: str | None = None
    """The response is a file of this media type."""
    key_optional: bool = False
    """The document declares the key as optional, for compatibility. It is required nevertheless."""
    strict: bool = False
    """Refuse unknown query parameters and any body instead of ignoring them (`StrictReader`)."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Query parameters that are refused, although others are ignored, with the reason."""
    locations: Mapping[Loc, Loc] = field(default_factory=dict)
    """Locations of service arguments with another name in the request, by their beginning
    (`Locations.exceptions`)."""
    alone: bool = False
    """The handler has no parameter `call`: the stores are not opened for it."""


class Routes(flask_smorest.Blueprint):  # type: ignore[misc]  # flask-smorest has no types
    """A group of operations: one tag of its generation's document."""

    def __init__(self, name: str, description: str, generation: str = "v3") -> None:
        super().__init__(f"{generation} {name}", __name__, description=description)
        self.tag = name
        self.operations: list[tuple[Operation, str]] = []
        """Each operation with the name of its handler."""
        self.undocumented: list[tuple[str, str]] = []
        """Methods and rules of additional routes to them."""
        self._undescribed: list[Callable[[], None]] = []

    def operation(
        self, method: str, rule: str, *, also: Sequence[str] = (), **declared: Any
    ) -> Callable[[Handler], Handler]:
        """Register the decorated function as the handler of `method rule`. `also`: other rules for
        it, not documented."""
        operation = Operation(method, rule, **declared)

        def decorate(handler: Handler) -> Handler:
            name = handler.__name__
            self.operations.append((operation, name))
            view = self._view(operation, handler)
            self.add_url_rule(rule, name, view, methods=[method], tags=[self.tag])
            for other in also:
                self._add_undocumented(other, f"{name}_too", view, method)
            return handler

        return decorate

    def _store_endpoint_docs(
        self, endpoint: str, obj: Callable[..., Response], *args: Any, **options: Any
    ) -> None:
        operation, name = self.operations[-1]
        store = super()._store_endpoint_docs

        def describe() -> None:
            obj._apidoc = {"manual_doc": _description(operation, name)}  # type: ignore[attr-defined]  # where flask-smorest looks
            obj.__doc__ = _unwrap(obj.__doc__ or "")
            store(endpoint, obj, *args, **options)

        self._undescribed.append(describe)

    def register_views_in_doc(self, *args: Any, **options: Any) -> None:
        while self._undescribed:
            self._undescribed.pop(0)()
        super().register_views_in_doc(*args, **options)

    def _view(self, operation: Operation, handler: Handler) -> Callable[..., Response]:
        """The view of an operation."""
        return _view(operation, handler)

    def _add_undocumented(
        self, rule: str, name: str, view: Callable[..., Response], method: str
    ) -> None:
        self.undocumented.append((method, rule))
        self.record(lambda state: self._serve(state, rule, name, view, method))

    def _serve(
        self,
        state: BlueprintSetupState,
        rule: str,
        name: str,
        view: Callable[..., Response],
        method: str,
    ) -> None:
        state.add_url_rule(rule, name, view, methods=[method])


def _view(operation: Operation, handler: Callable[..., Any]) -> Callable[..., Response]:
    access, alone, writes = operation.access, operation.alone, operation.writes
    changes = writes or operation.method != "GET"
    reads = operation.reads or not (changes or access.open)

    @cache
    def parts() -> tuple[_Read, _Respond, Locations]:
        return _reader(operation), _responder(operation), _locations(operation)

    def view(**path: str) -> Response:
        read_parts, respond, locations = parts()
        if writes and request.method == "HEAD":
            raise MethodNotAllowed(valid_methods=[operation.method])
        # A browser sends JSON from another origin's page only after a preflight, but anything else
        # without one, including an empty body.
        if changes and not claims_json(request):
            refuse_cross_site(request)
        extension = current_app.extensions[EXTENSION]
        principal = auth.principal(extension, access, path)
        query, headers, body = read_parts(path)
        try:
            if alone:
                result = handler()
            else:
                rt = extension.runtime
                call = partial(handler, Call(rt, principal, query, headers, body), **path)
                result = rt.reading(call) if reads else call()
        except InvalidInput as error:
            raise locations.with_locations(error) from error
        return result if isinstance(result, Response) else respond(result, path)

    view.__name__ = handler.__name__
    view.__doc__ = handler.__doc__
    return view


def _reader(operation: Operation) -> _Read:
    """A function that returns query, headers and body of the current request, or raises
    InvalidInput with all of their problems."""
    read_query = QueryReader(operation.query).read if operation.query else None
    read_headers = HeaderReader(operation.headers).read if operation.headers else None
    read_body = (
        BodyReader(operation.body, operation.body_optional).read
        if operation.body is not None
        else None
    )
    if operation.form is not None:
        read_body = FormReader(operation.form).read
    refuse_unknown = StrictReader(operation.query).check if operation.strict else None
    refused = operation.refused
    large = operation.large

    def read(path: Mapping[str, str]) -> tuple[Any, Any, Any]:
        if large:
            request.max_content_length = MAX_LARGE_BODY
        problems: list[Problem] = list(path_problems(path))
        if refuse_unknown:
            refuse_unknown(request, problems)
        if refused:
            refuse(request, refused, problems)
        query = read_query(request, problems) if read_query else {}
        headers = read_headers(request, problems) if read_headers else {}
        body = read_body(request, problems) if read_body else None
        if problems:
            raise InvalidInput(*problems)
        return query, headers, body

    return read


def _responder(operation: Operation) -> _Respond:
    """A function that turns a handler's result, `(result, status)` or `(result, status, headers)`,
    into a response."""
    encode = encoder(operation.answer, keep_times=True) if operation.answer else None
    default_status, many, null = operation.status[0], operation.many, operation.null

    def respond(result: Any, path: Mapping[str, str]) -> Response:
        if type(result) is tuple:
            result, status, *rest = result
            response = answer(result, status, path)
            if rest:
                response.headers.update(rest[0])
            return response
        return answer(result, default_status, path)

    def answer(result: Any, status: int, path: Mapping[str, str]) -> Response:
        if encode is None:
            return json_answer(None, status) if null else empty_answer(status)
        return json_answer(
            [encode(row, path) for row in result] if many else encode(result, path), status
        )

    return respond


def _locations(operation: Operation) -> Locations:
    body = operation.form or operation.body
    return Locations(
        path=re.findall(r"<(\w+)>", operation.rule),
        query=_names(operation.query),
        headers={name: key for key, name in _names(operation.headers).items()},
        body=_names(body) if isinstance(body, type) else (),
        exceptions=operation.locations,
    )


def _names(schema: type[Schema] | None) -> dict[str, str]:
    """Wire name → attribute of a schema."""
    declared = {} if schema is None else schema._declared_fields
    return {part.data_key or name: name for name, part in declared.items()}


def _unwrap(docstring: str) -> str:
    """The docstring with one line per paragraph, for the OpenAPI document."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _description(operation: Operation, name: str) -> dict[str, Any]:
    """The operation as OpenAPI, with schemas that flask-smorest replaces by references."""
    described: dict[str, Any] = {"operationId": name, "responses": {}}
    for status in operation.status:
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if operation.answer is not None:
            shape: Any = (
                {"type": "array", "items": operation.answer} if operation.many else operation.answer
            )
            answer["content"] = {"application/json": {"schema": shape}}
        if operation.answer_headers:
            answer["headers"] = {
                header: {"description": text, "schema": {"type": "string"}}
                for header, text in operation.answer_headers.items()
            }
        if operation.stream:
            answer["content"]["text/event-stream"] = {}
        if operation.file is not None:
            answer["content"] = {operation.file: {"schema": {"type": "string"}}}
        if operation.null:
            answer["content"] = {"application/json": {"schema": {}}}
        described["responses"][str(status)] = answer
    if operation.query or operation.body is not None or operation.strict or "<" in operation.rule:
        wrong = {
            "description": "Validation Error",
            "content": {"application/json": {"schema": HTTPValidationError}},
        }
        described["responses"]["422"] = wrong
    parameter_schemas = (("query", operation.query), ("header", operation.headers))
    if not operation.access.open:
        described["security"] = [
            {auth.SECURITY_SCHEME: []},
            *([{}] if operation.key_optional else []),
        ]
        refused = {
            "description": "Unauthorized",
            "content": {"application/json": {"schema": HTTPError}},
        }
        described["responses"]["401"] = refused
    described["parameters"] = [
        {"in": where, "schema": schema} for where, schema in parameter_schemas if schema is not None
    ]
    if operation.body is not None:
        shape = _body_schema(operation.body)
        content = {
            "schema": {"anyOf": [shape, {"type": "null"}]} if operation.body_optional else shape
        }
        described["requestBody"] = {
            "required": not operation.body_optional,
            "content": {"application/json": content},
        }
    if operation.form is not None:
        described["requestBody"] = {"required": True, "content": {FORM: {"schema": operation.form}}}
    return described


def _body_schema(body: type[Schema] | fields.Field[Any]) -> Any:
    if isinstance(body, type):
        return body
    if isinstance(body, fields.Nested):
        return type(body.schema)
    if isinstance(body, List):
        return {"type": "array", "items": {"type": "string"}}
    if isinstance(body, Map) and isinstance(body.value_field, fields.Nested):
        return {
            "type": "object",
            "additionalProperties": {
                "$ref": f"#/components/schemas/{type(body.value_field.schema).__name__}"
            },
        }
    raise TypeError(f"cannot describe a body of {type(body).__name__}")


def walk(groups: Sequence[Routes]) -> list[tuple[Operation, str]]:
    """All operations of these groups."""
    return [declared for group in groups for declared in group.operations]
