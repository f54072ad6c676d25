"""Questions in natural language, to a peer and to a workspace: whole, in pieces, with evidence, in
a form."""

from __future__ import annotations

import json
from typing import Any, Literal

from honcho.http.exceptions import NotFoundError, UnprocessableEntityError  # type: ignore[import-not-found]
from pydantic import BaseModel

from support.clients.published_client.harness import Caller, ids, scenario

TORTOISE = "I adopted a tortoise named Balthazar last spring."
WORK = "I work as a nurse at the hospital in Bergen."
SISTER = "My sister Clara teaches physics in Lyon."
GOATS = "I keep seven goats on the island."


class Finding(BaseModel):
    answer: str
    certain: bool
    kind: Literal["animal", "person", "other"]
    further: list[str]


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["answer", "count", "tags"],
}


async def conversation(c: Caller) -> tuple[Any, dict[str, Any]]:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    home, island = (
        await c(honcho).session("home", peers=[alice, bob]),
        await c(honcho).session("island", peers=[alice]),
    )
    messages = await c.talk(home, (alice, TORTOISE), (bob, SISTER), (alice, WORK))
    messages += await c.talk(island, (alice, GOATS))
    await c.settled(honcho)
    return honcho, {
        "alice": alice,
        "bob": bob,
        "home": home,
        "island": island,
        "messages": messages,
    }


async def drained(c: Caller, stream: Any) -> str:
    """All pieces of a stream, put together."""
    pieces = [piece async for piece in stream] if hasattr(stream, "__aiter__") else list(stream)
    assert all(isinstance(piece, str) for piece in pieces)
    assert stream.is_complete is True
    whole = "".join(pieces)
    assert stream.get_final_response() == {"content": whole}
    return whole


@scenario
async def a_peer_answers_from_what_is_known(c: Caller) -> None:
    _, at = await conversation(c)
    alice, bob = at["alice"], at["bob"]
    assert "Balthazar" in await c(alice).chat("What is the name of the tortoise?")
    assert "Bergen" in await c(alice).chat(
        "Where do I work as a nurse?", reasoning_level="max", session=at["home"]
    )
    assert "Clara" in await c(bob).chat("What does my sister teach?")
    assert "Clara" not in (
        await c(alice).chat("Who teaches physics in Lyon?", sessions=[at["island"]]) or ""
    )
    assert "goats" in await c(alice).chat("How many goats do I keep?", sessions=["island"])
    nothing = await c(alice).chat("Which colour has the helicopter of the president?")
    for fact in ("Balthazar", "Bergen", "goats"):
        assert fact not in (nothing or ""), "what does not answer is not said"
    watched = await c(alice).chat(
        "Which instrument does he play?", target=bob, include_evidence=True
    )
    assert watched.evidence.conclusions == [], "alice observes nobody"
    await c.raises(NotFoundError, c(alice).chat("Who?", target="nobody"))
    await c.raises(NotFoundError, c(alice).chat("Who?", session="nowhere"))
    await c.raises(NotFoundError, c(alice).chat("Who?", scope="nowhere"))
    await c.raises(UnprocessableEntityError, c(alice).chat("x" * 10_001))


@scenario
async def a_workspace_answers_over_all_peers(c: Caller) -> None:
    honcho, at = await conversation(c)
    assert "Balthazar" in await c(honcho).chat("What is the name of the tortoise?")
    assert "Clara" in await c(honcho).chat(
        "Who teaches physics in Lyon?", reasoning_level="minimal"
    )
    assert "goats" in await c(honcho).chat("Who keeps goats?", session=at["island"])
    scope = await c(honcho).scope("private")
    await c(scope).add_sessions(["island"])
    await c.settled(honcho)
    assert "goats" in await c(honcho).chat("Who keeps goats on an island?", scope="private")
    assert "Balthazar" not in (
        await c(honcho).chat("What is the name of the tortoise?", scope=["private"]) or ""
    )
    assert "goats" in await c(at["alice"]).chat("Where do I keep goats?", scope=scope)
    assert "Balthazar" not in (
        await c(at["alice"]).chat("What is the name of the tortoise?", scope=[scope]) or ""
    )
    error = await c.raises(NotFoundError, c(honcho).chat("Who?", scope="nowhere"))
    assert "nowhere" in error.message
    await c.raises(
        UnprocessableEntityError, c(honcho).chat("Who?", scope="private", session="home")
    )
    await c.raises(UnprocessableEntityError, c(honcho).chat("Who?", scope=[]))
    await c.raises(NotFoundError, c(honcho).chat("Who?", session="nowhere"))


