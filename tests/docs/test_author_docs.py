"""The plugin and the storage of the documentation are real ones: they are installed, listed, tested
and used."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from memservice import hookspecs
from support.docs.blocks import blocks
from support.processes import preloaded
from support.processes.command import environment

HOOKS = {
    name: function for name, function in vars(hookspecs).items() if name.startswith("memservice_")
}


@pytest.fixture
def written(tmp_path: Path, root: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with the files that a page shows, as an installed distribution."""
    page = root / "docs" / request.param
    files = {block.title: block.text for block in blocks(page) if block.title}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (module,) = [re.split(r"[/.]", name)[0] for name in files if name.startswith("memservice_")]
    points = (
        tomllib.loads(files["pyproject.toml"])["project"]["entry-points"]["memservice"]
        if "pyproject.toml" in files
        else {"shelf": module}
    )
    info = tmp_path / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n", encoding="utf-8"
    )
    lines = [f"{name} = {target}" for name, target in points.items()]
    (info / "entry_points.txt").write_text(
        "\n".join(["[memservice]", *lines, ""]), encoding="utf-8"
    )
    return tmp_path


def run(folder: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(PYTHONPATH=path, **settings),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.timeout(320)
@pytest.mark.parametrize("written", ["plugins.md"], indirect=True)
def test_the_shown_plugin_keeps_its_contract(written: Path) -> None:
    result = run(
        written,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        ".",
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
    summary = re.search(r"(\d+) passed", result.stdout)
    assert summary is not None
    assert int(summary[1]) >= 10


@pytest.mark.parametrize("written", ["plugins.md"], indirect=True)
def test_the_shown_plugin_is_listed_and_used(written: Path) -> None:
    here = {"PYTHONPATH": str(written)}
    result = preloaded.run(["plugins"], written, here)
    assert result.returncode == 0, result.stdout
    assert re.search(
        r"^embedder +words +words +memservice-words 1\.0 +inline$", result.stdout, re.M
    )
    assert re.search(r"^hook +memservice_message_storing +words ", result.stdout, re.M)
    script = """
from memservice.app import create_app
from memservice.settings import load_settings
http = create_app(load_settings()).test_client()
said = {"messages": [{"peer_id": "a", "content": "Pay with 4111 1111 1111 1111 please."}]}
print(http.post("/v3/workspaces/w/sessions/s/messages", json=said).json[0]["content"])
http.post("/v3/workspaces/w/conclusions", json={"conclusions": [{"observer_id": "a", \
"observed_id": "a", "content": "man bites dog"}]})
found = http.post("/v3/workspaces/w/conclusions/query", json={"query": "Dog bites man", "filters": \
{"observer": "a", "observed": "a"}})
print([row["content"] for row in found.json])
"""
    upgraded = preloaded.run(["db", "upgrade"], written, {**here, "EMBEDDER": "words"})
    assert upgraded.returncode == 0, upgraded.stderr
    settings = {**here, "EMBEDDER": "words", "LOG_LEVEL": "error"}
    used = preloaded.run_python(script, folder=written, settings=settings)
    assert used.stdout.splitlines() == ["Pay with [card] please.", "['man bites dog']"], used.stderr


@pytest.mark.parametrize("written", ["storage.md"], indirect=True)
def test_the_shown_storage_is_found_by_its_scheme(written: Path) -> None:
    settings = {"PYTHONPATH": str(written), "DB_CONNECTION_URI": "shelf://"}
    assert preloaded.run(["db", "current"], written, settings).stdout == "shelf-1\n"


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented_with_its_exact_signature(root: Path, hook: str) -> None:
    signature = str(inspect.signature(HOOKS[hook])).replace("'", "")
    assert f"\n### `{hook}{signature}`\n" in (root / "docs" / "plugins.md").read_text(
        encoding="utf-8"
    )


def test_every_documented_hook_exists(root: Path) -> None:
    assert set(
        re.findall(
            r"^### `(memservice_\w+)",
            (root / "docs" / "plugins.md").read_text(encoding="utf-8"),
            re.M,
        )
    ) == set(HOOKS)


def test_every_operation_is_documented_with_its_parameters(root: Path) -> None:
    from memservice.spi.rows import Rows

    text = (root / "docs" / "storage.md").read_text(encoding="utf-8")
    for name, function in vars(Rows).items():
        if inspect.isfunction(function) and not name.startswith("_"):
            (shown,) = re.findall(rf"^\| `{name}\(([^)]*)\)`", text, re.M)
            names = re.findall(r"\w+(?==|,|$)", re.sub(r"=\w+", "", shown))
            assert names == [
                parameter
                for parameter in inspect.signature(function).parameters
                if parameter != "self"
            ], name


def test_every_suite_is_documented(root: Path) -> None:
    import memservice.testing

    text = (root / "docs" / "plugins.md").read_text(encoding="utf-8")
    folder = Path(memservice.testing.__file__).parent
    files = [*folder.glob("*.py"), *folder.glob("*/__init__.py")]
    suites = {
        suite
        for file in files
        for suite in re.findall(r"^class (\w+Contract)\b", file.read_text(encoding="utf-8"), re.M)
    }
    assert suites == set(re.findall(r"`memservice\.testing\.\w+\.(\w+Contract)`", text))
