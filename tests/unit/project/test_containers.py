"""The files for containers in `memservice_deployment`: they name what exists."""

from __future__ import annotations

import configparser
import re
import shlex
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from memservice.api import exposure
from memservice.domain.errors import ConfigurationError
from memservice.plugins import load_plugins
from memservice.settings import Settings, load_settings
from support.containers.dockerfile import stages
from support.containers.root_filesystem import command_of
from support.processes.preloaded import run_script
from unit.project.test_config import SECRET, parsed


@pytest.fixture
def docker(root: Path) -> Path:
    return root / "config" / "memservice_deployment" / "docker"


def example(docker: Path) -> dict[str, str]:
    """Every variable of the example, with the # removed."""
    text = (docker / "compose.env").read_text(encoding="utf-8")
    return dict(re.findall(r"^# ([A-Z_]+)=(.*)$", text, re.M))


def interpolated(node: Any, variables: Mapping[str, str]) -> Any:
    """As Compose does it, in the texts of the parsed file: `${NAME:-default}`."""
    if isinstance(node, dict):
        return {key: interpolated(value, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [interpolated(value, variables) for value in node]
    if isinstance(node, str):
        return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda m: variables.get(m[1]) or m[2], node)
    return node


def composed(docker: Path, **variables: str) -> dict[str, Any]:
    parsed_file = yaml.safe_load((docker / "compose.yaml").read_text(encoding="utf-8"))
    answer: dict[str, Any] = interpolated(parsed_file, variables)
    return answer


def started(compose: Mapping[str, Any], profiles: str) -> set[str]:
    """The services that these profiles start."""
    return {
        name
        for name, service in compose["services"].items()
        if not service.get("profiles") or set(service["profiles"]) & set(profiles.split(","))
    }


def test_without_profiles_one_container_has_everything(docker: Path, tmp_path: Path) -> None:
    compose = composed(docker)
    assert started(compose, "") == {"api"}
    api = compose["services"]["api"]
    assert parsed(shlex.split(api["command"])) == "serve"
    settings = load_settings(
        environ={**image_environment(docker), **api["environment"], "AUTH_JWT_SECRET": SECRET},
        cwd=tmp_path,
    )
    assert settings.notes == ()
    assert settings.auth.use_auth
    assert settings.app.redis_url is None
    assert settings.vector_store.type is None
    assert load_plugins().storage(settings.db.connection_uri).name == "sqlite"
    assert settings.db.connection_uri.startswith("sqlite:////data/"), "in the volume"
    assert api["volumes"] == ["data:/data"]
    assert api["ports"] == ["127.0.0.1:8000:8000"], "on this machine alone"


def test_the_profiles_of_the_example_fit_its_settings(docker: Path, tmp_path: Path) -> None:
    variables = example(docker) | {"POSTGRES_PASSWORD": "secret"}
    variables["DB_CONNECTION_URI"] = variables["DB_CONNECTION_URI"].replace(
        "${POSTGRES_PASSWORD}", variables["POSTGRES_PASSWORD"]
    )
    compose = composed(docker, **variables)
    services = started(compose, variables["COMPOSE_PROFILES"] + ",qdrant")
    assert services == {"api", "worker", "postgres", "redis", "qdrant"}
    api, worker = (compose["services"][name] for name in ("api", "worker"))
    assert api["environment"] == worker["environment"]
    settings = load_settings(
        environ={**image_environment(docker), **api["environment"], "AUTH_JWT_SECRET": SECRET},
        cwd=tmp_path,
    )
    plugins = load_plugins(settings)
    assert plugins.storage(settings.db.connection_uri).name == "postgres"
    assert settings.vector_store.type is not None
    assert plugins.vector_index(settings.vector_store.type).name == "qdrant"
    urls = (settings.db.connection_uri, settings.app.redis_url, settings.vector_store.url)
    hosts = {re.search(r"(?:@|//)([a-z]+):\d+", str(url)) for url in urls}
    assert {host[1] for host in hosts if host} == {"postgres", "redis", "qdrant"}
    assert parsed(shlex.split(api["command"])) == "serve"
    assert "--no-worker" in api["command"]
    assert parsed(shlex.split(worker["command"])) == "worker"
    password = compose["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert f":{password}@" in settings.db.connection_uri


def test_every_variable_of_the_example_is_used(docker: Path) -> None:
    used = set(re.findall(r"\$\{(\w+)", (docker / "compose.yaml").read_text(encoding="utf-8")))
    assert set(example(docker)) - {"COMPOSE_PROFILES"} <= used
    profile_names = set(example(docker)["COMPOSE_PROFILES"].split(","))
    text = (docker / "compose.env").read_text(encoding="utf-8")
    profile_names |= set(re.findall(r"add `(\w+)` to the profiles", text))
    profiles = [
        profile
        for service in composed(docker)["services"].values()
        for profile in service.get("profiles", [])
    ]
    assert set(profiles) == profile_names


def test_what_the_services_refer_to_exists(docker: Path) -> None:
    compose = composed(docker)
    services = compose["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (docker / source).is_file(), name
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), name
    for name in ("postgres", "redis", "qdrant"):
        assert services["api"]["depends_on"][name]["required"] is False, "else no profile works"
    seconds = int(services["api"]["stop_grace_period"].removesuffix("s"))
    assert seconds > Settings().server.graceful_timeout_seconds + 5


def image_environment(docker: Path) -> dict[str, str]:
    last = stages((docker / "Dockerfile").read_text(encoding="utf-8"))[-1]
    pairs = [
        pair.partition("=")
        for step in last.steps
        if step.keyword == "ENV"
        for pair in shlex.split(step.argument)
    ]
    return {name: value for name, _, value in pairs if name != "PATH"}


def test_the_image_installs_existing_extras_and_serves(docker: Path, root: Path) -> None:
    build, last = stages((docker / "Dockerfile").read_text(encoding="utf-8"))
    extras = build.last("ARG").removeprefix("EXTRAS=").split(",")
    setup = configparser.ConfigParser()
    setup.read(root / "setup.cfg", encoding="utf-8")
    assert set(extras) <= set(setup["options.extras_require"])
    assert parsed(command_of(last)[1:]) == "serve"
    assert last.last("EXPOSE") == str(Settings().server.port)
    assert last.last("USER").split(":")[0].isdecimal(), "Kubernetes verifies a number"
    assert last.last("VOLUME") == last.last("WORKDIR") == "/data"
    python = re.fullmatch(r"python:(3\.\d+)-slim", last.base)
    assert python is not None
    assert build.base == last.base
    (installed,) = re.findall(r"__path__\)'\)/docker/(\S+)\" (\S+)$", build.last("RUN"))
    assert (docker / installed[0]).is_file()
    assert installed[1] == f"/opt/memservice/bin/{command_of(last)[0]}"
    assert f"Programming Language :: Python :: {python[1]}" in setup["metadata"]["classifiers"]


def test_the_image_listens_on_every_address_with_keys_only(docker: Path, tmp_path: Path) -> None:
    """The settings alone, too: without a secret the server does not start."""
    environ = image_environment(docker)
    with pytest.raises(ConfigurationError, match="AUTH_USE_AUTH = true needs AUTH_JWT_SECRET"):
        load_settings(environ=environ, cwd=tmp_path)
    image = load_settings(environ=environ | {"AUTH_JWT_SECRET": SECRET}, cwd=tmp_path)
    assert image.server.host == "0.0.0.0"
    assert exposure.warnings(image, image.server.host) == []


def enter(docker: Path, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """What the entry point does before the server, which only prints its help here."""
    return run_script(
        f"exec sh {docker}/entrypoint.sh memservice serve --help", folder, timeout=60, **settings
    )


@pytest.mark.slow
def test_an_interrupted_first_start_is_repeated(docker: Path, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/a.db"
    first = enter(docker, tmp_path, AUTH_USE_AUTH="true", DB_CONNECTION_URI="sqlite:////no/a.db")
    assert first.returncode != 0
    assert "admin key" not in first.stdout
    text = (tmp_path / ".env").read_text(encoding="utf-8")
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    second = enter(docker, tmp_path, AUTH_USE_AUTH="true", DB_CONNECTION_URI=uri)
    assert second.returncode == 0, second.stderr
    assert re.search(r"^admin key +\S+\.\S+\.\S+$", second.stdout, re.M)
    assert (tmp_path / ".env").read_text(encoding="utf-8") == text, "one secret"
    assert not (tmp_path / ".no-admin-key").exists(), "the next start would print another key"


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"AUTH_USE_AUTH": "false"}, {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": SECRET}]
)
def test_a_configured_secret_is_not_replaced(
    docker: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    done = enter(docker, tmp_path, DB_CONNECTION_URI=f"sqlite:///{tmp_path}/a.db", **settings)
    assert done.returncode == 0, done.stderr
    assert "admin key" not in done.stdout
    assert list(tmp_path.iterdir()) == []
