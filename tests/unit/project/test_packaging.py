"""What is shipped is what is in the tree, and what is in the tree is declared."""

from __future__ import annotations

import ast
import configparser
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import entry_points, packages_distributions
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SHELVES = ("backends", "plugins")
LIBRARIES = {"memservice_sql", "memservice_http"}
"""On a shelf, but used by others there instead of being loaded."""

NOT_SHIPPED = shutil.ignore_patterns(
    ".git",
    ".tox",
    ".venv",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    "*.pyc",
    ".*_cache",
    ".hypothesis",
    "tests",
    "benchmarks",
)
NAMED_AHEAD = {"pyjwt", "gunicorn"}
"""Requirements that a command or a plugin uses without any import that this test can see, or
will."""


def shelved(root: Path) -> list[Path]:
    return sorted(
        path for shelf in SHELVES for path in (root / shelf).glob("memservice_*") if path.is_dir()
    )


def shipped_files(root: Path) -> set[str]:
    """Every file that the wheel should hold, by its name in the wheel."""
    return {
        path.relative_to(package.parent).as_posix()
        for package in (root / "memservice", *shelved(root))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    copy = tmp_path_factory.mktemp("source") / "memservice"
    shutil.copytree(root, copy, ignore=NOT_SHIPPED)
    command = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    target = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-c", command, str(target)],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = target.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_contains_the_files_of_the_tree(root: Path, wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = shipped_files(root)
    assert packed - expected == set()
    assert expected - packed == set(), (
        "a file or a package (no __init__.py?) is not packed: see setup.py and "
        "[options.package_data]"
    )


def test_the_wheel_has_licence_commands_and_requirements(
    root: Path, wheel: zipfile.ZipFile
) -> None:
    (info,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    assert wheel.read(f"{info}/licenses/LICENSE").decode() == (root / "LICENSE").read_text()
    assert "memservice = memservice.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    metadata = wheel.read(f"{info}/METADATA").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert "Requires-Dist: flask" in metadata


def test_every_shelf_entry_is_declared(root: Path) -> None:
    declared = {
        entry.value
        for entry in entry_points(group="memservice")
        if entry.dist and entry.dist.name == "memservice"
    }
    assert declared == {path.name for path in shelved(root)} - LIBRARIES


def test_every_shelf_entry_is_typed(root: Path) -> None:
    assert [
        path.name
        for path in (root / "memservice", *shelved(root))
        if not (path / "py.typed").exists()
    ] == []


def requirements(root: Path, *extras: str) -> set[str]:
    """Normalised names of what the distribution requires."""
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg")
    texts = [
        config["options"]["install_requires"],
        *(config["options.extras_require"][extra] for extra in extras),
    ]
    names = re.findall(r"^([A-Za-z0-9][\w.-]*)", "\n".join(texts), flags=re.M)
    return {name.lower().replace("_", "-") for name in names} - {"memservice"}


SHELVES_NEED = ("uploads", "minilm", "postgres", "qdrant", "mcp")
"""Extras of what lies on the shelves."""
ELSEWHERE = re.compile(r"tests/(support/clients/\w+_(client|core)|contracts/thirdparty)/")
"""Files that run in environments of their own."""


def imported(folders: list[Path]) -> dict[str, str]:
    """Third-party distribution → a file that imports it."""
    distributions = packages_distributions()
    found = {}
    for file in (
        file
        for folder in folders
        for file in folder.rglob("*.py")
        if not ELSEWHERE.search(file.as_posix())
    ):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names:
                for name in distributions.get(top, []):
                    found[name.lower().replace("_", "-")] = str(file)
    found.pop("memservice", None)
    return found


def test_imported_packages_are_required(root: Path) -> None:
    used = imported([root / "memservice", *shelved(root)])
    in_kits = {name: file for name, file in used.items() if "memservice/testing/" in file}
    required = requirements(root, *SHELVES_NEED)
    # flask and werkzeug, marshmallow and webargs come as one
    assert {
        n: f
        for n, f in used.items()
        if n not in required | {"werkzeug", "webargs", "apispec"} and n not in in_kits
    } == {}
    assert {n: f for n, f in in_kits.items() if n not in requirements(root, "testing")} == {}


def test_required_packages_are_imported(root: Path) -> None:
    assert (
        requirements(root) - set(imported([root / "memservice", *shelved(root)])) - NAMED_AHEAD
        == set()
    )


def test_packages_imported_by_tests_are_in_the_test_extra(root: Path) -> None:
    used = imported([root / "tests"])
    known = requirements(root, "testing", "test", *SHELVES_NEED) | {
        "werkzeug",
        "webargs",
        "apispec",
    }
    assert {name: file for name, file in used.items() if name not in known} == {}


def test_the_changelog_names_this_version(root: Path) -> None:
    from memservice import __version__

    assert f"## [{__version__}]" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
