"""What the server imports before it forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memservice.serving import preloading

LOOK = """
import json, sys, threading
from memservice.serving.preloading import preload
preload()
print(json.dumps({"modules": sorted(sys.modules), "threads": threading.active_count()}))
"""


def preloaded(folder: Path, **environment: str) -> set[str]:
    """The modules that are imported. Also looks whether anything was opened or started."""
    process = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stderr == ""
    state = json.loads(process.stdout)
    assert state["threads"] == 1
    assert list(folder.iterdir()) == []
    return set(state["modules"])


def test_the_modules_of_the_configured_storage_are_imported_and_nothing_is_opened(
    tmp_path: Path,
) -> None:
    modules = preloaded(tmp_path, DB_CONNECTION_URI=f"sqlite:///{tmp_path}/new.db")
    assert {"memservice.app", "memservice_sqlite.storage", "sqlalchemy", "numpy"} <= modules
    assert not {"memservice_postgres.storage", "sqlalchemy.dialects.postgresql"} & modules
    # It reads the environment when it is imported, which each kind of process has its own of.
    assert "prometheus_client" not in modules


@pytest.mark.heavy
def test_an_unreachable_database_does_not_matter(tmp_path: Path) -> None:
    uri = "postgresql+psycopg://nobody@127.0.0.1:9/nothing"
    modules = preloaded(tmp_path, DB_CONNECTION_URI=uri)
    assert {"memservice_postgres.storage", "memservice_postgres.vectors"} <= modules


WRONG = pytest.mark.parametrize(
    "wrong",
    [
        {"DB_CONNECTION_URI": "nonsense://"},
        {"DB_POOL_SIZE": "many"},
        {"MEMSERVICE_PLUGINS": "not_installed"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)


@WRONG
def test_wrong_settings_are_no_error_before_a_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]
) -> None:
    """test_starting.py looks at what a start with them says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preloading, "_has_storage", False)
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    preloading.preload()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
@WRONG
def test_wrong_settings_are_left_for_the_processes_to_report(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    assert "memservice.app" in preloaded(tmp_path, **wrong)


SERVER = """
import json, sys
from memservice.serving import preloading
preloading.preload_server()
before = set(sys.modules)
import gunicorn.__main__, memservice.serving.gunicorn_config
settings = preloading.load_settings()
preloading.preload_storage(settings, preloading.load_plugins(settings))
preloading.load_settings = preloading.load_plugins = None  # it is not looked for again
preloading.preload()
prefixes = ("memservice.api", "gunicorn")
print(json.dumps(sorted(name for name in set(sys.modules) - before if name.startswith(prefixes))))
"""


def test_the_main_process_of_the_server_imports_nothing_that_its_parent_has_not_nor_looks_for_it(
    tmp_path: Path,
) -> None:
    process = subprocess.run(
        [sys.executable, "-c", SERVER],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(process.stdout) == ["gunicorn.__main__"]
