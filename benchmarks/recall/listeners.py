"""What a boost for the named author gains, and where it harms: a question can name the one who was
told something.

The generated conversations between people ask what somebody said. For each question about one
message, a second one names the speaker before it instead: "What was Ilka told: which colour did
somebody choose?" Each variant is a value of `SEARCH_NAME_BOOST`.

    python -m benchmarks.recall.listeners --db sqlite:////tmp/listeners.db --count 2
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from benchmarks.recall.corpora import THIRD, corpora
from benchmarks.recall.stores import open_store, store, work
from benchmarks.recall.surfaces import workspace_search
from memservice_bench.corpus import Conversation, Question
from memservice_bench.metrics import difference, figure

BOOSTS = (0.2, 0.0, 0.1, 0.3, 0.4)
"""The default comes first: the others are compared with it."""
MEASURE = "r@10"


def about_listeners(talk: Conversation) -> list[Question]:
    """The questions about one message that name the speaker before it in place of its author."""
    before = {
        turn.key: (previous.speaker, turn.speaker)
        for previous, turn in zip(talk.turns, talk.turns[1:], strict=False)
        if previous.speaker != turn.speaker
    }
    questions = []
    for question in talk.questions:
        for key in question.evidence if len(question.evidence) == 1 else ():
            if question.category not in ("near", "unnamed") or key not in before:
                continue
            listener, author = before[key]
            text = question.text.replace(f"{author}'s", "the").replace(author, "somebody")
            if listener not in text:
                text = f"What was {listener} told: {text[0].lower()}{text[1:]}"
                questions.append(replace(question, text=text, category="listener"))
    return questions


KINDS: dict[str, Callable[[Conversation], Sequence[Question]]] = {
    "authors": lambda talk: talk.questions,
    "listeners": about_listeners,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", required=True, help="conversations in it are not stored again")
    parser.add_argument("--count", type=int, default=2, help="conversations of each set")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    options = dict(option.split("=", 1) for option in arguments.option)
    sets = corpora(["tuning", "held-back", THIRD], ["people"], arguments.count, None, {})
    first: dict[tuple[str, str], list[float]] = {}
    for boost in BOOSTS:
        runtime = open_store(arguments.db, {**options, "SEARCH_NAME_BOOST": str(boost)}, False)
        for number, (name, talks) in enumerate(sets.items()):
            stored = [store(runtime, f"w{number}-{n}", talk) for n, talk in enumerate(talks)]
            work(runtime)
            for kind, questions_of in KINDS.items():
                values = [
                    workspace_search(runtime, each, question)[MEASURE]
                    for each in stored
                    for question in questions_of(each.talk)
                ]
                change = difference(first.setdefault((name, kind), values), values)
                print(f"{name:18} {kind:9} {boost:.1f}  {MEASURE} {figure(values)} ({change})")
        runtime.close()


if __name__ == "__main__":
    main()
