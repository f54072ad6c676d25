"""What is shipped is what is in the tree, and what is in the tree is declared."""

from __future__ import annotations

import configparser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import venv
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points, packages_distributions
from pathlib import Path

import pytest

from support.clients.server import Server

pytestmark = pytest.mark.slow

SHELVES = ("backends", "config", "plugins")
LIBRARIES = {"memservice_deployment", "memservice_http", "memservice_sql"}
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
def distributions_built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheel and of the source distribution."""
    copy = tmp_path_factory.mktemp("source") / "memservice"
    shutil.copytree(root, copy, ignore=NOT_SHIPPED)
    command = (
        "import sys; from setuptools import build_meta; folder = sys.argv[1]; "
        "build_meta.build_wheel(folder); build_meta.build_sdist(folder)"
    )
    target = tmp_path_factory.mktemp("built")
    result = subprocess.run(
        [sys.executable, "-c", command, str(target)],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return target


@pytest.fixture(scope="module")
def wheel_file(distributions_built: Path) -> Path:
    (path,) = distributions_built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(wheel_file) as archive:
        yield archive


@pytest.fixture(scope="module")
def installed(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, which shares the packages that it requires."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    shared = [path for path in sys.path if path.endswith("-packages") and Path(path).is_dir()]
    (site / "shared.pth").write_text("\n".join(shared) + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    result = subprocess.run(
        [*pip, "--no-deps", "--no-index", "--no-compile", "--ignore-installed", str(wheel_file)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return python.parent


def test_the_wheel_contains_the_files_of_the_tree(root: Path, wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = shipped_files(root)
    assert packed - expected == set()
    assert expected - packed == set(), (
        "a file or a package (no __init__.py?) is not packed: see setup.py and "
        "[options.package_data]"
    )


def test_the_source_distribution_contains_templates_and_documentation(
    root: Path, distributions_built: Path
) -> None:
    (path,) = distributions_built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    files = {
        file.relative_to(root).as_posix()
        for folder in ("memservice", "config", "docs")
        for file in (root / folder).rglob("*")
        if file.is_file() and file.suffix != ".webp"  # screenshots: see MANIFEST.in
    }
    assert {name for name in files if "__pycache__" not in name} - packed == set()


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
    assert "Author: The memservice authors" in metadata
    assert "Keywords: " in metadata
    _, _, description = metadata.partition("\n\n")
    assert len(description) > 5000
    links = re.findall(r"\]\(([^)]*)\)|(?:src|srcset|href)=\"([^\"]*)\"", description)
    targets = [target for link in links for target in link if target]
    assert [target for target in targets if not target.startswith(("http://", "https://"))] == [], (
        "on the page of a package index, a relative link leads nowhere"
    )


def test_the_extra_all_contains_what_the_shelves_need(root: Path) -> None:
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg")
    named = re.fullmatch(r"\s*memservice\[(.*)\]", config["options.extras_require"]["all"])
    assert named is not None
    assert set(named[1].split(",")) == set(SHELVES_NEED)


@pytest.mark.heavy
def test_a_type_checker_sees_the_annotations(installed: Path, tmp_path: Path) -> None:
    """Of the core and of both shelves, in a project that only has the wheel installed."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs the extra types")
    (tmp_path / "plugin.py").write_text(
        "import memservice_hashed\n"
        "import memservice_memory\n"
        "from memservice.domain.ids import new_uid\n"
        "reveal_type(new_uid())\n"
        "memservice_hashed.not_there\n"
        "memservice_memory.not_there\n",
        encoding="utf-8",
    )
    # Only the modules that are named are read, and not all that they import.
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nfollow_imports = skip\n"
        "[mypy-memservice_hashed,memservice_memory,memservice,memservice.domain.*]\n"
        "follow_imports = silent\n",
        encoding="utf-8",
    )
    options = ["--config-file=mypy.ini", "--cache-dir=/dev/null"]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *options, f"--python-executable={installed}/python", "."],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert 'Revealed type is "str"' in result.stdout, result.stdout
    assert result.stdout.count('Module has no attribute "not_there"') == 2, result.stdout


class Installed(Server):
    """A server of another environment."""

    def __init__(self, program: Path, folder: Path, **settings: str) -> None:
        self.program = program
        super().__init__(folder, **settings)


# The README's test command runs all tests of served processes on the installed wheel.
@pytest.mark.heavy
@pytest.mark.e2e
@pytest.mark.timeout(200)
def test_the_wheel_serves_in_an_empty_home(installed: Path, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    server = Installed(installed / "memservice", folder, HOME=str(home))
    try:
        server.wait_until_healthy()
        request = urllib.request.Request(
            f"{server.url}/v3/workspaces/w/sessions/s/messages",
            json.dumps({"messages": [{"peer_id": "a", "content": "I keep bees."}]}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 201
    finally:
        assert server.stop() == 0
    assert list(folder.iterdir()) == []
    assert [path.name for path in home.rglob("memservice.db")] == ["memservice.db"]


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


IMPORT = re.compile(r"^\s*(?:from ([\w.]+) import|import ([\w.]+))", re.M)


@cache
def distributions() -> Mapping[str, list[str]]:
    """Top-level module → the distributions that install it."""
    return packages_distributions()


def imported(folders: list[Path]) -> dict[str, str]:
    """Third-party distribution → a file that imports it."""
    packages = {}
    for file in (
        file
        for folder in folders
        for file in folder.rglob("*.py")
        if not ELSEWHERE.search(file.as_posix())
    ):
        # To parse all files takes seconds. A line of a text that reads as an import adds a package
        # that is required anyway, or fails here.
        modules = {first or second for first, second in IMPORT.findall(file.read_text("utf-8"))}
        for top in {name.partition(".")[0] for name in modules} - sys.stdlib_module_names:
            for name in distributions().get(top, []):
                packages[name.lower().replace("_", "-")] = str(file)
    packages.pop("memservice", None)
    return packages


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
    declared = requirements(root, "testing", "test", *SHELVES_NEED) | {
        "werkzeug",
        "webargs",
        "apispec",
    }
    assert {name: file for name, file in used.items() if name not in declared} == {}


def test_the_changelog_names_this_version(root: Path) -> None:
    from memservice import __version__

    assert f"## [{__version__}]" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
