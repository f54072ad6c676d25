"""Ask an online service, with pip-audit, whether any installed package has a known vulnerability.

It exits with 1 only if there is one. An unreachable service, or unknown packages, are reported and
are no failure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

COMMAND = (
    sys.executable,
    "-m",
    "pip_audit",
    "--local",
    "--skip-editable",
    "--progress-spinner=off",
    "--format=json",
    "--timeout=15",
)
SECONDS = 300
FAILED, WRONG_USE = 1, 2


def main(command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> int:
    """The status of the command; what was found goes to standard output."""
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return _not_audited(f"the service did not answer within {seconds:g} s")
    try:
        packages: list[dict[str, Any]] = json.loads(result.stdout)["dependencies"]
    except (ValueError, KeyError):
        message = (result.stderr.strip().splitlines() or ["it said nothing"])[-1]
        if result.returncode == WRONG_USE or "No module named" in message:
            print(f"pip-audit could not be run: {message}")
            return FAILED
        return _not_audited(f"the service could not be asked: {message}")
    audited = [package for package in packages if "skip_reason" not in package]
    vulnerable = [(package, hole) for package in audited for hole in package["vulns"]]
    for package, hole in vulnerable:
        fixed = ", ".join(hole["fix_versions"]) or "no release yet"
        print(
            f"{package['name']} {package['version']} has a known vulnerability, "
            f"{hole['id']}; fixed in: {fixed}"
        )
    if vulnerable:
        return FAILED
    if not audited:
        return _not_audited(
            f"the service that was reached knows none of the {len(packages)} installed packages"
        )
    print(
        f"{len(audited)} of {len(packages)} installed packages were audited: none has a "
        "known vulnerability"
    )
    return 0


def _not_audited(reason: str) -> int:
    print(f"SKIPPED: dependencies were not audited for known vulnerabilities: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
