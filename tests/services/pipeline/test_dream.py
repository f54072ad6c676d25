"""What a dream leaves behind: links, provenance, counts, the card, and everything else as it
was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import Card, Collection, Conclusion, Task
from memservice.services import cards, conclusions, deletion, dreams, scopes, sessions, workspaces
from memservice.services.dreams import DreamRequest
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions
from memservice.services.tasks import kinds
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Spent, Statement, Superseded
from memservice.telemetry.events import DreamRun, Event
from memservice.testing.storage.base import together
from support.pipeline.fakes import ExternalIndex, LengthEmbedder, Listener, ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


class Dreamer(ScriptedReasoner):
    """Consolidates as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.dream_requests: list[ConsolidateRequest] = []
        self.dream: Callable[[ConsolidateRequest], Consolidated] = lambda request: Consolidated()

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        self.dream_requests.append(request)
        return self.dream(request)


class DreamingMemory:
    """A store whose dreams a test decides, with a short way to let them run."""

    def __init__(self, pipeline: Pipeline, reasoner: Dreamer) -> None:
        self.pipeline, self.reasoner = pipeline, reasoner

    def tell(self, *contents: str, peer: str = "alice", session: str = "s") -> list[Conclusion]:
        """Explicit conclusions, one a minute; all that the peer holds of itself."""
        for content in contents:
            self.pipeline.clock.advance(minutes=1)
            self.pipeline.say(session, (peer, content))
            self.pipeline.work()
        return self.pipeline.conclusions(peer)

    def dream(
        self, result: Consolidated | None = None, observer: str = "alice", **fields: Any
    ) -> Task:
        """Let a dream with this result run; the task."""
        if result is not None:
            self.reasoner.dream = lambda request: result
        kind = fields.pop("kind", dreams.OMNI)
        assert dreams.schedule(
            self.pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest(observer, kind, **fields)
        )
        self.pipeline.work()
        return self.pipeline.tasks(kinds.DREAM)[-1]

    def rows(self, **values: Any) -> dict[str, Conclusion]:
        """Every conclusion in whatever state, by content."""
        with self.pipeline.rt.storage.read() as tx:
            return {row.content: row for row in tx.rows.page(Conclusion, equals(**values))}

    def collection(self, observer: str = "alice", observed: str = "alice") -> Collection:
        with self.pipeline.rt.storage.read() as tx:
            (found,) = tx.rows.page(Collection, equals(observer=observer, observed=observed))
        return found

    def card(self, observer: str = "alice") -> list[str] | None:
        return cards.get(self.pipeline.rt, PRINCIPAL, WORKSPACE, observer)

    def write_card(self, *lines: str) -> None:
        cards.put(self.pipeline.rt, PRINCIPAL, WORKSPACE, "alice", None, lines)

    def configure(self, **config: Any) -> None:
        workspaces.update(self.pipeline.rt, PRINCIPAL, WORKSPACE, None, config)


NO_REFRESH = {"PEER_CARD_REFRESH": "false"}
"""So that dreams alone write cards here."""


@pytest.fixture
def memory(open_pipeline: OpenPipeline) -> DreamingMemory:
    reasoner = Dreamer()
    return DreamingMemory(open_pipeline(reasoner=reasoner, **NO_REFRESH), reasoner)


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

    def test_has_links_provenance_and_unchanged_other_rows(self, memory: DreamingMemory) -> None:
        before = memory.rows(observer="alice")
        kept = memory.rows(observer="bob")
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
        assert memory.rows(observer="bob") == kept
        assert {row.reasoner for row in after.values()} == {"extractive"}
        assert (task.state, task.outcome["superseded"], task.outcome["created"]) == ("done", 2, 0)

    def test_writes_counters_and_times(self, memory: DreamingMemory) -> None:
        memory.dream()
        collection = memory.collection()
        assert (collection.explicit_count, collection.explicit_at_last_dream) == (5, 5)
        assert collection.last_dream_at == memory.pipeline.clock()
        assert memory.collection("bob", "bob").last_dream_at is None

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
        found = conclusions.query(
            rt, PRINCIPAL, WORKSPACE, "Where in Rome do I live?", filters=pair
        )
        assert "I live in Rome." not in [row.content for row in found]
        assert "I live in Rome." not in memory.pipeline.texts("alice")
        with rt.storage.read() as tx:
            (row,) = tx.rows.page(Conclusion, equals(uid=old.uid))
        assert row.content == "I live in Rome."

    def test_the_card_contains_present_facts(self, memory: DreamingMemory) -> None:
        memory.dream()
        assert memory.card() == [
            "ATTRIBUTE: My favourite colour is blue.",
            "ATTRIBUTE: I moved to Berlin.",
        ]

    def test_emits_events(self, memory: DreamingMemory) -> None:
        told: list[Event] = []
        memory.pipeline.rt.events.on_event(lambda event, at: told.append(event))
        memory.dream()
        (run,) = [event for event in told if isinstance(event, DreamRun)]
        assert (run.specialists_run, run.total_iterations, run.total_input_tokens) == ((), 0, 0)
        assert (run.observer, run.observed, run.dream_type, run.trigger_reason) == (
            "alice",
            "alice",
            "omni",
            "manual",
        )

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
        made = {
            row.level: row
            for row in memory.pipeline.conclusions("alice")
            if row.level != "explicit"
        }
        assert {level: row.content for level, row in made.items()} == {
            "deductive": "Alice has no car.",
            "inductive": "Alice avoids cars.",
            "contradiction": "Alice has a car and has none.",
        }
        assert made["deductive"].source_ids == [first.uid, second.uid]
        assert made["deductive"].internal == {"premises": ["sold the car"]}
        assert made["inductive"].internal == {
            "sources": ["Alice sold the car."],
            "pattern_type": "preference",
            "confidence": "high",
        }
        assert made["contradiction"].internal == {
            "sources": ["Alice sold the car.", "Alice cycles to work."]
        }
        for row in made.values():
            assert (row.session, row.reasoner, row.model, row.times_derived) == (
                "s",
                "scripted",
                "m-1",
                1,
            )
            assert row.said_at == second.said_at
        found = conclusions.query(
            memory.pipeline.rt,
            PRINCIPAL,
            WORKSPACE,
            "avoids cars",
            filters={"observer": "alice", "observed": "alice"},
        )
        assert found[0].content == "Alice avoids cars."
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
        (kept,) = [row for row in memory.pipeline.conclusions("alice") if row.level != "explicit"]
        assert (kept.content, kept.internal) == (
            "Kept.",
            {"sources": ["Alice cycles to work."], "confidence": "medium"},
        )
        assert (task.outcome["malformed"], task.outcome["created"]) == (7, 1)
        assert kept.session is None

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


