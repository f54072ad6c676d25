"""`import-from` from a server that means no good, and commands whose files and arguments are
broken."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from integration.cli.conftest import Run
from memservice.cli import remote_workspace
from memservice.cli.remote_workspace import Remote, RemoteFailed, client, lines, names
from memservice.domain.errors import ConfigurationError
from memservice.domain.values import printable

NOW = datetime(2024, 3, 1, tzinfo=UTC)
WORKSPACE = {
    "id": "acme",
    "metadata": {},
    "configuration": {},
    "created_at": "2024-03-01T00:00:00Z",
}
PEER = {"id": "alice", "metadata": {}, "configuration": {}, "created_at": "2024-03-01T00:00:00Z"}


def remote(answer: Callable[[httpx.Request], httpx.Response]) -> Remote:
    return Remote(
        httpx.Client(base_url="http://other", transport=httpx.MockTransport(answer)), pause=0.0
    )


def page(*items: Any, pages: Any = 1) -> dict[str, Any]:
    return {"items": list(items), "page": 1, "size": 100, "total": len(items), "pages": pages}


@pytest.mark.parametrize(
    "answer",
    [
        [],
        5,
        None,
        {},
        {"items": None},
        {"items": 5},
        {"items": [5]},
        {"items": [{}]},
        page(WORKSPACE, pages="x"),
        page(WORKSPACE, pages={}),
        page({**WORKSPACE, "metadata": None, "created_at": 5}),
        page({**WORKSPACE, "created_at": "yesterday"}),
        page({**WORKSPACE, "created_at": "0001-01-01T00:00:00+14:00"}),
        page({**PEER, "metadata": [], "configuration": None}),
        page({**WORKSPACE, **PEER, "id": ["x"]}),
    ],
)
def test_answers_of_another_form_are_errors(answer: Any) -> None:
    """The same to whatever is asked."""
    with pytest.raises(RemoteFailed) as refused:
        list(lines(remote(lambda request: httpx.Response(200, json=answer)), "acme", NOW))
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"items": [NaN]}',
        b'{"items": [1e999]}',
        b"\xff",
        b'{"items": ["\\ud800"]}',
    ],
)
def test_answers_that_no_store_can_store_are_errors(content: bytes) -> None:
    with pytest.raises(RemoteFailed, match="is not JSON"):
        names(remote(lambda request: httpx.Response(200, content=content)))


def test_an_endless_listing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_workspace, "MAX_ITEMS", 1_000)
    requested: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requested.append(str(request.url))
        return httpx.Response(200, json=page(*[WORKSPACE] * 100, pages=10**15))

    with pytest.raises(RemoteFailed, match="does not end"):
        names(remote(answer))
    assert len(requested) == 11


def test_endless_empty_pages_are_an_error() -> None:
    requested: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requested.append(str(request.url))
        return httpx.Response(200, json=page(pages=10**15))

    with pytest.raises(RemoteFailed, match="does not end"):
        names(remote(answer))
    assert len(requested) == 1


def test_an_endless_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_workspace, "MAX_BYTES", 2**20)
    sent: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            sent.append(1)
            yield b" " * 65_536

    with pytest.raises(RemoteFailed, match="larger than"):
        names(remote(lambda request: httpx.Response(200, content=endless())))
    assert len(sent) < 20


def test_a_decompression_bomb_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_workspace, "MAX_BYTES", 2**20)
    bomb = gzip.compress(b" " * 2**24)
    with pytest.raises(RemoteFailed, match="larger than"):
        names(
            remote(
                lambda request: httpx.Response(
                    200, content=bomb, headers={"Content-Encoding": "gzip"}
                )
            )
        )


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    requested: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requested.append(request.url.host)
        return httpx.Response(
            status, headers={"Location": "http://169.254.169.254/latest/meta-data"}
        )

    with client("http://other", "secret") as plain:
        assert plain.follow_redirects is False
    with pytest.raises(RemoteFailed, match="redirects are not followed"):
        names(remote(answer))
    assert set(requested) == {"other"}


@pytest.mark.parametrize(
    "token", ["geheim\n", "geheim\r\nX-Evil: 1", " geheim", "gehe\u0131m", "geheim\x00"]
)
def test_an_invalid_key_is_never_quoted(token: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        client("http://other", token)
    assert "gehe" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["other", "ftp://other", "http://", "http://[::1", "file:///etc/passwd", "", "http://a\nb"],
)
def test_invalid_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="server's URL"):
        client(url, None)


def test_a_password_in_the_url_is_not_shown() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(404, text="no"))
    with (
        httpx.Client(base_url="http://me:geheim@other", transport=transport) as other_client,
        pytest.raises(RemoteFailed) as refused,
    ):
        names(Remote(other_client))
    assert "geheim" not in str(refused.value)
    assert "other" in str(refused.value)


def test_control_characters_are_shown_as_text() -> None:
    assert (
        printable("a\x1b]0;x\x07\r\x9b2J\tb\nc\u00e9") == "a\\x1b]0;x\\x07\\x0d\\x9b2J\tb\nc\u00e9"
    )


ROW = {"type": "header", "format": "memservice-workspace", "version": 1}


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_every_error_is_one_line_without_traceback(memservice: Run, tmp_path: Path) -> None:
    """Exit code 1 (2 where the command line itself is wrong), one line, no traceback: `memservice`
    looks for that itself."""
    memservice("db", "upgrade")
    (tmp_path / "folder").mkdir()
    (tmp_path / "deep").write_bytes(b"[" * 200_000)
    (tmp_path / "header").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    (tmp_path / "evil").write_text(
        json.dumps({**ROW, "version": 99, "memservice": "x"}) + "\n", encoding="utf-8"
    )
    (tmp_path / "kind").write_text(json.dumps({"type": "a\x1b[2J"}) + "\n", encoding="utf-8")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"{}" * 1000)[:20])
    (tmp_path / "no.toml").write_text("= [", encoding="utf-8")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for arguments in (
        ("import", "deep"), ("import", "header"), ("import", "evil"), ("import", "kind"),
        ("import", "cut.gz"), ("import", "/dev/null"),
        ("import", "--as", "../x", "header"), ("import", "x" * 5_000),
        ("export", "-w", "nowhere", "missing/folder/file"), ("export", "-w", "../..", "-"),
        ("export", "-w", "a\x1b[2J", "-"),
        ("import-from", "nonsense"), ("import-from", "--token", "a\nb", "http://127.0.0.1:1"),
        ("import-from", "http://[::1"),
        ("copy", "--from", "no.toml", "--to", "no.toml"),
        ("copy", "--from", "bytes.toml", "--to", "bytes.toml"),
        ("--config", "bytes.toml", "config", "show"),
        ("--config", "missing.toml", "config", "show"),
        ("--config", "folder", "config", "show"),
        ("usage", "--since", "yesterday"), ("jobs", "retry", "nowhere"),
        ("jobs", "show", "nowhere"),
        ("keys", "create", "--workspace", "../x"),
        ("keys", "revoke", "nowhere"), ("reembed", "-w", "nowhere"),
    ):  # fmt: skip
        result = memservice(*arguments)
        if arguments[:2] == ("jobs", "retry") and result.returncode == 0:
            continue  # nothing was there to be tried again, and that is said
        assert result.returncode in (1, 2), (arguments, result.stdout, result.stderr)
        assert result.stderr.strip(), arguments
        assert "\x1b" not in result.stderr, arguments
        if result.returncode == 1:
            assert len(result.stderr.strip().splitlines()) <= 2, (arguments, result.stderr)
