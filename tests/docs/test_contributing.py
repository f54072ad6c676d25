"""Each page of docs/contributing is carried out in a copy of the repository. By default, the
commands of one page run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from memservice_sql.schema_version import HEAD

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("contributing"),
]

FOLDERS = ("memservice", "backends", "config", "plugins", "tests", "scripts", "docs")
FILES = ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "CHANGELOG.md", "tox.ini")
PAGES = ("route", "task", "setting", "migration", "plugin-kind")
RUN = "plugin-kind"
"""The page whose commands take the least time."""
DO_NOT_COMPILE = "PYTHONDONTWRITEBYTECODE"
BLOCK = re.compile(r"^( *)(`{3,})(python|diff|sh)\n(.*?)^\1\2$", re.MULTILINE | re.DOTALL)


class Copy:
    """A copy of the repository, in which the steps of pages are done once."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self._commands: dict[str, list[str]] = {}
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info", ".*_cache", "*.webp")
        for name in FOLDERS:
            shutil.copytree(root / name, folder / name, ignore=ignored)
        for file in FILES:
            shutil.copy(root / file, folder / file)
        self.created = time.time()

    def commands(self, name: str) -> list[str]:
        """Those of a page, whose files and changes are made."""
        if name not in self._commands:
            self._commands[name] = carry_out(steps(self.root, name), self.folder)
        return self._commands[name]


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """One for all pages, so that its modules are compiled once: three seconds of CPU."""
    return Copy(root, tmp_path_factory.mktemp("copy"))


def steps(root: Path, name: str) -> str:
    """A page. Whatever the newest revision is, its example comes after it."""
    page = (root / "docs" / "contributing" / f"{name}.md").read_text(encoding="utf-8")
    return page.replace("0005", f"{int(HEAD) + 1:04}").replace("0004", HEAD)


def carry_out(page: str, copy: Path) -> list[str]:
    """Make the page's files and changes; returns its commands."""
    commands = []
    for indent, _, language, raw in BLOCK.findall(page):
        text = textwrap.dedent(raw) if not indent else re.sub(f"(?m)^{indent}", "", raw)
        if language == "sh":
            commands += text.splitlines()
            continue
        first, _, rest = text.partition("\n")
        file = copy / first.removeprefix("# ")
        if language == "python":
            assert not file.exists(), f"{first}: the page says that this file is new"
            file.write_text(rest, encoding="utf-8")
        else:
            change(file, rest)
    return commands


def change(file: Path, diff: str) -> None:
    """Apply lines that begin with a space (there already), `-` or `+`. A lone part of a line may
    stand for the whole."""
    lines = diff.splitlines()
    before = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    after = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{file.name} holds this {text.count(before)} times:\n{before}"
    file.write_text(text.replace(before, after), encoding="utf-8")


def run(command: str, copy: Path) -> None:
    words = shlex.split(command)
    if words[0] == "scripts/test":
        words = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            *words[1:],
        ]
    path = [str(copy / folder) for folder in (".", "backends", "config", "plugins", "tests")]
    environment = {name: value for name, value in os.environ.items() if name != DO_NOT_COMPILE}
    result = subprocess.run(
        words,
        cwd=copy,
        env={**environment, "PYTHONPATH": os.pathsep.join(path), "PATH": _path()},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout[-4000:]}\n{result.stderr[-2000:]}"


def _path() -> str:
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.mark.parametrize(
    "name", [RUN, *(pytest.param(name, marks=pytest.mark.heavy) for name in PAGES if name != RUN)]
)
def test_the_steps_of_each_page_work(copy: Copy, name: str) -> None:
    commands = copy.commands(name)
    assert commands
    for command in commands:
        run(command, copy.folder)


def test_every_page_fits_the_code(copy: Copy) -> None:
    """Its files are new, what its changes replace is there, and the result is Python."""
    for name in PAGES:
        assert copy.commands(name), name
    written = [file for file in copy.folder.rglob("*.py") if file.stat().st_mtime > copy.created]
    assert len(written) > len(PAGES)
    for file in written:
        compile(file.read_text(encoding="utf-8"), file, "exec")


def test_every_page_is_listed(root: Path) -> None:
    folder = root / "docs" / "contributing"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = {file.stem for file in folder.glob("*.md")} - {"README"}
    assert pages == set(PAGES) == set(re.findall(r"\]\(([a-z-]+)\.md\)", index))
