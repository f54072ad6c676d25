from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from memservice.domain import installation


def test_the_command_installs_into_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/my apps/bin/python")
    extra = "memservice[mcp]"
    monkeypatch.setattr(installation, "find_spec", lambda name: object())
    assert (
        installation.install_command(extra)
        == "'/my apps/bin/python' -m pip install 'memservice[mcp]'"
    )
    wheel = installation.wheel_command()
    assert wheel.startswith("'/my apps/bin/python' -m pip wheel --no-deps ")
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    assert (
        installation.install_command(extra)
        == "uv pip install --python '/my apps/bin/python' 'memservice[mcp]'"
    )
    assert installation.wheel_command().startswith("uvx pip wheel --no-deps ")


class Origin:
    """What an installer records about a distribution."""

    version = "1.2.3"

    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.text


def test_the_source_is_a_file_that_exists_or_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "a b.whl"
    wheel.touch()
    release = "memservice==1.2.3"
    for text, source in (
        (json.dumps({"url": wheel.as_uri()}), f"'{wheel}'"),
        (json.dumps({"url": f"{wheel.as_uri()}.gone"}), release),
        (json.dumps({"url": "https://example.org/memservice.git"}), release),
        (None, release),
    ):
        monkeypatch.setattr(installation, "distribution", lambda name, text=text: Origin(text))
        assert installation.source() == source
