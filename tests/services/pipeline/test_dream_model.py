"""Dreams under a language model: what they leave in the store, that nothing else is touched, and
what operators hear of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace

from memservice.compose import open_runtime
from memservice.domain.filters import equals
from memservice.domain.records import Card, Collection, Conclusion, Lease, Task
from memservice.plugins import load_plugins
from memservice.reasoning.prompts.consolidate import DEDUCTION, INDUCTION
from memservice.runtime import Runtime
from memservice.services import cards, conclusions, dreams
from memservice.services.dreams import DreamRequest
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from memservice.spi.llm import Completion, CompletionRequest, ModelFailure
from memservice.worker.polling import Worker
from support.pipeline.fakes import LengthEmbedder, ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Clock, Pipeline
from support.reasoning.model import SCRIPTED, ScriptedModel, calling
from support.stores.stores import sqlite_store_at

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

DONE = "DONE"


class DreamingMemory:
    """A store whose dreams a scripted model dreams; what is said is derived sentence by sentence by
    a scripted reasoner."""

    def __init__(self, pipeline: Pipeline, model: ScriptedModel) -> None:
        self.pipeline, self.model = pipeline, model
        model.contents = lambda: {
            row.uid: row.content for row in self.rows(observer="alice").values()
        }
        self.events: list[tuple[str, dict[str, Any]]] = []
        pipeline.rt.events.on_event(
            lambda event, at: self.events.append((event.TYPE, event.data()))
        )

    def tell(self, *contents: str, peer: str = "alice", session: str = "s") -> None:
        for content in contents:
            self.pipeline.clock.advance(minutes=1)
            self.pipeline.say(session, (peer, content))
            self.pipeline.work()

    def dream(self, *replies: Any, kind: dreams.Kind = dreams.OMNI, **fields: Any) -> Task:
        self.model.replies = list(replies)
        assert dreams.schedule(
            self.pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", kind, **fields)
        )
        self.pipeline.work()
        assert self.model.replies == []
        return self.pipeline.tasks(kinds.DREAM)[-1]

    def rows(self, **values: Any) -> dict[str, Conclusion]:
        with self.pipeline.rt.storage.read() as tx:
            return {row.content: row for row in tx.rows.page(Conclusion, equals(**values))}

    def uid(self, content: str) -> str:
        return self.rows(observer="alice")[content].uid

    def card(self) -> list[str] | None:
        return cards.get(self.pipeline.rt, PRINCIPAL, WORKSPACE, "alice")

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [data for name, data in self.events if name == kind]

    def collection(self) -> Collection:
        with self.pipeline.rt.storage.read() as tx:
            (row,) = tx.rows.page(Collection, equals(observer="alice", observed="alice"))
        return row


OpenPipeline = Callable[..., DreamingMemory]


@pytest.fixture
def open_pipeline(local_storage_name: str, tmp_path: Path) -> Iterator[OpenPipeline]:
    """What is said is derived by a reasoner of the test's own; dreams are dreamt by `llm` over the
    scripted model."""
    opened: list[Runtime] = []

    def open_night(*plugins: object, **settings: str) -> DreamingMemory:
        uri = "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "n.db")
        environ = {
            "DB_CONNECTION_URI": uri,
            "REASONER": "llm",
            "LLM_RETRY_PAUSE_SECONDS": "0.001",
            **SCRIPTED,
            **settings,
        }
        loaded = load_settings(environ=environ, cwd=tmp_path)
        model, scripted, clock = ScriptedModel(), ScriptedReasoner(), Clock()
        runtime = open_runtime(
            loaded, plugins=load_plugins(loaded, extra=[model, scripted, *plugins]), clock=clock
        )
        runtime.reasoners = {
            task: "llm" if task == "consolidate" else "scripted" for task in runtime.reasoners
        }
        opened.append(runtime)
        runtime.storage.migrate()
        return DreamingMemory(Pipeline(runtime, clock, scripted), model)

    yield open_night
    for runtime in opened:
        runtime.close()


@pytest.fixture
def memory(open_pipeline: OpenPipeline) -> DreamingMemory:
    return open_pipeline()


def create(*items: dict[str, Any]) -> Completion:
    return calling(("create_conclusions", {"conclusions": list(items)}))


def item(content: str, level: str, *sources: str, **more: Any) -> dict[str, Any]:
    return {"content": content, "level": level, "source_ids": list(sources), **more}


def supersede(old: str, new: str | None, reason: str) -> tuple[str, dict[str, Any]]:
    step = {"id": old, "reason": reason, **({"replaced_by": new} if new else {})}
    return ("supersede_conclusions", {"conclusions": [step]})


class TestGoldScenario:
    """An update, a duplicate, a contradiction, what follows, a pattern, and what has nothing to do
    with any of it."""

    SAID = (
        "Alice lives in Rome.",
        "Alice drinks green tea.",
        "Carol plays the violin.",
        "Alice drinks green tea every morning.",
        "Alice has no brothers.",
        "Alice moved to Berlin.",
        "Alice visits her brother Tom.",
    )

    @pytest.fixture
    def memory(self, open_pipeline: OpenPipeline) -> DreamingMemory:
        memory = open_pipeline()
        memory.tell(*self.SAID)
        memory.tell("Alice lives in Rome.", peer="bob", session="t")
        return memory

    def run(self, memory: DreamingMemory) -> Task:
        uid = memory.uid
        return memory.dream(
            calling(
                supersede(uid("Alice lives in Rome."), uid("Alice moved to Berlin."), "moved"),
                supersede(
                    uid("Alice drinks green tea."),
                    uid("Alice drinks green tea every morning."),
                    "said more fully",
                ),
            ),
            calling(
                (
                    "create_conclusions",
                    {
                        "conclusions": [
                            item(
                                "Alice has no brothers, yet visits one.",
                                "contradiction",
                                uid("Alice has no brothers."),
                                uid("Alice visits her brother Tom."),
                            ),
                            item(
                                "Alice lives in Germany.",
                                "deductive",
                                uid("Alice moved to Berlin."),
                                premises=["Berlin is in Germany"],
                            ),
                        ]
                    },
                ),
                ("update_peer_card", {"lines": ["ATTRIBUTE: lives in Berlin", "Loves tea"]}),
            ),
            DONE,
            create(
                item(
                    "Alice keeps to habits.",
                    "inductive",
                    uid("Alice drinks green tea every morning."),
                    "#1",
                    pattern_type="behavior",
                    confidence="low",
                )
            ),
            DONE,
            session="s",
        )

    @pytest.mark.slow
    def test_has_links_provenance_and_unchanged_other_rows(self, memory: DreamingMemory) -> None:
        before = memory.rows(observer="alice")
        others = memory.rows(observer="bob")
        messages = {content: row.message_keys for content, row in before.items()}
        task = self.run(memory)
        after = memory.rows(observer="alice")
        by_key = {row.key: content for content, row in after.items()}

        replaced = {content: row for content, row in after.items() if row.state == "superseded"}
        assert {
            content: (by_key[row.superseded_by or 0], row.internal["superseded"])
            for content, row in replaced.items()
        } == {
            "Alice lives in Rome.": ("Alice moved to Berlin.", "moved"),
            "Alice drinks green tea.": ("Alice drinks green tea every morning.", "said more fully"),
        }
        for content, row in replaced.items():
            assert (
                replace(
                    row,
                    state="live",
                    superseded_by=None,
                    superseded_at=None,
                    internal=before[content].internal,
                )
                == before[content]
            )
        untouched = set(self.SAID) - set(replaced)
        assert {content: after[content] for content in untouched} == {
            content: before[content] for content in untouched
        }
        assert all(after[content].message_keys == keys for content, keys in messages.items())
        assert memory.rows(observer="bob") == others

        by_level = {row.level: row for content, row in after.items() if content not in before}
        contradiction, deduced, pattern = (
            by_level["contradiction"],
            by_level["deductive"],
            by_level["inductive"],
        )
        assert contradiction.source_ids == [
            before["Alice has no brothers."].uid,
            before["Alice visits her brother Tom."].uid,
        ]
        assert contradiction.said_at == before["Alice visits her brother Tom."].said_at
        assert contradiction.internal["sources"] == [
            "Alice has no brothers.",
            "Alice visits her brother Tom.",
        ]
        assert deduced.source_ids == [before["Alice moved to Berlin."].uid]
        assert deduced.internal == {
            "premises": ["Berlin is in Germany"],
            "prompt": DEDUCTION.version,
        }
        assert pattern.internal["prompt"] == INDUCTION.version
        # A pattern may rest on what the same dream deduced.
        assert pattern.source_ids == [
            before["Alice drinks green tea every morning."].uid,
            deduced.uid,
        ]
        assert (pattern.internal["pattern_type"], pattern.internal["confidence"]) == (
            "behavior",
            "low",
        )
        assert pattern.said_at == before["Alice moved to Berlin."].said_at
        for row in by_level.values():
            assert (row.reasoner, row.model, row.session, row.times_derived, row.state) == (
                "llm",
                "scripted-1",
                "s",
                1,
                "live",
            )

        assert memory.card() == ["ATTRIBUTE: lives in Berlin"]
        assert (task.state, task.outcome["created"], task.outcome["superseded"]) == ("done", 3, 2)
        assert "failed_phases" not in task.outcome
        assert (memory.collection().explicit_count, memory.collection().explicit_at_last_dream) == (
            5,
            5,
        )
        assert memory.collection().last_dream_at == memory.pipeline.clock()

    @pytest.mark.slow
    def test_superseded_conclusions_are_readable_but_not_found(
        self, memory: DreamingMemory
    ) -> None:
        self.run(memory)
        rt = memory.pipeline.rt
        hits = conclusions.query(
            rt,
            PRINCIPAL,
            WORKSPACE,
            "Where does Alice live?",
            filters={"observer": "alice", "observed": "alice"},
        )
        assert "Alice lives in Rome." not in [row.content for row in hits]
        assert "Alice lives in Germany." in [row.content for row in hits]
        assert "Alice lives in Rome." in memory.rows(observer="alice", state="superseded")

    @pytest.mark.slow
    def test_a_repeated_dream_adds_nothing(self, memory: DreamingMemory) -> None:
        self.run(memory)
        before = memory.rows(observer="alice", state="live")
        berlin = memory.uid("Alice moved to Berlin.")
        task = memory.dream(
            create(item("ALICE lives in Germany.", "deductive", berlin)), DONE, DONE
        )
        after = memory.rows(observer="alice", state="live")
        assert after.keys() == before.keys()
        assert after["Alice lives in Germany."].times_derived == 2
        assert (task.outcome["created"], task.outcome["reinforced"]) == (0, 1)

    @pytest.mark.slow
    def test_emits_events(self, memory: DreamingMemory) -> None:
        self.run(memory)
        (run,) = memory.of("dream.run")
        assert {
            name: value
            for name, value in run.items()
            if name not in ("run_id", "total_duration_ms")
        } == {
            "workspace_name": WORKSPACE,
            "session_name": "s",
            "observer": "alice",
            "observed": "alice",
            "specialists_run": ["deduction", "induction"],
            "deduction_success": True,
            "induction_success": True,
            "surprisal_enabled": False,
            "surprisal_conclusion_count": 0,
            "total_iterations": 5,
            "total_input_tokens": 3 * 50 + 2 * 100,
            "total_output_tokens": 3 * 5 + 2 * 10,
            "dream_type": "omni",
            "enabled_types_count": 1,
            "trigger_reason": "manual",
            "delay_reason": "immediate",
            "documents_since_last_dream_at_schedule": 7,
            "document_threshold": 50,
        }
        first, second = memory.of("dream.specialist")
        assert (
            first["specialist_type"],
            first["iterations"],
            first["tool_calls_count"],
            first["success"],
        ) == ("deduction", 3, 4, True)
        assert (first["created_counts_by_level"], first["deleted_counts_by_level"]) == (
            {"contradiction": 1, "deductive": 1},
            {"explicit": 2},
        )
        assert (
            first["created_observation_count"],
            first["deleted_observation_count"],
            first["peer_card_updated"],
        ) == (2, 2, True)
        assert (
            second["specialist_type"],
            second["created_counts_by_level"],
            second["peer_card_updated"],
        ) == (
            "induction",
            {"inductive": 1},
            False,
        )
        assert [
            (data["iteration"], data["levels"])
            for data in memory.of("agent.tool.conclusions.created")
        ] == [
            (2, ["contradiction", "deductive"]),
            (1, ["inductive"]),
        ]
        assert [data["levels"] for data in memory.of("agent.tool.conclusions.deleted")] == [
            ["explicit"],
            ["explicit"],
        ]
        assert [data["facts_count"] for data in memory.of("agent.tool.peer_card.updated")] == [1]
        assert [
            (data["agent_type"], data["iteration"]) for data in memory.of("agent.iteration")
        ] == [
            *(("deduction", number) for number in (1, 2, 3)),
            *(("induction", number) for number in (1, 2)),
        ]
        assert len(memory.of("agent.tool.call.completed")) == 5
        assert {
            data["run_id"] for name, data in memory.events if name.startswith(("dream", "agent"))
        } == {run["run_id"]}
        assert "Berlin" not in repr(memory.events)


class TestTakingBack:
    def test_a_conclusion_is_withdrawn_without_a_successor(self, memory: DreamingMemory) -> None:
        memory.tell("Alice has a cold.", "Alice keeps bees.")
        memory.dream(
            calling(supersede(memory.uid("Alice has a cold."), None, "long over")), DONE, DONE
        )
        row = memory.rows()["Alice has a cold."]
        assert (row.state, row.superseded_by, row.internal["superseded"]) == (
            "superseded",
            None,
            "long over",
        )
        assert memory.pipeline.texts("alice") == ["Alice keeps bees."]
        assert memory.collection().explicit_count == 1

    def test_a_withdrawn_conclusion_supersedes_no_other(self, memory: DreamingMemory) -> None:
        memory.tell("One.", "Two.")
        memory.dream(
            calling(
                supersede(memory.uid("One."), memory.uid("Two."), "a"),
                supersede(memory.uid("Two."), None, "b"),
            ),
            DONE,
            DONE,
        )
        assert memory.pipeline.texts("alice") == ["One."]

    def test_a_conclusion_deleted_meanwhile_is_not_changed(self, memory: DreamingMemory) -> None:
        """Compare-and-set: the model decided about a row that is no longer what it was."""
        memory.tell("One.", "Two.", "Three.")
        deleted, remaining = memory.uid("One."), memory.uid("Two.")

        def meddle(request: CompletionRequest) -> Any:
            conclusions.delete(memory.pipeline.rt, PRINCIPAL, WORKSPACE, deleted)
            memory.model.say = lambda request: DONE
            return calling(
                supersede(deleted, remaining, "same"),
                (
                    "create_conclusions",
                    {"conclusions": [item("Rests on the deleted.", "deductive", deleted)]},
                ),
            )

        memory.model.say = meddle
        task = memory.dream()
        assert memory.rows()["One."].state == "deleted"
        assert memory.pipeline.texts("alice") == ["Two.", "Three."]
        assert (task.outcome["superseded"], task.outcome["outdated"]) == (0, 1)


class TestLookingUp:
    def test_conclusions_beyond_the_newest_can_be_looked_up_and_cited(
        self, memory: DreamingMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memservice.pipeline.dream.handler.MAX_KNOWN_COSTLY", 1)
        memory.tell("Alice was born in Turin.", "Alice keeps bees.")
        born = memory.uid("Alice was born in Turin.")
        memory.dream(
            calling(("search_memory", {"query": "born in Turin"})),
            calling(
                (
                    "create_conclusions",
                    {"conclusions": [item("Alice is from Italy.", "deductive", born)]},
                ),
                supersede(born, "#0", "implied"),
            ),
            DONE,
            DONE,
        )
        assert memory.rows()["Alice is from Italy."].source_ids == [born]
        assert memory.rows()["Alice was born in Turin."].state == "superseded"

    def test_look_ups_are_limited_to_the_observer(self, memory: DreamingMemory) -> None:
        memory.tell("Alice keeps bees.")
        memory.tell("Bob robs banks.", peer="bob", session="secret")
        memory.dream(
            calling(
                ("search_memory", {"query": "banks"}), ("search_messages", {"query": "banks robs"})
            ),
            DONE,
            DONE,
        )
        tool_answers = [
            turn.content
            for request in memory.model.requests
            for turn in request.turns
            if turn.role == "tool"
        ]
        assert tool_answers
        assert all("banks" not in text for text in tool_answers)


class TestFailure:
    def test_a_phase_that_fails_is_recorded(self, memory: DreamingMemory) -> None:
        memory.tell("Alice keeps bees.")
        bees = memory.uid("Alice keeps bees.")
        task = memory.dream(
            ModelFailure("no", retryable=False),
            create(item("Alice likes animals.", "inductive", bees)),
            DONE,
        )
        assert (task.state, task.outcome["failed_phases"]) == (
            "done",
            {"deduction": "ModelFailure"},
        )
        assert "Alice likes animals." in memory.pipeline.texts("alice")
        (run,) = memory.of("dream.run")
        assert (run["deduction_success"], run["induction_success"]) == (False, True)
        first, _ = memory.of("dream.specialist")
        assert (first["success"], first["error_class"]) == (False, "ModelFailure")
        assert memory.collection().last_dream_at is not None

    def test_a_dream_waits_if_the_provider_fails_in_one_phase(self, memory: DreamingMemory) -> None:
        memory.tell("Alice keeps bees.")
        task = memory.dream(DONE, ModelFailure("no", retryable=False, status=401))
        assert (task.state, task.attempts) == ("pending", 0)
        assert "unavailable" in (task.last_error or "")
        assert memory.collection().last_dream_at is None

    def test_a_dream_without_results_is_retried(self, memory: DreamingMemory) -> None:
        memory.tell("Alice keeps bees.")
        task = memory.dream(*[ModelFailure("no", retryable=False)] * 2)
        assert (task.state, task.attempts) == ("pending", 1)
        assert memory.collection().last_dream_at is None
        assert memory.of("dream.run") == []
        memory.pipeline.clock.advance(hours=1)
        memory.pipeline.work()
        (task,) = memory.pipeline.tasks(kinds.DREAM)
        assert task.state == "done"

    @pytest.mark.slow
    def test_a_long_dream_keeps_its_lease(self, open_pipeline: OpenPipeline) -> None:
        """A model takes longer than a lease lasts; no other worker may run the same dream."""
        memory = open_pipeline(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="0.01")
        memory.tell("Alice keeps bees.")
        rt = memory.pipeline.rt
        prolonged = threading.Event()
        expirations: list[Any] = []

        def slowly(request: CompletionRequest) -> str:
            with rt.storage.read() as tx:
                (lease,) = tx.rows.page(Lease, equals())
            if not expirations:
                for _ in range(200):
                    memory.pipeline.clock.advance(seconds=0.02)
                    prolonged.wait(0.02)
                    with rt.storage.read() as tx:
                        (now,) = tx.rows.page(Lease, equals())
                    if now.expires_at > lease.expires_at:
                        expirations.append(now)
                        break
                assert Worker(rt).run_until_idle(1) == []
            return DONE

        memory.model.say = slowly
        task = memory.dream()
        assert expirations
        assert task.state == "done"


class TestCard:
    def test_refreshing_changes_the_card_only(self, memory: DreamingMemory) -> None:
        memory.tell("Alice keeps bees.")
        before = memory.rows()
        task = memory.dream(
            calling(("update_peer_card", {"lines": ["ATTRIBUTE: keeps bees"]})),
            DONE,
            kind=dreams.CARD_REFRESH,
        )
        assert memory.card() == ["ATTRIBUTE: keeps bees"]
        assert memory.rows() == before
        assert task.outcome == {"card_lines": 1}
        assert memory.collection().last_dream_at is None
        (run,) = memory.of("dream.run")
        assert (run["dream_type"], run["specialists_run"]) == ("card_refresh", ["card_refresh"])

    def test_rebuilding_hides_the_old_card(self, memory: DreamingMemory) -> None:
        memory.tell("Alice keeps bees.")
        memory.dream(
            calling(("update_peer_card", {"lines": ["ATTRIBUTE: keeps wasps"]})),
            DONE,
            kind=dreams.CARD_REFRESH,
        )
        memory.model.requests.clear()
        memory.dream(
            calling(("update_peer_card", {"lines": ["ATTRIBUTE: keeps bees"]})),
            DONE,
            kind=dreams.CARD_REFRESH,
            rebuild=True,
        )
        assert all("wasps" not in turn.content for turn in memory.model.requests[0].turns)
        assert memory.card() == ["ATTRIBUTE: keeps bees"]

    def test_lines_written_by_a_caller_meanwhile_are_kept(self, memory: DreamingMemory) -> None:
        memory.tell("Alice keeps bees.")

        def write(request: CompletionRequest) -> Any:
            cards.put(
                memory.pipeline.rt, PRINCIPAL, WORKSPACE, "alice", None, ["Written meanwhile"]
            )
            memory.model.say = lambda request: DONE
            return calling(("update_peer_card", {"lines": ["ATTRIBUTE: keeps bees"]}))

        memory.model.say = write
        memory.dream()
        assert memory.card() == ["Written meanwhile"]
        with memory.pipeline.rt.storage.read() as tx:
            assert tx.rows.count(Card) == 1


class Meanings(LengthEmbedder):
    """Understands what texts say, as far as a test needs it: those with the same first word mean
    the same."""

    duplicate_distance = 0.05

    def __init__(self) -> None:
        super().__init__("meanings-1", Capability.SEMANTIC, Capability.INLINE)

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        angles = [sum(map(ord, text.split()[0])) % 360 for text in texts]
        return [
            np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))], np.float32)
            for angle in angles
        ]


class TestLikeness:
    """With an embedder that understands, what says the same in other words is not piled up."""

    def dreams(self, open_pipeline: OpenPipeline, *contents: str) -> tuple[DreamingMemory, Task]:
        memory = open_pipeline(Meanings(), EMBEDDER="lengths")
        memory.tell("Alice keeps bees.")
        bees = memory.uid("Alice keeps bees.")
        task = None
        for content in contents:
            task = memory.dream(create(item(content, "deductive", bees)), DONE, DONE)
        assert task is not None
        return memory, task

    def test_a_less_detailed_statement_reinforces_the_more_detailed_one(
        self, open_pipeline: OpenPipeline
    ) -> None:
        memory, task = self.dreams(
            open_pipeline, "Apiculture occupies her every weekend.", "Apiculture occupies her."
        )
        assert memory.rows(level="deductive").keys() == {"Apiculture occupies her every weekend."}
        assert (
            memory.rows(level="deductive")["Apiculture occupies her every weekend."].times_derived
            == 2
        )
        assert (task.outcome["created"], task.outcome["reinforced"]) == (0, 1)

    def test_a_more_detailed_statement_replaces_the_less_detailed_one(
        self, open_pipeline: OpenPipeline
    ) -> None:
        memory, task = self.dreams(
            open_pipeline, "Apiculture occupies her.", "Apiculture occupies her every weekend."
        )
        rows = memory.rows(level="deductive")
        poorer, richer = (
            rows["Apiculture occupies her."],
            rows["Apiculture occupies her every weekend."],
        )
        assert (poorer.state, poorer.superseded_by, richer.state, richer.times_derived) == (
            "superseded",
            richer.key,
            "live",
            2,
        )
        assert (task.outcome["created"], task.outcome["superseded"]) == (1, 1)

    def test_statements_with_different_numbers_are_not_merged(
        self, open_pipeline: OpenPipeline
    ) -> None:
        memory, _ = self.dreams(
            open_pipeline, "Apiculture takes her 3 hours.", "Apiculture takes her 5 hours."
        )
        assert {row.state for row in memory.rows(level="deductive").values()} == {"live"}

    def test_statements_of_different_levels_are_not_merged(
        self, open_pipeline: OpenPipeline
    ) -> None:
        memory, _ = self.dreams(open_pipeline, "Alice keeps bees and more bees.")
        assert {row.level for row in memory.rows(state="live").values()} == {
            "explicit",
            "deductive",
        }
