"""What a search finds that names a day: what was said on the day, and what is planned for it.

Some idle lines of the generated conversations between people become appointments ("The eye check is
fixed for 4 October 2023."), each for a day on which they talk, too. Each variant changes how much
more a message gets that mentions the day than those of the day (`MENTION` of
`services/retrieval/boosts.py`).

    python -m benchmarks.recall.appointments --db sqlite:////tmp/appointments.db --count 3
"""

from __future__ import annotations

import argparse
import random

from msgspec.structs import replace

from benchmarks.recall.stores import open_store, store, work
from benchmarks.recall.surfaces import workspace_search
from memservice.domain.text.dates import NamedDate
from memservice.services.retrieval import boosts
from memservice_bench.builtin import conversation
from memservice_bench.corpus import Conversation, Question
from memservice_bench.metrics import difference, figure
from memservice_bench.scenes import SMALL_TALK

MENTIONS = (0, 1, 2, 3)
APPOINTMENTS = (
    *("a dentist's appointment", "the driving test", "my cousin's christening", "an eye check"),
    *("a hearing at court", "the chess final", "a blood donation", "the school play"),
)
STATEMENTS = (
    "I have {it} on {day}.",
    "On {day} there is {it}, I must not forget.",
    "Do you remember {it}? It is fixed for {day}.",
)
QUESTIONS = ("What does {peer} have on {day}?", "What is planned for {day}?")
MEASURE = "r@10"


def with_appointments(talk: Conversation) -> Conversation:
    """Asks for the appointments, and for what was said on a day."""
    rng = random.Random(talk.name)
    replies = {reply for _, reply in SMALL_TALK if "{" not in reply}
    idle = [turn for turn in talk.turns if turn.text in replies]
    dates = sorted({turn.at.date() for turn in talk.turns})
    questions = [each for each in talk.questions if each.category == "dated"]
    changed = {}
    for appointment, turn in zip(APPOINTMENTS, rng.sample(idle, len(APPOINTMENTS)), strict=True):
        date = rng.choice([each for each in dates if each != turn.at.date()])
        day = NamedDate(date.month, date.day, date.year).words
        text = rng.choice(STATEMENTS).format(it=appointment, day=day)
        changed[turn.key] = replace(turn, text=text)
        question = rng.choice(QUESTIONS).format(peer=turn.speaker, day=day)
        questions.append(Question(question, frozenset({turn.key}), "planned"))
    turns = tuple(changed.get(turn.key, turn) for turn in talk.turns)
    return replace(talk, turns=turns, questions=tuple(questions))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", required=True, help="the store, which must be empty")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3, help="conversations")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    options = dict(option.split("=", 1) for option in arguments.option)
    runtime = open_store(arguments.db, options, derive=False)
    talks = [
        store(runtime, f"w{number}", with_appointments(conversation(arguments.seed, number)))
        for number in range(arguments.count)
    ]
    work(runtime)
    shipped = boosts.MENTION
    first: dict[str, list[float]] = {}
    for mention in MENTIONS:
        boosts.MENTION = mention
        values: dict[str, list[float]] = {}
        for stored in talks:
            for question in stored.talk.questions:
                share = workspace_search(runtime, stored, question)[MEASURE]
                values.setdefault(question.category, []).append(share)
        for category, shares in values.items():
            change = difference(first.setdefault(category, shares), shares)
            label = f"{mention}{' (shipped)' if mention == shipped else ''}"
            print(f"{category:8} MENTION {label:12} {MEASURE} {figure(shares)} ({change})")
    boosts.MENTION = shipped


if __name__ == "__main__":
    main()
