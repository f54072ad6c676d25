"""Limits of the API hold in the services, so for forms of the console and every other caller."""

from __future__ import annotations

import pytest

from memservice.domain.errors import InvalidInput
from memservice.domain.sizes import MAX_CARD_LINE, MAX_CONCLUSION, MAX_QUERY
from memservice.services import cards, conclusions, workspaces
from memservice.services.auth.principal import Principal
from memservice.services.chat import chat
from memservice.services.chat.chat import ChatOptions
from memservice.services.conclusions import ConclusionDraft, QueryOptions
from memservice.services.retrieval import context, representation, search, workspace_search
from memservice.services.retrieval.context import SessionContextOptions
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.services.retrieval.search import SearchOptions
from support.services.console import Console

LONG = "x" * (MAX_QUERY + 1)
PAIR = {"observer": "alice", "observed": "alice"}


def test_no_service_takes_more_than_the_api(console: Console, subtests: pytest.Subtests) -> None:
    rt, admin = console.rt, Principal(admin=True)
    about = SessionContextOptions(peer_target="alice", search_query=LONG)
    options = RepresentationOptions(search_query=LONG)
    card = ["short", "x" * (MAX_CARD_LINE + 1)]
    conclusion = ConclusionDraft("x" * (MAX_CONCLUSION + 1), "alice", "alice")
    often = {"summary": {"messages_per_short_summary": 9}}
    never = {"summary": {"messages_per_long_summary": 2**63}}
    calls = {
        ("query",): (
            lambda: chat.ask_peer(rt, admin, "w", "alice", ChatOptions(LONG)),
            lambda: chat.ask_workspace(rt, admin, "w", ChatOptions(LONG)),
            lambda: search.search(rt, admin, "w", SearchOptions(LONG)),
            lambda: search.explain(rt, admin, "w", SearchOptions(LONG)),
            lambda: workspace_search.explain(rt, admin, "w", LONG),
            lambda: conclusions.query(rt, admin, "w", LONG, filters=PAIR),
            lambda: conclusions.explain(rt, admin, "w", QueryOptions(LONG, filters=PAIR)),
        ),
        ("search_query",): (
            lambda: representation.of_peer(rt, admin, "w", "alice", options),
            lambda: context.of_peer(rt, admin, "w", "alice", options),
            lambda: context.of_session(rt, admin, "w", "s", about),
        ),
        ("peer_card", 1): (lambda: cards.put(rt, admin, "w", "alice", None, card),),
        ("conclusions", 0, "content"): (lambda: conclusions.create(rt, admin, "w", [conclusion]),),
        ("configuration", "summary", "messages_per_short_summary"): (
            lambda: workspaces.update(rt, admin, "w", None, often),
        ),
        ("configuration", "summary", "messages_per_long_summary"): (
            lambda: workspaces.update(rt, admin, "w", None, never),
        ),
    }
    for argument, services in calls.items():
        for number, call in enumerate(services):
            with subtests.test(argument=argument, number=number):
                with pytest.raises(InvalidInput) as caught:
                    call()
                assert [problem.loc for problem in caught.value.problems] == [argument]
    with rt.storage.read() as tx:
        assert tx.workspaces.by_slug("w") is None, "nothing was stored"
