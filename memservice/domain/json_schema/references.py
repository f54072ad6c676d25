"""References to the root-level definitions of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from memservice.domain.values import shown

Schema = Mapping[str, Any]

DEFINITIONS = ("$defs", "definitions")


def definition(root: Schema, reference: object) -> tuple[str, Any] | None:
    """Location and content of the root-level definition that a reference names; None for every
    other reference."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    parts = [
        unquote(part).replace("~1", "/").replace("~0", "~") for part in reference[2:].split("/")
    ]
    if len(parts) != 2 or parts[0] not in DEFINITIONS:
        return None
    group = root.get(parts[0])
    if not isinstance(group, Mapping) or parts[1] not in group:
        return None
    return f"$.{parts[0]}.{shown(parts[1])}", group[parts[1]]
