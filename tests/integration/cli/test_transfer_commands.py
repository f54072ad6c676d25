"""`memservice export`, `import`, `copy` and `import-from`, beside a running server."""

from __future__ import annotations

import gzip
import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from integration.cli.conftest import Run
from memservice.app import create_app
from memservice.cli import cli
from memservice.cli.remote_workspace import Remote, RemoteFailed, lines
from memservice.services.transfer import importing
from memservice.services.transfer.lines import Sum, format_line
from memservice.settings import load_settings
from support.api.auth_client import SECRET
from support.cli.remote_server import Flaky
from support.clients.server import Server, serving
from support.processes import preloaded

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.xdist_group("transfer")]


def ask(url: str, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"{url}/v3{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


@contextmanager
def app_on(folder: Path) -> Iterator[Callable[..., Any]]:
    """`ask` without a URL, of the application in this process on the store in that folder."""
    settings = load_settings(
        environ={"DB_CONNECTION_URI": f"sqlite:///{folder}/memservice.db"}, cwd=folder
    )
    app = create_app(settings)
    client = app.test_client()

    def ask_app(method: str, path: str, body: Any = None) -> Any:
        answer = client.open(f"/v3{path}", method=method, json=body)
        assert answer.status_code < 300, answer.text
        return answer.get_json()

    try:
        yield ask_app
    finally:
        app.extensions["memservice"].close()


@pytest.fixture(scope="module")
def talking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the workspace `acme`, all of whose work is done."""
    with serving(tmp_path_factory.mktemp("told"), "--workers", "1") as server:
        url = server.url
        ask(url, "POST", "/workspaces", {"id": "acme", "metadata": {"plan": "gold"}})
        ask(
            url,
            "POST",
            "/workspaces/acme/sessions",
            {"id": "talk", "peers": {"alice": {}, "bob": {"observe_others": True}}},
        )
        talk = [
            ("alice", "I own a tortoise named Balthazar."),
            ("bob", "My sister Clara teaches physics in Lyon."),
        ] * 12
        messages = [
            {"peer_id": peer, "content": f"{text} ({n})"} for n, (peer, text) in enumerate(talk)
        ]
        ask(url, "POST", "/workspaces/acme/sessions/talk/messages", {"messages": messages})
        ask(url, "PUT", "/workspaces/acme/peers/alice/card", {"peer_card": ["Owns a tortoise"]})
        deadline = time.monotonic() + 60
        while (status := ask(url, "GET", "/workspaces/acme/queue/status"))[
            "completed_work_units"
        ] < status["total_work_units"]:
            assert time.monotonic() < deadline, status
            time.sleep(0.1)
        yield server


def contents_of(ask: Callable[..., Any]) -> dict[str, Any]:
    """What `/v3` shows of `acme`, without what is said to be each server's own."""
    path = "/workspaces/acme"
    return {
        "peers": [
            (item["id"], item["metadata"])
            for item in ask("POST", f"{path}/peers/list", {})["items"]
        ],
        "sessions": [
            (item["id"], item["configuration"])
            for item in ask("POST", f"{path}/sessions/list", {})["items"]
        ],
        "messages": ask("POST", f"{path}/sessions/talk/messages/list?size=100", {})["items"],
        "conclusions": ask("POST", f"{path}/conclusions/list?size=100", {})["items"],
        "card": ask("GET", f"{path}/peers/alice/card"),
        "summaries": ask("GET", f"{path}/sessions/talk/summaries"),
        "members": ask("GET", f"{path}/sessions/talk/peers/bob/config"),
        "found": [
            item["id"]
            for item in ask("POST", f"{path}/search", {"query": "physics in Lyon", "limit": 5})
        ],
    }


def beside(talking_server: Server) -> dict[str, str]:
    return {"DB_CONNECTION_URI": f"sqlite:///{talking_server.folder}/memservice.db"}


def test_an_export_can_be_imported(memservice: Run, talking_server: Server, tmp_path: Path) -> None:
    result = memservice("export", "-w", "acme", "acme.jsonl.gz", **beside(talking_server))
    assert result.returncode == 0, result.stderr
    with gzip.open(tmp_path / "acme.jsonl.gz") as file:
        kinds = [json.loads(line)["type"] for line in file]
    assert (kinds[0], kinds[-1], kinds.count("messages")) == ("header", "end", 24)
    result = memservice("import", "acme.jsonl.gz")
    assert result.returncode == 0, result.stderr
    assert "24 messages" in result.stdout
    assert "nothing new" in memservice("import", "acme.jsonl.gz").stdout
    assert "acme-2:" in memservice("import", "--as", "acme-2", "acme.jsonl.gz").stdout
    with app_on(tmp_path) as ask_copy:
        assert contents_of(ask_copy) == contents_of(partial(ask, talking_server.url))


def test_an_export_goes_to_standard_output(memservice: Run, talking_server: Server) -> None:
    plain = memservice("export", "-w", "acme", "--without-vectors", "-", **beside(talking_server))
    # what is told of the progress is no part of it
    lines = [json.loads(line) for line in plain.stdout.splitlines()]
    assert (lines[0]["type"], lines[0]["vectors"]) == ("header", False)
    assert sum(line["type"] == "messages" for line in lines) == 24


def test_a_workspace_is_copied_between_two_configurations(
    memservice: Run, talking_server: Server, tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text(
        f'[db]\nconnection_uri = "sqlite:///{talking_server.folder}/memservice.db"\n',
        encoding="utf-8",
    )
    (tmp_path / "b.toml").write_text('[db]\nconnection_uri = "sqlite:///b.db"\n', encoding="utf-8")
    result = memservice("copy", "--from", "a.toml", "--to", "b.toml")
    assert result.returncode == 0, result.stderr
    assert "the same in both, sha256 " in result.stdout
    again = memservice("copy", "--from", "a.toml", "--to", "b.toml")
    assert again.stdout.split("sha256")[1] == result.stdout.split("sha256")[1]


def test_copying_to_the_same_storage_is_refused(
    memservice: Run, talking_server: Server, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(talking_server.folder)
    (tmp_path / "a.toml").write_text(
        f'[db]\nconnection_uri = "sqlite:///{talking_server.folder}/memservice.db"\n',
        encoding="utf-8",
    )
    (tmp_path / "b.toml").write_text(
        '[db]\nconnection_uri = "sqlite:///link/memservice.db"\n', encoding="utf-8"
    )
    for other in ("a.toml", "b.toml"):
        result = memservice("copy", "--from", "a.toml", "--to", other)
        assert result.returncode == 1
        assert "lead to the same storage" in result.stderr


@pytest.fixture
def exported(memservice: Run, talking_server: Server, tmp_path: Path) -> Path:
    """The workspace as a compressed file. There is no store beside it yet."""
    assert (
        memservice("export", "-w", "acme", "acme.jsonl.gz", **beside(talking_server)).returncode
        == 0
    )
    return tmp_path / "acme.jsonl.gz"


def test_an_import_reads_standard_input(exported: Path, tmp_path: Path) -> None:
    """Compressed or not, into a store that is made; whatever is wrong is found before anything is
    stored."""
    plain = gzip.decompress(exported.read_bytes())
    command = ("import", "-")
    broken = preloaded.run(command, tmp_path, {}, stdin=plain.replace(b"tortoise", b"elephant", 1))
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "do not match the checksum" in broken.stderr
    result = preloaded.run(command, tmp_path, {}, stdin=exported.read_bytes())
    assert result.returncode == 0, result.stderr
    assert "24 messages" in result.stdout
    assert "nothing new" in preloaded.run(command, tmp_path, {}, stdin=plain).stdout


def test_an_import_works_while_the_index_is_unreachable(memservice: Run, exported: Path) -> None:
    away = {"VECTOR_STORE_TYPE": "redis", "VECTOR_STORE_URL": "redis://127.0.0.1:1/0"}
    result = memservice("import", exported.name, **away)
    assert result.returncode == 0, result.stderr
    assert "24 messages" in result.stdout
    assert "vectors of the file could not be stored. Tasks create new ones" in result.stderr
    refused = memservice("export", "-w", "acme", "out.jsonl", **away)
    assert refused.returncode == 1
    assert "--without-vectors" in refused.stderr
    assert not (exported.parent / "out.jsonl").exists()
    assert (
        memservice("export", "--without-vectors", "-w", "acme", "out.jsonl", **away).returncode == 0
    )


def test_rejected_vectors_are_reported(memservice: Run, exported: Path) -> None:
    memservice("import", exported.name)
    lines = [json.loads(line) for line in gzip.decompress(exported.read_bytes()).splitlines()]
    for line in lines:
        space = line.get("space", line if line["type"] == "spaces" else {})
        if space:
            space["embedder"] = "other-1"
    total = Sum()
    for line in lines[1:-1]:
        total.add(format_line(line))
    (exported.parent / "other.jsonl").write_bytes(
        b"".join(map(format_line, [*lines[:-1], total.end()]))
    )
    result = memservice("import", "other.jsonl")
    assert result.returncode == 0, result.stderr
    number = sum(line["type"] == "vectors" for line in lines)
    assert (
        f"{number} vectors of kind conclusion were not imported: they are by the embedder other-1"
        in result.stderr
    )
    assert "memservice reembed --workspace acme --to NAME" in result.stderr


def test_an_interrupted_transfer_can_be_continued(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importing, "load_file", stop)
    monkeypatch.setenv("DB_CONNECTION_URI", f"sqlite:///{tmp_path}/stopped.db")
    result = CliRunner().invoke(cli, ["import", str(exported)])
    assert result.exit_code == 130
    assert "run the same command again to continue" in result.stderr


def test_a_workspace_is_imported_from_another_server(
    memservice: Run, talking_server: Server, tmp_path: Path
) -> None:
    result = memservice("import-from", talking_server.url)
    assert result.returncode == 0, result.stderr
    assert "24 messages" in result.stdout
    assert "nothing new" in memservice("import-from", "-w", "acme", talking_server.url).stdout
    with app_on(tmp_path) as ask_copy:
        here, there = contents_of(partial(ask, talking_server.url)), contents_of(ask_copy)
        for part in (
            "peers",
            "sessions",
            "messages",
            "conclusions",
            "card",
            "summaries",
            "members",
            "found",
        ):
            assert there[part] == here[part], part


def test_a_workspace_key_suffices_for_an_import(memservice: Run, tmp_path: Path) -> None:
    auth = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": SECRET}
    (folder := tmp_path / "guarded").mkdir()
    memservice("db", "upgrade")
    with serving(folder, "--workers", "1", "--no-worker", **auth) as guarded:
        there = {**auth, "DB_CONNECTION_URI": f"sqlite:///{folder}/memservice.db"}
        key = memservice("keys", "create", "--workspace", "mine", **there).stdout.strip()
        with httpx.Client(
            base_url=guarded.url, headers={"Authorization": f"Bearer {key}"}
        ) as client:
            assert client.post("/v3/workspaces", json={"id": "mine"}).status_code == 201
        result = memservice("import-from", "-w", "mine", guarded.url, IMPORT_FROM_TOKEN=key)
        assert result.returncode == 0, result.stderr
        refused = memservice("import-from", "-w", "mine", "--token", "wrong", guarded.url)
    assert refused.returncode == 1
    assert "status 401" in refused.stderr
    assert key not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("export", "-w", "nowhere", "x.jsonl"), "Workspace nowhere not found"),
        (
            ("export", "-w", "nowhere", "no/such/x.jsonl"),
            "no/such/x.jsonl cannot be written: there is no folder no/such",
        ),
        (("export", "-w", "nowhere", "/proc/x.jsonl"), "/proc/x.jsonl cannot be written: "),
        (("import", "no-such-file"), "there is no file no-such-file"),
        (("import", "a.toml"), "line 1 is not JSON"),
        (("import-from", "http://127.0.0.1:1"), "ConnectError"),
    ],
)
def test_impossible_transfers_are_reported(
    memservice: Run, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    memservice("db", "upgrade")
    (tmp_path / "a.toml").write_text("nothing = 1\n", encoding="utf-8")
    result = memservice(*arguments)
    assert result.returncode == 1
    assert sentence in result.stderr
    assert not (tmp_path / "x.jsonl").exists()


class TestARemoteThatFails:
    def test_temporary_errors_are_retried(self, talking_server: Server) -> None:
        """Every third answer is an error that passes."""
        flaky = Flaky(talking_server.url, every=3, status=503)
        with flaky.client() as client:
            rows = list(lines(Remote(client, pause=0.01), "acme", now=flaky.now))
        assert sum(b'"type":"messages"' in line for line in rows) == 24
        assert flaky.failed > 0

    def test_permanent_errors_are_reported(self, talking_server: Server) -> None:
        with Flaky(talking_server.url, every=1, status=500).client() as client:
            with pytest.raises(RemoteFailed, match="status 500"):
                list(lines(Remote(client, pause=0.01), "acme", now=Flaky.now))

    def test_answers_that_are_not_json_are_reported(self, talking_server: Server) -> None:
        with Flaky(talking_server.url, every=1, status=200).client() as client:
            with pytest.raises(RemoteFailed, match="is not JSON"):
                list(lines(Remote(client, pause=0.01), "acme", now=Flaky.now))

    def test_an_unknown_workspace_is_reported(self, talking_server: Server) -> None:
        with httpx.Client(base_url=talking_server.url) as client:
            with pytest.raises(RemoteFailed, match="has no workspace 'nowhere'"):
                list(lines(Remote(client), "nowhere", now=Flaky.now))


def test_all_workspaces_are_exported_to_a_folder(
    memservice: Run, talking_server: Server, tmp_path: Path
) -> None:
    ask(talking_server.url, "POST", "/workspaces", {"id": "b" * 300})
    result = memservice("export", "--all", "everything", **beside(talking_server))
    assert result.returncode == 0, result.stderr
    assert "2 workspaces" in result.stderr
    folder = tmp_path / "everything"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (
        "is not an empty folder"
        in memservice("export", "--all", "everything", **beside(talking_server)).stderr
    )
    result = memservice("import", "everything")
    assert result.returncode == 0, result.stderr
    assert "24 messages" in result.stdout
    assert memservice("import", "everything").stdout.count("nothing new") == 2
    with app_on(tmp_path) as ask_copy:
        assert contents_of(ask_copy) == contents_of(partial(ask, talking_server.url))
        response = ask_copy("POST", "/workspaces/list", {})["items"]
    assert [item["id"] for item in response] == ["acme", "b" * 300]


def test_a_damaged_folder_is_refused_before_anything_is_stored(
    memservice: Run, talking_server: Server, tmp_path: Path
) -> None:
    assert memservice("export", "--all", "everything", **beside(talking_server)).returncode == 0
    folder = tmp_path / "everything"
    last = max(folder.glob("*.gz"))
    whole = last.read_bytes()
    last.write_bytes(whole[:-20])
    result = memservice("import", "everything")
    assert result.returncode == 1
    assert f"{last.name}" in result.stderr
    assert "nothing was stored" in result.stderr
    assert not (tmp_path / "memservice.db").exists()
    last.unlink()
    assert f"lacks files: {last.name}" in memservice("import", "everything").stderr
    last.write_bytes(whole)
    (folder / "workspaces.json").unlink()
    assert "has no workspaces.json" in memservice("import", "everything").stderr
    assert "not a folder of several" in memservice("import", "--as", "x", "everything").stderr
    for wrong in (("export", "x.jsonl"), ("export", "--all", "-w", "acme", "x")):
        assert "Name a workspace with --workspace, or export --all" in memservice(*wrong).stderr


def test_a_copy_tells_what_stays_behind_and_moves_keys(memservice: Run, tmp_path: Path) -> None:
    secret = f'[auth]\nuse_auth = true\njwt_secret = "{SECRET}"\n'
    for name in "ab":
        (tmp_path / f"{name}.toml").write_text(
            f'{secret}[db]\nconnection_uri = "sqlite:///{tmp_path}/{name}.db"\n', encoding="utf-8"
        )
    source, target = ("--config", "a.toml"), ("--config", "b.toml")
    token = memservice(*source, "keys", "create", "--admin", "--label", "moved").stdout.strip()
    copy = ("copy", "--from", "a.toml", "--to", "b.toml")
    result = memservice(*copy)
    assert result.returncode == 0, result.stderr
    assert "not included: 1 admin keys (--with-secrets includes them)" in result.stderr
    assert "moved" not in memservice(*target, "keys", "list").stdout
    result = memservice(*copy, "--with-secrets")
    assert "keys of no workspace: stored 1" in result.stdout
    assert "admin keys" not in result.stderr
    assert "nothing new" in memservice(*copy, "--with-secrets").stdout
    assert "moved" in memservice(*target, "keys", "list").stdout
    app = create_app(load_settings(tmp_path / "b.toml", {}, tmp_path))
    try:
        response = app.test_client().post(
            "/v3/workspaces/list", json={}, headers={"Authorization": f"Bearer {token}"}
        )
        assert response.status_code == 200
    finally:
        app.extensions["memservice"].close()
    (tmp_path / "b.toml").write_text('[db]\nconnection_uri = "sqlite:///b.db"\n', encoding="utf-8")
    result = memservice(*copy, "--with-secrets")
    assert "work only with the AUTH_JWT_SECRET that signed them" in result.stderr
