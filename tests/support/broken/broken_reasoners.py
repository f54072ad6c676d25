"""Reasoners that are wrong in one way each, and the test of the kit that has to say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest
from msgspec.structs import replace

from memservice.spi.reasoner import (
    AnswerRequest,
    Consolidated,
    ConsolidateRequest,
    Derived,
    DeriveRequest,
    Reasoner,
    Summarized,
    SummarizeRequest,
    Superseded,
)
from memservice.testing.reasoner import ReasonerContract
from memservice_extractive.reasoner import ExtractiveReasoner


class Broken(ReasonerContract):
    """The kit on a broken reasoner. `caught_by` names tests that have to fail."""

    broken: ClassVar[type[ExtractiveReasoner]]
    caught_by: ClassVar[tuple[str, ...]]

    @pytest.fixture
    def reasoner(self) -> Reasoner:
        return self.broken()


class TakesEverybodyForOne(ExtractiveReasoner):
    def derive(self, request: DeriveRequest) -> Derived:
        return super().derive(
            replace(
                request, messages=[replace(m, author=request.observed) for m in request.messages]
            )
        )


class ReadsContextAgain(ExtractiveReasoner):
    def derive(self, request: DeriveRequest) -> Derived:
        return super().derive(
            replace(request, messages=[replace(m, new=True) for m in request.messages])
        )


class TakesNamesLightly(ExtractiveReasoner):
    def derive(self, request: DeriveRequest) -> Derived:
        return super().derive(
            replace(
                request, messages=[replace(m, author=m.author.lower()) for m in request.messages]
            )
        )


class CitesTheWrongMessage(ExtractiveReasoner):
    def derive(self, request: DeriveRequest) -> Derived:
        last = request.messages[-1].key if request.messages else 0
        return Derived(
            [replace(s, message_keys=(last,)) for s in super().derive(request).statements]
        )


class CitesNothing(ExtractiveReasoner):
    def derive(self, request: DeriveRequest) -> Derived:
        return Derived([replace(s, message_keys=()) for s in super().derive(request).statements])


class RepeatsItself(ExtractiveReasoner):
    def derive(self, request: DeriveRequest) -> Derived:
        return Derived([*super().derive(request).statements] * 2)


class DerivesNothing(ExtractiveReasoner):
    def derive(self, request: DeriveRequest) -> Derived:
        return Derived([])


class ForgetsTheLimit(ExtractiveReasoner):
    def summarize(self, request: SummarizeRequest) -> Summarized:
        return super().summarize(replace(request, max_tokens=5000))


class SummarisesNothingWithABlank(ExtractiveReasoner):
    def summarize(self, request: SummarizeRequest) -> Summarized:
        return Summarized(super().summarize(request).content or " ")


class ReplacesAStranger(ExtractiveReasoner):
    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        return Consolidated(superseded=[Superseded("uid-99", "uid-1", "because")])


class GoesInCircles(ExtractiveReasoner):
    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        return Consolidated(
            superseded=[Superseded("uid-1", "uid-3", "same"), Superseded("uid-3", "uid-1", "same")]
        )


class MergesWhatLooksAlike(ExtractiveReasoner):
    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        return Consolidated(superseded=[Superseded("uid-4", "uid-5", "nearly the same words")])


class WritesTheCardUnasked(ExtractiveReasoner):
    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        return super().consolidate(replace(request, write_card=True))


class Invents(ExtractiveReasoner):
    def answer(self, request: AnswerRequest) -> Iterator[str]:
        yield "Alice was born in Paris in 1990."


class SaysTooLittle(ExtractiveReasoner):
    def answer(self, request: AnswerRequest) -> Iterator[str]:
        return iter(())


class AnswersInProse(ExtractiveReasoner):
    def answer(self, request: AnswerRequest) -> Iterator[str]:
        return super().answer(replace(request, response_format=None))


class TestTakesEverybodyForOne(Broken):
    broken, caught_by = TakesEverybodyForOne, ("test_nothing_is_derived_from_other_speakers",)


class TestReadsContextAgain(Broken):
    broken, caught_by = ReadsContextAgain, ("test_nothing_is_derived_from_context",)


class TestTakesNamesLightly(Broken):
    broken, caught_by = TakesNamesLightly, ("test_the_observed_peer_is_matched_by_its_exact_name",)


class TestCitesTheWrongMessage(Broken):
    broken, caught_by = (
        CitesTheWrongMessage,
        ("test_statements_have_keys_of_given_messages",),
    )


class TestCitesNothing(Broken):
    broken, caught_by = (
        CitesNothing,
        ("test_statements_have_keys_of_given_messages",),
    )


class TestRepeatsItself(Broken):
    broken, caught_by = RepeatsItself, ("test_nothing_is_derived_twice_from_one_run",)


class TestDerivesNothing(Broken):
    broken, caught_by = DerivesNothing, ("test_stated_facts_are_derived[zh]",)


class TestForgetsTheLimit(Broken):
    broken, caught_by = ForgetsTheLimit, ("test_a_summary_keeps_the_token_limit[20]",)


class TestSummarisesNothingWithABlank(Broken):
    broken, caught_by = SummarisesNothingWithABlank, ("test_a_summary_of_nothing_is_empty",)


class TestReplacesAStranger(Broken):
    broken, caught_by = (
        ReplacesAStranger,
        (
            "test_consolidating_cites_given_and_new_conclusions_only",
            "test_consolidating_nothing_does_nothing",
        ),
    )


class TestGoesInCircles(Broken):
    broken, caught_by = GoesInCircles, ("test_consolidating_cites_given_and_new_conclusions_only",)


class TestMergesWhatLooksAlike(Broken):
    broken, caught_by = MergesWhatLooksAlike, ("test_consolidating_does_not_merge_distinct_facts",)


class TestWritesTheCardUnasked(Broken):
    broken, caught_by = WritesTheCardUnasked, ("test_a_card_is_written_only_on_request",)


class TestInvents(Broken):
    broken, caught_by = Invents, ("test_an_answer_without_evidence_invents_nothing[alice]",)


class TestSaysTooLittle(Broken):
    broken, caught_by = SaysTooLittle, ("test_an_answer_uses_the_evidence",)


class TestAnswersInProse(Broken):
    broken, caught_by = AnswersInProse, ("test_an_answer_in_a_format_is_valid",)
