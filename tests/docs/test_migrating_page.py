"""The page on older generations is true: its programs run with the clients it names and see one
memory, its tables are what is served."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memservice.app import create_app
from memservice.settings import Settings, load_settings
from support.clients.environments import NO_CERTIFICATES, client_python
from support.clients.fixtures import CLIENT
from support.clients.older_generations import FIRST_CLIENT, NODE_CORES, NODE_SDK, REQUIREMENTS
from support.clients.other_clients import NODE_CLIENT, OLDER_CLIENT
from support.clients.server import serving
from support.docs.blocks import blocks, table

PRINTED_URL = "http://127.0.0.1:8000"
V1_USER, V3_WORKSPACE = "/v1/apps/{app_id}/users/{user_id}", "/v3/workspaces/{workspace_id}"
V2_WORKSPACE = "/v2/workspaces/{workspace_id}"
INSTALLED = {
    "v1.py": ("honcho-ai-0.2", FIRST_CLIENT),
    "v2.py": ("honcho-core-1.8.0", REQUIREMENTS["1.8.0"]),
    "v3.py": ("honcho-ai", CLIENT),
}


@pytest.fixture(scope="module")
def page(root: Path) -> Path:
    return root / "docs" / "migrating.md"


@cache
def document(generation: str) -> Any:
    return (
        create_app(load_settings(environ={}))
        .test_client()
        .get(f"/{generation}/openapi.json")
        .get_json()
    )


@cache
def operations(generation: str) -> frozenset[str]:
    """Method and path of everything that a generation says it serves."""
    paths = document(generation)["paths"]
    return frozenset(
        f"{method.upper()} {path}"
        for path, by_method in paths.items()
        for method in by_method.keys() - {"parameters"}
        if path.startswith(f"/{generation}/")
    )


def named(cell: str, short: str) -> list[str]:
    """The operations in a cell, at full length."""
    return [
        f"{method} {path.replace('…', short)}"
        for method, path in re.findall(r"(GET|POST|PUT|DELETE) ([^\s,;]+)", cell)
    ]


@pytest.mark.e2e
@pytest.mark.client
@pytest.mark.timeout(600)
@pytest.mark.heavy
def test_the_programs_run_as_printed(page: Path, tmp_path: Path) -> None:
    printed = ""
    with serving(tmp_path) as server:
        for block in blocks(page, "python"):
            assert block.title is not None
            assert block.text.count(PRINTED_URL) == 1
            environment, requirements = INSTALLED[block.title]
            assert {pin for pin in requirements if pin in block.text} == set(requirements), (
                "the program says what it needs"
            )
            result = subprocess.run(
                [
                    str(client_python(environment, requirements)),
                    "-c",
                    block.text.replace(PRINTED_URL, server.url),
                ],
                cwd=tmp_path,
                env={"PATH": os.environ["PATH"], **NO_CERTIFICATES},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert result.returncode == 0, result.stderr
            printed += result.stdout
    assert [printed] == [block.text for block in blocks(page, "text")]


def test_the_programs_name_the_clients_that_they_need(page: Path) -> None:
    programs = list(blocks(page, "python"))
    assert [program.title for program in programs] == list(INSTALLED)
    for program in programs:
        compile(program.text, str(program.title), "exec")
        assert program.text.count(PRINTED_URL) == 1
        assert all(pin in program.text for pin in INSTALLED[str(program.title)][1])


def test_the_listed_clients_are_tested(page: Path) -> None:
    listed = set()
    for client, *_ in table(page, "clients"):
        for package, versions in re.findall(
            r"(@honcho-ai/[a-z]+|honcho-[a-z]+) ([\d., ]+)", client
        ):
            pin = "@" if package.startswith("@") else "=="
            listed |= {f"{package}{pin}{version}" for version in re.findall(r"[\d.]+\d", versions)}
    python: Sequence[str] = [
        *FIRST_CLIENT,
        *CLIENT,
        *OLDER_CLIENT,
        *(pin for pins in REQUIREMENTS.values() for pin in pins),
    ]
    assert listed == {*python, *NODE_CORES, *NODE_SDK, *NODE_CLIENT}


def test_every_operation_of_the_first_generation_is_mapped(page: Path) -> None:
    rows = table(page, "from v1")
    left = [operation for row in rows for operation in named(row[0], V1_USER)]
    assert len(left) == len(set(left))
    assert set(left) == operations("v1")
    for row in rows:
        right = named(row[1], V3_WORKSPACE)
        assert set(right) <= operations("v3")
        assert right or row[1] == "—"
        assert set(named(row[2], V3_WORKSPACE)) <= operations("v3")


def test_changed_paths_of_the_second_generation_are_listed(page: Path) -> None:
    rows = table(page, "from v2")
    moved = {operation for row in rows for operation in named(row[0], V2_WORKSPACE)}
    newest = operations("v3")
    assert moved == {
        operation
        for operation in operations("v2")
        if operation.replace("/v2/", "/v3/") not in newest
    }
    for row in rows:
        assert set(named(row[1], V3_WORKSPACE)) <= newest
        assert named(row[1], V3_WORKSPACE)


def test_renamed_fields_are_listed(page: Path) -> None:
    older, newer = json.dumps(document("v2")), json.dumps(document("v3"))
    for old, new, _ in table(page, "words"):
        assert f'"{old}"' in older
        assert f'"{new}"' in newer
        assert f'"{old}"' not in newer


def test_the_settings_exist(page: Path) -> None:
    names = {row.name for row in Settings().rows(everything=True)}
    mentions = set(re.findall(r"\b(?:API|AUTH)_[A-Z0-9_]+\b", page.read_text(encoding="utf-8")))
    assert mentions - names == set()
    assert {name for name in names if name.startswith("API_V")} - mentions == {"API_V3_ENABLED"}


def test_the_listed_claims_are_supported(page: Path) -> None:
    from memservice.domain.auth.jwt_claims import Claims, write_claims

    whole = Claims(
        admin=True,
        workspace="w",
        peer="p",
        session="s",
        app_uid="a",
        user_uid="u",
        owned_session_uid="s",
        collection_uid="c",
        id="i",
    )
    named_claims = {cell for row in table(page, "claims") for cell in row[:2]} - {"—"}
    assert named_claims == write_claims(whole).keys() - {"t", "jti"}
