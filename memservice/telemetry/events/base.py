"""What all events have in common."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. Subclasses say what, in fields; `data` is what goes out of them."""

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    """Of the fields of this type."""
    CATEGORY: ClassVar[str] = ""
    HIGH_VOLUME: ClassVar[bool] = False
    """So many that an operator may want only a share of them."""
    RESOURCE: ClassVar[tuple[str, ...]] = ("workspace_name",)
    """Fields that say which thing the event is about; with type, time and version they make its
    id."""

    @property
    def resource(self) -> str:
        return "/".join(
            "" if (value := getattr(self, name)) is None else str(value) for name in self.RESOURCE
        )

    @property
    def sampling_key(self) -> str | None:
        """Events with the same key are all sent or none is; None: each event by itself."""
        return getattr(self, "run_id", None)

    def data(self) -> dict[str, Any]:
        """Its fields by name, as JSON knows them."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
