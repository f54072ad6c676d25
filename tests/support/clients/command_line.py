"""The published commands, with a home of their own."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.clients.environments import NO_CERTIFICATES

SECONDS = 60
HOST = Path(__file__).parent / "command_host.py"


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left: its exit code, what it printed as JSON (None if nothing), and the last
    thing it said on stderr."""

    code: int
    output: Any
    error_line: str

    @classmethod
    def of(cls, code: int, output: str, text: str) -> Done:
        lines = text.strip().splitlines()
        return cls(code, json.loads(output) if output.strip() else None, lines[-1] if lines else "")

    @property
    def error(self) -> dict[str, Any]:
        """What it says went wrong: `code`, `message` and perhaps `details`."""
        body: dict[str, Any] = json.loads(self.error_line)["error"]
        return body


class Commands:
    """Runs `honcho …` against a server. Settings are given as the commands read them, by
    environment; nothing else is inherited."""

    def __init__(
        self, python: Path, url: str, home: Path, workspace: str, key: str = "anything"
    ) -> None:
        (home / "config.json").write_text(json.dumps({"environmentUrl": url}), encoding="utf-8")
        self.settings = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "HONCHO_CONFIG_DIR": str(home),
            "HONCHO_BASE_URL": url,
            "HONCHO_API_KEY": key,
            "HONCHO_WORKSPACE_ID": workspace,
            "HONCHO_NO_UPDATE_CHECK": "1",
            **NO_CERTIFICATES,
        }
        self._host = subprocess.Popen(
            [str(python), str(HOST)],
            env=self.settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def close(self) -> None:
        self._host.communicate(timeout=SECONDS)

    def run(self, *words: str, **settings: str) -> Done:
        """Run one command; settings add to or replace those that are set. An empty one is as
        none."""
        assert self._host.stdin is not None
        assert self._host.stdout is not None
        self._host.stdin.write(json.dumps({"words": words, "settings": settings}) + "\n")
        done = json.loads(self._host.stdout.readline())
        return Done.of(done["code"], done["output"], done["said"])

    def __call__(self, *words: str, **settings: str) -> Any:
        """What a command prints that has to succeed."""
        result = self.run(*words, **settings)
        assert result.code == 0, f"{' '.join(words)} ended with {result.code}: {result.error_line}"
        return result.output

    def several(self, *commands: Sequence[str]) -> list[Done]:
        """Run commands that only read, in the order given, however they end."""
        return [self.run(*words) for words in commands]

    def wait_for_queue(self, *words: str) -> None:
        """Until no task is pending and none is in progress. `words`: options of the command."""
        for part in ("pending_work_units", "in_progress_work_units"):
            self.until(0, "workspace", "queue-status", *words, part=part)

    def until(self, expected: Any, *words: str, part: str, seconds: float = 60.0) -> None:
        """Run a command until a part of what it prints is as expected."""
        deadline = time.monotonic() + seconds
        while (value := self(*words)[part]) != expected:
            assert time.monotonic() < deadline, f"{part} is {value!r} instead of {expected!r}"
