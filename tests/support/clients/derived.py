"""Conclusions that rest on others, as background work with a language model leaves them: stored
past the server, which has no model."""

from __future__ import annotations

import json
import urllib.request
import uuid
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from memservice.compose import open_runtime
from memservice.domain.ids import new_uid
from memservice.services import indexing
from memservice.settings import load_settings
from memservice.spi.storage import Transaction
from support.clients.server import Server

SAID = ["Alice has goats.", "Alice has bees.", "Alice sold her goats."]
DERIVED = [f"Alice keeps animals of kind {number}." for number in range(5)]
PATTERN = "Alice tends to keep animals."
CONFLICT = "Alice has goats and has sold them."


@dataclass(frozen=True, slots=True)
class Known:
    content: str
    sources: list[str]
    level: str = "deductive"
    times_derived: int = 1


def derive(server: Server, workspace: str, details: Known) -> str:
    """Store it for the pair of its first source; its id."""

    def change(tx: Transaction) -> str:
        row = tx.workspaces.by_slug(workspace)
        assert row is not None
        source = tx.conclusions.by_uid(row.key, details.sources[0])
        assert source is not None
        changed: dict[str, Any] = {
            "level": details.level,
            "source_ids": details.sources,
            "times_derived": details.times_derived,
        }
        (stored,) = tx.conclusions.put(
            [
                replace(
                    source,
                    key=0,
                    uid=new_uid(),
                    fingerprint=new_uid(),
                    content=details.content,
                    **changed,
                )
            ]
        )
        tx.tasks.add(indexing.index_conclusions(runtime, tx, row.key, [stored], vectors))
        return stored.uid

    runtime = open_runtime(
        load_settings(environ={}, cwd=server.folder, overrides={"DB_CONNECTION_URI": server.uri})
    )
    try:
        vectors = indexing.embed_inline(runtime, [details.content])
        return runtime.storage.write(change)
    finally:
        runtime.close()


def seeded(server: Server) -> dict[str, Any]:
    """A workspace in which alice's conclusions rest on each other at every level: its name, and the
    ids of each kind in their order."""
    workspace = f"w-{uuid.uuid4().hex[:12]}"

    def post(path: str, body: Any) -> Any:
        request = urllib.request.Request(
            f"{server.url}/v3/workspaces{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    post("", {"id": workspace})
    post(f"/{workspace}/peers", {"id": "alice"})
    pair = {"observer_id": "alice", "observed_id": "alice"}
    goats, bees, sold = (
        x["id"]
        for x in post(
            f"/{workspace}/conclusions",
            {"conclusions": [pair | {"content": text} for text in SAID]},
        )
    )
    derived = [
        derive(server, workspace, Known(text, [goats, bees], times_derived=number + 1))
        for number, text in enumerate(DERIVED)
    ]
    pattern = derive(server, workspace, Known(PATTERN, [bees, *derived], "inductive"))
    conflict = derive(server, workspace, Known(CONFLICT, [goats, sold], "contradiction"))
    return {
        "workspace": workspace,
        "said": [goats, bees, sold],
        "derived": derived,
        "pattern": pattern,
        "conflict": conflict,
    }
