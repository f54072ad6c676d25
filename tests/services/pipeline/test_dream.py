"""What a dream leaves behind: links, provenance, counts, the card, and everything else as it
was."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import Conclusion
from memservice.services import conclusions
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Spent, Statement, Superseded
from memservice.telemetry.events import DreamRun, Event
from support.pipeline.dreams import NO_REFRESH, Dreamer, DreamingMemory, OpenPipeline
from support.pipeline.dreams import memory as memory
from support.pipeline.fakes import ExternalIndex, LengthEmbedder, Listener
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE


class TestGoldScenario:
    """With the reasoner that is there by default, and the newer home told in another session: if
    deriving may look across sessions, it replaces the earlier one already."""

    SAID = (
        "I live in Rome.",
        "I like green tea.",
        "Carol plays the violin.",
        "I really like green tea.",
        "My favourite colour is blue.",
        "I moved to Berlin.",
        "I do not like green tea.",
    )

    @pytest.fixture
    def memory(self, open_pipeline: OpenPipeline) -> DreamingMemory:
        pipeline = open_pipeline(
            REASONER="extractive", DERIVER_CONTEXT_ACROSS_SESSIONS="false", **NO_REFRESH
        )
        memory = DreamingMemory(pipeline, Dreamer())
        memory.tell(*self.SAID[:5])
        memory.tell(*self.SAID[5:], session="u")
        memory.tell("I live in Rome.", peer="bob", session="t")
        return memory

    @pytest.mark.slow
    def test_has_links_provenance_and_unchanged_other_rows(self, memory: DreamingMemory) -> None:
        before = memory.rows(observer="alice")
        rows_before = memory.rows(observer="bob")
        assert sorted(before) == sorted(self.SAID)

        task = memory.dream()

        after = memory.rows(observer="alice")
        replaced = {content: row for content, row in after.items() if row.state == "superseded"}
        successors = {row.key: content for content, row in after.items()}
        assert {
            content: successors[row.superseded_by or 0] for content, row in replaced.items()
        } == {
            "I live in Rome.": "I moved to Berlin.",
            "I like green tea.": "I really like green tea.",
        }
        assert {content: row.internal["superseded"] for content, row in replaced.items()} == {
            "I live in Rome.": "updated: residence",
            "I like green tea.": "near-duplicate",
        }
        # What says the opposite is no repetition, and nothing else changed in any field.
        for content in set(self.SAID) - set(replaced):
            assert after[content] == before[content]
        for content, row in replaced.items():
            unchanged = replace(
                row,
                state="live",
                superseded_by=None,
                superseded_at=None,
                internal=before[content].internal,
            )
            assert unchanged == before[content]
            assert row.message_keys
        assert memory.rows(observer="bob") == rows_before
        assert {row.reasoner for row in after.values()} == {"extractive"}
        assert (task.state, task.outcome["superseded"], task.outcome["created"]) == ("done", 2, 0)

    @pytest.mark.slow
    def test_writes_counters_and_times(self, memory: DreamingMemory) -> None:
        memory.dream()
        collection = memory.collection()
        assert (collection.explicit_count, collection.explicit_at_last_dream) == (5, 5)
        assert collection.last_dream_at == memory.pipeline.clock()
        assert memory.collection("bob", "bob").last_dream_at is None

    @pytest.mark.slow
    def test_superseded_conclusions_are_readable_but_not_found(
        self, memory: DreamingMemory
    ) -> None:
        rt = memory.pipeline.rt
        pair = {"observer": "alice", "observed": "alice"}
        old = memory.rows(observer="alice")["I live in Rome."]
        assert "I live in Rome." in [
            row.content for row in conclusions.query(rt, PRINCIPAL, WORKSPACE, "Rome", filters=pair)
        ]
        memory.dream()
        hits = conclusions.query(rt, PRINCIPAL, WORKSPACE, "Where in Rome do I live?", filters=pair)
        assert "I live in Rome." not in [row.content for row in hits]
        assert "I live in Rome." not in memory.pipeline.texts("alice")
        with rt.storage.read() as tx:
            (row,) = tx.rows.page(Conclusion, equals(uid=old.uid))
        assert row.content == "I live in Rome."

    @pytest.mark.slow
    def test_the_card_contains_present_facts(self, memory: DreamingMemory) -> None:
        memory.dream()
        assert memory.card() == [
            "ATTRIBUTE: My favourite colour is blue.",
            "ATTRIBUTE: I moved to Berlin.",
        ]

    @pytest.mark.slow
    def test_emits_events(self, memory: DreamingMemory) -> None:
        events: list[Event] = []
        memory.pipeline.rt.events.on_event(lambda event, at: events.append(event))
        memory.dream()
        (run,) = [event for event in events if isinstance(event, DreamRun)]
        assert (run.specialists_run, run.total_iterations, run.total_input_tokens) == ((), 0, 0)
        assert (run.observer, run.observed, run.dream_type, run.trigger_reason) == (
            "alice",
            "alice",
            "omni",
            "manual",
        )

    @pytest.mark.slow
    def test_a_second_dream_changes_nothing(self, memory: DreamingMemory) -> None:
        memory.dream()
        rows, card = memory.rows(), memory.card()
        task = memory.dream()
        assert (memory.rows(), memory.card()) == (rows, card)
        assert (task.outcome["superseded"], task.outcome["created"]) == (0, 0)


class TestCreated:
    def test_new_conclusions_have_their_sources(self, memory: DreamingMemory) -> None:
        first, second = memory.tell("Alice cycles to work.", "Alice sold the car.")
        memory.dream(
            Consolidated(
                [
                    Statement(
                        "Alice has no car.",
                        (),
                        "deductive",
                        (first.uid, second.uid),
                        premises=("sold the car",),
                    ),
                    Statement(
                        "Alice avoids cars.",
                        (),
                        "inductive",
                        (second.uid,),
                        pattern_type="preference",
                        confidence="high",
                    ),
                    Statement(
                        "Alice has a car and has none.",
                        (),
                        "contradiction",
                        (second.uid, first.uid),
                    ),
                ],
                spent=Spent(model="m-1"),
            ),
            session="s",
        )
        by_level = {
            row.level: row
            for row in memory.pipeline.conclusions("alice")
            if row.level != "explicit"
        }
        assert {level: row.content for level, row in by_level.items()} == {
            "deductive": "Alice has no car.",
            "inductive": "Alice avoids cars.",
            "contradiction": "Alice has a car and has none.",
        }
        assert by_level["deductive"].source_ids == [first.uid, second.uid]
        assert by_level["deductive"].internal == {"premises": ["sold the car"]}
        assert by_level["inductive"].internal == {
            "sources": ["Alice sold the car."],
            "pattern_type": "preference",
            "confidence": "high",
        }
        assert by_level["contradiction"].internal == {
            "sources": ["Alice sold the car.", "Alice cycles to work."]
        }
        for row in by_level.values():
            assert (row.session, row.reasoner, row.model, row.times_derived) == (
                "s",
                "scripted",
                "m-1",
                1,
            )
            assert row.said_at == second.said_at
        hits = conclusions.query(
            memory.pipeline.rt,
            PRINCIPAL,
            WORKSPACE,
            "avoids cars",
            filters={"observer": "alice", "observed": "alice"},
        )
        assert hits[0].content == "Alice avoids cars."
        assert memory.collection().explicit_count == 2

    def test_invalid_conclusions_are_left_out(self, memory: DreamingMemory) -> None:
        first, _ = memory.tell("Alice cycles to work.", "Alice sold the car.")
        (other,) = memory.tell("Bob sings.", peer="bob")
        task = memory.dream(
            Consolidated(
                [
                    Statement("Alice said this.", (), "explicit", (first.uid,)),
                    Statement("Rests on nothing.", (), "deductive"),
                    Statement("Rests on what nobody said.", (), "inductive", ("nobody",)),
                    Statement("Rests on somebody else's.", (), "deductive", (other.uid,)),
                    Statement("One side only.", (), "contradiction", (first.uid, first.uid)),
                    Statement("   ", (), "deductive", (first.uid,)),
                    Statement("Odd", (), "guess", (first.uid,)),
                    Statement(
                        "Kept.\0",
                        (),
                        "inductive",
                        (first.uid,),
                        pattern_type="whim",
                        confidence="total",
                    ),
                ]
            )
        )
        (conclusion,) = [
            row for row in memory.pipeline.conclusions("alice") if row.level != "explicit"
        ]
        assert (conclusion.content, conclusion.internal) == (
            "Kept.",
            {"sources": ["Alice cycles to work."], "confidence": "medium"},
        )
        assert (task.outcome["malformed"], task.outcome["created"]) == (7, 1)
        assert conclusion.session is None

    def test_existing_conclusions_are_reinforced(self, memory: DreamingMemory) -> None:
        first, _ = memory.tell("Alice cycles to work.", "Alice sold the car.")
        statement = Statement("Alice has no car.", (), "deductive", (first.uid,))
        memory.dream(Consolidated([statement, replace(statement, content="alice has  NO car.")]))
        task = memory.dream(Consolidated([statement], [Superseded(first.uid, "#0", "implied")]))
        (row,) = [row for row in memory.pipeline.conclusions("alice") if row.level == "deductive"]
        assert (row.content, row.times_derived) == ("Alice has no car.", 2)
        assert memory.rows()["Alice cycles to work."].superseded_by == row.key
        assert (
            task.outcome["reinforced"],
            task.outcome["created"],
            task.outcome["superseded"],
        ) == (1, 0, 1)

    def test_a_plugin_may_refuse_a_conclusion(self, open_pipeline: OpenPipeline) -> None:
        listener, reasoner = Listener(), Dreamer()
        memory = DreamingMemory(open_pipeline(listener, reasoner=reasoner, **NO_REFRESH), reasoner)
        (first,) = memory.tell("Alice cycles to work.")
        listener.on_conclusion = lambda conclusion: "secret" not in conclusion.content
        task = memory.dream(
            Consolidated(
                [
                    Statement("A secret.", (), "deductive", (first.uid,)),
                    Statement("No matter.", (), "deductive", (first.uid,)),
                ],
                [Superseded(first.uid, "#0", "gone with it")],
            )
        )
        assert memory.pipeline.texts("alice") == ["Alice cycles to work.", "No matter."]
        assert (task.outcome["refused"], task.outcome["superseded"]) == (1, 0)

    def test_a_remote_index_is_updated_by_tasks(self, open_pipeline: OpenPipeline) -> None:
        reasoner, index = Dreamer(), ExternalIndex()
        memory = DreamingMemory(
            open_pipeline(
                LengthEmbedder(),
                index,
                reasoner=reasoner,
                EMBEDDER="lengths",
                VECTOR_STORE_TYPE="outside",
            ),
            reasoner,
        )
        first, second = memory.tell("Alice cycles to work.", "Alice sold the car.")
        memory.dream(
            Consolidated(
                [Statement("Alice has no car.", (), "deductive", (second.uid,))],
                [Superseded(first.uid, "#0", "r")],
            )
        )
        assert {row.key for row in index.rows.values()} == {
            row.key for row in memory.pipeline.conclusions("alice")
        }


class TestSuperseding:
    def test_chains_end_at_a_live_conclusion(self, memory: DreamingMemory) -> None:
        one, two, three = memory.tell("One.", "Two.", "Three.")
        memory.dream(
            Consolidated(
                superseded=[Superseded(one.uid, two.uid, "a"), Superseded(two.uid, three.uid, "b")]
            )
        )
        rows = memory.rows()
        assert (rows["One."].superseded_by, rows["Two."].superseded_by) == (three.key, three.key)
        assert memory.pipeline.texts("alice") == ["Three."]

    def test_cycles_and_unknown_rows_are_ignored(self, memory: DreamingMemory) -> None:
        one, two, three = memory.tell("One.", "Two.", "Three.")
        steps = [
            Superseded(one.uid, two.uid, "a"),
            Superseded(two.uid, one.uid, "b"),
            Superseded(three.uid, three.uid, "itself"),
            Superseded("nobody", one.uid, "c"),
            Superseded(one.uid, "#7", "d"),
        ]
        task = memory.dream(Consolidated(superseded=steps))
        assert memory.pipeline.texts("alice") == ["One.", "Two.", "Three."]
        assert task.outcome["superseded"] == 0

    def test_conclusions_changed_during_the_dream_are_not_superseded(
        self, memory: DreamingMemory
    ) -> None:
        """The row to be replaced, the row to replace it, or the source of a new one was deleted
        while the reasoner was thinking."""
        rt = memory.pipeline.rt
        one, two, three, four = memory.tell("One.", "Two.", "Three.", "Four.")

        def meddle(request: ConsolidateRequest) -> Consolidated:
            conclusions.delete(rt, PRINCIPAL, WORKSPACE, one.uid)
            conclusions.delete(rt, PRINCIPAL, WORKSPACE, four.uid)
            steps = [
                Superseded(one.uid, two.uid, "old is gone"),
                Superseded(three.uid, four.uid, "new is gone"),
            ]
            return Consolidated(
                [Statement("Rests on the deleted.", (), "deductive", (four.uid,))], steps
            )

        memory.reasoner.dream = meddle
        task = memory.dream()
        assert memory.pipeline.texts("alice") == ["Two.", "Three."]
        assert memory.rows()["One."].state == "deleted"
        assert (task.outcome["superseded"], task.outcome["outdated"]) == (0, 1)
        assert memory.collection().explicit_count == memory.collection().explicit_at_last_dream == 2

    def test_no_connection_is_open_while_the_reasoner_works(self, memory: DreamingMemory) -> None:
        def write(request: ConsolidateRequest) -> Consolidated:
            # A write inside another transaction of this thread is an error.
            memory.write_card("written meanwhile")
            return Consolidated(card=["IDENTITY: Alice"])

        memory.tell("One.")
        memory.reasoner.dream = write
        task = memory.dream()
        assert task.state == "done"
        assert memory.card() == ["written meanwhile"]

    def test_results_of_a_dream_that_lost_its_lease_are_not_stored(
        self, memory: DreamingMemory
    ) -> None:
        (one,) = memory.tell("One.")

        def sleep_too_long(request: ConsolidateRequest) -> Consolidated:
            memory.pipeline.clock.advance(minutes=30)
            with memory.pipeline.rt.storage.read() as tx:
                (lease,) = [lease for lease in tx.tasks.leases() if lease.unit.startswith("dream:")]
            assert (
                memory.pipeline.rt.storage.write(
                    lambda tx: tx.tasks.claim(lease.unit, "other", memory.pipeline.clock(), 60)
                )
                is not None
            )
            return Consolidated(
                [Statement("Too late.", (), "deductive", (one.uid,))], card=["IDENTITY: Alice"]
            )

        memory.reasoner.dream = sleep_too_long
        task = memory.dream()
        assert task.state == "pending"
        assert (
            memory.pipeline.texts("alice"),
            memory.card(),
            memory.collection().last_dream_at,
        ) == (
            ["One."],
            None,
            None,
        )
