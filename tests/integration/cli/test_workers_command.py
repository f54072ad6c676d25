"""`memservice workers`: the processes that are alive."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

import memservice
from integration.cli.conftest import Run
from integration.cli.test_jobs import Store
from memservice.services.tasks import lease_owner
from memservice.worker import heartbeats


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.chdir(tmp_path)
    return Store(tmp_path)


def test_processes_are_listed_with_host_release_and_work(
    store: Store, memservice_: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = store.rt.clock()
    worker, server = lease_owner.start_claim(), lease_owner.start_claim()
    heartbeats.register(store.rt, worker, queues=("ingest", "dream"), started_at=now)
    store.rt.storage.write(
        lambda tx: tx.tasks.claim("summary:1:2", lease_owner.start_claim(), now, 60)
    )
    monkeypatch.setattr(memservice, "__version__", "0.0.9")
    heartbeats.register(store.rt, server, heartbeats.SERVER)
    result = memservice_("workers")
    assert result.returncode == 0
    head, first, second = result.stdout.splitlines()
    assert head.split() == "KIND HOST PID VERSION QUEUES STARTED AT LAST SEEN UNITS".split()
    kind, host, _, version, *_ = first.split()
    assert (kind, host, version) == ("server", socket.gethostname(), "0.0.9")
    assert "ingest, dream" in second
    assert second.rstrip().endswith("summary:1:2")
    assert "several releases use this store: 0.0.9, 0.1.0" in result.stderr
    lines = [json.loads(line) for line in memservice_("workers", "--json").stdout.splitlines()]
    assert [(line["kind"], line["version"]) for line in lines] == [
        ("server", "0.0.9"),
        ("worker", "0.1.0"),
    ]
    assert lines[1]["queues"] == ["ingest", "dream"]
    assert lines[1]["units"] == ["summary:1:2"]
    assert lines[0]["started_at"] is None
    assert lines[1]["started_at"] is not None
    for name in (worker, server):
        lease_owner.end_claim(name)
    store.rt.close()


def test_without_a_worker_it_says_so(store: Store, memservice_: Run) -> None:
    store.rt.close()
    result = memservice_("workers")
    assert (result.returncode, len(result.stdout.splitlines())) == (0, 1)
    assert result.stderr == "no worker is alive: start `memservice worker`\n"


@pytest.fixture
def memservice_(memservice: Run) -> Run:
    """The command, under a name beside the module's."""
    return memservice
