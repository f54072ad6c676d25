"""The card that a dream writes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import Card, Conclusion
from memservice.services import dream_changes, dreams
from memservice.services.dreams import DreamRequest
from memservice.services.erasure import dream_cards, messages
from memservice.services.erasure.erased import Erased, named
from memservice.services.tasks import kinds
from memservice.spi.reasoner import Consolidated, Statement
from support.pipeline.dreams import NO_REFRESH, Dreamer, DreamingMemory, OpenPipeline
from support.pipeline.dreams import memory as memory
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE


class TestCard:
    def test_lines_of_callers_are_never_lost(self, memory: DreamingMemory) -> None:
        memory.tell("One.")
        memory.write_card("Likes to be called Al", "IDENTITY: Alice, 34")
        memory.dream(Consolidated(card=["IDENTITY: Alice", "ATTRIBUTE: tall"]))
        assert memory.card() == [
            "Likes to be called Al",
            "IDENTITY: Alice, 34",
            "IDENTITY: Alice",
            "ATTRIBUTE: tall",
        ]
        memory.dream(Consolidated(card=["ATTRIBUTE: very tall"]))
        assert memory.card() == [
            "Likes to be called Al",
            "IDENTITY: Alice, 34",
            "ATTRIBUTE: very tall",
        ]

    def test_a_line_that_a_caller_sent_back_stays_the_services(
        self, memory: DreamingMemory
    ) -> None:
        memory.tell("One.")
        memory.dream(Consolidated(card=["ATTRIBUTE: tall", "ATTRIBUTE: loud"]))
        memory.write_card("ATTRIBUTE: tall", "Allergic to nuts")
        memory.dream(Consolidated(card=["ATTRIBUTE: short"]))
        assert memory.card() == ["Allergic to nuts", "ATTRIBUTE: short"]

    def test_generated_lines_have_the_required_form(self, memory: DreamingMemory) -> None:
        memory.tell("One.")
        lines = [
            "tall",
            "ATTRIBUTE:",
            "ATTRIBUTE:  ",
            "MOOD: good",
            "ATTRIBUTE: " + "x" * 190,
            " ATTRIBUTE:  a   b ",
            "attribute: a b",
        ]
        task = memory.dream(Consolidated(card=[*lines, "ATTRIBUTE: A B", "INSTRUCTION: be brief"]))
        assert memory.card() == ["ATTRIBUTE: a b", "INSTRUCTION: be brief"]
        assert task.outcome["card_lines_dropped"] == 6

    @pytest.mark.parametrize("proposed", [None, [], ["nonsense"]])
    def test_a_proposal_without_valid_lines_does_not_change_the_card(
        self, memory: DreamingMemory, proposed: Sequence[str] | None
    ) -> None:
        memory.tell("One.")
        memory.dream(Consolidated(card=["ATTRIBUTE: tall"]))
        memory.dream(Consolidated(card=proposed))
        assert memory.card() == ["ATTRIBUTE: tall"]

    def test_has_at_most_40_lines(self, memory: DreamingMemory) -> None:
        memory.tell("One.")
        memory.write_card("mine", "mine too")
        memory.dream(Consolidated(card=[f"ATTRIBUTE: {number}" for number in range(60)]))
        card = memory.card() or []
        assert len(card) == 40
        assert card[:3] == ["mine", "mine too", "ATTRIBUTE: 0"]
        assert card[-1] == "ATTRIBUTE: 37"

    def test_no_card_is_written_if_the_configuration_forbids_it(
        self, memory: DreamingMemory
    ) -> None:
        memory.tell("One.")
        memory.configure(peer_card={"create": False})
        memory.dream(Consolidated(card=["ATTRIBUTE: tall"]))
        assert memory.card() is None
        assert memory.reasoner.dream_requests[-1].write_card is False
        task = memory.dream(Consolidated(card=["ATTRIBUTE: tall"]), kind=dreams.CARD_REFRESH)
        assert "skipped" in task.outcome
        assert len(memory.reasoner.dream_requests) == 1

    def test_a_refresh_writes_the_card_only(self, memory: DreamingMemory) -> None:
        (one,) = memory.tell("One.")
        result = Consolidated(
            [Statement("New.", (), "deductive", (one.uid,))], card=["ATTRIBUTE: tall"]
        )
        memory.dream(result, kind=dreams.CARD_REFRESH)
        assert memory.card() == ["ATTRIBUTE: tall"]
        assert memory.pipeline.texts("alice") == ["One."]
        assert memory.collection().last_dream_at is None
        assert memory.reasoner.dream_requests[-1].card_only

    def test_rebuilding_drops_generated_lines(self, memory: DreamingMemory) -> None:
        memory.tell("One.")
        memory.dream(Consolidated(card=["ATTRIBUTE: from a session that left"]))
        memory.write_card("mine", "ATTRIBUTE: from a session that left")
        memory.dream(Consolidated(card=["ATTRIBUTE: new"]), kind=dreams.CARD_REFRESH, rebuild=True)
        assert memory.reasoner.dream_requests[-1].card == ["mine"]
        assert memory.card() == ["mine", "ATTRIBUTE: new"]
        memory.dream(Consolidated(), kind=dreams.CARD_REFRESH, rebuild=True)
        assert memory.card() == ["mine"]

    def test_rebuilding_without_lines_removes_the_card(self, memory: DreamingMemory) -> None:
        memory.tell("One.")
        memory.dream(Consolidated(card=["ATTRIBUTE: old"]))
        memory.dream(Consolidated(), kind=dreams.CARD_REFRESH, rebuild=True)
        assert memory.card() is None
        with memory.pipeline.rt.storage.read() as tx:
            assert tx.rows.count(Card) == 0

    def test_the_default_reasoner_keeps_lines_of_callers(self, open_pipeline: OpenPipeline) -> None:
        memory = DreamingMemory(open_pipeline(REASONER="extractive", **NO_REFRESH), Dreamer())
        memory.tell("I live in Rome.")
        memory.write_card("Please be brief", "ATTRIBUTE: I live in Paris.")
        memory.dream()
        assert (memory.card() or [])[:2] == ["Please be brief", "ATTRIBUTE: I live in Paris."]
        memory.dream(kind=dreams.CARD_REFRESH, rebuild=True)
        assert (memory.card() or [])[:2] == ["Please be brief", "ATTRIBUTE: I live in Paris."]

    def test_an_erasure_of_what_was_said_later_leaves_the_undo(
        self, memory: DreamingMemory
    ) -> None:
        memory.tell("One.")
        memory.dream(Consolidated(card=["ATTRIBUTE: tall"]))
        dream = memory.dream(Consolidated(card=["ATTRIBUTE: One."]))
        memory.pipeline.clock.advance(minutes=1)
        (later,) = memory.pipeline.say("s", ("alice", "Two."))
        memory.pipeline.work()
        memory.pipeline.clock.advance(minutes=1)
        messages.delete(memory.pipeline.rt, PRINCIPAL, WORKSPACE, "s", later.uid)
        memory.pipeline.work()
        assert memory.card() == ["ATTRIBUTE: One."]
        dream_changes.undo(memory.pipeline.rt, PRINCIPAL, WORKSPACE, dream.uid)
        assert memory.card() == ["ATTRIBUTE: tall"]

    def test_a_dream_that_ends_at_the_instant_of_a_conclusion_may_have_read_it(
        self, memory: DreamingMemory
    ) -> None:
        pipeline = memory.pipeline
        memory.tell("One.")
        dream = memory.dream(Consolidated(card=["ATTRIBUTE: One."]))
        with pipeline.rt.storage.read() as tx:
            (row,) = tx.rows.page(Conclusion, equals(content="One."))
        assert dream.finished_at == row.created_at
        pipeline.clock.advance(minutes=1)
        request = replace(dream, created_at=pipeline.clock())
        erased = Erased.of(request, named({}, (), [row]))
        pipeline.rt.storage.write(lambda tx: tx.rows.delete(Conclusion, equals(key=row.key)))
        with pipeline.rt.storage.read() as tx:
            assert dream_cards.are_left(tx, erased, pipeline.clock())

    def test_a_dream_that_ends_at_the_instant_of_an_erasure_stays(
        self, memory: DreamingMemory
    ) -> None:
        """It ended after the request, without the erased conclusion, by a clock that did not
        advance: neither its card nor its changes are remains."""
        pipeline = memory.pipeline
        memory.tell("One.")
        memory.dream(Consolidated(card=["ATTRIBUTE: One."]))
        (later,) = pipeline.say("s", ("alice", "Two."))
        pipeline.work()
        messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", later.uid)
        memory.reasoner.dream = lambda request: Consolidated(card=["ATTRIBUTE: tall"])
        dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI))
        pipeline.run(pipeline.unit(kinds.DREAM))
        pipeline.work()
        assert memory.card() == ["ATTRIBUTE: tall"]
        dream = pipeline.tasks(kinds.DREAM)[-1]
        (erasure,) = pipeline.tasks(kinds.ERASE)
        assert dream.finished_at == erasure.created_at
        dream_changes.undo(pipeline.rt, PRINCIPAL, WORKSPACE, dream.uid)
        assert memory.card() == ["ATTRIBUTE: One."]
