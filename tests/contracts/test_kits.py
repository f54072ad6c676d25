"""The contract suites fail what is broken: each adapter that is wrong in one way fails by the name
of the test that looks for it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).parents[1] / "support" / "broken"
KITS = (
    "broken_storages",
    "broken_embedders",
    "broken_models",
    "broken_reasoners",
    "broken_texts",
    "broken_vectors",
    "broken_webhooks",
)

pytestmark = pytest.mark.xdist_group("kits")


def _load(kit: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(kit, HERE / f"{kit}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _expected() -> list[tuple[str, str, str]]:
    """(file, adapter, test) for every test that has to fail."""
    return [
        (kit, name, test)
        for kit in KITS
        for name, adapter in vars(_load(kit)).items()
        if name.startswith("Test") and isinstance(adapter, type)
        for test in adapter.caught_by  # type: ignore[attr-defined]
    ]


EXPECTED = _expected()
SAMPLE = 9
"""By default, one of so many runs: each of them needs a store, a server or a timeout."""


@cache
def _outcomes(report: Path, nodes: tuple[str, ...]) -> dict[tuple[str, str], str]:
    """What became of the tests that have to fail, in one run of pytest: `failure`, `error`,
    `skipped` or `passed`."""
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junit-xml={report}",
            "--tb=line",
            *nodes,
        ],
        cwd=HERE.parents[2],
        capture_output=True,
        text=True,
        timeout=600,  # on a busy machine; about a minute otherwise
        check=False,
    )
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout + run.stderr
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        tags = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        outcomes[(case.attrib["classname"].rsplit(".", 1)[-1], case.attrib["name"])] = (
            tags[0] if tags else "passed"
        )
    return outcomes


@pytest.fixture(scope="session")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], str]:
    chosen: list[dict[str, Any]] = [
        dict(item.callspec.params)
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.originalname == "test_the_kit_detects_each_broken_adapter"
    ]
    nodes = [f"{HERE / run['kit']}.py::{run['adapter']}::{run['test']}" for run in chosen]
    return _outcomes(tmp_path_factory.getbasetemp() / "kits.xml", tuple(nodes))


@pytest.mark.parametrize(
    ("kit", "adapter", "test"),
    [
        pytest.param(
            *expected,
            marks=() if number % SAMPLE == 0 else pytest.mark.heavy,
            id="-".join(expected[1:]),
        )
        for number, expected in enumerate(EXPECTED)
    ],
)
def test_the_kit_detects_each_broken_adapter(
    outcomes: dict[tuple[str, str], str], kit: str, adapter: str, test: str
) -> None:
    assert outcomes[(adapter, test)] == "failure"
