"""The manifests for Kubernetes fit the image, the command line and the API."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from memservice.app import create_app
from memservice.settings import Settings
from memservice.settings.declare import tree
from support.containers.dockerfile import stages
from unit.project.test_config import parsed

FILES = ("single.yaml", "scaled.yaml")


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "config" / "memservice_deployment" / "kubernetes"


def objects(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((folder / name).read_text(encoding="utf-8")))


def pods(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """The specifications of pods, by the name of what starts them."""
    return {
        manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"]
        for manifest in objects(folder, name)
        if manifest["kind"] in {"Deployment", "StatefulSet"}
    }


def test_every_manifest_is_tested(folder: Path) -> None:
    assert {file.name for file in folder.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_pods_run_as_the_user_of_the_image_with_its_volume(folder: Path, name: str) -> None:
    last = stages((folder.parent / "docker" / "Dockerfile").read_text(encoding="utf-8"))[-1]
    user, group = last.last("USER").split(":")
    for owner, pod in pods(folder, name).items():
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True, owner
        assert [context["runAsUser"], context["runAsGroup"]] == [int(user), int(group)], owner
        (container,) = pod["containers"]
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert {last.last("VOLUME"), "/tmp"} == set(mounts), "the root is read-only"
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        seconds = pod["terminationGracePeriodSeconds"]
        assert seconds > Settings().server.graceful_timeout_seconds + 5


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_commands_probes_and_ports_exist(folder: Path, name: str) -> None:
    routes = {str(rule) for rule in create_app(Settings()).url_map.iter_rules()}
    commands = {}
    for owner, pod in pods(folder, name).items():
        (container,) = pod["containers"]
        if "args" in container:  # after the entry point of the image
            commands[owner] = parsed(container["args"])
        for port in container.get("ports", []):
            assert port["containerPort"] == Settings().server.port
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if "ports" in container:
                assert container[probe]["httpGet"]["path"] in routes
    expected = {"memservice": "serve", "memservice-worker": "worker"}
    assert commands == (expected if name == "scaled.yaml" else {})


@pytest.mark.parametrize("name", FILES)
def test_services_select_pods(folder: Path, name: str) -> None:
    manifests = objects(folder, name)
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in manifests
        if "template" in one["spec"]
    ]
    for one in manifests:
        if one["kind"] == "Service":
            assert one["spec"]["selector"] in labels
        elif "template" in one["spec"]:
            assert one["spec"]["selector"]["matchLabels"] in labels


def test_sqlite_has_one_replica_and_a_volume_that_is_kept(folder: Path) -> None:
    (single,) = [one for one in objects(folder, "single.yaml") if one["kind"] == "StatefulSet"]
    assert single["spec"]["replicas"] == 1
    assert [one["metadata"]["name"] for one in single["spec"]["volumeClaimTemplates"]] == ["data"]


def test_the_secret_of_the_example_names_settings(folder: Path) -> None:
    text = (folder / "scaled.yaml").read_text(encoding="utf-8")
    names = re.findall(r"--from-literal=([A-Z_]+)=", text)
    assert len(names) == 3
    assert [name for name in names if name not in tree(Settings).by_variable] == []
