"""The in-memory storage keeps the contract of a storage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memservice.spi.storage import Storage
from memservice.testing.storage import StorageContract
from memservice_memory.storage import MemoryStorage


class TestMemoryStorage(StorageContract):
    @pytest.fixture
    def open_storage(self) -> Callable[[], Storage]:
        return MemoryStorage
