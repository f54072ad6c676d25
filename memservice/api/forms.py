"""Parsing of form requests: files and text fields."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import IO, Any

from flask import Request, current_app
from marshmallow import Schema, ValidationError, fields
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from memservice.api.cors import Cors
from memservice.api.fields import String, TypedMessage
from memservice.api.parsing import flatten
from memservice.domain.errors import InvalidInput, Problem, Refused, TooLarge
from memservice.domain.values import loads

FORM = "multipart/form-data"


class File(fields.Field[FileStorage]):
    """A form part with a file name."""

    default_error_messages = {  # noqa: RUF012 - marshmallow's own way
        "required": TypedMessage("Field required", "missing"),
        "invalid": TypedMessage(
            "Expected a file: a part of the form with a file name", "value_error"
        ),
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(metadata={"type": "string", "format": "binary"}, **kwargs)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> FileStorage:
        if not isinstance(value, FileStorage):
            raise self.make_error("invalid")
        return value


class JsonText(String):
    """A form text that contains JSON. Errors are located inside it, as in a JSON body."""

    def __init__(self, inner: fields.Field[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._inner = inner

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            parsed = loads(text.encode("utf-8", "surrogatepass"), ())
        except InvalidInput as error:
            raise ValidationError(_tree(error)) from error
        return None if parsed is None else self._inner.deserialize(parsed)


def _tree(error: InvalidInput) -> Any:
    """The first problem as a tree of its location in the text."""
    problem = error.problems[0]
    tree: Any = [TypedMessage(problem.message, problem.kind)]
    for step in reversed(problem.loc):
        tree = {step: tree}
    return tree


UNREADABLE = (
    "The form cannot be read: it is incomplete, its boundary differs from its Content-Type, "
    "or a name in it is not UTF-8"
)


def _too_large(request: Request) -> str:
    return (
        f"The form is too large: it may have {request.max_form_parts} parts, "
        f"{request.max_form_memory_size} bytes in a part that is not a file, "
        f"and {request.max_content_length} bytes in total"
    )


_NONE = ("", "null")
"""Form texts that mean null; the second one only for nullable fields, since a form has no other
notation."""


class _Parser(FormDataParser):
    """A parser that raises for an unreadable form, instead of returning an empty one, and then
    closes its files."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.silent = False

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        with ExitStack() as opened:
            make = self.stream_factory

            def open_file(*about: Any, **more: Any) -> IO[bytes]:
                return opened.enter_context(make(*about, **more))

            self.stream_factory = open_file
            parsed = super().parse(*args, **kwargs)
            opened.pop_all()  # the request owns and closes them now
            return parsed


class FormReader:
    """Parses a form with a schema. The last of several texts counts; several files are an error."""

    def __init__(self, schema: type[Schema]) -> None:
        self._schema = schema()

    def read(self, request: Request, problems: list[Problem]) -> dict[str, Any]:
        if request.mimetype != FORM:
            problems.append(
                Problem(
                    ("body",),
                    f"The body must be a form, sent with Content-Type: {FORM}",
                    "model_attributes_type",
                )
            )
            return {}
        request.form_data_parser_class = _Parser
        try:
            files, texts = request.files, request.form
        except ValueError:
            problems.append(Problem(("body",), UNREADABLE, "value_error"))
            return {}
        except RequestEntityTooLarge as error:
            raise TooLarge(_too_large(request)) from error
        values_by_name: dict[str, Any] = {}
        for name, field in self._schema.load_fields.items():
            values = [*files.getlist(name), *texts.getlist(name)]
            if (number := len(files.getlist(name))) > 1:
                problems.append(
                    Problem(
                        ("body", name),
                        f"Expected one file, got {number}: send each in a request of its own",
                    )
                )
            if values and values[-1] not in (_NONE if field.allow_none else _NONE[:1]):
                values_by_name[name] = values[-1]
        try:
            loaded: dict[str, Any] = self._schema.load(values_by_name)
        except ValidationError as error:
            problems.extend(flatten(error.messages, ("body",)))
            return {}
        return loaded


def refuse_cross_site(request: Request) -> None:
    """Raises `Refused` for requests of web pages that are not permitted. For forms, requests
    without a body and images, browsers send no preflight."""
    if not Cors(current_app.extensions["memservice"].settings.app.cors_origins).may_write(request):
        raise Refused("Disallowed CORS origin")
