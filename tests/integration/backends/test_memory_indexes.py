"""The in-memory indexes keep the contracts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memservice.spi.text import TextIndex
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import Engine
from memservice.testing.text import TextIndexContract
from memservice.testing.vectors import VectorIndexContract
from memservice_memory.indexes import MemoryTextIndex, MemoryVectorIndex
from memservice_memory.storage import MemoryStorage


class TestMemoryText(TextIndexContract):
    @pytest.fixture
    def open_index(self) -> Callable[[], Engine[TextIndex]]:
        storage = MemoryStorage()
        return lambda: Engine(MemoryTextIndex(), storage)


class TestMemoryVectors(VectorIndexContract):
    @pytest.fixture
    def open_index(self) -> Callable[[], Engine[VectorIndex]]:
        storage = MemoryStorage()
        return lambda: Engine(MemoryVectorIndex(), storage)
