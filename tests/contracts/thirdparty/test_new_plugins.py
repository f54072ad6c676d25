"""What `memservice plugins new` writes, for every kind: installed side by side in one environment,
listed, and put to its own tests. By default, one kind is: tests/integration/cli/test_plugins_new.py
and tests/docs/test_plugin_pages.py look at what is written for the others."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from memservice.cli.plugins_new import KINDS, write
from support.clients.environments import pip
from support.docs.plugin_pages import PAGES
from support.processes import preloaded
from support.processes.command import environment

SECONDS = 600
ONE = ("hooks",)
"""The kind that is installed by default: its tests need that, and take the least time."""
BUILD = """
import importlib, os, sys, tomllib
from pathlib import Path
from setuptools import build_meta  # each fork has it

target, *sources = sys.argv[1:]
for source in sources:
    pid = os.fork()
    if not pid:
        os.chdir(source)
        system = tomllib.loads(Path("pyproject.toml").read_text())["build-system"]
        importlib.import_module(system["build-backend"]).build_wheel(target)
        sys.exit()
    if os.waitpid(pid, 0)[1]:
        sys.exit(f"{source} cannot be built")
"""
"""Builds the wheels of packages as pip does, which starts three interpreters for each."""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.xdist_group("new-plugins"),
    pytest.mark.timeout(SECONDS),
]


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has a package of each kind."""
    sources = tmp_path_factory.mktemp("new-plugins") / "sources"
    for kind, name in PAGES.values():
        write(kind, name, sources / kind)
    return sources


@pytest.fixture(
    scope="module", params=[ONE, pytest.param(tuple(KINDS), marks=pytest.mark.heavy)], ids=len
)
def kinds(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Those that are installed."""
    kinds: tuple[str, ...] = request.param
    return kinds


@pytest.fixture(scope="module")
def folder(sources: Path, kinds: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has an environment `installed` with packages of these kinds, which otherwise has what this
    one has."""
    folder = tmp_path_factory.mktemp("installed-plugins")
    environment_folder = folder / "installed"
    assert (
        run(
            sys.executable, "-m", "venv", "--without-pip", str(environment_folder), cwd=folder
        ).returncode
        == 0
    )
    (site,) = environment_folder.glob("lib/python3*/site-packages")
    shared = [path for path in sys.path if path.endswith("site-packages")]
    lines = [f"import site; site.addsitedir({path!r})" for path in shared]
    (site / "shared.pth").write_text("\n".join(lines), encoding="utf-8")
    wheels = folder / "wheels"
    wheels.mkdir()
    built = run(sys.executable, "-c", BUILD, str(wheels), *kinds, cwd=sources)
    assert built.returncode == 0, built.stdout + built.stderr
    alone = ("--quiet", "--no-compile", "--no-deps", "--no-index")
    packages = [str(wheel) for wheel in wheels.iterdir()]
    result = run(
        *pip(environment_folder / "bin" / "python"), "install", *alone, *packages, cwd=folder
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def test_every_kind_is_installed_and_listed(folder: Path, kinds: tuple[str, ...]) -> None:
    python = str(folder / "installed" / "bin" / "python")
    result = run(python, "-m", "memservice", "plugins", cwd=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    listed = set(re.findall(r" (memservice-\w+) 0\.1\.0", result.stdout))
    assert listed == {f"memservice-{name}" for kind, name in PAGES.values() if kind in kinds}


def test_every_kind_passes_its_own_tests(
    folder: Path, sources: Path, kinds: tuple[str, ...]
) -> None:
    # As many random examples as the other tests of this run try.
    (sources / "conftest.py").write_text(
        "from hypothesis import settings\n\n"
        f"settings.register_profile('here', max_examples={settings().max_examples})\n"
        "settings.load_profile('here')\n",
        encoding="utf-8",
    )
    result = run(
        str(folder / "installed" / "bin" / "python"),
        *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("-c", str(sources / "hooks" / "pyproject.toml"), "--rootdir", str(sources)),
        *(str(sources / kind / "tests") for kind in kinds),
        cwd=sources,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        PYTHONDONTWRITEBYTECODE="1",
    )
    summary = re.search(r"^(\d+) passed", result.stdout, re.M)
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr
    assert summary is not None, result.stdout[-3000:]
    assert int(summary[1]) > (3 if kinds == ONE else 400)


def test_what_is_written_for_each_kind_can_be_imported(sources: Path) -> None:
    """With its tests: all names that it takes from memservice are there."""
    importing = """
        import importlib, runpy, sys
        from pathlib import Path
        for source in Path().iterdir():
            sys.path.insert(0, str(source))
            for test in source.glob("tests/test_*.py"):
                importlib.import_module(test.stem.removeprefix("test_"))
                runpy.run_path(str(test))
                print(source.name)
    """
    result = preloaded.run_python(textwrap.dedent(importing), folder=sources)
    assert result.returncode == 0, result.stderr
    assert set(result.stdout.split()) == set(KINDS)


ALONE = ("vector-index", "embedder", "reasoner", "webhook-transport")
"""Kinds whose tests open what is written themselves, and take little time."""


def test_some_kinds_pass_their_own_tests_without_being_installed(sources: Path) -> None:
    running = """
        import sys
        from pathlib import Path
        import hypothesis, pytest
        hypothesis.settings.register_profile("few", max_examples=3)
        hypothesis.settings.load_profile("few")
        sys.path += sys.argv[1:]
        options = ("-q", "-p", "no:cacheprovider", "--import-mode", "importlib", "-c", "/dev/null")
        folders = [str(Path(source, "tests")) for source in sys.argv[1:]]
        raise SystemExit(pytest.main([*options, "--rootdir", ".", *folders]))
    """
    result = preloaded.run_python(
        textwrap.dedent(running),
        *(str(sources / kind) for kind in ALONE),
        folder=sources,
        settings={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert result.returncode == 0, result.stdout[-4_000:] + result.stderr
    summary = re.search(r"^(\d+) passed", result.stdout, re.M)
    assert summary is not None, result.stdout
    assert int(summary[1]) > 100


def test_what_is_written_has_no_faults_that_ruff_finds(sources: Path) -> None:
    options = ("--isolated", "--no-cache", ".")
    result = run(sys.executable, "-m", "ruff", "check", *options, cwd=sources)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_the_workflow_and_the_licence_are_written(sources: Path, root: Path, kind: str) -> None:
    source = sources / kind
    workflow = yaml.safe_load(
        (source / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    )
    steps = [step.get("run") for step in workflow["jobs"]["test"]["steps"]]
    assert steps[-2:] == ["pip install '.[test]'", "pytest"]
    assert (source / "LICENSE").read_bytes() == (root / "LICENSE").read_bytes()
