"""Grading answers with a language model, and a test of the model that grades."""

from __future__ import annotations

import json
from collections.abc import Sequence

import httpx
from msgspec import Struct

from memservice_bench.client import BenchError, trusted_certificates
from memservice_bench.corpus import Question
from memservice_bench.judge_pairs import PAIRS
from memservice_bench.model_proxy import Upstream

VOTES = 3
RELIABLE = 0.95
"""A judge that agrees with a smaller share of the built-in verdicts is unreliable."""
RUBRIC_VERSION = 1
RUBRIC = (
    "You compare an answer with the correct answer to a question about a conversation. Reply with "
    'JSON: {"correct": true} or {"correct": false}. An answer is correct if it states the '
    "correct answer, in any words; more detail does no harm unless it contradicts. It is wrong "
    "if it is vague where the correct answer is specific, names another value, or lists several "
    "values without saying which holds."
)
RULES = {
    "update": "Only the newest value is correct, unless older ones are marked as past.",
    "knowledge-update": "Only the newest value is correct, unless older ones are marked as past.",
    "temporal": "A date may be one day off; a duration may be rounded.",
    "temporal-reasoning": "A date may be one day off; a duration may be rounded.",
    "contradiction": "The answer must mention both statements.",
    "unknown": "The answer is correct only if it says that this is not known.",
}
"""Additions to the rubric by category."""
TIMEOUT = 60.0


class Judge(Struct, frozen=True):
    upstream: Upstream
    model: str

    def verdict(self, question: Question, answer: str | None) -> bool:
        """Whether most of three votes call the answer correct."""
        gold = question.answer or "(nothing in the conversation answers this question)"
        prompt = (
            f"Question: {question.text}\nCorrect answer: {gold}\nAnswer to grade: {answer or ''}"
        )
        rubric = f"{RUBRIC} {RULES.get(question.category, '')}".strip()
        return sum(self._vote(rubric, prompt) for _ in range(VOTES)) * 2 > VOTES

    def _vote(self, rubric: str, prompt: str) -> bool:
        key = self.upstream.api_key
        body = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": rubric},
                {"role": "user", "content": prompt},
            ],
            "response_format": {"type": "json_object"},
        }
        try:
            response = httpx.post(
                self.upstream.base_url.rstrip("/") + "/chat/completions",
                json=body,
                headers={"Authorization": f"Bearer {key}"} if key else {},
                timeout=TIMEOUT,
                verify=trusted_certificates(),
            )
            response.raise_for_status()
            text = response.json()["choices"][0]["message"]["content"]
            return json.loads(text)["correct"] is True
        except (httpx.HTTPError, KeyError, IndexError, TypeError, ValueError) as error:
            raise BenchError(
                f"the judge {self.model} gave no verdict ({type(error).__name__}): check "
                "--judge-model, --judge-url and --judge-key"
            ) from error


def judge_test(judge: Judge, pairs: Sequence[tuple[Question, str, bool]] | None = None) -> float:
    """The share of known verdicts that the judge agrees with, of 60 pairs: 20 right, 20 wrong, and
    20 vague ones, which are wrong."""
    pairs = known_pairs() if pairs is None else pairs
    agreed = sum(judge.verdict(question, answer) == verdict for question, answer, verdict in pairs)
    return agreed / len(pairs)


def known_pairs() -> list[tuple[Question, str, bool]]:
    """Question, answer, and whether the answer is correct."""
    return [
        (Question(text, frozenset(), "own", gold), answer, correct)
        for text, gold, right, wrong, vague in PAIRS
        for answer, correct in ((right, True), (wrong, False), (vague, False))
    ]
