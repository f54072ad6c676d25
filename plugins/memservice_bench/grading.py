"""Grades that need no model: of the evidence in prompts, and of answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from memservice_bench.corpus import Fact, Question
from memservice_bench.model_proxy import Call

SHOWN_CHARACTERS = 300
"""Characters at the beginning of a turn that stand for the turn: prompts cut long messages."""

ABSTENTION = re.compile(
    r"\b(nothing is known|no (information|record|mention|memory|evidence)|not (mentioned|known|"
    r"recorded|specified|available)|(do(es)? not|don't|doesn't|did not|didn't) (know|mention|say|"
    r"have (any )?(information|record))|unknown|cannot (tell|say|determine)|unable to)\b"
    r"|no stored statement|keine gespeicherte aussage|ninguna afirmación guardada|aucun énoncé"
    r"|nichts bekannt|keine (angabe|information)|nicht bekannt|no se sabe|no hay informaci|"
    r"わかりません|情報はありません|没有(提到|信息|记录)|不知道",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def evidence_shown(
    question: Question, texts: Mapping[int, str], calls: Sequence[Call]
) -> float | None:
    """Share of the evidence in the prompts; None for a question without evidence."""
    if not question.evidence:
        return None
    prompts = [call.prompt for call in calls]
    number = sum(
        any(_folded(texts[key]) in prompt for prompt in prompts) for key in question.evidence
    )
    return number / len(question.evidence)


def _folded(text: str) -> str:
    return " ".join(text.split())[:SHOWN_CHARACTERS].rstrip()


def abstains(answer: str | None) -> bool:
    """Whether the answer says that nothing is known. A missing answer counts too."""
    return answer is None or not answer.strip() or ABSTENTION.search(answer) is not None


def matches(question: Question, answer: str | None) -> bool | None:
    """Whether the answer contains the gold answer: each of its lines, or for long ones all of its
    numbers and most of its words. None without a gold answer."""
    if not question.answer:
        return None
    text = _words(answer or "")
    return all(_contains(text, line) for line in question.answer.splitlines() if line.strip())


def _contains(text: str, line: str) -> bool:
    gold = _words(line)
    if not gold or gold in text:
        return True
    numbers = set(_NUMBER.findall(line))
    if numbers - set(_NUMBER.findall(text)):
        return False
    words = [word for word in gold.split() if len(word) > 3]
    return len(words) > 2 and sum(word in text for word in words) >= 0.7 * len(words)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+(?:[.,:]\d+)*", text.casefold()))


def fact_recall(facts: Sequence[Fact], conclusions: Mapping[str, Collection[str]]) -> float | None:
    """Share of the gold facts whose value is in a conclusion about their owner. `conclusions`
    are texts by speaker. None without gold facts."""
    if not facts:
        return None
    texts = {
        speaker: [_words(text) for text in derived] for speaker, derived in conclusions.items()
    }
    derived = sum(
        any(_words(fact.value) in text for text in texts.get(fact.about, ())) for fact in facts
    )
    return derived / len(facts)
