"""`/metrics` of RQ workers: several processes, one port, and one sum that outlives any of them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.serving.test_metrics import fetch, free_port
from services.telemetry.test_metrics import value
from support.processes.processes import below, eventually, send
from support.rq.workers import Delivery

pytestmark = [pytest.mark.crash]

Deliver = Callable[..., Delivery]


def test_one_port_serves_the_metrics_of_all_processes_whichever_ends(
    deliver: Deliver, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    url = f"http://127.0.0.1:{(port := free_port())}/metrics"
    delivery = deliver(METRICS_ENABLED="true", METRICS_PORT=str(port), TMPDIR=str(temporary))

    def counts(number: int) -> bool:
        done = {
            "namespace": delivery.settings["NAMESPACE"],
            "workspace_name": "w",
            "task_type": "representation",
        }
        try:
            return value(fetch(url), "deriver_queue_items_processed_total", **done) == number
        except (KeyError, OSError):
            return False

    pool = delivery.worker("--num-workers", "3")
    for number in range(12):
        delivery.say(f"s{number}", f"I sold {number + 2} lamps in May.")
    eventually(lambda: counts(12), what="one endpoint reports all counts")
    for child in below(pool.pid):
        send(child, signal.SIGKILL)
    delivery.say("t", "I keep bees behind the house.")
    eventually(
        lambda: counts(13), what="another has the port, and what the killed ones did still counts"
    )
    assert "Traceback" not in delivery.log()
    pool.terminate()
    assert pool.wait(30) == 0, delivery.log()
    assert list(temporary.iterdir()) == []
