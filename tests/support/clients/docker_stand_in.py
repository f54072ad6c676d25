"""Stands in for `docker` where the published commands start a server: the image that it "runs" is
memservice, as a process.

Run as `python docker_stand_in.py <words of docker>`. Knows the words that
`honcho start|status|stop` use. `compose` works in the project's folder, whose `.env` says the port;
the process id is kept there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

SERVICES = ("api", "deriver", "database", "redis")
STOP_SECONDS = 45.0
CONFIG = "# nothing is set\n"


def main(words: list[str]) -> int:
    if words[:1] == ["compose"]:
        return _compose(
            Path(words[words.index("--project-directory") + 1]), words[words.index("-p") + 2 :]
        )
    if words[:2] == ["image", "inspect"]:
        image = words[-1].rpartition(":")[0]
        print(json.dumps([f"{image}@sha256:{'0' * 64}"]))
    elif words[:1] == ["create"]:
        print("seed")
    elif words[:1] == ["cp"]:
        Path(words[-1]).write_text(CONFIG, encoding="utf-8")
    elif words[0] not in ("pull", "rm"):
        print(f"unknown command: {words[0]}", file=sys.stderr)
        return 1
    return 0


def _compose(folder: Path, words: list[str]) -> int:
    running = folder / "running"
    if words[0] == "up":
        lines = (folder / ".env").read_text(encoding="utf-8").splitlines()
        port = next(line.partition("=")[2] for line in lines if line.startswith("API_PORT="))
        with (folder / "log").open("w") as log:
            started = subprocess.Popen(
                [str(Path(sysconfig.get_path("scripts")) / "memservice"), "serve", "--port", port],
                cwd=folder,
                env={name: os.environ[name] for name in ("PATH", "HOME")},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        running.write_text(str(started.pid), encoding="utf-8")
    elif words[0] == "ps":
        if running.exists():
            print(
                json.dumps(
                    [{"Service": name, "State": "running", "Health": ""} for name in SERVICES]
                )
            )
    elif words[0] == "down":
        os.kill(int(running.read_text(encoding="utf-8")), signal.SIGTERM)
        running.unlink()
        _wait_for_the_end(folder)
        if "-v" in words:
            for left in folder.glob("memservice.db*"):
                left.unlink()
    else:
        print(f"unknown command: {words[0]}", file=sys.stderr)
        return 1
    return 0


def _wait_for_the_end(folder: Path) -> None:
    """The store's write-ahead log is gone when the last process has closed it."""
    deadline = time.monotonic() + STOP_SECONDS
    while (folder / "memservice.db-wal").exists() and time.monotonic() < deadline:
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
