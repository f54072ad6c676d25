"""The release feed: what it may say, and what becomes of one that is broken or hostile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memservice.domain.errors import InvalidInput, Unauthorised
from memservice.runtime import Runtime
from memservice.services import release_feed
from memservice.services.auth import policy
from memservice.services.auth.permissions import Role
from memservice.services.auth.principal import Principal
from memservice.services.release_feed import Unusable, Upgrade, newest_of
from memservice.spi.webhooks import FetchFailed
from memservice.worker.housekeeping import Housekeeping
from support.services.console import Open
from support.services.services import Clock

ADMIN = Principal(admin=True)
URL = "https://releases.example/feed.json"


def feed(*versions: str, **fields: Any) -> bytes:
    return json.dumps({"releases": [{"version": v, **fields} for v in versions]}).encode()


def shown(rt: Runtime) -> Upgrade:
    upgrade = release_feed.available(rt, ADMIN)
    assert upgrade is not None
    return upgrade


class Transport:
    def __init__(self, act: Callable[[], bytes]) -> None:
        self.act = act
        self.urls: list[str] = []

    def fetch(self, url: str, max_bytes: int) -> bytes:
        self.urls.append(url)
        assert max_bytes == release_feed.MAX_BYTES
        return self.act()


def test_nothing_is_read_unless_a_feed_is_configured(
    open_runtime: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = open_runtime()
    monkeypatch.setattr(Runtime, "webhook_transport", None)
    assert not release_feed.is_due(rt)
    release_feed.refresh(rt)
    assert release_feed.available(rt, ADMIN) is None


def test_the_newest_release_of_a_file_is_offered(open_runtime: Open, tmp_path: Path) -> None:
    file = tmp_path / "feed.json"
    file.write_bytes(feed("0.0.9", "2.10.0", "2.9.1", "3.0rc1", date="2026-11-01", changes="New"))
    rt = open_runtime(CONSOLE_RELEASE_FEED=str(file))
    assert release_feed.available(rt, ADMIN) is None, "no worker read it yet"
    release_feed.refresh(rt)
    newest = shown(rt).newest
    assert newest is not None
    assert (newest.version, newest.date, newest.changes) == ("2.10.0", "2026-11-01", "New")


@pytest.mark.parametrize(
    ("own", "offered", "is_newer"),
    [
        ("0.1.0", "0.1", False),
        ("0.1.0", "0.1.0.1", True),
        ("0.2.0.dev3", "0.2.0", True),
        ("0.2.0.dev3", "0.1.9", False),
        ("1.10", "1.9", False),
    ],
)
def test_only_a_newer_release_is_offered(
    open_runtime: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own: str,
    offered: str,
    is_newer: bool,
) -> None:
    monkeypatch.setattr("memservice.__version__", own)
    file = tmp_path / "feed.json"
    file.write_bytes(feed(offered))
    rt = open_runtime(CONSOLE_RELEASE_FEED=str(file))
    release_feed.refresh(rt)
    assert (shown(rt).newest is not None) == is_newer


def test_a_url_is_read_by_the_transport_of_webhooks(
    open_runtime: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = Transport(lambda: feed("9.0"))
    monkeypatch.setattr(Runtime, "webhook_transport", lambda rt, url: transport)
    rt = open_runtime(CONSOLE_RELEASE_FEED=URL)
    release_feed.refresh(rt)
    assert transport.urls == [URL]
    assert shown(rt).newest is not None
    with rt.storage.read() as tx:
        assert URL not in str(tx.facts.get(release_feed.FACT)), "it may carry a secret"


def test_a_feed_that_breaks_keeps_the_release_before_and_says_why(
    open_runtime: Open, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    transport = Transport(lambda: feed("9.0"))
    monkeypatch.setattr(Runtime, "webhook_transport", lambda rt, url: transport)
    rt = open_runtime(CONSOLE_RELEASE_FEED=URL)
    release_feed.refresh(rt)

    def failing(error: Exception) -> Callable[[], bytes]:
        def act() -> bytes:
            raise error

        return act

    for error in (FetchFailed("the status 500"), InvalidInput.at("url", message="an inner one")):
        with subtests.test(error=type(error).__name__):
            transport.act = failing(error)
            release_feed.refresh(rt)
            upgrade = shown(rt)
            assert upgrade.error == str(error)
            assert upgrade.newest is not None
            assert upgrade.newest.version == "9.0"
    other = open_runtime(CONSOLE_RELEASE_FEED="https://other.example/")
    release_feed.refresh(other)
    assert shown(other).newest is None, "that release was in another feed"


def test_only_https_is_read(open_runtime: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runtime, "webhook_transport", None)
    for url in ("http://releases.example/", "ftp://releases.example/", "jsonl://x"):
        rt = open_runtime(CONSOLE_RELEASE_FEED=url)
        release_feed.refresh(rt)
        assert "https URL" in (shown(rt).error or "")


HOSTILE: dict[str, bytes] = {
    "no JSON": b"<html>",
    "not UTF-8": b"\xff\xfe",
    "nothing": b"",
    "a list": b"[]",
    "no releases": b"{}",
    "an empty list": b'{"releases": []}',
    "too many": feed(*["1.0"] * (release_feed.MAX_RELEASES + 1)),
    "a release of the wrong kind": b'{"releases": ["1.0"]}',
    "a version of the wrong kind": b'{"releases": [{"version": 1.0}]}',
    "changes of the wrong kind": feed("1.0", changes=["a"]),
    "no release version": feed("latest", "1.0rc1", "1.0; DROP TABLE", "1" * 7, "1.0\n"),
    "deep": b'{"releases": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a giant number": b'{"releases": ' + b"9" * 100_000 + b"}",
    "a lone surrogate": b'{"releases": [{"version": "1.0", "changes": "\\ud800"}]}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_document_of_the_wrong_shape_is_refused(name: str) -> None:
    with pytest.raises(Unusable):
        newest_of(HOSTILE[name])


def test_long_texts_are_cut_and_nul_is_removed() -> None:
    release = newest_of(feed("1.0", changes="a\0" + "x" * 100_000, url="u" * 10_000))
    assert len(release.changes) == release_feed.MAX_CHANGES - 1
    assert "\0" not in release.changes
    assert len(release.url) == release_feed.MAX_TEXT


def test_files_that_are_no_feed_are_refused(open_runtime: Open, tmp_path: Path) -> None:
    large, pipe = tmp_path / "large", tmp_path / "pipe"
    large.write_bytes(b" " * (release_feed.MAX_BYTES + 1))
    os.mkfifo(pipe)
    for path in (large, pipe, tmp_path, tmp_path / "none"):
        rt = open_runtime(CONSOLE_RELEASE_FEED=str(path))
        release_feed.refresh(rt)
        assert shown(rt).error, path


def test_one_worker_reads_the_feed_every_six_hours(
    open_runtime: Open, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    transport = Transport(lambda: feed("9.0"))
    monkeypatch.setattr(Runtime, "webhook_transport", lambda rt, url: transport)
    rt = open_runtime(CONSOLE_RELEASE_FEED=URL)
    first, second = Housekeeping(rt), Housekeeping(rt)
    for worker, reads in ((first, 1), (second, 1)):
        worker.run_due()
        if worker._releases is not None:
            worker._releases.join(30)
        assert len(transport.urls) == reads
    clock.advance(hours=5, minutes=59)
    assert not release_feed.is_due(rt)
    clock.advance(minutes=1)
    assert release_feed.is_due(rt)


def test_only_visitors_of_all_workspaces_see_it(open_runtime: Open) -> None:
    rt = open_runtime(CONSOLE_RELEASE_FEED=URL)
    assert release_feed.available(rt, policy.principal_of_member(Role.READER, None)) is None
    for principal in (
        policy.principal_of_member(Role.OWNER, frozenset({"w"})),
        Principal(workspace_id="w"),
        Principal(),
    ):
        with pytest.raises(Unauthorised):
            release_feed.available(rt, principal)
