"""A scripted model behind a real connection, which derives and dreams. A test can interrupt any of
its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable

from memservice.spi.llm import ToolCall
from memservice.testing.llm import Say
from memservice.testing.model_protocols import OpenAiWire
from memservice.testing.model_server import Handler, Request, Server

Reply = Callable[[str, bool], Say]
"""The answer to a system prompt, and to whether there are results of tools."""


class ScriptedModelServer:
    """Answers by `reply`. A call selected with `cut` is never answered: it waits until the client
    disconnects."""

    def __init__(self, server: Server, reply: Reply) -> None:
        self.calls = 0
        """Calls since `cut`."""
        self.cut_off = threading.Event()
        """Set when the call that is never answered arrives."""
        self._reply = reply
        self._number = 0
        self._lock = threading.Lock()
        self._wire = OpenAiWire()
        self._server = server
        server.then(self._answer)

    def settings(self, key: str) -> dict[str, str]:
        return self.settings_of(self._server, key)

    @staticmethod
    def settings_of(server: Server, key: str) -> dict[str, str]:
        return {
            "REASONER": "llm",
            "LLM_OPENAI_BASE_URL": f"{server.url}/v1",
            "LLM_OPENAI_API_KEY": key,
        }

    def cut(self, number: int) -> None:
        """Do not answer the call with this number, counted from now; 0 for none."""
        with self._lock:
            self.calls, self._number = 0, number
            self.cut_off.clear()

    def _answer(self, handler: Handler, request: Request) -> None:
        with self._lock:
            self.calls += 1
            is_cut = self.calls == self._number
        if is_cut:
            self.cut_off.set()
            handler.wait_to_be_left()
            return
        turns = request.body["messages"]
        handler.json(
            self._wire.whole(
                self._reply(turns[0]["content"], any(turn["role"] == "tool" for turn in turns))
            )
        )


def calling(name: str, **arguments: object) -> Say:
    return Say((), (ToolCall("call-1", name, arguments),), "tool_calls")
