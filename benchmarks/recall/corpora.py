"""Which conversations are measured: generated ones of both kinds, or public sets."""

from __future__ import annotations

from pathlib import Path

from memservice_bench.assistant import (
    assistant_conversation,
    assistant_conversations,
    assistant_hop_conversations,
)
from memservice_bench.builtin import conversation, conversations, hop_conversations
from memservice_bench.corpus import HELD_BACK, Conversation
from memservice_bench.public_sets import load_beam, load_locomo, load_longmemeval
from memservice_bench.third_set import PROJECTS, WORK

KINDS = ("people", "assistant")
HOPS = ("people hops", "assistant hops")
"""The same kinds of conversation, with questions over several messages in addition."""
TUNING_SEED, HELD_BACK_SEED = 1, 101
THIRD, THIRD_SEED = "third", 1001
"""A split that nothing was ever chosen on."""
HOP_SEEDS = {"tuning": 11, "held-back": 111}
"""Constants are chosen on the first seed only. The second one's conversations with an assistant are
about other projects."""
LOADERS = {"locomo": load_locomo, "beam": load_beam, "longmemeval": load_longmemeval}


def generated(split: str, kind: str, count: int, idle: int | None = None) -> list[Conversation]:
    """`count` conversations of a kind; `split` is `tuning` or `held-back`. `idle`: exchanges
    without a fact, if not the generator's own number."""
    if split == THIRD:
        return third_set(kind, count, idle)
    held_back = split == HELD_BACK
    if kind in HOPS:
        make = hop_conversations if kind == HOPS[0] else assistant_hop_conversations
        return make(HOP_SEEDS[split], count, split, **({} if idle is None else {"idle": idle}))
    seed = HELD_BACK_SEED if held_back else TUNING_SEED
    sizes = {} if idle is None else {"idle": idle}
    if kind == "assistant":
        return assistant_conversations(seed, count, held_back=held_back, **sizes)
    return conversations(seed, count, **sizes)


def third_set(kind: str, count: int, idle: int | None) -> list[Conversation]:
    """Conversations about other things than those of the other splits."""
    if kind in HOPS:
        raise ValueError("the third split has no questions over several messages of its own")
    numbers = range(count)
    if kind == "assistant":
        size = 60 if idle is None else idle
        return [
            assistant_conversation(THIRD_SEED, number, size, projects=PROJECTS)
            for number in numbers
        ]
    size = 120 if idle is None else idle
    return [conversation(THIRD_SEED, number, "en", size, about=WORK) for number in numbers]


def corpora(
    splits: list[str], kinds: list[str], count: int, idle: int | None, files: dict[str, Path | None]
) -> dict[str, list[Conversation]]:
    """Conversations by the name of their set. With files of public sets: those only."""
    public = {name: LOADERS[name](path)[:count] for name, path in files.items() if path is not None}
    return public or {
        f"{kind}, {split}": generated(split, kind, count, idle)
        for kind in kinds
        for split in splits
    }
