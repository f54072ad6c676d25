"""`memservice init`: what it writes is valid and starts."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from integration.cli.conftest import Run
from memservice.cli.init import SHAPES, init
from memservice.settings import load_settings

pytestmark = pytest.mark.e2e


def written(memservice: Run, shape: str, folder: Path) -> str:
    result = memservice("init", shape, "-d", folder.name)
    assert result.returncode == 0, result.stderr
    wrote, _, after = result.stdout.partition("\nnext:\n")
    names = {Path(line.removeprefix("wrote ")).name for line in wrote.splitlines()}
    assert names == {path.name for path in folder.iterdir()}
    assert names == {file.name for file in SHAPES[shape]}
    assert after
    assert re.search(r"\[\w+\]$|INSTALL|WHEEL", after, re.M) is None
    return after


@pytest.mark.parametrize(
    ("shape", "scheme", "auth"),
    [("laptop", "sqlite", False), ("team", "postgresql", True), ("large", "postgresql", True)],
)
def test_written_settings_load(
    memservice: Run, tmp_path: Path, shape: str, scheme: str, auth: bool
) -> None:
    folder = tmp_path / shape
    written(memservice, shape, folder)
    settings = load_settings(None, {}, folder)
    assert settings.notes == ()
    assert settings.db.connection_uri.startswith(scheme)
    assert settings.auth.use_auth is auth
    if auth:
        assert settings.auth.jwt_secret
        assert len(settings.auth.jwt_secret) > 40
        assert (folder / ".env").stat().st_mode & 0o777 == 0o600


def test_each_installation_has_a_secret_of_its_own(memservice: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(memservice, "team", tmp_path / name)
    assert (tmp_path / "a/.env").read_text() != (tmp_path / "b/.env").read_text()


def test_the_written_laptop_works(memservice: Run, tmp_path: Path) -> None:
    assert memservice("init", "laptop").returncode == 0
    assert memservice("db", "upgrade").returncode == 0
    assert (tmp_path / "memservice.db").exists()


def test_written_units_run_this_installation(memservice: Run, tmp_path: Path) -> None:
    folder = tmp_path / "units"
    after = written(memservice, "systemd", folder)
    for unit in folder.glob("*.service"):
        unit_file = configparser.ConfigParser(strict=True, interpolation=None)
        unit_file.read(unit, encoding="utf-8")
        command = shlex.split(unit_file["Service"]["ExecStart"])
        assert Path(command[0]) == Path(sys.executable).with_name("memservice")
        assert Path(command[0]).exists()
        assert unit.name in after
    settings = load_settings(folder / "memservice.toml", {}, folder)
    assert settings.notes == ()
    assert "AUTH_JWT_SECRET=" in re.sub(
        "^#.*$", "", (folder / "memservice.env").read_text(), flags=re.M
    )


@pytest.mark.parametrize("home", ["/home/maria/.memservice", "/root/.memservice", "/opt/x"])
def test_units_cannot_run_a_program_in_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setattr(sys, "executable", f"{home}/bin/python")
    result = CliRunner().invoke(init, ["systemd", "-d", str(tmp_path)])
    assert result.exit_code == 0
    warning = f"the service, and {home}/bin/memservice is there: install memservice elsewhere"
    assert (warning in result.stderr) is (home != "/opt/x")


def test_the_wheel_for_a_container_is_of_this_installation(memservice: Run, tmp_path: Path) -> None:
    """It is installed from the tree or its wheel here, so no package index is asked."""
    after = written(memservice, "docker", tmp_path / "containers")
    (command,) = [line for line in after.splitlines() if " wheel " in line]
    *_, source = shlex.split(command)
    assert command.endswith(f"-m pip wheel --no-deps {shlex.quote(source)}")
    assert (Path(source) / "setup.cfg").is_file() or Path(source).suffix == ".whl"
    assert Path(source).exists()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_written_units(memservice: Run, tmp_path: Path) -> None:
    folder = tmp_path / "units"
    written(memservice, "systemd", folder)
    result = subprocess.run(
        ["systemd-analyze", "verify", *map(str, folder.glob("*.service"))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_written_containers_are_complete(memservice: Run, tmp_path: Path) -> None:
    folder = tmp_path / "containers"
    written(memservice, "docker", folder)
    compose = yaml.safe_load((folder / "compose.yaml").read_text(encoding="utf-8"))
    assert {"api", "worker"} <= set(compose["services"])
    mounted = [
        volume.split(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", [])
    ]
    beside = [name for name in mounted if name not in compose["volumes"]]
    assert beside
    assert [name for name in beside if not (folder / name).is_file()] == []
    assert (folder / "prometheus.yml").stat().st_mode & 0o777 == 0o644
    assert "FROM" in (folder / "Dockerfile").read_text(encoding="utf-8")


def test_existing_files_are_kept(memservice: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LOG_LEVEL=debug\n", encoding="utf-8")
    result = memservice("init", "team")
    assert result.returncode == 1
    assert ".env in" in result.stderr
    assert not (tmp_path / "memservice.toml").exists()
    assert (tmp_path / ".env").read_text(encoding="utf-8") == "LOG_LEVEL=debug\n"
    assert memservice("init", "--force", "team").returncode == 0
    unknown = memservice("init", "phone")
    assert "'laptop', 'team', 'large', 'systemd', 'docker'" in unknown.stderr
