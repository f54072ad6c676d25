"""Dreams: what is known is consolidated, and it stays visible from what."""

from __future__ import annotations

from honcho.http.exceptions import UnprocessableEntityError  # type: ignore[import-not-found]  # in the client's own environment only

from e2e.published_client.harness import Caller, contents, ids, scenario

SAID = ["I drink green tea every morning.", "I drank green tea this morning again.", "I always drink green tea in the morning."]
MOVED = ["I live in Bergen.", "I moved to Oslo. I live in Oslo now."]


@scenario
async def a_dream_consolidates_and_names_its_sources(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    for number, text in enumerate([*SAID, *MOVED]):
        await c.talk(await c(honcho).session(f"s{number}"), (alice, text))
        await c.settled(honcho)
    before = await c.every(await c(alice.conclusions).list(reverse=True))
    assert {x.level for x in before} == {"explicit"}
    done = (await c(honcho).queue_status()).completed_work_units
    await c(honcho).schedule_dream(alice)
    status = await c.settled(honcho)
    assert status.completed_work_units >= done, "a dream is no unit of the queue, but it ends"
    after = await c.every(await c(alice.conclusions).list(filters={"level": {"ne": "explicit"}}))
    assert after, "nothing was consolidated"
    for made in after:
        assert made.source_ids
        assert made.level in {"deductive", "inductive", "contradiction"}
        sources = await c(alice.conclusions).get_many(made.source_ids)
        assert set(ids(sources)) <= {x.id for x in before} | {x.id for x in after}
        for source in sources:
            assert made.id in ids(await c.every(await c(alice.conclusions).derived(source.id)))
    levels = sorted({x.level for x in after})
    c.notes["levels"] = levels
    first = await c.every(await c(alice.conclusions).derived(after[0].source_ids[0], size=1))
    again = await c.every(await c(alice.conclusions).derived(after[0].source_ids[0], size=1, reverse=True))
    assert ids(first) == ids(again)[::-1]
    contains = {"source_ids": {"contains": after[0].source_ids[0]}}
    assert ids(await c.every(await c(honcho.conclusions).list(filters=contains))) == ids(first)
    assert await c.every(await c(alice.conclusions_of(bob)).derived(after[0].source_ids[0])) == []
    headings = {"deductive": "## Deductive Observations", "inductive": "## Inductive Observations", "contradiction": "## Contradictions"}
    representation = await c(alice).representation()
    assert all(headings[level] in representation for level in levels)

    await c(honcho).schedule_dream("alice", session="s0", observed=alice)
    await c.settled(honcho)
    again = await c.every(await c(alice.conclusions).list(filters={"level": {"ne": "explicit"}}))
    assert sorted(contents(again)) == sorted(contents(after)), "a second dream finds nothing new"


@scenario
async def a_dream_of_a_scope_is_refused(c: Caller) -> None:
    honcho = c.honcho()
    await c(honcho).peer("alice")
    await c(honcho).scope("private")
    await c.raises(UnprocessableEntityError, c(honcho).schedule_dream("alice", observed="scope.private"))
