"""What the client sees of conclusions that rest on others:
`python -m support.clients.published_client.derived URL`.

Reads what `support.clients.derived.seeded` made, and looks at it through both faces. Whatever is
not as expected ends it with an error.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from honcho.http.exceptions import NotFoundError, UnprocessableEntityError  # type: ignore[import-not-found]

from support.clients.list_options import second_pages
from support.clients.published_client.harness import Caller, contents, ids


async def look(c: Caller, seeds: dict[str, Any]) -> None:
    honcho = c.honcho(seeds["workspace"])
    alice = await c(honcho).peer("alice")
    tx = alice.conclusions
    (goats, bees, sold), derived, pattern, conflict = (
        seeds["said"],
        seeds["derived"],
        seeds["pattern"],
        seeds["conflict"],
    )
    everything = await c.every(await c(tx).list(size=4, reverse=True))
    assert ids(everything) == [goats, bees, sold, *derived, pattern, conflict]
    explicit = ("explicit", None, 1)
    expected = [explicit] * 3 + [("deductive", [goats, bees], number) for number in range(1, 6)]
    expected += [("inductive", [bees, *derived], 1), ("contradiction", [goats, sold], 1)]
    assert [(x.level, x.source_ids, x.times_derived) for x in everything] == expected

    def from_goats(**options: Any) -> Any:
        return c(tx).derived(goats, **options)

    assert ids(await c.every(await from_goats())) == [conflict, *derived[::-1]], "newest first"
    await second_pages(from_goats, [conflict, *derived[::-1]], "what rests on one")
    assert ids(await c.every(await c(tx).derived(derived[0]))) == [pattern]
    assert ids(await c.every(await c(tx).derived(conflict))) == []
    conclusion = await c(tx).get(conflict)
    assert (conclusion.content, conclusion.source_ids, conclusion.level) == (
        "Alice has goats and has sold them.",
        [goats, sold],
        "contradiction",
    )
    assert set(ids(await c(honcho.conclusions).get_many(conclusion.source_ids))) == {goats, sold}

    for level, members in (
        ("deductive", derived),
        ("inductive", [pattern]),
        ("contradiction", [conflict]),
    ):
        assert (
            ids(await c.every(await c(tx).list(filters={"level": level}, reverse=True))) == members
        )
        assert set(ids(await c(tx).query("animals goats", top_k=50, filters={"level": level}))) <= {
            *members
        }
    both = {"source_ids": {"contains": bees}, "level": "inductive"}
    assert ids(await c.every(await c(honcho.conclusions).list(filters=both))) == [pattern]
    assert ids(await c(tx).query("animals", filters={"source_ids": {"contains": derived[0]}})) == [
        pattern
    ]
    for bad in ({"contains": 3}, {"contains": [goats]}, {"gt": goats}):
        await c.raises(UnprocessableEntityError, c(tx).list(filters={"source_ids": bad}))
    await c.raises(NotFoundError, c(alice.conclusions_of("bob")).get(pattern))

    text = await c(alice).representation()
    headings = [
        "## Explicit Observations",
        "## Deductive Observations",
        "## Inductive Observations",
        "## Contradictions",
    ]
    assert [line for line in text.splitlines() if line.startswith("## ")] == headings
    answer = await c(alice).chat("Which kind of animals does Alice keep?", include_evidence=True)
    read = {x.id: (x.level, x.source_ids) for x in answer.evidence.conclusions}
    details = {x.id: (x.level, x.source_ids or []) for x in everything}
    assert read.items() <= details.items()
    assert {*derived} & {*read}, "what rests on others is read as well"
    assert contents(await c.every(await c(tx).derived(derived[0]))) == [
        "Alice tends to keep animals."
    ]


if __name__ == "__main__":
    url, seeds = sys.argv[1], json.load(sys.stdin)
    for asynchronous in (False, True):
        asyncio.run(look(Caller(url, asynchronous), seeds))
    print(json.dumps("as expected"))
