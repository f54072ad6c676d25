"""The files of the page on models are used, not only read: every task asks the model that the file
names, on a server on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memservice.compose import open_runtime
from memservice.services import dreams
from memservice.services.chat import chat
from memservice.services.chat.chat import ChatOptions
from memservice.services.dreams import DreamRequest
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.testing.llm import Say
from memservice.testing.model_protocols import OpenAiWire
from memservice.testing.model_server import Handler, Request, Server, scripted
from support.docs.blocks import blocks
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Clock, Pipeline

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
WIRE = OpenAiWire()
FACT = "alice keeps bees."


def serving(server: Server, models: set[str]) -> None:
    """Answer as a server that has only these models."""

    def answer(handler: Handler, request: Request) -> None:
        body: dict[str, Any] = request.body
        if body["model"] not in models:
            handler.json(WIRE.error(404, f"model {body['model']} not found"), 404)
        elif "response_format" in body:
            document = {"statements": [{"content": FACT, "messages": [1]}]}
            handler.json(WIRE.whole(Say((json.dumps(document),))))
        else:
            handler.json(WIRE.whole(Say(("She keeps bees.",))))

    server.then(answer)


@pytest.mark.parametrize("title", ["ollama.toml", "openai.toml"])
def test_chat_derive_summary_and_dream_work(title: str, tmp_path: Path) -> None:
    (block,) = [block for block in blocks(PAGE, "toml") if block.title == title]
    config = tmp_path / title
    config.write_text(block.text, encoding="utf-8")
    with scripted() as server:
        url = f"{server.url}/v1"
        environ = {"DB_CONNECTION_URI": "memory://", "LLM_OPENAI_BASE_URL": url}
        settings = load_settings(config, environ, tmp_path)
        assert settings.llm.model is not None
        serving(server, {settings.llm.model})
        clock = Clock()
        pipeline = Pipeline(open_runtime(settings, clock=clock), clock, ScriptedReasoner())
        pipeline.rt.storage.migrate()
        try:
            pipeline.say("s", *[("alice", f"I keep bees, hive number {n}.") for n in range(60)])
            clock.advance(hours=1)
            pipeline.work()
            assert FACT in pipeline.texts("alice")
            assert {summary.content for summary in pipeline.summaries("s").values()} == {
                "She keeps bees."
            }
            dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", "omni"))
            pipeline.work()
            for kind in (kinds.REPRESENTATION, kinds.SUMMARY, kinds.DREAM):
                assert {task.state for task in pipeline.tasks(kind)} == {"done"}, kind
            for level in ("minimal", "low", "medium", "high", "max"):
                options = ChatOptions("What does she keep?", level=level)
                answer = chat.ask_peer(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", options)
                assert answer.content() == "She keeps bees."
        finally:
            pipeline.rt.close()
    assert {request.body["model"] for request in server.requests} == {settings.llm.model}
