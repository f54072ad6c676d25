"""The templates of `memservice_deployment`: they name only settings, commands, options, ports
and metrics that exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from memservice.api import exposure
from memservice.cli import cli
from memservice.plugins import load_plugins
from memservice.settings import Settings, families, load_settings
from memservice.settings.declare import tree
from memservice.telemetry.metrics import Metrics

SHAPES = ("default", "team", "large")
SECRET = "s" * 40


@pytest.fixture
def config(root: Path) -> Path:
    return root / "config" / "memservice_deployment"


def test_profiles_load_without_a_note(config: Path, tmp_path: Path) -> None:
    names = sorted(path.stem for path in config.glob("*.toml") if ".example" not in path.name)
    assert names == sorted(SHAPES)
    for name in SHAPES:
        settings = load_settings(config / f"{name}.toml", {"AUTH_JWT_SECRET": SECRET}, tmp_path)
        assert settings.notes == (), name


def test_there_are_three_profiles(config: Path, tmp_path: Path) -> None:
    default, team, large = (
        load_settings(config / f"{name}.toml", {"AUTH_JWT_SECRET": SECRET}, tmp_path)
        for name in SHAPES
    )
    plugins = load_plugins(default)
    assert [plugins.storage(one.db.connection_uri).name for one in (default, team, large)] == [
        "sqlite",
        "postgres",
        "postgres",
    ]
    assert [bool(one.app.redis_url) for one in (default, team, large)] == [False, True, True]
    assert [one.vector_store.type for one in (default, team)] == [None, None]
    assert large.vector_store.type is not None
    assert plugins.vector_index(large.vector_store.type).name == "qdrant"
    other = re.search(r'# or "(\w+)"', (config / "large.toml").read_text(encoding="utf-8"))
    assert other is not None
    assert plugins.vector_index(other[1]).name == "redis"
    assert [one.auth.use_auth for one in (default, team, large)] == [False, True, True]


def test_the_default_profile_changes_nothing(config: Path, tmp_path: Path) -> None:
    shown = load_settings(config / "default.toml", {}, tmp_path).rows(everything=True)
    assert {(row.name, row.value_text) for row in shown} == {
        (row.name, row.value_text) for row in Settings().rows(everything=True)
    }


def test_the_example_of_the_environment_names_settings(config: Path) -> None:
    named = re.findall(r"^# ([A-Z_]+)=", (config / "example.env").read_text(encoding="utf-8"), re.M)
    assert len(named) >= 5
    settings_ = {
        name: tree(Settings).by_variable.get(name) or families.of_variable(name) for name in named
    }
    assert [name for name in named if settings_[name] is None] == []
    assert {leaf.meta.secrecy for leaf in settings_.values() if leaf} <= {"secret", "uri"}, (
        "what is not secret is better kept in the TOML file"
    )


def parsed(command: list[str]) -> str:
    """The subcommand, whose options are all there. Raises what click says of others."""
    assert Path(command[0]).name == "memservice"
    context = cli.make_context("memservice", list(command[1:]), resilient_parsing=False)
    name, sub, rest = cli.resolve_command(context, [*context._protected_args, *context.args])
    assert name is not None
    assert isinstance(sub, click.Command)
    sub.make_context(name, rest, parent=context).close()
    return name


@pytest.mark.parametrize(
    ("unit", "command"), [("memservice.service", "serve"), ("memservice-worker@.service", "worker")]
)
def test_systemd_units_run_existing_commands(config: Path, unit: str, command: str) -> None:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(config / "systemd" / unit, encoding="utf-8")
    service = parser["Service"]
    assert parsed(shlex.split(service["ExecStart"])) == command
    assert service["UMask"] == "0077"
    assert float(service["TimeoutStopSec"]) > Settings().server.graceful_timeout_seconds + 5
    for assignment in shlex.split(service.get("Environment", "")):
        name, _, value = assignment.partition("=")
        load_settings(environ={name: value.replace("%i", "1")}, cwd=config)
        assert name in tree(Settings).by_variable


def test_configurations_that_listen_on_every_address_require_keys(
    config: Path, tmp_path: Path
) -> None:
    for name in SHAPES:
        settings = load_settings(config / f"{name}.toml", {"AUTH_JWT_SECRET": SECRET}, tmp_path)
        assert exposure.warnings(settings, settings.server.host) == []


def test_prometheus_scrapes_the_metrics_paths(config: Path) -> None:
    settings_ = yaml.safe_load((config / "docker" / "prometheus.yml").read_text(encoding="utf-8"))
    targets = {
        job["job_name"]: job["static_configs"][0]["targets"] for job in settings_["scrape_configs"]
    }
    settings = Settings()
    assert targets == {
        "memservice-api": [f"api:{settings.server.port}"],
        "memservice-worker": [f"worker:{settings.metrics.port}"],
    }
    services = yaml.safe_load((config / "docker" / "compose.yaml").read_text(encoding="utf-8"))[
        "services"
    ]
    assert {target.split(":")[0] for hosts in targets.values() for target in hosts} <= set(services)


def test_the_dashboard_shows_metrics_that_exist(config: Path) -> None:
    board = json.loads((config / "grafana-dashboard.json").read_text(encoding="utf-8"))
    exposed, _ = Metrics("n", "api").exposition()
    families = {
        line.split()[2]: line.split()[3]
        for line in exposed.decode().splitlines()
        if line.startswith("# TYPE ")
    }
    names = set(families) | {
        f"{name}_bucket" for name, kind in families.items() if kind == "histogram"
    }
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) >= 10
    for expression in expressions:
        (name,) = re.findall(r"(\w+)\{", expression)
        assert name in names, expression
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


def test_the_pages_of_operators_name_every_file(root: Path) -> None:
    pages = [root / "docs" / name for name in ("operations.md", "containers.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    files = {
        file.relative_to(root).as_posix()
        for file in (root / "config" / "memservice_deployment").rglob("*")
        if file.is_file() and file.suffix != ".pyc" and file.name not in ("__init__.py", "py.typed")
    }
    assert {file for file in files if f"(../{file})" not in text} == set()
