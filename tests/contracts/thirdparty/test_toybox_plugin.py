"""A stranger's plugin: built and installed by pip beside memservice, found, chosen in the settings,
served with, and put to the kits.

By default, this looks at its imports alone: tests/contracts/thirdparty/test_new_plugins.py installs
a plugin, and tests/integration/cli/test_plugins_check.py runs kits.

What memservice requires is installed once (`support.clients.environments`); memservice and the
plugin are installed afresh, in an environment with nothing else in it.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from support.clients.environments import client_python, pip
from support.clients.server import Server, running
from support.processes.command import environment

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
LEFT_BEHIND = (
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
)
INSTALL_SECONDS = 240
KIT_SECONDS = 900

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("toybox"),
    pytest.mark.timeout(INSTALL_SECONDS + KIT_SECONDS),
]


def _requirements() -> list[str]:
    """What memservice and its testing kit require, and what builds packages."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return [
        *setup["options"]["install_requires"].split("\n"),
        *setup["options.extras_require"]["testing"].split("\n"),
        "setuptools>=77",
    ]


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands of the environment are: `python`, `pytest`, `memservice`."""
    folder = tmp_path_factory.mktemp("toybox")
    below = client_python("plugin-requirements", [line for line in _requirements() if line])
    shutil.copytree(ROOT, folder / "memservice-source", ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    shutil.copytree(HERE / "toybox", folder / "toybox-source")
    environment_folder = folder / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment_folder))
    python = environment_folder / "bin" / "python"
    site = _run(str(python), "-c", "import site; print(site.getsitepackages()[0])").strip()
    required = _run(str(below), "-c", "import site; print(site.getsitepackages()[0])").strip()
    (Path(site) / "required.pth").write_text(required, encoding="utf-8")
    alone = (
        "--quiet",
        "--no-compile",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    )
    for source in ("memservice-source", "toybox-source"):
        _run(*pip(python), "install", *alone, str(folder / source))
    return environment_folder / "bin"


def _run(
    *command: str, cwd: Path | None = None, seconds: float = INSTALL_SECONDS, **settings: str
) -> str:
    result = subprocess.run(
        command,
        cwd=cwd,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert result.returncode == 0, (
        f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}"
    )
    return result.stdout


def chosen(folder: Path) -> None:
    """The settings by which an operator chooses the plugin."""
    lines = [
        "[db]",
        f'connection_uri = "toybox:///{folder}/toys.db"',
        "[vector_store]",
        'type = "toybox"',
        f'url = "{folder}/vectors.db"',
    ]
    (folder / "memservice.toml").write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.heavy
def test_its_requirements_are_installed_in_the_environment(scripts: Path) -> None:
    _run(*pip(scripts / "python"), "check")
    look = (
        "import memservice, memservice_toybox; print(memservice.__file__, "
        "memservice_toybox.__file__)"
    )
    where = _run(str(scripts / "python"), "-c", look, cwd=scripts)
    assert [Path(path).is_relative_to(scripts.parent) for path in where.split()] == [True, True]


def test_it_imports_the_seams_only() -> None:
    """And what its own dependencies give."""
    imported = set()
    for source in (HERE / "toybox" / "memservice_toybox").glob("*.py"):
        imported |= set(
            re.findall(
                r"^\s*from (memservice[\w.]*) import", source.read_text(encoding="utf-8"), re.M
            )
        )
    assert imported
    allowed = ("memservice.spi.", "memservice.domain.", "memservice.hookspecs")
    assert [module for module in sorted(imported) if not module.startswith(allowed)] == []


@pytest.mark.heavy
def test_it_is_listed(scripts: Path, tmp_path: Path) -> None:
    result = _run(str(scripts / "memservice"), "plugins", cwd=tmp_path)
    mine = [line.split() for line in result.splitlines() if "memservice-toybox" in line]
    assert mine == [
        ["storage", "toybox", "toybox", "memservice-toybox", "1.0", "shared"],
        ["vector", "index", "toybox", "toybox", "memservice-toybox", "1.0", "shared"],
    ]


@pytest.mark.heavy
def test_a_mistake_in_its_settings_is_reported(scripts: Path, tmp_path: Path) -> None:
    chosen(tmp_path)
    settings = tmp_path / "memservice.toml"
    settings.write_text(
        re.sub(r"^url = .*$", "", settings.read_text(encoding="utf-8"), flags=re.M),
        encoding="utf-8",
    )
    result = subprocess.run(
        [str(scripts / "memservice"), "db", "upgrade"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (
        result.returncode,
        "set VECTOR_STORE_URL to the file" in result.stderr,
        "Traceback" in result.stderr,
    ) == (1, True, False)


@pytest.mark.heavy
def test_it_serves(scripts: Path, tmp_path: Path) -> None:
    class Served(Server):
        program = scripts / "memservice"

    chosen(tmp_path)
    with (
        running(Served(tmp_path)) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        assert "toybox" in server.output
        messages = [
            {"peer_id": "ann", "content": "I keep bees in Porto."},
            {"peer_id": "bob", "content": "I repair clocks."},
        ]
        client.post("/v3/workspaces", json={"id": "w"}).raise_for_status()
        client.post(
            "/v3/workspaces/w/sessions/s/messages", json={"messages": messages}
        ).raise_for_status()
        drafts = [{"content": "Ann sails on Sundays.", "observer_id": "ann", "observed_id": "ann"}]
        client.post("/v3/workspaces/w/conclusions", json={"conclusions": drafts}).raise_for_status()
        hits = client.post("/v3/workspaces/w/search", json={"query": "bees", "limit": 1}).json()
        assert [message["content"] for message in hits] == ["I keep bees in Porto."]
        _until_worked_off(client)
        pair = {"observer": "ann", "observed": "ann"}
        query = {"query": "sailing", "top_k": 1, "filters": pair}
        conclusions = client.post("/v3/workspaces/w/conclusions/query", json=query).json()
        assert [conclusion["content"] for conclusion in conclusions] == ["Ann sails on Sundays."]
    # vectors outside the storage are nobody's to wait for
    _run(str(scripts / "memservice"), "worker", "--burst", cwd=tmp_path)
    checked = _run(str(scripts / "memservice"), "doctor", cwd=tmp_path)
    assert re.search(
        r"^ok +vectors +toybox, [1-9]\d* vectors in [1-9]\d* spaces looked at", checked, re.M
    ), checked


def _until_worked_off(client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while True:
        status = client.get("/v3/workspaces/w/queue/status").json()
        if status["pending_work_units"] + status["in_progress_work_units"] == 0:
            return
        assert time.monotonic() < deadline, status
        time.sleep(0.1)


@pytest.mark.heavy
def test_one_command_checks_its_contract(scripts: Path, tmp_path: Path) -> None:
    check = (str(scripts / "memservice"), "plugins", "check", "toybox")
    output = _run(*check, cwd=tmp_path)
    assert "vector index toybox, of plugin toybox from memservice-toybox 1.0" in output
    assert re.search(r"Can several processes open the same store at once\? +yes", output)
    tried = _run(
        *check, "--kind", "vector index", "--scratch", "{path}", cwd=tmp_path, seconds=KIT_SECONDS
    )
    assert "TestVectorIndex declares shared" in tried
    assert re.search(r"\d+ passed, 1 skipped", tried)
    assert list(tmp_path.iterdir()) == [], "nothing is left where it was called"


@pytest.mark.heavy
def test_it_passes_the_kits(scripts: Path) -> None:
    source = scripts.parents[1] / "toybox-source"
    quick = {"PYTHONWARNINGS": "error", "PYTHONDONTWRITEBYTECODE": "1"}
    output = _run(
        str(scripts / "python"),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "test_toybox.py",
        cwd=source,
        seconds=KIT_SECONDS,
        **quick,
    )
    match = re.search(r"^(\d+) passed, (\d+) skipped", output, re.M)
    assert match is not None, output
    assert int(match[1]) > 300
    assert "TestStorage declares shared" in output
    assert int(match[2]) <= 1, (
        "an index outside the storage has no transactions; nothing else is lacking"
    )
