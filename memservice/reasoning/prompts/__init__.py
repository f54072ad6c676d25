"""What models are told, one file a task. In English; what they write is in the language of the
messages."""

from __future__ import annotations

import hashlib
from functools import cached_property

from msgspec import Struct


class Prompt(Struct, frozen=True, dict=True):
    """The fixed part of what a model is told for one task."""

    name: str
    text: str

    @cached_property
    def version(self) -> str:
        """Kept with what was made with it. It changes with the text, by itself."""
        return f"{self.name}.{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"
