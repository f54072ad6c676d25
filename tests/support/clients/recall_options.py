"""Every way to narrow what is known of a peer, for the scenarios of several published clients: the
same options at each of their doors."""

from __future__ import annotations

from typing import Any

OFTEN = "I own two books about ships."
SECOND = "I own three books about bees."
THIRD = "I own four books about clouds."
LAST = "I own five maps of the harbour."


def lines(text: str) -> list[str]:
    """The statements of a representation, without their times."""
    return [line.split("] ", 1)[1] for line in text.splitlines() if line.startswith("[")]


async def narrow_everywhere(c: Any, observing: Any) -> None:
    """`observing` is the configuration of a peer that observes the others of a session."""
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    home = await c(honcho).session("home")
    await c(home).add_peers([alice, ("bob", observing)])
    for _ in range(3):
        await c.talk(home, (alice, OFTEN))
        await c.settled(honcho)
    await c.talk(home, (alice, SECOND), (alice, THIRD), (alice, LAST))
    await c.settled(honcho)

    async def of_context(**options: Any) -> str:
        text: str = (await c(alice).context(**options)).representation
        return text

    async def of_another_in_context(**options: Any) -> str:
        text: str = (await c(bob).context(target=alice, **options)).representation
        return text

    async def of_session_context(**options: Any) -> str:
        text: str = (await c(home).context(peer_target="alice", **options)).peer_representation
        return text

    async def of_another_in_session_context(**options: Any) -> str:
        text: str = (
            await c(home).context(peer_target="alice", peer_perspective="bob", **options)
        ).peer_representation
        return text

    doors = {
        "a peer": lambda **options: c(alice).representation(**options),
        "a peer of another": lambda **options: c(bob).representation(target=alice, **options),
        "a session": lambda **options: c(home).representation("alice", **options),
        "a session, of another": lambda **options: c(home).representation(
            "bob", target="alice", **options
        ),
        "conclusions": lambda **options: c(alice.conclusions).representation(**options),
        "conclusions of another": lambda **options: c(bob.conclusions_of(alice)).representation(
            **options
        ),
        "a peer's context": of_context,
        "a peer's context of another": of_another_in_context,
        "a session's context": of_session_context,
        "a session's context of another": of_another_in_session_context,
    }
    for name, door in doors.items():

        async def narrowed(**options: Any) -> list[str]:
            return lines(await door(**options))  # noqa: B023  # awaited within the same turn

        rare: dict[str, Any] = {"include_most_frequent": False}
        assert await narrowed(max_conclusions=2, **rare) == [THIRD, LAST], f"{name}: the latest"
        assert await narrowed(max_conclusions=2, include_most_frequent=True) == [OFTEN, LAST], (
            f"{name}: half is the most frequent"
        )
        one: dict[str, Any] = {
            "search_query": "books about bees",
            "search_top_k": 1,
            "max_conclusions": 1,
            **rare,
        }
        assert await narrowed(**one) == [SECOND], f"{name}: what the question finds"
        two = one | {"search_query": "books about bees clouds", "max_conclusions": 2}
        assert await narrowed(**two | {"search_top_k": 2, "search_max_distance": 1.0}) == [
            SECOND,
            THIRD,
        ], f"{name}: both that are found"
        # shares no word with anything, so that the bound holds
        near = one | {"search_query": "beekeeping"}
        assert await narrowed(**near | {"search_max_distance": 1.0}) == [SECOND], (
            f"{name}: what is like the question"
        )
        assert await narrowed(**near | {"search_max_distance": 0.0}) == [LAST], (
            f"{name}: nothing is as near, the latest is left"
        )
        assert (await narrowed(**two | {"search_max_distance": 1.0}))[1:] == [LAST], (
            f"{name}: the best one, and the latest"
        )
