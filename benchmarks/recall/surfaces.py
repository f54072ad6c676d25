"""What is measured of each question: rankings, and texts for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.recall.stores import ME, Stored
from memservice.domain import tokens
from memservice.runtime import Runtime
from memservice.services import conclusions
from memservice.services.retrieval import context, representation, search
from memservice.services.retrieval.context import SessionContextOptions
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.services.retrieval.search import SearchOptions
from memservice_bench.corpus import Question
from memservice_bench.metrics import MEASURES

DEPTH = 100
"""Results asked for: enough to fill every context that is measured."""

Values = dict[str, float]
"""Measure → value of one question, from 0 to 1."""
Surface = Callable[[Runtime, Stored, Question], Values]


NO_TURN = -1
"""Key in a ranking of a conclusion that comes from no single message."""


def of_ranking(ranking: Sequence[int], stored: Stored, question: Question) -> Values:
    sizes = {NO_TURN: 0, **stored.sizes}
    return {name: value(ranking, question.evidence, sizes) for name, value in MEASURES.items()}


def subject(stored: Stored, question: Question) -> str:
    """The id of the peer who said most of the evidence."""
    speakers = [turn.speaker for turn in stored.talk.turns if turn.key in question.evidence]
    return stored.slugs[max(sorted(set(speakers)), key=speakers.count)]


def workspace_search(rt: Runtime, stored: Stored, question: Question) -> Values:
    rows = search.search(rt, ME, stored.workspace, SearchOptions(question.text, DEPTH))
    return of_ranking([stored.keys[row.uid] for row in rows], stored, question)


def peer_search(rt: Runtime, stored: Stored, question: Question) -> Values:
    peer = subject(stored, question)
    options = SearchOptions(question.text, DEPTH)
    rows = search.search(rt, ME, stored.workspace, options, peer_id=peer)
    return of_ranking([stored.keys[row.uid] for row in rows], stored, question)


def conclusions_query(rt: Runtime, stored: Stored, question: Question) -> Values:
    """Evidence is found if a conclusion from it is."""
    peer = subject(stored, question)
    pair = {"observer": peer, "observed": peer}
    rows = conclusions.query(rt, ME, stored.workspace, question.text, DEPTH, filters=pair)
    ranking = [
        stored.row_keys[row.message_keys[0]] if row.message_keys else NO_TURN for row in rows
    ]
    return of_ranking(ranking, stored, question)


def shares(text: str, budget: int, stored: Stored, question: Question) -> Values:
    """The share of the evidence that stands in the text, each message whole."""
    head = tokens.cut(text, budget)
    of_key = {turn.key: turn.text for turn in stored.talk.turns}
    whole = sum(of_key[key].strip() in head for key in question.evidence)
    return {
        "whole": whole / len(question.evidence),
        # Printed a hundredfold, as if it were a share.
        "tokens": tokens.count(text) / 100,
    }


def peer_context(rt: Runtime, stored: Stored, question: Question) -> Values:
    options = RepresentationOptions(search_query=question.text)
    peer = subject(stored, question)
    text = context.of_peer(rt, ME, stored.workspace, peer, options).representation
    return shares(text, 2000, stored, question)


def session_context(rt: Runtime, stored: Stored, question: Question) -> Values:
    """Of the last session, with 4,000 tokens, so that the representation may have 2,000."""
    options = SessionContextOptions(
        4000, search_query=question.text, peer_target=subject(stored, question)
    )
    session = f"session-{stored.talk.turns[-1].session}"
    answer = context.of_session(rt, ME, stored.workspace, session, options)
    return shares(answer.representation or "", 2000, stored, question)


def full_representation(rt: Runtime, stored: Stored, question: Question) -> Values:
    """With at most 100 conclusions, 100 of them by the query, and 4,000 tokens."""
    options = RepresentationOptions(
        search_query=question.text, search_top_k=100, max_conclusions=100
    )
    text = representation.of_peer(rt, ME, stored.workspace, subject(stored, question), options)
    return shares(text, 4000, stored, question)


SURFACES: dict[str, Surface] = {
    "workspace search": workspace_search,
    "peer search": peer_search,
    "conclusions query": conclusions_query,
    "peer context": peer_context,
    "session context": session_context,
    "representation": full_representation,
}
DERIVED = frozenset(("conclusions query", "peer context", "session context", "representation"))
"""The surfaces that need derived conclusions."""
