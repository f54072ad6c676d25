"""The calls of the `/v3` API that a benchmark needs. They work with any server of this API."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

import httpx
from msgspec import Struct

from memservice_bench.corpus import Conversation, Turn

BATCH_SIZE = 100
IDLE_POLL_SECONDS = 0.5


class BenchError(Exception):
    """The run cannot continue. The text states the cause and what to do."""


class Answer(Struct, frozen=True):
    """The answer to a chat request."""

    content: str | None
    seconds: float
    notice: str | None = None
    """The header `X-Memservice-Notice`: the reason for a simpler answer."""


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Read once for the process: it takes 40 ms, which each request would pay without it."""
    return httpx.create_ssl_context()


class Client:
    def __init__(self, base_url: str, api_key: str | None, timeout: float = 180.0) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(
            base_url=base_url, headers=headers, timeout=timeout, verify=trusted_certificates()
        )

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """The response to one request. Raises BenchError without one, or for an error status."""
        try:
            response = self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise BenchError(
                f"{method} {path}: {type(error).__name__}. Is the server at "
                f"{self._http.base_url} running?"
            ) from error
        if response.status_code >= 400:
            raise BenchError(
                f"{method} {path}: the server answered {response.status_code}: "
                f"{response.text[:300]}"
            )
        return response

    def message_count(self, workspace: str) -> int:
        """Number of messages in a workspace, which is created if it does not exist."""
        self.call("POST", "/v3/workspaces", {"id": workspace})
        sessions = self.call("POST", f"/v3/workspaces/{workspace}/sessions/list", {}).json()
        return sum(
            self.call(
                "POST", f"/v3/workspaces/{workspace}/sessions/{session['id']}/messages/list", {}
            ).json()["total"]
            for session in sessions["items"]
        )

    def ingest(self, workspace: str, conversation: Conversation, peers: dict[str, str]) -> None:
        """Store a conversation with its original times, in order."""
        for speaker, peer in peers.items():
            self.call(
                "POST",
                f"/v3/workspaces/{workspace}/peers",
                {"id": peer, "metadata": {"name": speaker}},
            )
        for session, turns in groupby(conversation.turns, key=lambda turn: turn.session):
            self._store(workspace, f"session-{session}", list(turns), peers)

    def _store(
        self, workspace: str, session: str, turns: Sequence[Turn], peers: dict[str, str]
    ) -> None:
        self.call("POST", f"/v3/workspaces/{workspace}/sessions", {"id": session})
        for start in range(0, len(turns), BATCH_SIZE):
            messages = [
                {
                    "peer_id": peers[turn.speaker],
                    "content": turn.text,
                    "created_at": turn.at.isoformat(),
                }
                for turn in turns[start : start + BATCH_SIZE]
            ]
            self.call(
                "POST",
                f"/v3/workspaces/{workspace}/sessions/{session}/messages",
                {"messages": messages},
            )

    def pending(self, workspace: str) -> int:
        """Number of work units that are not finished."""
        status = self.call("GET", f"/v3/workspaces/{workspace}/queue/status").json()
        return int(status["pending_work_units"]) + int(status["in_progress_work_units"])

    def wait_until_idle(self, workspace: str, timeout: float) -> None:
        """Wait for background work. Raises BenchError if it is not finished in `timeout` seconds,
        counted from the last progress."""
        last, deadline = -1, time.monotonic() + timeout
        while pending := self.pending(workspace):
            if pending != last:
                last, deadline = pending, time.monotonic() + timeout
            if time.monotonic() > deadline:
                raise BenchError(
                    f"{pending} units of background work of {workspace} made no progress in "
                    f"{timeout:.0f} s: see `memservice jobs list`"
                )
            time.sleep(IDLE_POLL_SECONDS)

    def conclusions(self, workspace: str, observed: str) -> list[str]:
        """Texts of all conclusions about a peer."""
        texts: list[str] = []
        page = 1
        while True:
            body = self.call(
                "POST",
                f"/v3/workspaces/{workspace}/conclusions/list?page={page}&size=100",
                {"filters": {"observed_id": observed}},
            ).json()
            texts += [item["content"] for item in body["items"]]
            if page >= body["pages"]:
                return texts
            page += 1

    def chat(self, workspace: str, peer: str, question: str, level: str) -> Answer:
        began = time.perf_counter()
        response = self.call(
            "POST",
            f"/v3/workspaces/{workspace}/peers/{peer}/chat",
            {"query": question, "reasoning_level": level, "stream": False},
        )
        return Answer(
            response.json()["content"],
            round(time.perf_counter() - began, 3),
            response.headers.get("X-Memservice-Notice"),
        )


def ask_model(base_url: str, model: str, prompt: str, timeout: float = 180.0) -> Answer:
    """The answer of a model behind an OpenAI-compatible URL."""
    began = time.perf_counter()
    body = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    try:
        response = httpx.post(
            f"{base_url}/chat/completions",
            json=body,
            timeout=timeout,
            verify=trusted_certificates(),
        )
        response.raise_for_status()
        content = response.json()["choices"][0]["message"]["content"]
    except (httpx.HTTPError, KeyError, IndexError, ValueError) as error:
        raise BenchError(f"the model gave no answer: {type(error).__name__}") from error
    return Answer(content, round(time.perf_counter() - began, 3))
