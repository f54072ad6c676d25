"""`memservice keys`, before, beside and after a running server."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import jwt
import pytest

from integration.cli.conftest import Run
from memservice.compose import open_runtime
from memservice.domain.auth.jwt_claims import Claims
from memservice.services.auth.principal import Principal
from memservice.services.v1 import key_minting
from memservice.settings import load_settings
from support.api.auth_client import SECRET, signed
from support.clients.server import serving

AUTH = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": SECRET}


def claims_of(token: str) -> dict[str, object]:
    claims: dict[str, object] = jwt.decode(token.strip(), SECRET, ["HS256"])
    return claims


def test_the_first_key_is_created_before_the_first_start(memservice: Run) -> None:
    result = memservice("keys", "create", "--admin", "--expires", "1h30m", **AUTH)
    assert result.returncode == 0
    assert result.stdout.count("\n") == 1, "the token alone"
    claims = claims_of(result.stdout)
    assert claims["ad"] is True
    assert 5390 <= int(str(claims["exp"])) - time.time() <= 5400
    assert str(claims["jti"]) in result.stderr
    assert "everything, until 20" in result.stderr


def test_narrow_keys_are_created_and_listed(memservice: Run) -> None:
    result = memservice(
        "keys",
        "create",
        "--workspace",
        "acme",
        "--peer",
        "alice",
        "--label",
        "kitchen radio",
        **AUTH,
    )
    claims = claims_of(result.stdout)
    assert (claims["w"], claims["p"]) == ("acme", "alice")
    assert not {"s", "ad", "exp"} & claims.keys()
    memservice(
        "keys", "create", "--workspace", "acme", "--session", "room", "--expires", "2 weeks", **AUTH
    )
    listed = memservice("keys", "list", **AUTH)
    assert "They apply to any workspace, peer or session" in listed.stderr
    lines = listed.stdout.splitlines()
    assert lines[0].split() == [
        "ID",
        "SCOPE",
        "STATE",
        "VALID",
        "CREATED",
        "AT",
        "LAST",
        "USED",
        "LABEL",
    ]
    assert [
        part in lines[1]
        for part in (
            str(claims["jti"]),
            "workspace acme peer alice",
            "works",
            "never",
            "kitchen radio",
        )
    ] == [True] * 5
    assert "workspace acme session room" in lines[2]
    assert result.stdout.strip() not in "\n".join(lines)


def test_a_label_cannot_add_lines_to_the_output(memservice: Run) -> None:
    memservice(
        "keys",
        "create",
        "--workspace",
        "acme",
        "--label",
        "a\n\x1b[31mfake  everything  works\r\u202eé",
        **AUTH,
    )
    lines = memservice("keys", "list", **AUTH).stdout.splitlines()
    assert len(lines) == 2
    assert lines[1].endswith("  a\ufffd\ufffd[31mfake  everything  works\ufffd\ufffdé")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either --admin, or --workspace"),
        (("--admin", "--workspace", "acme"), "either --admin, or --workspace"),
        (("--peer", "alice"), "--workspace: "),
        (("--workspace", "no name"), "--workspace: String should match pattern"),
        (("--workspace", ""), "--workspace: String should have at least 1 character"),
        (
            ("--admin", "--expires", "soon"),
            "'soon' is not a duration: write for instance 90d, 1h30m or '2 weeks'",
        ),
        (("--admin", "--expires", "9000y"), "expire after the year 9999"),
    ],
)
def test_invalid_arguments_create_no_key(
    memservice: Run, arguments: tuple[str, ...], message: str
) -> None:
    refused = memservice("keys", "create", *arguments, **AUTH)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert message in " ".join(refused.stderr.split())


def test_a_key_is_revoked(memservice: Run) -> None:
    token = memservice("keys", "create", "--admin", **AUTH).stdout.strip()
    other = memservice("keys", "create", "--admin", **AUTH).stdout.strip()
    foreign = signed({"t": "", "w": "acme"})
    uid = str(claims_of(token)["jti"])
    assert memservice("keys", "revoke", uid, **AUTH).stdout == f"revoked {uid}\n"
    assert (
        memservice("keys", "revoke", "--token", other, **AUTH).stdout
        == f"revoked {claims_of(other)['jti']}\n"
    )
    assert memservice("keys", "revoke", "--token", foreign, **AUTH).returncode == 0
    lines = memservice("keys", "list", **AUTH).stdout.splitlines()
    assert [line.split().count("revoked") for line in lines[1:]] == [2, 2, 2]
    assert lines[3].endswith("without an id, goes by its names")
    unknown = memservice("keys", "revoke", "nope", **AUTH)
    assert (unknown.returncode, unknown.stderr) == (1, "memservice: Key nope not found\n")
    assert (
        memservice("keys", "revoke", "--token", "garbage", **AUTH).stderr
        == "memservice: Invalid JWT\n"
    )
    assert memservice("keys", "revoke", **AUTH).returncode == 2
    assert memservice("keys", "revoke", uid, "--token", token, **AUTH).returncode == 2


def test_without_a_secret_the_error_says_how_to_create_one(memservice: Run) -> None:
    recipe = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
    refused = memservice("keys", "create", "--admin")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert recipe in refused.stderr
    refused = memservice("serve", "--port", "0", AUTH_USE_AUTH="true")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert recipe in refused.stderr


def test_a_short_secret_creates_no_key(memservice: Run) -> None:
    for settings in (
        {"AUTH_JWT_SECRET": "x" * 15},
        {"AUTH_JWT_SECRET": SECRET, "AUTH_JWT_SECRET_PREVIOUS": "x" * 15},
    ):
        for further in ({}, {"AUTH_USE_AUTH": "true"}):
            refused = memservice("keys", "create", "--admin", **settings, **further)
            assert (refused.returncode, refused.stdout) == (1, "")
            assert (
                f"{list(settings)[-1]} is only 15 bytes long, and must be 16 or more"
                in refused.stderr
            )
            assert 'python -c "import secrets; print(secrets.token_urlsafe(32))"' in refused.stderr


def test_a_key_for_an_unknown_row_is_marked_in_the_list(memservice: Run, tmp_path: Path) -> None:
    settings = load_settings(
        environ={"DB_CONNECTION_URI": f"sqlite:///{tmp_path / 'memservice.db'}", **AUTH},
        cwd=tmp_path,
    )
    with closing(open_runtime(settings)) as rt:
        rt.storage.migrate()
        key_minting.mint(rt, Principal(admin=True), Claims(app_uid="unheard-of"))
    (line,) = memservice("keys", "list", **AUTH).stdout.splitlines()[1:]
    assert "  nothing: its target did not exist  works  " in line
    assert line.endswith("app unheard-of")


def test_a_storage_in_memory_creates_no_key(memservice: Run) -> None:
    refused = memservice("keys", "create", "--admin", DB_CONNECTION_URI="memory://", **AUTH)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "exists in one process only" in refused.stderr


def test_a_key_created_while_authentication_is_off_comes_with_a_note(memservice: Run) -> None:
    result = memservice("keys", "create", "--admin", AUTH_JWT_SECRET=SECRET)
    assert claims_of(result.stdout)["ad"] is True
    assert "WARNING: AUTH_USE_AUTH is false" in result.stderr


@pytest.mark.e2e
def test_a_key_revoked_by_command_is_refused_by_running_servers(
    tmp_path: Path, memservice: Run
) -> None:
    """Two server processes; a key that the shell revokes is refused by both from the next request
    on."""
    token = memservice("keys", "create", "--workspace", "acme", **AUTH).stdout.strip()
    with serving(tmp_path, "--workers", "2", "--no-worker", **AUTH) as server:

        def get() -> int:
            request = urllib.request.Request(
                f"{server.url}/v3/workspaces/acme/queue/status",
                headers={"Authorization": f"Bearer {token}"},
            )
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code

        assert {get() for _ in range(20)} == {200}
        deadline = time.monotonic() + 30
        while " never " in memservice("keys", "list", **AUTH).stdout:
            assert time.monotonic() < deadline
        memservice("keys", "revoke", "--token", token, **AUTH)
        assert {get() for _ in range(20)} == {401}
