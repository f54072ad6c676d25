"""The extractive reasoner keeps the contract of a reasoner."""

from __future__ import annotations

import pytest

from memservice.spi.reasoner import Reasoner
from memservice.testing.reasoner import ReasonerContract
from memservice_extractive.reasoner import ExtractiveReasoner


class TestExtractiveReasoner(ReasonerContract):
    @pytest.fixture
    def reasoner(self) -> Reasoner:
        return ExtractiveReasoner()
