"""The published clients of three generations for one workspace, each in a process of
its own environment."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from support.api.all_generations import GenerationClient, MessageView, Metadata
from support.clients.environments import scenario_environment


class Process:
    """A client that does what it is asked."""

    def __init__(self, python: Path, speaker: str, url: str, key: str) -> None:
        self._process = subprocess.Popen(
            [str(python), "-m", "support.clients.one_workspace", speaker, url, key],
            env=scenario_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, workspace: str, method: str, *arguments: Any) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        print(json.dumps([workspace, method, arguments]), file=stdin, flush=True)
        done, result = json.loads(stdout.readline())
        assert done, result
        return result

    def end(self) -> None:
        self._process.communicate(timeout=20)


@contextmanager
def processes(pythons: Mapping[str, Path], url: str, key: str) -> Iterator[dict[str, Process]]:
    """Clients by the names of their speakers, which are ended afterwards."""
    running = {name: Process(python, name, url, key) for name, python in pythons.items()}
    try:
        yield running
    finally:
        for process in running.values():
            process.end()


class Clients:
    """A workspace of one test, with the published clients of three generations. It does not exist
    yet."""

    def __init__(self, url: str, key: str, workspace: str, running: Mapping[str, Process]) -> None:
        self._http = httpx.Client(
            base_url=f"{url}/v3/workspaces/{workspace}",
            headers={"Authorization": f"Bearer {key}"},
            timeout=30,
        )
        self.workspace = workspace
        self.clients: dict[str, GenerationClient] = {
            "v1": V1ClientProcess(self, running["first"]),
            "v2": ByName(self, running["second"]),
            "v3": ByName(self, running["newest"]),
        }

    def all(self) -> Sequence[GenerationClient]:
        return list(self.clients.values())

    def names(self) -> dict[str, str]:
        """Names of sessions by uid: a session goes by the one in the first generation, by the other
        in the later ones."""
        answer = self._http.post("/sessions/list", params={"size": 100}).raise_for_status().json()
        return {item["uid"]: item["id"] for item in answer["items"]}

    def settle(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            status = self._http.get("/queue/status").raise_for_status().json()
            if status["pending_work_units"] + status["in_progress_work_units"] == 0:
                return
            assert time.monotonic() < deadline, f"the work does not end: {status}"
            time.sleep(0.05)

    def close(self) -> None:
        self._http.close()


class V1ClientProcess:
    """A client that calls a session by its uid."""

    def __init__(self, clients: Clients, process: Process) -> None:
        self.clients, self.process = clients, process

    def ask(self, method: str, *arguments: Any) -> Any:
        return self.process.ask(self.clients.workspace, method, *arguments)

    def called(self, session: str) -> str:
        """What the client calls the session of a uid."""
        return session

    def uid(self, called: str) -> str:
        return called

    def make_workspace(self, metadata: Metadata) -> None:
        self.ask("make_workspace", metadata)

    def set_workspace(self, metadata: Metadata) -> None:
        self.ask("set_workspace", metadata)

    def workspace(self) -> Metadata:
        return dict(self.ask("workspace_metadata"))

    def make_peer(self, name: str, metadata: Metadata) -> None:
        self.ask("make_peer", name, metadata)

    def set_peer(self, name: str, metadata: Metadata) -> None:
        self.ask("set_peer", name, metadata)

    def peers(self) -> dict[str, Metadata]:
        return dict(self.ask("peers"))

    def make_session(self, of: str, metadata: Metadata) -> str:
        return str(self.ask("make_session", of, metadata))

    def set_session(self, session: str, of: str, metadata: Metadata) -> None:
        self.ask("set_session", self.called(session), of, metadata)

    def sessions(self, of: str) -> list[tuple[str, Metadata]]:
        return [(self.uid(called), metadata) for called, metadata in self.ask("sessions_of", of)]

    def delete_session(self, session: str, of: str) -> None:
        self.ask("delete_session", self.called(session), of)

    def clone(self, session: str, of: str, upto: str | None) -> str:
        return self.uid(self.ask("clone", self.called(session), of, upto))

    def say(self, session: str, by: str, *contents: str) -> list[str]:
        return list(self.ask("say", self.called(session), by, *contents))

    def messages(self, session: str, of: str) -> list[MessageView]:
        return [MessageView(*item) for item in self.ask("messages", self.called(session), of)]

    def message(self, session: str, of: str, id: str) -> MessageView:
        return MessageView(*self.ask("message", self.called(session), of, id))

    def set_message(self, session: str, of: str, id: str, metadata: Metadata) -> None:
        self.ask("set_message", self.called(session), of, id, metadata)

    def conclude(self, about: str, content: str) -> str:
        return str(self.ask("conclude", about, content))

    def conclusions(self, about: str) -> list[tuple[str, str]]:
        return [(id, content) for id, content in self.ask("conclusions", about)]

    def nearest(self, about: str, query: str) -> str:
        return str(self.ask("nearest", about, query))

    def chat(self, about: str, session: str, question: str) -> str:
        return str(self.ask("chat", about, self.called(session), question))


class ByName(V1ClientProcess):
    """A client that calls a session by its name, and gives it one."""

    def __init__(self, clients: Clients, process: Process) -> None:
        super().__init__(clients, process)
        self._session_count = 0

    def called(self, session: str) -> str:
        return self.clients.names()[session]

    def uid(self, called: str) -> str:
        return {name: uid for uid, name in self.clients.names().items()}[called]

    def make_session(self, of: str, metadata: Metadata) -> str:
        self._session_count += 1
        name = f"session-{self._session_count}"
        self.ask("make_session", name, of, metadata)
        return self.uid(name)
