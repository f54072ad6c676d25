"""memservice's own suites, on what this package offers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from memservice_toybox.storage import ToyStorage
from memservice_toybox.text import ToyText
from memservice_toybox.vectors import ToyVectors

from memservice.spi.storage import Storage
from memservice.spi.text import TextIndex
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import Engine
from memservice.testing.storage import StorageContract
from memservice.testing.text import TextIndexContract
from memservice.testing.vectors import VectorIndexContract


def opened(folder: Path) -> ToyStorage:
    storage = ToyStorage(str(folder / "toys.db"))
    storage.migrate()
    return storage


class TestStorage(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> Callable[[], Storage]:
        return lambda: opened(tmp_path)


class TestText(TextIndexContract):
    @pytest.fixture
    def open_index(self, tmp_path: Path) -> Callable[[], Engine[TextIndex]]:
        return lambda: Engine(ToyText(), opened(tmp_path))


class TestVectors(VectorIndexContract):
    @pytest.fixture
    def open_index(self, tmp_path: Path) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(ToyVectors(str(tmp_path / "vectors.db")))
