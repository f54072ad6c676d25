"""Query parameters of listings, converted for the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memservice.services.paging import Paging


def paging(query: Mapping[str, Any]) -> Paging:
    return Paging(page=query["page"], size=query["size"], reverse=query["reverse"])
