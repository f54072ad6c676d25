"""Metrics of several processes, added up, and the worker's own."""

from __future__ import annotations

import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.telemetry.test_metrics import value
from support.processes.processes import Service, eventually

pytestmark = pytest.mark.e2e

Serve = Callable[..., Service]


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def directories(tmp: Path) -> list[Path]:
    return list(tmp.glob("memservice-metrics-*"))


def test_each_process_serves_the_counts_of_all_and_the_worker_its_own(
    serve: Serve, tmp_path: Path
) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    port = free_port()
    service = serve(
        "--port",
        "0",
        "--workers",
        "3",
        METRICS_ENABLED="true",
        METRICS_PORT=str(port),
        TMPDIR=str(tmp),
    )
    url = service.server.url
    service.server.wait_until_healthy()
    with ThreadPoolExecutor(12) as pool:
        list(
            pool.map(lambda number: fetch(f"{url}/v3/workspaces/w{number}/queue/status"), range(90))
        )
    pages = [fetch(f"{url}/metrics") for _ in range(6)]
    route = {"method": "GET", "endpoint": "/v3/workspaces/{workspace_id}/queue/status"}
    assert {value(text, "api_requests_total", status_code="200", **route) for text in pages} == {90}
    assert value(pages[0], "api_request_duration_seconds_count", **route) == 90
    assert len(directories(tmp)) == 2, "one for the server, one for the worker"
    assert (
        len(
            {
                path.stem.rpartition("_")[2]
                for folder in directories(tmp)
                for path in folder.glob("counter_*.db")
            }
        )
        >= 3
    )

    body = b'{"messages": [{"peer_id": "ann", "content": "I like tea."}]}'
    request = urllib.request.Request(
        f"{url}/v3/workspaces/w/sessions/s/messages", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10):
        pass
    done = {"workspace_name": "w", "task_type": "representation"}

    def is_counted() -> bool:
        try:
            return (
                value(
                    fetch(f"http://127.0.0.1:{port}/metrics"),
                    "deriver_queue_items_processed_total",
                    **done,
                )
                == 1
            )
        except (KeyError, OSError):
            time.sleep(0.1)
            return False

    eventually(is_counted, what="the worker tells that it worked")
    assert service.server.stop() == 0
    assert directories(tmp) == []


def test_metrics_are_off_by_default(serve: Serve) -> None:
    service = serve("--port", "0")
    service.server.wait_until_healthy()
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(f"{service.server.url}/metrics")
    assert refused.value.code == 404
    refused.value.close()
    assert os.environ.get("PROMETHEUS_MULTIPROC_DIR") is None
