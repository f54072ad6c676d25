"""A fixture for modules whose tests run on PostgreSQL too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.stores.stores import store_of


@pytest.fixture
def store_uri(storage_name: str, tmp_path: Path) -> Iterator[str]:
    """The URI of an empty store. A module that imports it replaces the fixture of this name."""
    with store_of(storage_name, tmp_path) as uri:
        yield uri