@scenario
async def an_answer_comes_in_pieces(c: Caller) -> None:
    honcho, at = await conversation(c)
    question = "What is the name of the tortoise?"
    stream = await c(at["alice"]).chat_stream(question)
    assert stream.is_complete is False
    whole = await drained(c, stream)
    assert whole.strip() == await c(at["alice"]).chat(question)
    assert stream.evidence is None, "nobody asked for it"
    of_all = await c(honcho).chat_stream("Who teaches physics in Lyon?", include_evidence=True)
    assert "Clara" in await drained(c, of_all)
    assert SISTER in [conclusion.content for conclusion in of_all.evidence.conclusions]
    bounded = await c(at["alice"]).chat_stream(
        "How many goats do I keep?", sessions=[at["island"]], include_evidence=True
    )
    assert "goats" in await drained(c, bounded)
    assert {conclusion.session_id for conclusion in bounded.evidence.conclusions} == {"island"}
    formed = await c(at["alice"]).chat_stream(question, response_format=Finding)
    assert "Balthazar" in Finding.model_validate_json(await drained(c, formed)).answer


@scenario
async def an_answer_shows_what_was_read(c: Caller) -> None:
    honcho, at = await conversation(c)
    answer = await c(at["alice"]).chat("What is the name of the tortoise?", include_evidence=True)
    assert "Balthazar" in answer.content
    conclusions = {x.id: x for x in await c.every(await c(at["alice"].conclusions).list())}
    read = answer.evidence.conclusions
    assert TORTOISE in [x.content for x in read]
    assert len(set(ids(read))) == len(read)
    for x in read:
        assert (x.content, x.level, x.session_id) == (
            conclusions[x.id].content,
            "explicit",
            conclusions[x.id].session_id,
        )
        assert (x.observer_id, x.observed_id, x.source_ids) == ("alice", "alice", [])
        assert x.created_at == conclusions[x.id].created_at
    by_uid = {m.id: m for m in at["messages"]}
    messages = answer.evidence.messages
    assert len(set(ids(messages))) == len(messages) > 0
    for m in messages:
        assert (m.session_id, m.peer_id, m.created_at) == (
            by_uid[m.id].session_id,
            by_uid[m.id].peer_id,
            by_uid[m.id].created_at,
        )
    everywhere = await c(honcho).chat("Who teaches physics in Lyon?", include_evidence=True)
    assert ("bob", "bob", SISTER) in [
        (x.observer_id, x.observed_id, x.content) for x in everywhere.evidence.conclusions
    ]
    within = await c(honcho).chat("Who keeps goats?", session="island", include_evidence=True)
    assert {m.session_id for m in within.evidence.messages} == {"island"}
    nobody = await c(await c(honcho).peer("stranger")).chat(
        "What is my name?", include_evidence=True
    )
    assert nobody.evidence.conclusions == []


@scenario
async def an_answer_takes_the_form_that_is_asked_for(c: Caller) -> None:
    honcho, at = await conversation(c)
    finding = await c(at["alice"]).chat(
        "What is the name of the tortoise?", response_format=Finding
    )
    assert isinstance(finding, Finding)
    assert "Balthazar" in finding.answer
    plain = json.loads(await c(honcho).chat("Who teaches physics in Lyon?", response_format=FORM))
    assert plain.keys() == {"answer", "count", "tags"}
    assert "Clara" in plain["answer"]
    assert isinstance(plain["count"], int)
    both = await c(at["alice"]).chat(
        "What is the name of the tortoise?", response_format=Finding, include_evidence=True
    )
    assert isinstance(both.content, Finding)
    assert TORTOISE in [x.content for x in both.evidence.conclusions]
    for bad in (
        {"type": "array"},
        {"type": "object", "properties": {"a": {"allOf": []}}},
        {"type": "object", "not": {}},
    ):
        for call in (
            c(at["alice"]).chat("Who?", response_format=bad),
            c(honcho).chat("Who?", response_format=bad),
        ):
            error = await c.raises(UnprocessableEntityError, call)
            assert "response_format" in str(error)
