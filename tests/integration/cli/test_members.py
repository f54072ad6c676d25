"""`memservice console` and `memservice members`."""

from __future__ import annotations

import re
from pathlib import Path

from integration.cli.conftest import Run
from memservice.compose import open_runtime
from memservice.services.members import links
from memservice.services.members.visitors import Browser
from memservice.settings import load_settings

AUTH = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40}
PASSWORD = "correct horse battery"
LINK = re.compile(r"http://127\.0\.0\.1:8000/console/link\?token=[\w-]{43}\n")


def accept(folder: Path, printed: str, name: str, **settings: str) -> None:
    """Use a printed link up."""
    runtime = open_runtime(load_settings(environ=settings, cwd=folder))
    try:
        token = printed.strip().partition("token=")[2]
        links.accept(runtime, Browser("127.0.0.1"), token, name, PASSWORD)
    finally:
        runtime.close()


def uri(folder: Path) -> dict[str, str]:
    return {"DB_CONNECTION_URI": f"sqlite:///{folder / 'memservice.db'}", **AUTH}


def test_a_link_is_printed_alone_even_before_the_first_start(memservice: Run) -> None:
    result = memservice("console", "link", **AUTH)
    assert LINK.fullmatch(result.stdout), result.stdout
    assert re.search(r"works once, until 20\d\d-", result.stderr)


def test_a_link_begins_with_the_address_of_the_settings(memservice: Run) -> None:
    result = memservice("console", "link", **AUTH, CONSOLE_URL="https://memory.example.com/")
    assert result.stdout.startswith("https://memory.example.com/console/link?token=")
    result = memservice("console", "link", **AUTH, HOST="::", PORT="9000")
    assert result.stdout.startswith("http://127.0.0.1:9000/console/link?token=")


def test_without_authentication_there_is_no_link(memservice: Run) -> None:
    result = memservice("console", "link")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "AUTH_USE_AUTH=true" in result.stderr


def test_members_are_invited_listed_and_deactivated(memservice: Run, tmp_path: Path) -> None:
    settings = uri(tmp_path)
    accept(tmp_path, memservice("console", "link", **settings).stdout, "olga", **settings)
    invited = memservice("members", "invite", "--role", "reader", **settings)
    accept(tmp_path, invited.stdout, "rita", **settings)
    result = memservice("members", "list", **settings).stdout.splitlines()
    assert [line.split()[:4] for line in result[1:]] == [
        ["rita", "reader", "all", "active"],
        ["olga", "owner", "all", "active"],
    ]
    assert memservice("members", "deactivate", "Rita", **settings).stdout == "deactivated rita\n"
    assert "deactivated" in memservice("members", "list", **settings).stdout
    refused = memservice("members", "deactivate", "olga", **settings)
    assert (refused.returncode, "last active owner" in refused.stderr) == (1, True)
    unknown = memservice("console", "link", "--member", "nobody", **settings)
    assert "There is no member 'nobody'" in unknown.stderr


def test_an_invitation_names_workspaces_that_exist(memservice: Run) -> None:
    result = memservice("members", "invite", "--role", "reader", "-w", "nowhere", **AUTH)
    assert result.returncode == 2
    assert "There is no workspace 'nowhere'" in result.stderr


def test_a_forgotten_password_is_replaced_by_a_link(memservice: Run, tmp_path: Path) -> None:
    settings = uri(tmp_path)
    accept(tmp_path, memservice("console", "link", **settings).stdout, "olga", **settings)
    result = memservice("console", "link", "--member", "OLGA", **settings)
    accept(tmp_path, result.stdout, "", **settings)
