"""Fields of other systems' objects. An error names the entry and the field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memservice.domain.errors import InvalidInput
from memservice.domain.values import check_json, check_metadata, shown, strip_nul
from memservice.services.transfer.lines import UnreadableExport

_SURROGATE = re.compile("[\ud800-\udfff]")


class Fields:
    """An object of a file."""

    def __init__(self, value: object, where: str) -> None:
        """`where` names the object in messages. Raises `UnreadableExport` if it is none."""
        if not isinstance(value, Mapping):
            raise UnreadableExport(f"{where} is not an object, but {shown(value)!r}")
        self.where = where
        self._value = value

    def __contains__(self, name: str) -> bool:
        return self._value.get(name) is not None

    def names(self) -> list[str]:
        return list(self._value)

    def text(self, *names: str) -> str:
        """The first of these fields that is there. Raises `UnreadableExport` without one."""
        text = self.text_or_none(*names)
        if text is None:
            raise UnreadableExport(f"{self.where} has no {_either(names)}")
        return text

    def text_or_none(self, *names: str) -> str | None:
        """The first of these fields that is neither missing, null nor empty."""
        for name in names:
            value = self._value.get(name)
            if value is None or value == "":
                continue
            if isinstance(value, int) and not isinstance(value, bool):
                value = str(value)  # ids of some systems
            if not isinstance(value, str):
                raise self.wrong(name, "a text")
            return storable(value)
        return None

    def time(self, *names: str) -> datetime | None:
        """The first of these fields that is there: ISO 8601, or seconds since 1970."""
        for name in names:
            value = self._value.get(name)
            if value is None or value == "":
                continue
            try:
                return _time(value)
            except (ValueError, OverflowError, OSError, TypeError):
                raise self.wrong(name, "a time in ISO 8601 or in seconds since 1970") from None
        return None

    def objects(self, name: str) -> list[Fields]:
        """A list of objects; empty if it is missing."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(name, "a list")
        return [Fields(item, f"{self.where} `{name}`[{n}]") for n, item in enumerate(value)]

    def inner(self, name: str) -> Fields | None:
        """An object; None if it is missing."""
        value = self._value.get(name)
        return None if value is None else Fields(value, f"{self.where} `{name}`")

    def metadata(self, name: str) -> dict[str, Any]:
        """An object that can be stored as metadata; empty if it is missing."""
        value = self._value.get(name)
        if value is None:
            return {}
        try:
            check_json(value, ())
            check_metadata(value, ())
        except InvalidInput as error:
            raise UnreadableExport(f"{self.where}: `{name}` cannot be stored: {error}") from error
        metadata: dict[str, Any] = strip_nul(value)
        return metadata

    def raw(self, name: str) -> Any:
        return self._value.get(name)

    def wrong(self, name: str, wanted_type: str) -> UnreadableExport:
        value = shown(self._value.get(name))
        return UnreadableExport(f"{self.where}: `{name}` is {value!r}, but must be {wanted_type}")


def storable(text: str) -> str:
    """Without NUL, and with replacements of halves of characters."""
    text = text.replace("\0", "")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _time(value: object) -> datetime:
    if isinstance(value, bool):
        raise ValueError("no time")
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str):
        raise ValueError("no time")
    time = datetime.fromisoformat(value)
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return time.astimezone(UTC)


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)
