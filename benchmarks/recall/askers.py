"""What preferring the asker of a question in the first person gains, and where it could harm.

Three sets are made of the generated talks with an assistant: as they are; with a user who pastes
long texts, to an assistant that answers briefly; and with questions in the first person about what
the *assistant* said. Each variant changes one constant of `services/retrieval/boosts.py`.

    python -m benchmarks.recall.askers --db sqlite:////tmp/askers.db --seed 1 --seed 2
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Sequence

from msgspec.structs import replace

from benchmarks.recall.stores import Stored, open_store, store
from benchmarks.recall.surfaces import workspace_search
from memservice.runtime import Runtime
from memservice.services.retrieval import boosts
from memservice_bench.assistant import ASSISTANT, USER, assistant_conversations
from memservice_bench.corpus import Conversation, Question, Turn
from memservice_bench.metrics import difference, figure

VARIANTS: tuple[tuple[str, dict[str, float]], ...] = (
    ("nobody is preferred", {"SAMPLED_HITS": 0}),
    ("as shipped", {}),
    ("a sample of 5", {"SAMPLE": 5}),
    ("a sample of 20", {"SAMPLE": 20}),
    ("a minimum share of 0.25", {"MIN_SHARE": 0.25}),
    ("a minimum share of 0.75", {"MIN_SHARE": 0.75}),
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def with_pasted_texts(talk: Conversation) -> Conversation:
    """Below each message of the user stands an answer of the talk, as if it were an article; the
    assistant says two sentences."""
    rng = random.Random(talk.name)
    answers = [turn.text for turn in talk.turns if turn.speaker == ASSISTANT]
    evidence = {key for question in talk.questions for key in question.evidence}

    def changed(turn: Turn) -> Turn:
        if turn.speaker == USER:
            return replace(turn, text=f"{turn.text}\n\nThe article says:\n{rng.choice(answers)}")
        sentences = _SENTENCE.split(turn.text)
        picks = [each for each in sentences if "recommendation" in each or "would pick" in each]
        brief = picks if turn.key in evidence else sentences[:2]
        return replace(turn, text=" ".join(brief))

    return replace(talk, turns=tuple(changed(turn) for turn in talk.turns))


def about_recommendations(talk: Conversation) -> Conversation:
    """Only the questions about recommendations, in the first person."""

    def changed(question: Question) -> Question:
        text = question.text.replace("did you recommend for the", "did you recommend me for my")
        text = text.replace("option for the", "option for my").replace(
            "was your", "was my and your"
        )
        return replace(question, text=text)

    questions = [changed(each) for each in talk.questions if each.category == "assistant"]
    return replace(talk, questions=tuple(questions))


def values(runtime: Runtime, talks: Sequence[Stored], measure: str) -> list[float]:
    return [
        workspace_search(runtime, stored, question)[measure]
        for stored in talks
        for question in stored.talk.questions
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", required=True, help="the store, which must be empty")
    parser.add_argument("--seed", type=int, action="append", required=True)
    parser.add_argument("--count", type=int, default=1, help="conversations of each seed")
    arguments = parser.parse_args()
    talks = [
        talk for seed in arguments.seed for talk in assistant_conversations(seed, arguments.count)
    ]
    runtime = open_store(arguments.db, {}, derive=False)
    sets = {
        "assistant": talks,
        "pasted texts": [with_pasted_texts(talk) for talk in talks],
        "about recommendations": [about_recommendations(talk) for talk in talks],
    }
    for number, (name, several) in enumerate(sets.items()):
        stored = [store(runtime, f"w{number}-{n}", talk) for n, talk in enumerate(several)]
        first: dict[str, list[float]] = {}
        for variant, constants in VARIANTS:
            shipped = {constant: getattr(boosts, constant) for constant in constants}
            for constant, value in constants.items():
                setattr(boosts, constant, value)
            shown = []
            for measure in ("r@10", "cov@2k"):
                figures = values(runtime, stored, measure)
                change = difference(first.setdefault(measure, figures), figures)
                shown.append(f"{measure} {figure(figures)} ({change})")
            print(f"{name:22} {variant:24}", "  ".join(shown), flush=True)
            for constant, value in shipped.items():
                setattr(boosts, constant, value)


if __name__ == "__main__":
    main()
