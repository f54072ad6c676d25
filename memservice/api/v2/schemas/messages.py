"""Messages, searches and uploads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memservice.api.fields import List, Nested, String
from memservice.api.forms import JsonText
from memservice.api.v2 import client
from memservice.api.v2.schemas.base import Listing
from memservice.api.v2.schemas.configuration import MessageConfiguration
from memservice.api.v3.schemas import messages
from memservice.api.validators import Length, LengthOfSetting
from memservice.domain.filters import resources


class _ContentLength(LengthOfSetting):
    """The limit of the first version was twice as high."""

    EARLIEST = 50_000

    @property
    def max(self) -> int:
        limit = super().max
        return max(limit, self.EARLIEST) if client.current().uses_earliest_path else limit


class MessageCreate(messages.MessageCreate):
    content = String(required=True, validate=_ContentLength("max_message_size", 25_000))
    configuration = Nested(MessageConfiguration, allow_none=True, load_default=None)


class MessageBatchCreate(messages.MessageBatchCreate):
    messages = List(Nested(MessageCreate), required=True, validate=Length(1, 100))


class MessageUpload(messages.MessageUpload):
    configuration = JsonText(
        Nested(MessageConfiguration),
        allow_none=True,
        load_default=None,
        metadata={"description": "A JSON object"},
    )


class MessageGet(Listing):
    RESOURCE = resources.MESSAGE


class MessageSearchOptions(messages.MessageSearchOptions):
    class Meta(messages.MessageSearchOptions.Meta):
        exclude = ("explain",)


class SearchBody(Nested):
    """The body of a search. The first clients send only the text."""

    def __init__(self) -> None:
        super().__init__(MessageSearchOptions, required=True)

    def _deserialize(
        self,
        value: Any,
        attr: str | None,
        data: Mapping[str, Any] | None,
        partial: Any = None,
        **kwargs: Any,
    ) -> Any:
        bare = isinstance(value, str)
        value_read = super()._deserialize(
            {"query": value} if bare else value, attr, data, partial, **kwargs
        )
        return {**value_read, "bare": bare}
