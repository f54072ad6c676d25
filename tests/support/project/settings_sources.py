"""Settings from a file, a .env file and variables of a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memservice.domain.errors import ConfigurationError
from memservice.settings import Settings, load_settings


def load(tmp_path: Path, toml: str = "", dotenv: str = "", **environ: str) -> Settings:
    if toml:
        (tmp_path / "memservice.toml").write_text(toml, encoding="utf-8")
    if dotenv:
        (tmp_path / ".env").write_text(dotenv, encoding="utf-8")
    return load_settings(environ=environ, cwd=tmp_path)


def refusal(tmp_path: Path, **sources: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **sources)
    return str(caught.value)


def row(settings: Settings, name: str) -> Any:
    (setting,) = [row for row in settings.rows(everything=True) if row.name == name]
    return setting
