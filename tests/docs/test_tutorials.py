"""The programs of the tutorials, and the commands of the first page, do what the pages say."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import httpx
import pytest

from support.clients.environments import NO_CERTIFICATES
from support.clients.server import Server
from support.docs.blocks import blocks

PRINTED_URL = "http://127.0.0.1:8000"
TUTORIALS = ("chat-agent", "several-people")


@pytest.mark.e2e
@pytest.mark.xdist_group("served")
@pytest.mark.client
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_prints_what_it_says(
    root: Path, published_client: Path, server: Server, tmp_path: Path, name: str
) -> None:
    page = root / "docs" / "tutorials" / f"{name}.md"
    (program,) = blocks(page, "python")
    (shown,) = blocks(page, "text")
    assert program.text.count(PRINTED_URL) == 1
    result = subprocess.run(
        [str(published_client), "-c", program.text.replace(PRINTED_URL, server.url)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **NO_CERTIFICATES},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    rest = result.stdout
    for line in shown.text.splitlines():
        before, separator, rest = rest.partition(line)
        assert separator, f"{line!r} is not printed, or not in this order, in {result.stdout!r}"
        assert "novel" not in before, "Alice was not there"


def test_every_tutorial_is_run(root: Path) -> None:
    written = {page.stem for page in (root / "docs" / "tutorials").glob("*.md")}
    assert written == set(TUTORIALS)


@pytest.mark.e2e
@pytest.mark.xdist_group("served")
@pytest.mark.timeout(300)
def test_the_commands_of_the_first_minute_work(root: Path, server: Server) -> None:
    page = root / "docs" / "start.md"
    install, *requests = [block.text for block in blocks(page, "sh")]
    assert install == blocks(root / "README.md", "sh")[0].text
    answers = []
    for text in requests:
        words = shlex.split(text)
        assert words[0] == "curl"
        (url,) = [word for word in words if word.startswith("http")]
        body = words[words.index("-d") + 1].encode()
        answer = httpx.post(
            url.replace(PRINTED_URL, server.url),
            content=body,
            headers={"Content-Type": "application/json"},
        )
        assert answer.is_success, answer.text
        answers.append(answer.text)
    assert "Balthazar" in answers[1]
