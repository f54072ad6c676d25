"""The contract suite of webhook transports, on ours."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.testing.webhooks import WebhookTransportContract, World
from memservice_webhooks.http import HttpTransport
from memservice_webhooks.jsonl import JsonLinesTransport
from receiver import LOOPBACK, Receiver, hang, receiving


def closed_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def http_world(good: Receiver, bad: Receiver, stuck: Receiver) -> World:
    bad.answers(500, 302, 404, 410)
    stuck.behave = hang
    return World(
        transport=HttpTransport((LOOPBACK,), timeout_seconds=1.0),
        url=good.url(),
        received=lambda: [(request.headers, request.body) for request in good.requests],
        failing=[f"http://127.0.0.1:{closed_port()}/", "http://nowhere.invalid/", bad.url("/1"), bad.url("/2"), bad.url("/3")],
        refused=["http://10.0.0.1/", "https://[::1]/", "http://", "http://user@127.0.0.1/", "http://127.0.0.1:0/"],
        stuck=stuck.url(),
        patience_seconds=1.0,
    )


def jsonl_world(folder: Path) -> World:
    (folder / "linked.jsonl").symlink_to(folder / "elsewhere")
    (folder / "dir.jsonl").mkdir()
    file = folder / "events.jsonl"

    def received() -> list[tuple[dict[str, str], bytes]]:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(line["headers"], line["body"].encode()) for line in map(json.loads, lines)]

    return World(
        transport=JsonLinesTransport(str(folder)),
        url="jsonl:events",
        received=received,
        failing=["jsonl:linked", "jsonl:dir"],
        refused=["jsonl:", "jsonl:../events", "jsonl:/etc/passwd", "jsonl://events", "jsonl:a.b", "jsonl:events\n", "jsonl:" + "a" * 101],
    )


class TestHttp(WebhookTransportContract):
    @pytest.fixture
    def world(self) -> Iterator[World]:
        with receiving() as good, receiving() as bad, receiving() as stuck:
            yield http_world(good, bad, stuck)


class TestJsonLines(WebhookTransportContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        return jsonl_world(tmp_path)
