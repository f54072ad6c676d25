"""A store with one workspace for each conversation, filled through the services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from memservice.compose import open_runtime
from memservice.domain import tokens
from memservice.runtime import Runtime
from memservice.services import messages, peers
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from memservice_bench.corpus import Conversation

ME = Principal(admin=True)
BATCH_SIZE = 100
WORK_SECONDS = 3600.0


def open_store(uri: str, options: Mapping[str, str], derive: bool) -> Runtime:
    """`options` are settings by the name of their environment variable."""
    reasoning = str(derive).lower()
    environment = {"DERIVER_ENABLED": reasoning, "SUMMARY_ENABLED": "false"}
    environment |= {"DB_CONNECTION_URI": uri, "DREAM_ENABLED": "false"} | dict(options)
    settings = load_settings(environ=environment, cwd=Path("/"))
    runtime = open_runtime(settings)
    runtime.storage.migrate()
    return runtime


@dataclass(frozen=True, slots=True)
class Stored:
    """One conversation in its workspace."""

    workspace: str
    talk: Conversation
    slugs: Mapping[str, str]
    """Speaker → id of the peer."""
    keys: Mapping[str, int]
    """Uid of a message → key of the turn."""
    row_keys: Mapping[int, int]
    """Key of a message's row → key of the turn."""
    sizes: Mapping[int, int]
    """Key of a turn → tokens."""


def store(runtime: Runtime, workspace: str, talk: Conversation) -> Stored:
    slugs = {
        speaker: f"peer-{number}" if not speaker.isascii() else speaker.replace(" ", "_")
        for number, speaker in enumerate(talk.speakers)
    }
    for speaker, slug in slugs.items():
        peers.get_or_create(runtime, ME, workspace, slug, {"name": speaker}, None)
    keys: dict[str, int] = {}
    row_keys: dict[int, int] = {}
    for session, turns in groupby(talk.turns, key=lambda turn: turn.session):
        rest = list(turns)
        while rest:
            batch, rest = rest[:BATCH_SIZE], rest[BATCH_SIZE:]
            drafts = [Draft(turn.text, slugs[turn.speaker], created_at=turn.at) for turn in batch]
            stored = messages.create(runtime, ME, workspace, f"session-{session}", drafts)
            keys |= {message.uid: turn.key for message, turn in zip(stored, batch, strict=True)}
            row_keys |= {message.key: turn.key for message, turn in zip(stored, batch, strict=True)}
    sizes = {turn.key: tokens.count(f"{turn.speaker}: {turn.text}") for turn in talk.turns}
    return Stored(workspace, talk, slugs, keys, row_keys, sizes)


def work(runtime: Runtime) -> None:
    """Do all background work: vectors and, if the deriver is enabled, conclusions."""
    Worker(runtime).run_until_idle(WORK_SECONDS)
