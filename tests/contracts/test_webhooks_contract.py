"""The contract suite of webhook transports, on ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.testing.webhooks import WebhookTransportContract, World
from memservice_webhooks.fixtures import (
    http_world,
    jsonl_world,
)


class TestHttp(WebhookTransportContract):
    @pytest.fixture
    def world(self) -> Iterator[World]:
        with http_world() as made:
            yield made


class TestJsonLines(WebhookTransportContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> Iterator[World]:
        with jsonl_world(tmp_path) as made:
            yield made
