"""What is drawn from ten dialogues without a model: `python -m benchmarks.dialogues [FILE]`.

Each has the context of its session about its first speaker, the answers to a few questions, and the
speaker's card. Run it at two commits and compare the texts. The dialogues are in dialogues.json.
"""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memservice.compose import open_runtime
from memservice.runtime import Runtime
from memservice.services import cards, messages, sessions
from memservice.services.auth.principal import Principal
from memservice.services.chat.chat import ChatOptions, ask_peer
from memservice.services.messages import Draft
from memservice.services.retrieval import context
from memservice.services.retrieval.context import SessionContextOptions
from memservice.services.sessions import MemberConfig
from memservice.settings import load_settings
from memservice.worker.polling import Worker

DIALOGUES = Path(__file__).with_name("dialogues.json")
READ_AT = datetime(2024, 8, 15, 12, tzinfo=UTC)
PRINCIPAL = Principal(admin=True)
WORKSPACE, SESSION = "dialogues", "talk"
PATIENCE_SECONDS = 60
TOKENS = 300
STATEMENTS = 2
"""Statements of an answer that are printed."""


def opened(dialogue: dict[str, Any]) -> Runtime:
    """A store with the dialogue and what was drawn from it, a batch of messages for each day. The
    agent is not observed."""
    environ = {"DB_CONNECTION_URI": "memory://", "REASONER": "extractive"}
    environ |= {"DERIVER_FLUSH_ENABLED": "true", "SUMMARY_MESSAGES_PER_SHORT_SUMMARY": "10"}
    rt = open_runtime(load_settings(None, environ, DIALOGUES.parent), clock=lambda: READ_AT)
    rt.storage.migrate()
    members = {dialogue["peer"]: MemberConfig(), "agent": MemberConfig(observe_me=False)}
    sessions.add_peers(rt, PRINCIPAL, WORKSPACE, SESSION, members)
    for sent_at, author, content in dialogue["messages"]:
        draft = Draft(content, author, created_at=datetime.fromisoformat(sent_at))
        messages.create(rt, PRINCIPAL, WORKSPACE, SESSION, [draft])
        Worker(rt).run_until_idle(PATIENCE_SECONDS)
    return rt


def report(dialogue: dict[str, Any]) -> list[str]:
    peer = dialogue["peer"]
    lines = [f"## {dialogue['title']}"]
    with closing(opened(dialogue)) as rt:
        options = SessionContextOptions(tokens=TOKENS, peer_target=peer)
        prompt = context.of_session(rt, PRINCIPAL, WORKSPACE, SESSION, options)
        lines += [
            "context:",
            *(f"    {line}" for line in (prompt.representation or "").split("\n")),
        ]
        for question in dialogue["questions"]:
            answer = ask_peer(rt, PRINCIPAL, WORKSPACE, peer, ChatOptions(question)).content()
            introduction, *statements = (answer or "").split("\n- ")
            lines += [f"chat: {question}", f"    {introduction}"]
            lines += [f"    - {statement}" for statement in statements[:STATEMENTS]]
        card = cards.get(rt, PRINCIPAL, WORKSPACE, peer, None) or []
        lines += ["card:", *(f"    {line}" for line in card)]
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DIALOGUES, help="other dialogues")
    dialogues = json.loads(parser.parse_args(arguments).file.read_text(encoding="utf-8"))
    for dialogue in dialogues:
        print("\n".join([*report(dialogue), ""]), flush=True)


if __name__ == "__main__":
    main()
