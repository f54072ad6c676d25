"""The base class of events."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct


class Event(Struct, frozen=True, kw_only=True):
    """An event. Subclasses define the fields; `data` is the part that is sent."""

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    """Version of the type's fields."""
    CATEGORY: ClassVar[str] = ""
    HIGH_VOLUME: ClassVar[bool] = False
    """Whether operators can choose to receive only a sample."""
    RESOURCE: ClassVar[tuple[str, ...]] = ("workspace_name",)
    """Fields that identify the event's subject. Its id is made of them, the type, the time and the
    version."""

    @property
    def resource(self) -> str:
        return "/".join(
            "" if (value := getattr(self, name)) is None else str(value) for name in self.RESOURCE
        )

    @property
    def sampling_key(self) -> str | None:
        """Of events with the same key, all or none are sent. None: each event is sampled by
        itself."""
        return getattr(self, "run_id", None)

    def data(self) -> dict[str, Any]:
        """The fields by name, as JSON values."""
        return {name: _plain(getattr(self, name)) for name in self.__struct_fields__}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
