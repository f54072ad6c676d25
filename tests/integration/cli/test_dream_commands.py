"""`memservice dreams`, on a store with a dream that is held for review."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memservice.cli import cli
from memservice.compose import open_runtime
from memservice.domain.errors import Conflict, NotFound
from memservice.plugins import load_plugins
from memservice.services import conclusions, dreams, peers
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft
from memservice.services.dreams import DreamRequest
from memservice.services.paging import Paging
from memservice.settings import load_settings
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Known, Superseded
from memservice.worker.polling import Worker
from support.pipeline.fakes import ScriptedReasoner

PRINCIPAL = Principal(admin=True)
TEXTS = [f"Alice likes tea {number}" for number in range(8)]


def merge(candidates: Sequence[Known]) -> Consolidated:
    return Consolidated(
        superseded=[
            Superseded(item.uid, candidates[-1].uid, "one habit") for item in candidates[:-1]
        ]
    )


class Merging(ScriptedReasoner):
    def __init__(self) -> None:
        super().__init__(Capability.COSTLY)

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        return merge(request.known)


class Store:
    def __init__(self, folder: Path) -> None:
        self.environ = {"DB_CONNECTION_URI": f"sqlite:///{folder}/memservice.db"}
        settings = load_settings(environ={**self.environ, "REASONER": "scripted"}, cwd=folder)
        self.rt = open_runtime(settings, plugins=load_plugins(settings, extra=[Merging()]))
        self.rt.storage.migrate()
        peers.get_or_create(self.rt, PRINCIPAL, "w", "alice", None, None)
        drafts = [ConclusionDraft(text, "alice", "alice") for text in TEXTS]
        conclusions.create(self.rt, PRINCIPAL, "w", drafts)
        dreams.schedule(self.rt, PRINCIPAL, "w", DreamRequest("alice", dreams.OMNI))
        self.work()

    def work(self) -> None:
        Worker(self.rt).run_until_idle(30)

    def run(self, *arguments: str) -> Result:
        return self.run_in("w", *arguments)

    def run_in(self, workspace: str, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["dreams", *arguments, "-w", workspace], env=self.environ)

    def live(self) -> int:
        return conclusions.page(self.rt, PRINCIPAL, "w", None, Paging()).total

    def only(self) -> str:
        line = self.run("list").stdout.splitlines()[-1]
        return line.split()[0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.rt.close()


def test_a_held_dream_is_listed_shown_applied_and_undone(store: Store) -> None:
    lines = store.run("list").stdout.splitlines()
    assert lines[0].split()[:4] == ["ID", "STATE", "KIND", "OBSERVER"]
    assert lines[0].endswith("CREATED AT")
    assert lines[1].split()[1:7] == ["held", "omni", "alice", "alice", "0", "7"]
    uid = store.only()
    text = store.run("show", uid).stdout
    assert "reason: it supersedes 7 of 8 conclusions; at most 5 are allowed" in text
    assert text.count("Alice likes tea") == 7
    dream = json.loads(store.run("show", uid, "--json").stdout)
    assert dream["state"] == "held"
    assert {change["action"] for change in dream["changes"]} <= {"create", "supersede"}
    assert len(dream["changes"]) == dream["created"] + dream["superseded"] > 0
    assert store.run("apply", uid).stdout == "a worker applies it\n"
    store.work()
    assert (store.live(), "done" in store.run("list").stdout) == (1, True)
    assert store.run("undo", uid).stdout.startswith("7 restored, 0 removed, 0 kept")
    assert store.live() == 8
    assert isinstance(store.run("undo", uid).exception, Conflict)


def test_a_held_dream_is_discarded(store: Store) -> None:
    uid = store.only()
    assert store.run("discard", uid).stdout == "discarded\n"
    assert (store.live(), "discarded" in store.run("list").stdout) == (8, True)
    assert isinstance(store.run("show", "unknown").exception, NotFound)


def test_an_unknown_workspace_is_an_error_in_each_command(store: Store) -> None:
    uid = store.only()
    for arguments in (["list"], ["show", uid], ["apply", uid], ["discard", uid], ["undo", uid]):
        result = store.run_in("nowhere", *arguments)
        assert isinstance(result.exception, NotFound), arguments
        assert "nowhere" in str(result.exception)


def test_a_list_tells_how_many_dreams_it_leaves_out(store: Store) -> None:
    store.run("discard", store.only())
    dreams.schedule(store.rt, PRINCIPAL, "w", DreamRequest("alice", dreams.OMNI))
    store.work()
    assert store.run("list", "--limit", "1").stderr == "1 of 2; --limit shows more\n"
    assert store.run("list").stderr == ""
