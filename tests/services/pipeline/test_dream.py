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
from support.pipeline.fakes import Lengths, Listener, Outside, Scripted
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

Start = Callable[..., Place]


class Dreamer(Scripted):
    """Consolidates as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[ConsolidateRequest] = []
        self.dream: Callable[[ConsolidateRequest], Consolidated] = lambda request: Consolidated()

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        self.asked.append(request)
        return self.dream(request)


class Night:
    """A store whose dreams a test decides, with a short way to let them run."""

    def __init__(self, place: Place, reasoner: Dreamer) -> None:
        self.place, self.reasoner = place, reasoner

    def tell(self, *contents: str, peer: str = "alice", session: str = "s") -> list[Conclusion]:
        """Explicit conclusions, one a minute; all that the peer holds of itself."""
        for content in contents:
            self.place.clock.advance(minutes=1)
            self.place.say(session, (peer, content))
            self.place.work()
        return self.place.conclusions(peer)

    def dream(
        self, result: Consolidated | None = None, observer: str = "alice", **fields: Any
    ) -> Task:
        """Let a dream with this result run; the task."""
        if result is not None:
            self.reasoner.dream = lambda request: result
        kind = fields.pop("kind", dreams.OMNI)
        assert dreams.schedule(
            self.place.rt, PRINCIPAL, WORKSPACE, DreamRequest(observer, kind, **fields)
        )
        self.place.work()
        return self.place.tasks(kinds.DREAM)[-1]

    def rows(self, **values: Any) -> dict[str, Conclusion]:
        """Every conclusion in whatever state, by content."""
        with self.place.rt.storage.read() as tx:
            return {row.content: row for row in tx.rows.page(Conclusion, equals(**values))}

    def collection(self, observer: str = "alice", observed: str = "alice") -> Collection:
        with self.place.rt.storage.read() as tx:
            (found,) = tx.rows.page(Collection, equals(observer=observer, observed=observed))
        return found

    def card(self, observer: str = "alice") -> list[str] | None:
        return cards.get(self.place.rt, PRINCIPAL, WORKSPACE, observer)

    def write_card(self, *lines: str) -> None:
        cards.put(self.place.rt, PRINCIPAL, WORKSPACE, "alice", None, lines)

    def configure(self, **config: Any) -> None:
        workspaces.update(self.place.rt, PRINCIPAL, WORKSPACE, None, config)


NO_REFRESH = {"PEER_CARD_REFRESH": "false"}
"""So that dreams alone write cards here."""


@pytest.fixture
def night(start: Start) -> Night:
    reasoner = Dreamer()
    return Night(start(reasoner=reasoner, **NO_REFRESH), reasoner)


class TestGoldScenario:
    """With the reasoner that is there by default."""

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
    def night(self, start: Start) -> Night:
        night = Night(start(REASONER="extractive", **NO_REFRESH), Dreamer())
        night.tell(*self.SAID)
        night.tell("I live in Rome.", peer="bob", session="t")
        return night

    def test_has_links_provenance_and_unchanged_other_rows(self, night: Night) -> None:
        before = night.rows(observer="alice")
        kept = night.rows(observer="bob")
        assert sorted(before) == sorted(self.SAID)

        task = night.dream()

        after = night.rows(observer="alice")
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
                row, state="live", superseded_by=None, internal=before[content].internal
            )
            assert unchanged == before[content]
            assert row.message_keys
        assert night.rows(observer="bob") == kept
        assert {row.reasoner for row in after.values()} == {"extractive"}
        assert (task.state, task.outcome["superseded"], task.outcome["created"]) == ("done", 2, 0)

    def test_writes_counters_and_times(self, night: Night) -> None:
        night.dream()
        collection = night.collection()
        assert (collection.explicit_count, collection.explicit_at_last_dream) == (5, 5)
        assert collection.last_dream_at == night.place.clock()
        assert night.collection("bob", "bob").last_dream_at is None

    def test_superseded_conclusions_are_readable_but_not_found(self, night: Night) -> None:
        rt = night.place.rt
        pair = {"observer": "alice", "observed": "alice"}
        old = night.rows(observer="alice")["I live in Rome."]
        assert "I live in Rome." in [
            row.content for row in conclusions.query(rt, PRINCIPAL, WORKSPACE, "Rome", filters=pair)
        ]
        night.dream()
        found = conclusions.query(
            rt, PRINCIPAL, WORKSPACE, "Where in Rome do I live?", filters=pair
        )
        assert "I live in Rome." not in [row.content for row in found]
        assert "I live in Rome." not in night.place.texts("alice")
        with rt.storage.read() as tx:
            (row,) = tx.rows.page(Conclusion, equals(uid=old.uid))
        assert row.content == "I live in Rome."

    def test_the_card_contains_present_facts(self, night: Night) -> None:
        night.dream()
        assert night.card() == [
            "ATTRIBUTE: My favourite colour is blue.",
            "ATTRIBUTE: I moved to Berlin.",
        ]

    def test_emits_events(self, night: Night) -> None:
        told: list[Event] = []
        night.place.rt.events.on_event(lambda event, at: told.append(event))
        night.dream()
        (run,) = [event for event in told if isinstance(event, DreamRun)]
        assert (run.specialists_run, run.total_iterations, run.total_input_tokens) == ((), 0, 0)
        assert (run.observer, run.observed, run.dream_type, run.trigger_reason) == (
            "alice",
            "alice",
            "omni",
            "manual",
        )

    def test_a_second_dream_changes_nothing(self, night: Night) -> None:
        night.dream()
        rows, card = night.rows(), night.card()
        task = night.dream()
        assert (night.rows(), night.card()) == (rows, card)
        assert (task.outcome["superseded"], task.outcome["created"]) == (0, 0)


class TestCreated:
    def test_new_conclusions_have_their_sources(self, night: Night) -> None:
        first, second = night.tell("Alice cycles to work.", "Alice sold the car.")
        night.dream(
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
            row.level: row for row in night.place.conclusions("alice") if row.level != "explicit"
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
            night.place.rt,
            PRINCIPAL,
            WORKSPACE,
            "avoids cars",
            filters={"observer": "alice", "observed": "alice"},
        )
        assert found[0].content == "Alice avoids cars."
        assert night.collection().explicit_count == 2

    def test_invalid_conclusions_are_left_out(self, night: Night) -> None:
        first, _ = night.tell("Alice cycles to work.", "Alice sold the car.")
        (other,) = night.tell("Bob sings.", peer="bob")
        task = night.dream(
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
        (kept,) = [row for row in night.place.conclusions("alice") if row.level != "explicit"]
        assert (kept.content, kept.internal) == (
            "Kept.",
            {"sources": ["Alice cycles to work."], "confidence": "medium"},
        )
        assert (task.outcome["malformed"], task.outcome["created"]) == (7, 1)
        assert kept.session is None

    def test_existing_conclusions_are_reinforced(self, night: Night) -> None:
        first, _ = night.tell("Alice cycles to work.", "Alice sold the car.")
        statement = Statement("Alice has no car.", (), "deductive", (first.uid,))
        night.dream(Consolidated([statement, replace(statement, content="alice has  NO car.")]))
        task = night.dream(Consolidated([statement], [Superseded(first.uid, "#0", "implied")]))
        (row,) = [row for row in night.place.conclusions("alice") if row.level == "deductive"]
        assert (row.content, row.times_derived) == ("Alice has no car.", 2)
        assert night.rows()["Alice cycles to work."].superseded_by == row.key
        assert (
            task.outcome["reinforced"],
            task.outcome["created"],
            task.outcome["superseded"],
        ) == (1, 0, 1)

    def test_a_plugin_may_refuse_a_conclusion(self, start: Start) -> None:
        listener, reasoner = Listener(), Dreamer()
        night = Night(start(listener, reasoner=reasoner, **NO_REFRESH), reasoner)
        (first,) = night.tell("Alice cycles to work.")
        listener.on_conclusion = lambda conclusion: "secret" not in conclusion.content
        task = night.dream(
            Consolidated(
                [
                    Statement("A secret.", (), "deductive", (first.uid,)),
                    Statement("No matter.", (), "deductive", (first.uid,)),
                ],
                [Superseded(first.uid, "#0", "gone with it")],
            )
        )
        assert night.place.texts("alice") == ["Alice cycles to work.", "No matter."]
        assert (task.outcome["refused"], task.outcome["superseded"]) == (1, 0)

    def test_a_remote_index_is_updated_by_tasks(self, start: Start) -> None:
        reasoner, index = Dreamer(), Outside()
        night = Night(
            start(
                Lengths(), index, reasoner=reasoner, EMBEDDER="lengths", VECTOR_STORE_TYPE="outside"
            ),
            reasoner,
        )
        first, second = night.tell("Alice cycles to work.", "Alice sold the car.")
        night.dream(
            Consolidated(
                [Statement("Alice has no car.", (), "deductive", (second.uid,))],
                [Superseded(first.uid, "#0", "r")],
            )
        )
        assert {row.key for row in index.rows.values()} == {
            row.key for row in night.place.conclusions("alice")
        }


class TestSuperseding:
    def test_chains_end_at_a_live_conclusion(self, night: Night) -> None:
        one, two, three = night.tell("One.", "Two.", "Three.")
        night.dream(
            Consolidated(
                superseded=[Superseded(one.uid, two.uid, "a"), Superseded(two.uid, three.uid, "b")]
            )
        )
        rows = night.rows()
        assert (rows["One."].superseded_by, rows["Two."].superseded_by) == (three.key, three.key)
        assert night.place.texts("alice") == ["Three."]

    def test_cycles_and_unknown_rows_are_ignored(self, night: Night) -> None:
        one, two, three = night.tell("One.", "Two.", "Three.")
        steps = [
            Superseded(one.uid, two.uid, "a"),
            Superseded(two.uid, one.uid, "b"),
            Superseded(three.uid, three.uid, "itself"),
            Superseded("nobody", one.uid, "c"),
            Superseded(one.uid, "#7", "d"),
        ]
        task = night.dream(Consolidated(superseded=steps))
        assert night.place.texts("alice") == ["One.", "Two.", "Three."]
        assert task.outcome["superseded"] == 0

    def test_conclusions_changed_during_the_dream_are_not_superseded(self, night: Night) -> None:
        """The row to be replaced, the row to replace it, or the source of a new one was deleted
        while the reasoner was thinking."""
        rt = night.place.rt
        one, two, three, four = night.tell("One.", "Two.", "Three.", "Four.")

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

        night.reasoner.dream = meddle
        task = night.dream()
        assert night.place.texts("alice") == ["Two.", "Three."]
        assert night.rows()["One."].state == "deleted"
        assert (task.outcome["superseded"], task.outcome["outdated"]) == (0, 1)
        assert night.collection().explicit_count == night.collection().explicit_at_last_dream == 2

    def test_no_connection_is_open_while_the_reasoner_works(self, night: Night) -> None:
        def write(request: ConsolidateRequest) -> Consolidated:
            # A write inside another transaction of this thread is an error.
            night.write_card("written meanwhile")
            return Consolidated(card=["IDENTITY: Alice"])

        night.tell("One.")
        night.reasoner.dream = write
        task = night.dream()
        assert task.state == "done"
        assert night.card() == ["written meanwhile"]

    def test_results_of_a_dream_that_lost_its_lease_are_not_stored(self, night: Night) -> None:
        (one,) = night.tell("One.")

        def sleep_too_long(request: ConsolidateRequest) -> Consolidated:
            night.place.clock.advance(minutes=30)
            with night.place.rt.storage.read() as tx:
                (lease,) = [lease for lease in tx.tasks.leases() if lease.unit.startswith("dream:")]
            assert (
                night.place.rt.storage.write(
                    lambda tx: tx.tasks.claim(lease.unit, "other", night.place.clock(), 60)
                )
                is not None
            )
            return Consolidated(
                [Statement("Too late.", (), "deductive", (one.uid,))], card=["IDENTITY: Alice"]
            )

        night.reasoner.dream = sleep_too_long
        task = night.dream()
        assert task.state == "pending"
        assert (night.place.texts("alice"), night.card(), night.collection().last_dream_at) == (
            ["One."],
            None,
            None,
        )


class TestCard:
    def test_lines_of_callers_are_never_lost(self, night: Night) -> None:
        night.tell("One.")
        night.write_card("Likes to be called Al", "IDENTITY: Alice, 34")
        night.dream(Consolidated(card=["IDENTITY: Alice", "ATTRIBUTE: tall"]))
        assert night.card() == [
            "Likes to be called Al",
            "IDENTITY: Alice, 34",
            "IDENTITY: Alice",
            "ATTRIBUTE: tall",
        ]
        night.dream(Consolidated(card=["ATTRIBUTE: very tall"]))
        assert night.card() == [
            "Likes to be called Al",
            "IDENTITY: Alice, 34",
            "ATTRIBUTE: very tall",
        ]

    def test_a_line_that_a_caller_sent_back_stays_the_services(self, night: Night) -> None:
        night.tell("One.")
        night.dream(Consolidated(card=["ATTRIBUTE: tall", "ATTRIBUTE: loud"]))
        night.write_card("ATTRIBUTE: tall", "Allergic to nuts")
        night.dream(Consolidated(card=["ATTRIBUTE: short"]))
        assert night.card() == ["Allergic to nuts", "ATTRIBUTE: short"]

    def test_generated_lines_have_the_required_form(self, night: Night) -> None:
        night.tell("One.")
        lines = [
            "tall",
            "ATTRIBUTE:",
            "ATTRIBUTE:  ",
            "MOOD: good",
            "ATTRIBUTE: " + "x" * 190,
            " ATTRIBUTE:  a   b ",
            "attribute: a b",
        ]
        task = night.dream(Consolidated(card=[*lines, "ATTRIBUTE: A B", "INSTRUCTION: be brief"]))
        assert night.card() == ["ATTRIBUTE: a b", "INSTRUCTION: be brief"]
        assert task.outcome["card_lines_dropped"] == 6

    @pytest.mark.parametrize("proposed", [None, [], ["nonsense"]])
    def test_a_proposal_without_valid_lines_does_not_change_the_card(
        self, night: Night, proposed: Sequence[str] | None
    ) -> None:
        night.tell("One.")
        night.dream(Consolidated(card=["ATTRIBUTE: tall"]))
        night.dream(Consolidated(card=proposed))
        assert night.card() == ["ATTRIBUTE: tall"]

    def test_has_at_most_40_lines(self, night: Night) -> None:
        night.tell("One.")
        night.write_card("mine", "mine too")
        night.dream(Consolidated(card=[f"ATTRIBUTE: {number}" for number in range(60)]))
        card = night.card() or []
        assert len(card) == 40
        assert card[:3] == ["mine", "mine too", "ATTRIBUTE: 0"]
        assert card[-1] == "ATTRIBUTE: 37"

    def test_no_card_is_written_if_the_configuration_forbids_it(self, night: Night) -> None:
        night.tell("One.")
        night.configure(peer_card={"create": False})
        night.dream(Consolidated(card=["ATTRIBUTE: tall"]))
        assert night.card() is None
        assert night.reasoner.asked[-1].write_card is False
        task = night.dream(Consolidated(card=["ATTRIBUTE: tall"]), kind=dreams.CARD_REFRESH)
        assert "skipped" in task.outcome
        assert len(night.reasoner.asked) == 1

    def test_a_refresh_writes_the_card_only(self, night: Night) -> None:
        (one,) = night.tell("One.")
        result = Consolidated(
            [Statement("New.", (), "deductive", (one.uid,))], card=["ATTRIBUTE: tall"]
        )
        night.dream(result, kind=dreams.CARD_REFRESH)
        assert night.card() == ["ATTRIBUTE: tall"]
        assert night.place.texts("alice") == ["One."]
        assert night.collection().last_dream_at is None
        assert night.reasoner.asked[-1].card_only

    def test_rebuilding_drops_generated_lines(self, night: Night) -> None:
        night.tell("One.")
        night.dream(Consolidated(card=["ATTRIBUTE: from a session that left"]))
        night.write_card("mine", "ATTRIBUTE: from a session that left")
        night.dream(Consolidated(card=["ATTRIBUTE: new"]), kind=dreams.CARD_REFRESH, rebuild=True)
        assert night.reasoner.asked[-1].card == ["mine"]
        assert night.card() == ["mine", "ATTRIBUTE: new"]
        night.dream(Consolidated(), kind=dreams.CARD_REFRESH, rebuild=True)
        assert night.card() == ["mine"]

    def test_rebuilding_without_lines_removes_the_card(self, night: Night) -> None:
        night.tell("One.")
        night.dream(Consolidated(card=["ATTRIBUTE: old"]))
        night.dream(Consolidated(), kind=dreams.CARD_REFRESH, rebuild=True)
        assert night.card() is None
        with night.place.rt.storage.read() as tx:
            assert tx.rows.count(Card) == 0

    def test_the_default_reasoner_keeps_lines_of_callers(self, start: Start) -> None:
        night = Night(start(REASONER="extractive", **NO_REFRESH), Dreamer())
        night.tell("I live in Rome.")
        night.write_card("Please be brief", "ATTRIBUTE: I live in Paris.")
        night.dream()
        assert (night.card() or [])[:2] == ["Please be brief", "ATTRIBUTE: I live in Paris."]
        night.dream(kind=dreams.CARD_REFRESH, rebuild=True)
        assert (night.card() or [])[:2] == ["Please be brief", "ATTRIBUTE: I live in Paris."]


class TestRequest:
    def test_has_live_conclusions_oldest_first(self, night: Night) -> None:
        one, two, three = night.tell("One.", "Two.", "Three.")
        conclusions.delete(night.place.rt, PRINCIPAL, WORKSPACE, two.uid)
        night.dream()
        (asked,) = night.reasoner.asked
        assert [(known.uid, known.content) for known in asked.known] == [
            (one.uid, "One."),
            (three.uid, "Three."),
        ]
        assert (asked.observer, asked.observed, asked.card) == ("alice", "alice", [])
        assert {known.session for known in asked.known} == {"s"}

    def test_has_the_instructions_of_dream_and_card(self, night: Night) -> None:
        night.tell("One.")
        night.configure(
            custom_instructions="All.",
            dream={"custom_instructions": "Dream."},
            peer_card={"custom_instructions": "Card."},
        )
        night.dream()
        (asked,) = night.reasoner.asked
        assert (asked.instructions, asked.card_instructions) == ("All.\n\nDream.", "All.\n\nCard.")

    def test_no_dream_runs_if_the_configuration_forbids_it(self, night: Night) -> None:
        night.tell("One.")
        night.configure(dream={"enabled": False})
        task = night.dream()
        assert (task.state, "skipped" in task.outcome) == ("done", True)
        assert night.reasoner.asked == []
        assert night.collection().last_dream_at is None

    def test_a_failed_dream_is_retried_until_it_fails_permanently(self, start: Start) -> None:
        reasoner = Dreamer()
        night = Night(start(reasoner=reasoner, WORKER_MAX_ATTEMPTS="2", **NO_REFRESH), reasoner)
        night.tell("One.")

        def fail(request: ConsolidateRequest) -> Consolidated:
            raise ConnectionError("no model")

        reasoner.dream = fail
        task = night.dream()
        assert (task.state, task.attempts) == ("pending", 1)
        night.place.clock.advance(hours=1)
        night.place.work()
        (task,) = night.place.tasks(kinds.DREAM)
        assert (task.state, task.attempts, task.last_error) == (
            "failed",
            2,
            "ConnectionError: no model",
        )
        assert night.collection().last_dream_at is None

    def test_two_dreams_of_a_pair_never_run_at_once(self, night: Night) -> None:
        night.tell("One.")
        rt = night.place.rt
        for kind in (dreams.OMNI, dreams.CARD_REFRESH):
            assert dreams.schedule(rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", kind))
        units = night.place.ready()
        assert len(units) == 1
        reports = together(*[lambda: night.place.run(units[0])] * 3)
        assert sum(report.done for report in reports) == 2
        assert [asked.card_only for asked in night.reasoner.asked] == [False, True]

    def test_search_finds_new_rows_after_a_dream_of_another_observer(self, night: Night) -> None:
        """Dreams of one pair do not touch what others hold about the same peer."""
        from memservice.services.sessions import MemberConfig

        night.place.join("s", bob=MemberConfig(observe_others=True))
        night.tell("Alice paints.")
        (held,) = night.place.conclusions("bob", "alice")
        night.dream(
            Consolidated([Statement("Alice is an artist.", (), "deductive", (held.uid,))]),
            observer="bob",
            observed="alice",
        )
        assert night.place.texts("alice") == ["Alice paints."]
        assert night.place.texts("bob", "alice") == ["Alice paints.", "Alice is an artist."]
        assert search.search(night.place.rt, PRINCIPAL, WORKSPACE, SearchOptions("artist")) == []


class TestSessionsThatGo:
    """What gave way to something is not lost when that something goes with its session."""

    @staticmethod
    def merge(night: Night, *pairs: tuple[str, str], observer: str = "alice") -> None:
        with night.place.rt.storage.read() as tx:
            uids = {
                row.content: row.uid
                for row in tx.rows.page(Conclusion, equals(observer=observer, observed="alice"))
            }
        steps = [Superseded(uids[old], uids[new], "duplicate") for old, new in pairs]
        night.dream(Consolidated(superseded=steps), observer=observer, observed="alice")

    def delete(self, night: Night, session: str) -> None:
        deletion.delete_session(night.place.rt, PRINCIPAL, WORKSPACE, session)
        night.place.work()

    def test_a_superseded_conclusion_is_live_again(self, night: Night) -> None:
        night.tell("One.", session="s")
        night.tell("Two.", session="t")
        self.merge(night, ("One.", "Two."))
        assert (night.place.texts("alice"), night.collection().explicit_count) == (["Two."], 1)
        self.delete(night, "t")
        assert (night.place.texts("alice"), night.collection().explicit_count) == (["One."], 1)
        row = night.rows()["One."]
        assert (row.superseded_by, row.internal) == (None, {})
        found = conclusions.query(
            night.place.rt,
            PRINCIPAL,
            WORKSPACE,
            "One",
            filters={"observer": "alice", "observed": "alice"},
        )
        assert [item.content for item in found] == ["One."]

    def test_a_superseded_conclusion_gets_the_next_successor(self, night: Night) -> None:
        for content, session in (("One.", "s"), ("Two.", "t"), ("Three.", "u")):
            night.tell(content, session=session)
        self.merge(night, ("One.", "Two."))
        self.merge(night, ("Two.", "Three."))
        self.delete(night, "t")
        assert night.place.texts("alice") == ["Three."]
        assert night.rows()["One."].superseded_by == night.rows()["Three."].key
        self.delete(night, "u")
        assert night.place.texts("alice") == ["One."]

    def test_conclusions_of_the_same_session_are_erased(self, night: Night) -> None:
        night.tell("One.", "Two.", session="t")
        self.merge(night, ("One.", "Two."))
        self.delete(night, "t")
        assert night.rows() == {}
        assert night.collection().explicit_count == 0

    def test_a_scope_keeps_conclusions_of_other_sessions(self, night: Night) -> None:
        rt = night.place.rt
        night.tell("One.", session="s")
        night.tell("Two.", session="t")
        scopes.get_or_create(rt, PRINCIPAL, WORKSPACE, "team", None)
        scopes.add_sessions(rt, PRINCIPAL, WORKSPACE, "team", ["s", "t"])
        night.place.work()
        assert sorted(night.place.texts("scope.team", "alice")) == ["One.", "Two."]
        self.merge(night, ("One.", "Two."), observer="scope.team")
        assert night.place.texts("scope.team", "alice") == ["Two."]
        night.reasoner.dream = lambda request: Consolidated()
        scopes.remove_session(rt, PRINCIPAL, WORKSPACE, "team", "t")
        night.place.work()
        assert night.place.texts("scope.team", "alice") == ["One."]
        assert night.collection("scope.team", "alice").explicit_count == 1
        assert [task.payload["trigger"] for task in night.place.tasks(kinds.DREAM)][-2:] == [
            "scope_removal",
            "scope_removal",
        ]


def test_a_dream_does_not_read_messages_after_its_peer_left(night: Night) -> None:
    """What it would conclude of that becomes its peer's memory, which the peer's key may read."""
    night.tell("I keep bees.")
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

    sessions.remove_peers(night.place.rt, PRINCIPAL, WORKSPACE, "s", ["alice"])
    night.place.say("s", ("bob", "Her bees are to be a surprise."))
    night.reasoner.dream = look
    night.dream()
    assert found == {name: ["I keep bees."] for name in ("containing", "messages", "between")}
