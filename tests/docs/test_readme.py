"""The README is true: its commands are those that are used, its example runs as printed, its tables
are the code's."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from memservice.app import create_app
from memservice.plugins import KINDS, Row, load_plugins
from memservice.settings import Settings
from support.clients.server import Server
from support.docs.blocks import blocks, table

PRINTED_URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def readme(root: Path) -> Path:
    return root / "README.md"


def commands(text: str, *homes: str) -> list[list[str]]:
    """The commands of a shell line, wherever it installs."""
    for home in homes:
        text = text.replace(home, "HOME")
    return [shlex.split(part) for part in text.strip().split(" && ")]


def test_the_test_command_is_that_of_ci(root: Path, readme: Path) -> None:
    (line,) = [block.text for block in blocks(readme, "sh") if "tox" in block.text]
    assert line in [block.text for block in blocks(root / "CONTRIBUTING.md", "sh")]
    script = (root / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    (ci,) = [text for text in script if "venv" in text and not text.startswith("#")]
    expected = commands(line, "~/.cache/memservice")
    assert commands(ci.replace(' -- "$@"', ""), "$scratch") == expected
    assert [command[0] for command in expected] == [
        "python3",
        "HOME/tox/bin/pip",
        "HOME/tox/bin/tox",
    ]


def test_the_start_command_installs_into_an_environment_and_serves(readme: Path) -> None:
    first = blocks(readme, "sh")[0].text
    assert commands(first, "~/.memservice") == [
        ["python3", "-m", "venv", "HOME"],
        ["HOME/bin/pip", "install", "."],
        ["HOME/bin/memservice", "serve"],
    ]


@pytest.mark.e2e
@pytest.mark.xdist_group("served")
@pytest.mark.client
@pytest.mark.timeout(600)
def test_the_example_runs_as_printed(
    readme: Path, published_client: Path, server: Server, tmp_path: Path
) -> None:
    (example,) = blocks(readme, "python")
    assert len(example.text.strip().splitlines()) <= 11
    assert example.text.count(PRINTED_URL) == 1
    (printed,) = blocks(readme, "text")
    assert example.text.count("sleep(2)") == 1
    # A machine that runs other tests meanwhile may take longer than two seconds to conclude.
    text = example.text.replace(PRINTED_URL, server.url).replace("sleep(2)", "sleep(8)")
    result = subprocess.run(
        [str(published_client), "-c", text],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == printed.text


def test_the_curl_example_works(readme: Path) -> None:
    (line,) = [block.text for block in blocks(readme, "sh") if block.text.startswith("curl")]
    words = shlex.split(line)
    (url,) = [word for word in words if word.startswith("http")]
    answer = (
        create_app(Settings()).url_map.bind("x").match(url.removeprefix(PRINTED_URL), method="POST")
    )
    assert answer[1] == {"workspace_id": "example"}
    assert words[words.index("-d") + 1] == '{"query": "tortoise", "limit": 1}'


def test_every_provider_is_listed(readme: Path) -> None:
    listed = {(row[0], row[1]) for row in table(readme, "providers")}
    kinds = {kind.words for kind in KINDS}
    assert listed == {
        (row.kind, row.name)
        for row in load_plugins().listing()
        if row.kind in kinds and _is_ours(row)
    }


def _is_ours(row: Row) -> bool:
    return row.distribution.startswith("memservice ")


def test_the_common_settings_have_their_defaults(readme: Path) -> None:
    rows = {row.name: row.value_text for row in Settings().rows(everything=True)}
    _, _, rest = readme.read_text(encoding="utf-8").partition("## Configure")
    shown = re.findall(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \| ((?:`[^`]+`(?:, )?)+) \|", rest, re.M)
    assert len(shown) >= 6
    for names, values in shown:
        name_list = re.findall(r"`([^`]+)`", names)
        value_list = re.findall(r"`([^`]+)`", values)
        if name_list == ["CORS_ORIGINS"]:
            assert list(Settings().app.cors_origins) == value_list
        else:
            assert [rows[name] for name in name_list] == value_list
