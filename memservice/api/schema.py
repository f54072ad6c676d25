"""The base of all schemas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, ValidationError, pre_load

from memservice.api.fields import Integer, List, Name, Nested, TypedMessage
from memservice.api.validators import Length, Pattern

NAME_PATTERN = "^[a-zA-Z0-9_-]+$"


_MESSAGES: dict[str, str] = {
    "type": TypedMessage(
        "Input should be a valid dictionary or object to extract fields from",
        "model_attributes_type",
    ),
}


class BaseSchema(Schema):
    """Unknown keys are ignored, in validation and in the document."""

    error_messages = _MESSAGES

    class Meta:
        unknown = EXCLUDE

    @classmethod
    def resolve_hooks(cls) -> dict[str, Any]:
        """Like marshmallow's own, which looks for each attribute in each base: for two hundred
        schemas that takes longer than all else of making them. Most have the hooks of their one
        base."""
        inherited: dict[str, Any] = cls.__bases__[0]._hooks  # type: ignore[attr-defined]
        hook_names = {name for hooks in inherited.values() for name, *_ in hooks}
        own = vars(cls)
        if (
            len(cls.__bases__) == 1
            and hook_names.isdisjoint(own)
            and not any(hasattr(value, "__marshmallow_hook__") for value in own.values())
        ):
            return inherited
        return type(cls).resolve_hooks(cls)  # pyrefly: ignore[missing-attribute]


class AliasedSchema(BaseSchema):
    """A schema with second names for some keys. If both are present, the first name wins."""

    ALIASES: ClassVar[Mapping[str, str]]
    """Name → other name."""

    @pre_load
    def _rename(self, data: Any, **kwargs: Any) -> Any:
        if isinstance(data, dict):
            for name, other in self.ALIASES.items():
                if name not in data and other in data:
                    data = {**data, name: data[other]}
        return data

    def handle_error(self, error: ValidationError, data: Any, **kwargs: Any) -> None:
        """Report errors under the name in the request."""
        for name, other in self.ALIASES.items():
            if (
                isinstance(data, dict)
                and isinstance(error.messages, dict)
                and name not in data
                and other in data
            ):
                error.messages.update(
                    {other: error.messages.pop(name)} if name in error.messages else {}
                )


class NewName(Name):
    """The id of a new resource."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=True, validate=[Length(1, 512), Pattern(NAME_PATTERN)], **kwargs)


@cache
def page_of(item: type[BaseSchema]) -> type[BaseSchema]:
    """The envelope of a listing, with its name in the OpenAPI document."""
    return type(
        f"Page_{item.__name__}_",
        (BaseSchema,),
        {
            "items": List(Nested(item), required=True),
            "total": Integer(required=True, metadata={"minimum": 0}),
            "page": Integer(required=True, metadata={"minimum": 1}),
            "size": Integer(required=True, metadata={"minimum": 1}),
            "pages": Integer(required=True, metadata={"minimum": 0}),
            "__doc__": f"A page of a listing of {item.__name__}.",
            "__module__": item.__module__,
        },
    )
