"""The contract suite of webhook transports, on ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.testing.webhooks import TransportFixture, WebhookTransportContract
from memservice_webhooks.fixtures import http_fixture, jsonl_fixture


class TestHttp(WebhookTransportContract):
    @pytest.fixture
    def world(self) -> Iterator[TransportFixture]:
        with http_fixture() as fixture:
            yield fixture


class TestJsonLines(WebhookTransportContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> Iterator[TransportFixture]:
        with jsonl_fixture(tmp_path) as fixture:
            yield fixture