class TestRequest:
    def test_has_live_conclusions_oldest_first(self, memory: DreamingMemory) -> None:
        one, two, three = memory.tell("One.", "Two.", "Three.")
        conclusions.delete(memory.pipeline.rt, PRINCIPAL, WORKSPACE, two.uid)
        memory.dream()
        (request,) = memory.reasoner.dream_requests
        assert [(known.uid, known.content) for known in request.known] == [
            (one.uid, "One."),
            (three.uid, "Three."),
        ]
        assert (request.observer, request.observed, request.card) == ("alice", "alice", [])
        assert {known.session for known in request.known} == {"s"}

    def test_has_the_instructions_of_dream_and_card(self, memory: DreamingMemory) -> None:
        memory.tell("One.")
        memory.configure(
            custom_instructions="All.",
            dream={"custom_instructions": "Dream."},
            peer_card={"custom_instructions": "Card."},
        )
        memory.dream()
        (request,) = memory.reasoner.dream_requests
        assert (request.instructions, request.card_instructions) == (
            "All.\n\nDream.",
            "All.\n\nCard.",
        )

    def test_no_dream_runs_if_the_configuration_forbids_it(self, memory: DreamingMemory) -> None:
        memory.tell("One.")
        memory.configure(dream={"enabled": False})
        task = memory.dream()
        assert (task.state, "skipped" in task.outcome) == ("done", True)
        assert memory.reasoner.dream_requests == []
        assert memory.collection().last_dream_at is None

    def test_a_failed_dream_is_retried_until_it_fails_permanently(
        self, open_pipeline: OpenPipeline
    ) -> None:
        reasoner = Dreamer()
        memory = DreamingMemory(
            open_pipeline(reasoner=reasoner, WORKER_MAX_ATTEMPTS="2", **NO_REFRESH), reasoner
        )
        memory.tell("One.")

        def fail(request: ConsolidateRequest) -> Consolidated:
            raise ConnectionError("no model")

        reasoner.dream = fail
        task = memory.dream()
        assert (task.state, task.attempts) == ("pending", 1)
        memory.pipeline.clock.advance(hours=1)
        memory.pipeline.work()
        (task,) = memory.pipeline.tasks(kinds.DREAM)
        assert (task.state, task.attempts, task.last_error) == (
            "failed",
            2,
            "ConnectionError: no model",
        )
        assert memory.collection().last_dream_at is None

    def test_two_dreams_of_a_pair_never_run_at_once(self, memory: DreamingMemory) -> None:
        memory.tell("One.")
        rt = memory.pipeline.rt
        for kind in (dreams.OMNI, dreams.CARD_REFRESH):
            assert dreams.schedule(rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", kind))
        units = memory.pipeline.ready()
        assert len(units) == 1
        reports = together(*[lambda: memory.pipeline.run(units[0])] * 3)
        assert sum(report.done for report in reports) == 2
        assert [request.card_only for request in memory.reasoner.dream_requests] == [False, True]

    def test_search_finds_new_rows_after_a_dream_of_another_observer(
        self, memory: DreamingMemory
    ) -> None:
        """Dreams of one pair do not touch what others hold about the same peer."""
        from memservice.services.sessions import MemberConfig

        memory.pipeline.join("s", bob=MemberConfig(observe_others=True))
        memory.tell("Alice paints.")
        (held,) = memory.pipeline.conclusions("bob", "alice")
        memory.dream(
            Consolidated([Statement("Alice is an artist.", (), "deductive", (held.uid,))]),
            observer="bob",
            observed="alice",
        )
        assert memory.pipeline.texts("alice") == ["Alice paints."]
        assert memory.pipeline.texts("bob", "alice") == ["Alice paints.", "Alice is an artist."]
        assert (
            search.search(memory.pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions("artist")) == []
        )


class TestSessionsThatGo:
    """What gave way to something is not lost when that something goes with its session."""

    @staticmethod
    def merge(memory: DreamingMemory, *pairs: tuple[str, str], observer: str = "alice") -> None:
        with memory.pipeline.rt.storage.read() as tx:
            uids = {
                row.content: row.uid
                for row in tx.rows.page(Conclusion, equals(observer=observer, observed="alice"))
            }
        steps = [Superseded(uids[old], uids[new], "duplicate") for old, new in pairs]
        memory.dream(Consolidated(superseded=steps), observer=observer, observed="alice")

    def delete(self, memory: DreamingMemory, session: str) -> None:
        deletion.delete_session(memory.pipeline.rt, PRINCIPAL, WORKSPACE, session)
        memory.pipeline.work()

    def test_a_superseded_conclusion_is_live_again(self, memory: DreamingMemory) -> None:
        memory.tell("One.", session="s")
        memory.tell("Two.", session="t")
        self.merge(memory, ("One.", "Two."))
        assert (memory.pipeline.texts("alice"), memory.collection().explicit_count) == (["Two."], 1)
        self.delete(memory, "t")
        assert (memory.pipeline.texts("alice"), memory.collection().explicit_count) == (["One."], 1)
        row = memory.rows()["One."]
        assert (row.superseded_by, row.internal) == (None, {})
        found = conclusions.query(
            memory.pipeline.rt,
            PRINCIPAL,
            WORKSPACE,
            "One",
            filters={"observer": "alice", "observed": "alice"},
        )
        assert [item.content for item in found] == ["One."]

    def test_a_superseded_conclusion_gets_the_next_successor(self, memory: DreamingMemory) -> None:
        for content, session in (("One.", "s"), ("Two.", "t"), ("Three.", "u")):
            memory.tell(content, session=session)
        self.merge(memory, ("One.", "Two."))
        self.merge(memory, ("Two.", "Three."))
        self.delete(memory, "t")
        assert memory.pipeline.texts("alice") == ["Three."]
        assert memory.rows()["One."].superseded_by == memory.rows()["Three."].key
        self.delete(memory, "u")
        assert memory.pipeline.texts("alice") == ["One."]

    def test_conclusions_of_the_same_session_are_erased(self, memory: DreamingMemory) -> None:
        memory.tell("One.", "Two.", session="t")
        self.merge(memory, ("One.", "Two."))
        self.delete(memory, "t")
        assert memory.rows() == {}
        assert memory.collection().explicit_count == 0

    def test_a_scope_keeps_conclusions_of_other_sessions(self, memory: DreamingMemory) -> None:
        rt = memory.pipeline.rt
        memory.tell("One.", session="s")
        memory.tell("Two.", session="t")
        scopes.get_or_create(rt, PRINCIPAL, WORKSPACE, "team", None)
        scopes.add_sessions(rt, PRINCIPAL, WORKSPACE, "team", ["s", "t"])
        memory.pipeline.work()
        assert sorted(memory.pipeline.texts("scope.team", "alice")) == ["One.", "Two."]
        self.merge(memory, ("One.", "Two."), observer="scope.team")
        assert memory.pipeline.texts("scope.team", "alice") == ["Two."]
        memory.reasoner.dream = lambda request: Consolidated()
        scopes.remove_session(rt, PRINCIPAL, WORKSPACE, "team", "t")
        memory.pipeline.work()
        assert memory.pipeline.texts("scope.team", "alice") == ["One."]
        assert memory.collection("scope.team", "alice").explicit_count == 1
        assert [task.payload["trigger"] for task in memory.pipeline.tasks(kinds.DREAM)][-2:] == [
            "scope_removal",
            "scope_removal",
        ]


def test_a_dream_does_not_read_messages_after_its_peer_left(memory: DreamingMemory) -> None:
    """What it would conclude of that becomes its peer's memory, which the peer's key may read."""
    memory.tell("I keep bees.")
    found: dict[str, list[str]] = {}

    def look(request: ConsolidateRequest) -> Consolidated:
        assert request.tools is not None
        for name, passages in (
            ("containing", request.tools.containing("bees", 9)),
            ("messages", request.tools.messages("bees", 9)),
            ("between", request.tools.between(None, None, 9)),
        ):
            found[name] = sorted(item.content for passage in passages for item in passage)
        return Consolidated()

    sessions.remove_peers(memory.pipeline.rt, PRINCIPAL, WORKSPACE, "s", ["alice"])
    memory.pipeline.say("s", ("bob", "Her bees are to be a surprise."))
    memory.reasoner.dream = look
    memory.dream()
    assert found == {name: ["I keep bees."] for name in ("containing", "messages", "between")}
