"""The benchmark of recall over HTTP measures what the one in process measures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.recall import __main__ as in_process
from benchmarks.recall import over_http
from benchmarks.recall.corpora import generated
from benchmarks.recall.stores import open_store, slugs_of
from memservice.app import create_app
from memservice.worker.polling import Worker
from memservice_bench.client import BenchError, Client

SMALL = ("--kind", "people", "--split", "tuning", "--count", "1", "--idle", "0")
SURFACES = (
    *("workspace search", "peer search", "conclusions query"),
    *("peer context", "session context", "representation"),
)
PATIENCE_SECONDS = 60


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a server in this process. Its worker works while a client waits for it."""
    rt = open_store(f"sqlite:///{tmp_path}/served.db", {}, derive=True)
    transport = httpx.WSGITransport(create_app(runtime=rt))
    make, wait = httpx.Client, Client.wait_until_idle

    def client(**options: Any) -> httpx.Client:
        return make(transport=transport, **options)

    def work_and_wait(self: Client, workspace: str, timeout: float) -> None:
        Worker(rt).run_until_idle(PATIENCE_SECONDS)
        wait(self, workspace, timeout)

    monkeypatch.setattr(httpx, "Client", client)
    monkeypatch.setattr(Client, "wait_until_idle", work_and_wait)
    return "http://127.0.0.1:8000"


def lines_of(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: Any,
    *arguments: str,
) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["recall", *arguments])
    command.main()
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_a_server_gives_the_values_of_its_services(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own, served, again = (tmp_path / f"{name}.json" for name in ("own", "served", "again"))
    surfaces = [word for surface in SURFACES for word in ("--surface", surface)]
    store = f"sqlite:///{tmp_path}/own.db"
    arguments = [*SMALL, *surfaces, "--save", str(own)]
    lines_of(monkeypatch, capsys, in_process, "--db", store, *arguments)
    for file in (served, again):  # the second time, the conversations are there
        lines_of(monkeypatch, capsys, over_http, url, *SMALL, "--save", str(file))
    values = json.loads(own.read_text("utf-8"))
    assert {row.split(" / ")[1] for row in values} == set(SURFACES)
    assert values == json.loads(served.read_text("utf-8")) == json.loads(again.read_text("utf-8"))


def test_a_workspace_with_other_messages_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (talk,) = generated("tuning", "people", 1, 1)
    Client(url, None).ingest("people-tuning-0", talk, slugs_of(talk))
    with pytest.raises(SystemExit, match=r"people-tuning-0 has \d+ of \d+ messages: delete it"):
        lines_of(monkeypatch, capsys, over_http, url, *SMALL)


def test_an_error_of_the_server_names_the_request(url: str) -> None:
    client = Client(url, None)
    with pytest.raises(BenchError, match=r"GET /v3/nothing: the server answered 404: \{"):
        client.call("GET", "/v3/nothing")
