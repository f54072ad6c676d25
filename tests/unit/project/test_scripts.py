"""`scripts/all` runs every part, shows the output of each, and fails if one fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PARTS = ("scripts/check", "tests/support/audit.py", "scripts/test")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "failing"), [("full", None), *(("default", part) for part in PARTS)]
)
def test_all_parts_run_and_one_that_fails_fails_the_whole(
    root: Path, tmp_path: Path, profile: str, failing: str | None
) -> None:
    for part in PARTS:
        program = tmp_path / part
        program.parent.mkdir(parents=True, exist_ok=True)
        source = (
            f"#!{sys.executable} -IS\nimport sys\nprint({part!r}, *sys.argv[1:])\n"
            f"sys.exit({int(part == failing)})\n"
        )
        program.write_text(source, encoding="utf-8")
        program.chmod(0o755)
    shutil.copy(root / "scripts" / "all", tmp_path / "scripts" / "all")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        [str(tmp_path / "scripts" / "all"), profile, "-k", "some"],
        cwd="/",
        env={"PATH": path},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert result.returncode == (failing is not None), result.stderr
    assert result.stdout.splitlines() == [
        f"scripts/test {profile} -k some",
        f"scripts/check {profile}",
        "tests/support/audit.py",
    ]
