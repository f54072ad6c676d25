"""The operator's pages: every setting is on its page, every command works while the service
runs."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import httpx
import pytest

from memservice.settings import Settings
from memservice.settings.declare import tree
from support.clients.server import serving
from support.docs.blocks import blocks
from support.docs.settings_page import page
from support.processes import preloaded

# The code is parsed once for all tests that look at it.
pytestmark = pytest.mark.xdist_group("sources")

WITHOUT_EFFECT = {"DB_SQL_DEBUG", "DREAM_SURPRISAL__TREE_TYPE", "EMBEDDING_MAX_PENDING_EMBED_TASKS"}
SWITCHES = {"MEMSERVICE_CONFIG", "MEMSERVICE_URL", "MEMSERVICE_API_KEY", "MEMSERVICE_TEST_CACHE"}
"""Variables that say where to look, before any setting is read."""


def test_every_setting_is_documented_correctly(root: Path) -> None:
    there = (root / "docs" / "settings.md").read_text(encoding="utf-8")
    assert there == page(), "make it anew: scripts/settings-page"


def test_every_setting_is_documented() -> None:
    text = page()
    names = set(re.findall(r"^\| `([A-Z0-9_]+)`", text, re.M))
    groups = set(re.findall(r"^- `([A-Z0-9_]+)`$", text, re.M))
    for leaf in tree(Settings).leaves:
        match = re.fullmatch(r"(.*?(?:MODEL_CONFIG|^LLM_FALLBACK))__(?:FALLBACK__)?(.*)", leaf.name)
        assert leaf.name in names or (match and match[1] in groups and match[2] in names), leaf.name


def test_every_setting_is_used_or_marked_as_unused() -> None:
    rows = re.findall(r"^\| `([A-Z0-9_]+)`( †)? \|[^|]*\| (.*) \|$", page(), re.M)
    assert len(rows) > 150
    assert {name for name, mark, _ in rows if mark} == WITHOUT_EFFECT
    marked = {
        name
        for name, _, help in rows
        if help.startswith("accepted for compatibility, without effect")
    }
    assert marked == WITHOUT_EFFECT


def test_settings_in_prose_exist_with_the_stated_value(root: Path) -> None:
    variables = tree(Settings).by_variable
    for name in ("README.md", "docs/operations.md", "docs/plugins.md", "docs/storage.md"):
        for variable in re.findall(
            r"`([A-Z]+_[A-Z_]+)(?:=[^`]*)?`", (root / name).read_text(encoding="utf-8")
        ):
            if variable not in SWITCHES:
                assert variable in variables, f"{name}: {variable}"
    text = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    defaults = re.findall(r"`([A-Z0-9_]+)` \((\d+)\)", text)
    assert len(defaults) >= 4
    for variable, value in defaults:
        assert float(variables[variable].default) == float(value), variable


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_the_commands_work_while_the_service_runs(root: Path, tmp_path: Path) -> None:
    script = "set -eu\n" + "\n".join(
        block.text for block in blocks(root / "docs" / "operations.md", "sh")
    )
    with serving(tmp_path) as server, httpx.Client(base_url=server.url) as http:
        body = {"messages": [{"peer_id": "a", "content": "I keep bees."}]}
        assert http.post("/v3/workspaces/w/sessions/s/messages", json=body).status_code == 201
        result = preloaded.run_script(script, tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "the agent on my laptop" in result.stdout
        copy = sqlite3.connect(tmp_path / "backup.db")
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert copy.execute("SELECT content FROM messages").fetchall() == [("I keep bees.",)]
        copy.close()
    log = [
        line
        for line in server.log.splitlines()
        if "path=/v3/workspaces/w/sessions/s/messages" in line
    ]
    assert len(log) == 1
    assert "I keep bees" not in server.log
