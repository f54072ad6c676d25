"""Session context and summaries: what an agent puts into its prompt."""

from __future__ import annotations

from typing import Any

from honcho.api_types import SessionConfiguration, SummaryConfiguration  # type: ignore[import-not-found]  # in the client's own environment
from honcho.http.exceptions import NotFoundError  # type: ignore[import-not-found]

from support.clients.published_client.harness import Caller, contents, ids, scenario

TOPICS = ["harbour", "orchard", "library", "observatory", "bakery", "workshop"]


def line(number: int) -> str:
    return (
        f"On day {number} I walked to the {TOPICS[number % len(TOPICS)]} and counted "
        f"{number * 7} birds."
    )


async def chat(c: Caller, number: int, configuration: Any = None) -> tuple[Any, Any, list[Any]]:
    """A session of `number` messages by alice and the agent, in turns."""
    honcho = c.honcho()
    alice, agent = await c(honcho).peer("alice"), await c(honcho).peer("agent")
    session = await c(honcho).session("talk", peers=[alice, agent], configuration=configuration)
    stored: list[Any] = []
    for start in range(0, number, 50):
        part = [((alice, agent)[n % 2], line(n)) for n in range(start, min(start + 50, number))]
        stored += await c.talk(session, *part)
    await c.settled(honcho)
    return honcho, session, stored


@scenario
async def context_is_the_latest_messages_within_the_budget(c: Caller) -> None:
    _, session, stored = await chat(c, 12)
    whole = await c(session).context()
    assert (whole.session_id, whole.summary, whole.peer_representation, whole.peer_card) == (
        "talk",
        None,
        None,
        None,
    )
    assert ids(whole.messages) == ids(stored)
    assert len(whole) == 12
    size = stored[0].token_count
    for budget in (1, size, 4 * size, 5 * size + 2, 100 * size):
        context = await c(session).context(tokens=budget, summary=False)
        expected: list[str] = []
        left = budget
        for message in reversed(stored):
            if message.token_count > left:
                break
            left -= message.token_count
            expected.insert(0, message.id)
        assert ids(context.messages) == expected, budget


@scenario
async def context_turns_into_prompts(c: Caller) -> None:
    honcho, session, stored = await chat(c, 3)
    alice = await c(honcho).peer("alice")
    await c(alice).set_card(["Name: Alice"])
    context = await c(session).context(peer_target="alice", search_query="harbour birds")
    openai = context.to_openai(assistant="agent")
    assert [part["role"] for part in openai] == ["system", "system", "user", "assistant", "user"]
    assert [part["content"] for part in openai[2:]] == contents(stored)
    assert openai[0]["content"].startswith("<peer_representation>## Explicit Observations")
    assert "Name: Alice" in openai[1]["content"]
    anthropic = context.to_anthropic(assistant="agent")
    assert [part["role"] for part in anthropic] == ["user", "user", "user", "assistant", "user"]
    assert anthropic[2]["content"] == f"alice: {line(0)}"


@scenario
async def context_narrows_what_is_known_of_the_target(c: Caller) -> None:
    honcho, session, _ = await chat(c, 2)
    alice = await c(honcho).peer("alice")
    other = await c(honcho).session("other")
    await c.talk(other, (alice, "I keep seven goats on the island."))
    await c.settled(honcho)
    await c(alice).set_card(["Name: Alice"])
    wide = await c(session).context(peer_target="alice")
    assert "goats" in wide.peer_representation
    assert "harbour" in wide.peer_representation
    assert wide.peer_card == ["Name: Alice"]
    for narrow in (
        await c(session).context(peer_target="alice", limit_to_session=True),
        await c(session).context(peer_target="alice", sessions=[session]),
    ):
        assert "goats" not in narrow.peer_representation
        assert "harbour" in narrow.peer_representation
        assert narrow.peer_card is None
    both = await c(session).context(peer_target="alice", sessions=["talk", "other"])
    assert "goats" in both.peer_representation
    many = ["talk", *[f"a-session-with-a-name-of-usual-length-{number}" for number in range(999)]]
    assert (
        "goats"
        not in (await c(session).context(peer_target="alice", sessions=many)).peer_representation
    )
    few = await c(session).context(peer_target="alice", max_conclusions=1)
    assert few.peer_representation.count("\n[") == 1
    narrowed = await c(session).context(
        peer_target="alice", search_query="goats on an island", search_top_k=1, max_conclusions=1
    )
    assert "goats" in narrowed.peer_representation
    await c.raises(
        NotFoundError, c(session).context(peer_target="alice", peer_perspective="nobody")
    )
    assert (await c(await c(honcho).session("empty")).context()).messages == []


@scenario
async def summaries_are_written_as_the_session_grows(c: Caller) -> None:
    honcho, session, stored = await chat(c, 19)
    none = await c(session).summaries()
    assert (none.id, none.short_summary, none.long_summary) == ("talk", None, None)
    alice = await c(honcho).peer("alice")
    (twentieth,) = await c.talk(session, (alice, line(19)))
    await c.settled(honcho)
    summaries = await c(session).summaries()
    short = summaries.short_summary
    assert summaries.long_summary is None
    assert (short.summary_type, short.message_id) == ("honcho_chat_summary_short", twentieth.id)
    assert 0 < short.token_count <= 1000
    assert any(topic in short.content for topic in TOPICS)
    assert short.created_at.endswith("Z")
    context = await c(session).context()
    assert context.summary.content == short.content
    assert ids(context.messages) == [twentieth.id], "from the last summarised message on"
    assert ids((await c(session).context(summary=False)).messages) == [*ids(stored), twentieth.id]
    tight = short.token_count * 2
    assert (await c(session).context(tokens=tight)).summary is None, "more than 40 % of the budget"
    assert (await c(session).context(tokens=short.token_count * 3)).summary.content == short.content


@scenario
async def a_long_session_has_a_long_summary_too(c: Caller) -> None:
    _, session, stored = await chat(c, 60)
    summaries = await c(session).summaries()
    assert summaries.short_summary.message_id == summaries.long_summary.message_id == stored[59].id
    assert summaries.long_summary.summary_type == "honcho_chat_summary_long"
    assert summaries.long_summary.token_count > summaries.short_summary.token_count
    assert (await c(session).context()).summary.summary_type == "honcho_chat_summary_long"


@scenario
async def summaries_follow_the_configuration(c: Caller) -> None:
    often = SessionConfiguration(
        summary=SummaryConfiguration(messages_per_short_summary=10, messages_per_long_summary=20)
    )
    _, session, stored = await chat(c, 11, often)
    assert (await c(session).summaries()).short_summary.message_id == stored[9].id
    never = SessionConfiguration(summary=SummaryConfiguration(enabled=False))
    _, session, _ = await chat(c, 25, never)
    assert (await c(session).summaries()).short_summary is None
