"""The audit of dependencies fails for a vulnerability and for nothing that the network does; and no
bound admits a release with one."""

from __future__ import annotations

import configparser
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from support import audit

SAFE_FROM = {"pypdf": "6.16.1", "PyJWT": "2.13", "flask": "3.1.3", "marshmallow": "4.1.2"}
"""The first release of each without a vulnerability that was known when it was written here. All
before have one."""


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


@pytest.mark.parametrize("package", SAFE_FROM)
def test_requirements_exclude_releases_with_known_vulnerabilities(root: Path, package: str) -> None:
    setup = configparser.ConfigParser()
    setup.read(root / "setup.cfg", encoding="utf-8")
    (floor,) = re.findall(rf"^{package}>=([\d.]+),<", setup["options"]["install_requires"], re.M)
    assert version(floor) >= version(SAFE_FROM[package])


def report_of(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": list(packages), "fixes": []})


SOUND = {"name": "a", "version": "1", "vulns": []}
UNKNOWN = {"name": "memservice", "skip_reason": "Dependency not found"}
HOLED = {
    "name": "b",
    "version": "2",
    "vulns": [{"id": "GHSA-x", "fix_versions": ["2.1"], "aliases": [], "description": "…"}],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stdout", "stderr", "ended", "status", "message"),
    [
        (report_of(SOUND, UNKNOWN), "", 0, 0, "1 of 2 installed packages were audited: none has"),
        (
            report_of(SOUND, HOLED),
            "Found 1 known vulnerability",
            1,
            1,
            "b 2 has a known vulnerability, GHSA-x; fixed in: 2.1",
        ),
        (report_of(UNKNOWN), "", 0, 0, "SKIPPED: .*knows none of the 1 installed packages"),
        (
            "",
            "ERROR: Could not connect to the service",
            1,
            0,
            "SKIPPED: .*could not be asked: ERROR: Could not connect",
        ),
        ("", "", 1, 0, "SKIPPED: "),
        (
            "not JSON",
            "Traceback\nrequests.exceptions.ProxyError: refused",
            1,
            0,
            "SKIPPED: .*ProxyError",
        ),
        ("", "python: No module named pip_audit", 1, 1, "could not be run"),
        ("", "pip-audit: error: unrecognized arguments", 2, 1, "could not be run"),
    ],
)
def test_the_exit_status_of_an_audit_depends_on_its_result(
    capsys: pytest.CaptureFixture[str],
    stdout: str,
    stderr: str,
    ended: int,
    status: int,
    message: str,
) -> None:
    program = (
        "import sys; sys.stdout.write(sys.argv[1]); sys.stderr.write(sys.argv[2]); "
        "sys.exit(int(sys.argv[3]))"
    )
    assert audit.main([sys.executable, "-c", program, stdout, stderr, str(ended)]) == status
    assert re.search(message, capsys.readouterr().out)


@pytest.mark.slow
def test_a_hanging_audit_service_is_ended(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.3) == 0
    assert "SKIPPED: " in capsys.readouterr().out


def test_the_test_command_audits(root: Path) -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(root / "tox.ini", encoding="utf-8")
    assert tox["testenv"]["commands"].split()[:2] == ["scripts/all", "default"]
    script = (root / "scripts" / "all").read_text(encoding="utf-8")
    assert "python tests/support/audit.py" in script
    assert "pip-audit" in tox["testenv"]["deps"]
