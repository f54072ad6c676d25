"""The page on moving is true: its commands work beside a running service, and name options that
exist."""

from __future__ import annotations

import re
from pathlib import Path

import click
import httpx
import pytest

from memservice.cli.transfer import (
    copy_command,
    export_command,
    import_command,
    import_from_command,
)
from support.clients.server import serving
from support.docs.blocks import blocks
from support.processes import preloaded


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_the_commands_work_while_the_service_runs(root: Path, tmp_path: Path) -> None:
    script = "set -eu\n" + "\n".join(
        block.text for block in blocks(root / "docs" / "moving.md", "sh")
    )
    with serving(tmp_path) as server, httpx.Client(base_url=server.url) as http:
        body = {"messages": [{"peer_id": "a", "content": "I keep bees."}]}
        assert http.post("/v3/workspaces/w/sessions/s/messages", json=body).status_code == 201
        result = preloaded.run_script(script, tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr
        copied = http.post("/v3/workspaces/w-2/sessions/s/messages/list", json={}).json()
    assert [message["content"] for message in copied["items"]] == ["I keep bees."]


def test_every_documented_option_exists(root: Path) -> None:
    text = (root / "docs" / "moving.md").read_text(encoding="utf-8")
    commands: list[click.Command] = [
        export_command,
        import_command,
        copy_command,
        import_from_command,
    ]
    names = {
        option
        for command in commands
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    named = set(re.findall(r"--[a-z][a-z-]*", text))
    assert named - names == set()
    assert names - named == {"-w", "url", "file"}
