"""Questions over several messages, with what a model may conclude from them.

A model does not draw each conclusion: `COVERED` of the chains and traits have one, and as many of
the other facts are in a conclusion that answers nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from memservice_bench.corpus import Inference
from memservice_bench.hop_scenes import (
    CHAINS,
    CHAINS_HELD_BACK,
    COMPANIONS,
    TRAITS,
    TRAITS_HELD_BACK,
)

THE_USER = "The user"
"""How conclusions call the user of an assistant."""

COVERED = 0.6
"""Share of the chains and traits that a conclusion connects."""

State = Callable[[str, str, str], int]
"""Adds an exchange (what is asked, the answer, what a model concludes); returns the number of its
fact."""
Ask = Callable[[str, list[int], str, str], None]
"""Adds a question: its text, the numbers of its facts, its category and its answer."""


def add(
    rng: random.Random, owner: str, number: int, held_back: bool, state: State, ask: Ask
) -> list[tuple[str, str, list[int]]]:
    """`number` chains and traits of one speaker. Returns the conclusions over several facts:
    their level, their text and the numbers of the facts."""
    chains = CHAINS[CHAINS_HELD_BACK:] if held_back else CHAINS[:CHAINS_HELD_BACK]
    traits = TRAITS[TRAITS_HELD_BACK:] if held_back else TRAITS[:TRAITS_HELD_BACK]
    inferences: list[tuple[str, str, list[int]]] = []
    companions = rng.sample(COMPANIONS, k=number)
    for chain, companion in zip(rng.sample(chains, k=number), companions, strict=True):
        slots = {"n": owner, "c": companion, "v": rng.choice(chain.values)}
        numbers = [
            state(request.format(**slots), reply.format(**slots), conclusion.format(**slots))
            for (request, reply), conclusion in zip(
                (chain.first, chain.second), chain.conclusions, strict=True
            )
        ]
        ask(chain.question.format(**slots), numbers, "chain", slots["v"])
        if rng.random() < COVERED:
            inferences.append(("deductive", chain.deduction.format(**slots), numbers))
    for trait in rng.sample(traits, k=number):
        numbers = [
            state(request, reply, conclusion.format(n=owner))
            for (request, reply), conclusion in zip(
                trait.statements, trait.conclusions, strict=True
            )
        ]
        ask(rng.choice(trait.questions).format(n=owner), numbers, "open-domain", "")
        if rng.random() < COVERED:
            inferences.append(("inductive", trait.induction.format(n=owner), numbers))
    return inferences


_FIRST_PERSON = (
    ("{u}'s", "my"),
    ("Does {u}", "Do I"),
    ("does {u}", "do I"),
    ("Is {u}", "Am I"),
    ("is {u}", "am I"),
    ("Has {u}", "Have I"),
    ("{u} sings", "I sing"),
    ("Should we take {u} along", "Should I go along"),
    ("gave {u}", "gave me"),
    ("taught {u}", "taught me"),
    ("suit {u}", "suit me"),
    ("for {u}", "for me"),
    ("{u}", "I"),
)


def in_first_person(question: str) -> str:
    """A question about the user, as the user asks it."""
    for text, replacement in _FIRST_PERSON:
        question = question.replace(text.format(u=THE_USER), replacement)
    return question


def idle_inferences(
    rng: random.Random, facts: Sequence[tuple[int, str, str]]
) -> list[tuple[str, str, list[int]]]:
    """Conclusions that answer nothing, each over two facts of one speaker: (number, owner,
    subject)."""
    by_owner: dict[str, list[tuple[int, str]]] = {}
    for number, owner, subject in facts:
        by_owner.setdefault(owner, []).append((number, subject))
    inferences = []
    for owner, several in sorted(by_owner.items()):
        rng.shuffle(several)
        for (one, first), (two, second) in zip(several[::2], several[1::2], strict=False):
            if rng.random() < COVERED:
                name = THE_USER if owner == "user" else owner
                text = f"{name} is busy with the {first} and the {second}."
                inferences.append(("inductive", text, [one, two]))
    return inferences


def inferences(
    facts: dict[int, tuple[str, str]],
    derived: Sequence[tuple[str, str, str, list[int]]],
    turn_of: dict[int, int],
) -> tuple[Inference, ...]:
    """Explicit conclusions of all facts (owner and text by number), and those over several: (level,
    owner, text, numbers)."""
    position = {number: index for index, number in enumerate(sorted(facts))}
    explicit = [
        Inference(facts[number][1], facts[number][0], "explicit", (turn_of[number],))
        for number in sorted(facts)
    ]
    return (
        *explicit,
        *(
            Inference(text, owner, level, premises=tuple(position[number] for number in numbers))
            for level, owner, text, numbers in derived
        ),
    )
