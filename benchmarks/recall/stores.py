"""A store with one workspace for each conversation, filled through the services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from memservice.compose import open_runtime
from memservice.domain import tokens
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import Conclusion, Message
from memservice.runtime import Runtime
from memservice.services import indexing, messages, peers
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ensure_collection
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.spi.storage import Transaction
from memservice.worker.polling import Worker
from memservice_bench.corpus import Conversation, Turn

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
    """The conversation in its workspace: stored now, or by an earlier run."""
    slugs = slugs_of(talk)
    with runtime.storage.read() as tx:
        exists = tx.workspaces.by_slug(workspace) is not None
    if not exists:
        for speaker, slug in slugs.items():
            peers.get_or_create(runtime, ME, workspace, slug, {"name": speaker}, None)
    keys: dict[str, int] = {}
    row_keys: dict[int, int] = {}
    for session, group in groupby(talk.turns, key=lambda turn: turn.session):
        turns = list(group)
        if not exists:
            _write(runtime, workspace, f"session-{session}", turns, slugs)
        rows = _rows(runtime, workspace, f"session-{session}", len(turns))
        keys |= {message.uid: turn.key for message, turn in zip(rows, turns, strict=True)}
        row_keys |= {message.key: turn.key for message, turn in zip(rows, turns, strict=True)}
    return Stored(workspace, talk, slugs, keys, row_keys, sizes_of(talk))


def slugs_of(talk: Conversation) -> dict[str, str]:
    """The id of each speaker's peer."""
    return {
        speaker: f"peer-{number}" if not speaker.isascii() else speaker.replace(" ", "_")
        for number, speaker in enumerate(talk.speakers)
    }


def sizes_of(talk: Conversation) -> dict[int, int]:
    """Key of a turn → its tokens in a prompt."""
    return {turn.key: tokens.count(f"{turn.speaker}: {turn.text}") for turn in talk.turns}


def _write(
    runtime: Runtime,
    workspace: str,
    session: str,
    turns: Sequence[Turn],
    slugs: Mapping[str, str],
) -> None:
    for start in range(0, len(turns), BATCH_SIZE):
        batch = turns[start : start + BATCH_SIZE]
        drafts = [Draft(turn.text, slugs[turn.speaker], created_at=turn.at) for turn in batch]
        messages.create(runtime, ME, workspace, session, drafts)


def _rows(runtime: Runtime, workspace: str, session: str, number: int) -> Sequence[Message]:
    """The messages of a session, in order."""
    with runtime.storage.read() as tx:
        row = tx.workspaces.by_slug(workspace)
        keys = [each.key for each in tx.sessions.by_slugs(row.key, [session])] if row else []
        return tx.messages.run(keys[0], 1, number) if keys else []


def conclude(runtime: Runtime, stored: Stored) -> None:
    """Store what a model may conclude from the conversation, each peer about itself."""
    row_of = {turn: row for row, turn in stored.row_keys.items()}
    said_at = {turn.key: turn.at for turn in stored.talk.turns}
    inferences = stored.talk.inferences
    uids = [new_uid() for _ in inferences]

    def add(tx: Transaction) -> None:
        workspace = tx.workspaces.by_slug(stored.workspace)
        if workspace is None or tx.conclusions.count(workspace.key):
            return
        peers = tx.peers.by_slugs(workspace.key, sorted(stored.slugs.values()))
        rows = []
        for uid, inference in zip(uids, inferences, strict=True):
            peer = peers[stored.slugs[inference.about]]
            sources = inference.sources or sum(
                (inferences[position].sources for position in inference.premises), ()
            )
            rows.append(
                Conclusion(
                    uid=uid,
                    workspace_key=workspace.key,
                    collection_key=ensure_collection(runtime, tx, peer, peer).key,
                    observer_key=peer.key,
                    observed_key=peer.key,
                    observer=peer.slug,
                    observed=peer.slug,
                    content=inference.text,
                    fingerprint=fingerprint(inference.text),
                    level=inference.level,
                    source_ids=[uids[position] for position in inference.premises] or None,
                    message_keys=[row_of[turn] for turn in inference.sources],
                    said_at=max(said_at[turn] for turn in sources),
                    created_at=runtime.clock(),
                )
            )
        vectors = indexing.embed_inline(runtime, [row.content for row in rows])
        conclusions = tx.conclusions.put(rows)
        tx.tasks.add(indexing.index_conclusions(runtime, tx, workspace.key, conclusions, vectors))

    runtime.storage.write(add)


def work(runtime: Runtime) -> None:
    """Do all background work: vectors and, if the deriver is enabled, conclusions."""
    Worker(runtime).run_until_idle(WORK_SECONDS)
