"""The same measures over HTTP: `python -m benchmarks.recall.over_http URL`.

Stores the conversations in a running server of this API, waits for its background work, and asks
every question. What the server is set up with is measured: its embedder, its reasoner, its storage.
A workspace that has its messages is used again.

The API reports derivation as background work, and not the vectors of messages: `--settle` waits for
them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.recall.__main__ import (
    SHORT,
    Results,
    describe,
    note,
    only,
    print_difference,
    print_table,
)
from benchmarks.recall.corpora import HOPS, KINDS, THIRD, corpora
from benchmarks.recall.stores import Stored, sizes_of, slugs_of
from benchmarks.recall.surfaces import DEPTH, NO_TURN, Values, of_ranking, shares, subject
from memservice_bench.client import BenchError, Client
from memservice_bench.corpus import Conversation, Question

WORK_SECONDS = 600.0
"""Without progress, background work is given up after this time."""
PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class Served:
    """One conversation in its workspace of a server."""

    client: Client
    stored: Stored
    concluded: Mapping[str, int]
    """Id of a conclusion → key of the turn that it comes from."""

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return self.client.call(
            method, f"/v3/workspaces/{self.stored.workspace}{path}", body
        ).json()


Surface = Callable[[Served, Question], Values]


def workspace_search(served: Served, question: Question) -> Values:
    return _search(served, question, "/search")


def peer_search(served: Served, question: Question) -> Values:
    return _search(served, question, f"/peers/{subject(served.stored, question)}/search")


def _search(served: Served, question: Question, path: str) -> Values:
    rows = served.call("POST", path, {"query": question.text, "limit": DEPTH})
    ranking = [served.stored.keys[row["id"]] for row in rows]
    return of_ranking(ranking, served.stored, question)


def conclusions_query(served: Served, question: Question) -> Values:
    """Evidence is found if a conclusion from it is."""
    peer = subject(served.stored, question)
    body = {
        "query": question.text,
        "top_k": DEPTH,
        "filters": {"observer_id": peer, "observed_id": peer},
    }
    rows = served.call("POST", "/conclusions/query", body)
    ranking = [served.concluded.get(row["id"], NO_TURN) for row in rows]
    return of_ranking(ranking, served.stored, question)


def peer_context(served: Served, question: Question) -> Values:
    peer = subject(served.stored, question)
    path = f"/peers/{peer}/context?{_query(search_query=question.text)}"
    text = served.call("GET", path)["representation"] or ""
    return shares(text, 2000, served.stored, question)


def session_context(served: Served, question: Question) -> Values:
    """Of the last session, with 4,000 tokens, so that the representation may have 2,000."""
    stored = served.stored
    options = _query(tokens=4000, search_query=question.text, peer_target=subject(stored, question))
    session = f"session-{stored.talk.turns[-1].session}"
    context = served.call("GET", f"/sessions/{session}/context?{options}")
    return shares(context["peer_representation"] or "", 2000, stored, question)


def representation(served: Served, question: Question) -> Values:
    """With at most 100 conclusions, 100 of them by the query, and 4,000 tokens."""
    peer = subject(served.stored, question)
    body = {"search_query": question.text, "search_top_k": 100, "max_conclusions": 100}
    text = served.call("POST", f"/peers/{peer}/representation", body)["representation"] or ""
    return shares(text, 4000, served.stored, question)


SURFACES: dict[str, Surface] = {
    "workspace search": workspace_search,
    "peer search": peer_search,
    "conclusions query": conclusions_query,
    "peer context": peer_context,
    "session context": session_context,
    "representation": representation,
}


def serve(client: Client, workspace: str, talk: Conversation) -> Served:
    """The conversation in its workspace: stored now, or by an earlier run."""
    slugs = slugs_of(talk)
    there = client.message_count(workspace)
    if there not in (0, len(talk.turns)):
        raise BenchError(
            f"the workspace {workspace} has {there} of {len(talk.turns)} messages: delete it, or "
            "use an empty server"
        )
    if not there:
        client.ingest(workspace, talk, dict(slugs))
    client.wait_until_idle(workspace, WORK_SECONDS)
    path = f"/v3/workspaces/{workspace}"
    keys: dict[str, int] = {}
    for session in dict.fromkeys(turn.session for turn in talk.turns):
        turns = [turn.key for turn in talk.turns if turn.session == session]
        rows = _listed(client, f"{path}/sessions/session-{session}/messages/list", {})
        keys |= {row["id"]: key for row, key in zip(rows, turns, strict=True)}
    concluded = {
        row["id"]: keys[row["message_ids"][0]]
        for peer in slugs.values()
        for row in _listed(
            client,
            f"{path}/conclusions/list?include_messages=true",
            {"filters": {"observer_id": peer, "observed_id": peer}},
        )
        if row.get("message_ids")
    }
    return Served(client, Stored(workspace, talk, slugs, keys, {}, sizes_of(talk)), concluded)


def _listed(client: Client, path: str, body: Any) -> list[Any]:
    """The items of all pages of a listing, in its order."""
    joint = "&" if "?" in path else "?"
    items: list[Any] = []
    page, pages = 1, 1
    while page <= pages:
        answer = client.call("POST", f"{path}{joint}page={page}&size={PAGE_SIZE}", body).json()
        items += answer["items"]
        page, pages = page + 1, answer["pages"]
    return items


def _query(**parameters: object) -> str:
    return str(httpx.QueryParams({name: str(value) for name, value in parameters.items()}))


def measure(
    client: Client,
    sets: Mapping[str, Sequence[Conversation]],
    surfaces: Sequence[str],
    settle: float = 0.0,
) -> Results:
    """The values. `settle`: seconds between the last conversation and the first question."""
    served = {
        name: [
            serve(client, f"{name.replace(', ', '-').replace(' ', '-')}-{number}", talk)
            for number, talk in enumerate(conversations)
        ]
        for name, conversations in sets.items()
    }
    time.sleep(settle)
    results: Results = defaultdict(lambda: defaultdict(list))
    for name, conversations in served.items():
        for surface in surfaces:
            for one in conversations:
                for question in one.stored.talk.questions:
                    values = SURFACES[surface](one, question)
                    note(results, f"{name} / {surface}", question.category, values)
    return results


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url", help="of the server")
    parser.add_argument("--key", help="an API key, if the server requires one")
    parser.add_argument("--split", choices=("tuning", "held-back", THIRD), default="held-back")
    parser.add_argument("--kind", choices=(*KINDS, *HOPS, "both"), default="both")
    parser.add_argument("--count", type=int, default=2, help="conversations of each set")
    parser.add_argument("--idle", type=int, help="exchanges without a fact in each conversation")
    parser.add_argument(
        "--surface", action="append", choices=tuple(SURFACES), help="default: all of them"
    )
    parser.add_argument(
        "--settle", type=float, default=0.0, help="seconds to wait before the first question"
    )
    parser.add_argument("--categories", action="store_true", help="by category of question as well")
    parser.add_argument("--save", type=Path, help="keep the values in this JSON file")
    parser.add_argument("--against", type=Path, help="a file of an earlier run, of either command")
    return parser.parse_args()


def main() -> None:
    parsed = arguments()
    kinds = list(KINDS) if parsed.kind == "both" else [parsed.kind]
    sets = corpora([parsed.split], kinds, parsed.count, parsed.idle, {})
    describe(sets)
    client = Client(parsed.url, parsed.key)
    try:
        results = measure(client, sets, parsed.surface or list(SURFACES), parsed.settle)
    except BenchError as error:
        raise SystemExit(str(error)) from error
    finally:
        client.close()
    print_table(only(results, parsed.categories), {}, SHORT)
    if parsed.save:
        parsed.save.write_text(json.dumps(results), "utf-8")
    if parsed.against:
        earlier = json.loads(parsed.against.read_text("utf-8"))
        print_difference(earlier, only(results, parsed.categories), SHORT)


if __name__ == "__main__":
    main()
