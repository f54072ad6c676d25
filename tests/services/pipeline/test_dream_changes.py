"""What a dream by a language model may take from memory, and how it is reviewed and undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.app import create_app
from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import equals
from memservice.domain.records import Conclusion, Task
from memservice.operations import doctor
from memservice.pipeline.dream import handler
from memservice.services import (
    cards,
    conclusions,
    deletion,
    dream_changes,
    dream_descriptions,
    dreams,
    supersession,
    workspaces,
)
from memservice.services.conclusions import ConclusionDraft
from memservice.services.dreams import DreamRequest
from memservice.services.paging import Paging
from memservice.services.tasks import jobs, kinds, model_breaker
from memservice.services.usage import budget
from memservice.spi.capabilities import Capability
from memservice.spi.llm import ModelFailure
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Known, Statement, Superseded
from memservice.worker import retention
from services.pipeline.conftest import OpenPipeline
from support.pipeline.fakes import LengthEmbedder, ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

Plan = Callable[[Sequence[Known]], Consolidated]
MANY = 30
FLUSH = {"DERIVER_FLUSH_ENABLED": "true"}


class Dreamer(ScriptedReasoner):
    """A model whose dreams a test decides."""

    def __init__(self) -> None:
        super().__init__(Capability.COSTLY)
        self.plan: Plan = lambda candidates: Consolidated()
        self.dreams = 0

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        self.dreams += 1
        return self.plan(request.known)


class DreamingMemory:
    def __init__(self, pipeline: Pipeline, model: Dreamer) -> None:
        self.pipeline, self.model = pipeline, model
        self.rt = pipeline.rt

    def tell(self, *texts: str) -> None:
        for text in texts:
            self.pipeline.clock.advance(minutes=1)
            self.pipeline.say("s", ("alice", text))
        self.pipeline.work()

    def dream(self, plan: Plan) -> Task:
        self.model.plan = plan
        request = DreamRequest("alice", dreams.OMNI)
        assert dreams.schedule(self.rt, PRINCIPAL, WORKSPACE, request)
        self.pipeline.work()
        return self.pipeline.tasks(kinds.DREAM)[-1]

    def live(self) -> set[str]:
        return set(self.pipeline.texts("alice"))

    def search(self, text: str) -> list[str]:
        """What search finds, which shows that the indexes follow."""
        filters = {"observer": "alice", "observed": "alice"}
        rows = conclusions.query(self.rt, PRINCIPAL, WORKSPACE, text, 10, None, filters)
        return [row.content for row in rows]


def sweep(memory: DreamingMemory, task: Task, days: int) -> None:
    """Erase what is over after so many days, until the task is gone. Its time catches up with the
    clock by a day a minute, instead of the hour that test_clocks tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "CATCH_UP", timedelta(days=1))
        memory.pipeline.clock.advance(days=days)
        for _ in range(days):
            retention.sweep(memory.rt)
            memory.pipeline.clock.advance(seconds=61)
            if not memory.pipeline.tasks(task.kind, uid=task.uid):
                return


@pytest.fixture
def memory(open_pipeline: OpenPipeline) -> DreamingMemory:
    model = Dreamer()
    return DreamingMemory(open_pipeline(reasoner=model, **FLUSH), model)


def uid(candidates: Sequence[Known], text: str) -> str:
    (match,) = [item.uid for item in candidates if item.content == text]
    return match


def dropping(*texts: str) -> Plan:
    return lambda candidates: Consolidated(
        superseded=[Superseded(uid(candidates, text), None, "wrong") for text in texts]
    )


def dropping_all(candidates: Sequence[Known]) -> Consolidated:
    return Consolidated(superseded=[Superseded(item.uid, None, "hidden") for item in candidates])


def merging(number: int) -> Plan:
    """The oldest ones give way to the newest."""
    return lambda candidates: Consolidated(
        superseded=[
            Superseded(item.uid, candidates[-1].uid, "the same") for item in candidates[:number]
        ]
    )


def show(memory: DreamingMemory, task: Task) -> dream_descriptions.Dream:
    return dream_descriptions.show(memory.rt, PRINCIPAL, WORKSPACE, task.uid)


class TestBounds:
    @pytest.mark.slow
    def test_a_dream_that_would_supersede_everything_is_held(self, memory: DreamingMemory) -> None:
        memory.tell(*(f"I like tea number {n}." for n in range(MANY)))
        task = memory.dream(dropping_all)
        assert (len(memory.live()), task.state) == (MANY, "held")
        assert task.outcome["held"] == ("it supersedes 30 of 30 conclusions; at most 6 are allowed")

    @pytest.mark.parametrize(("number", "state"), [(6, "done"), (7, "held")])
    @pytest.mark.slow
    def test_a_fifth_may_be_superseded(
        self, memory: DreamingMemory, number: int, state: str
    ) -> None:
        memory.tell(*(f"I like tea number {n}." for n in range(MANY)))
        assert memory.dream(merging(number)).state == state
        assert len(memory.live()) == (MANY - number if state == "done" else MANY)

    @pytest.mark.slow
    @pytest.mark.parametrize(("number", "state"), [(5, "done"), (6, "held")])
    def test_five_may_always_be_superseded(
        self, memory: DreamingMemory, number: int, state: str
    ) -> None:
        memory.tell(*(f"I like tea number {n}." for n in range(8)))
        assert memory.dream(merging(number)).state == state

    @pytest.mark.slow
    @pytest.mark.parametrize(("number", "state"), [(2, "done"), (3, "held")])
    def test_two_may_be_withdrawn_without_a_successor(
        self, memory: DreamingMemory, number: int, state: str
    ) -> None:
        texts = [f"I like tea number {n}." for n in range(MANY)]
        memory.tell(*texts)
        assert memory.dream(dropping(*texts[:number])).state == state

    @pytest.mark.slow
    def test_a_reasoner_without_a_model_is_not_bounded(self, open_pipeline: OpenPipeline) -> None:
        model = Dreamer()
        model.capabilities = frozenset()
        memory = DreamingMemory(open_pipeline(reasoner=model), model)
        memory.tell(*(f"I like tea number {n}." for n in range(8)))
        assert memory.dream(merging(7)).state == "done"

    @pytest.mark.slow
    @pytest.mark.parametrize(("number", "state"), [(5, "done"), (6, "held")])
    def test_what_new_conclusions_replace_counts(
        self, open_pipeline: OpenPipeline, number: int, state: str
    ) -> None:
        """A new conclusion that says the same in more words supersedes the old one by itself."""
        model, embedder = Dreamer(), LengthEmbedder("lengths-1", Capability.SEMANTIC)
        embedder.duplicate_distance = 0.05
        memory = DreamingMemory(
            open_pipeline(embedder, reasoner=model, EMBEDDER="lengths", **FLUSH), model
        )
        memory.tell("I like food.")
        texts = [f"Food {n} is {'very ' * 2**n}good" for n in range(6)]

        def drawing(texts: Sequence[str]) -> Plan:
            def plan(candidates: Sequence[Known]) -> Consolidated:
                sources = (candidates[0].uid,)
                return Consolidated([Statement(text, (), "deductive", sources) for text in texts])

            return plan

        memory.dream(drawing(texts))
        assert len(memory.live()) == 7
        fuller = [f"{text} to eat" for text in texts[:number]]
        task = memory.dream(drawing(fuller))
        assert task.state == state, task.outcome
        assert len(memory.live()) == 7
        assert memory.live().issuperset(fuller) == (state == "done")


class TestRules:
    def test_an_older_statement_does_not_replace_a_newer_one(self, memory: DreamingMemory) -> None:
        memory.tell("I live in Rome.", "I live in Oslo.")
        task = memory.dream(
            lambda candidates: Consolidated(
                superseded=[Superseded(candidates[1].uid, candidates[0].uid, "no")]
            )
        )
        assert memory.live() == {"I live in Rome.", "I live in Oslo."}
        assert task.outcome["kept_as_newer"] == 1

    @pytest.mark.slow
    def test_a_successor_of_an_explicit_conclusion_shares_a_word(
        self, memory: DreamingMemory
    ) -> None:
        memory.tell("I own a tortoise named Balthazar.", "My car is blue.", "Balthazar died.")
        old, car, died = "I own a tortoise named Balthazar.", "My car is blue.", "Balthazar died."
        task = memory.dream(
            lambda candidates: Consolidated(
                superseded=[Superseded(uid(candidates, old), uid(candidates, car), "no")]
            )
        )
        assert (len(memory.live()), task.outcome["kept_as_unrelated"]) == (3, 1)
        memory.dream(
            lambda candidates: Consolidated(
                superseded=[Superseded(uid(candidates, old), uid(candidates, died), "newer")]
            )
        )
        assert memory.live() == {car, died}

    def test_a_conclusion_of_a_caller_needs_a_successor(self, memory: DreamingMemory) -> None:
        memory.tell("I sing.")
        draft = ConclusionDraft("Alice has an allergy to nuts.", "alice", "alice")
        conclusions.create(memory.rt, PRINCIPAL, WORKSPACE, [draft])
        task = memory.dream(dropping("Alice has an allergy to nuts.", "I sing."))
        assert memory.live() == {"Alice has an allergy to nuts."}
        assert task.outcome["kept_as_stored_by_caller"] == 1

    @pytest.mark.slow
    def test_a_conclusion_derived_three_times_needs_a_successor(
        self, memory: DreamingMemory
    ) -> None:
        memory.tell("I sing.", "I sing.", "I sing.", "I dance.", "I dance.")
        task = memory.dream(dropping("I sing.", "I dance."))
        assert memory.live() == {"I sing."}
        assert task.outcome["kept_as_confirmed"] == 1


class TestReview:
    def held_dream(self, memory: DreamingMemory) -> Task:
        memory.tell(*(f"I like tea number {n}." for n in range(8)))

        def plan(candidates: Sequence[Known]) -> Consolidated:
            statement = Statement(
                "Alice likes tea.", (), "deductive", (candidates[0].uid, candidates[1].uid)
            )
            steps = [Superseded(item.uid, "#0", "one habit") for item in candidates[:6]]
            # said later than all of them
            newest = replace_sources(statement, candidates[-1].uid)
            return Consolidated([newest], steps, ["ATTRIBUTE: Likes tea"])

        return memory.dream(plan)

    @pytest.mark.slow
    def test_a_proposal_is_shown_with_its_texts(self, memory: DreamingMemory) -> None:
        task = self.held_dream(memory)
        dream = show(memory, task)
        assert (dream.state, dream.created, dream.superseded) == ("held", 1, 6)
        assert dream.reason == "it supersedes 6 of 8 conclusions; at most 5 are allowed"
        assert [change.action for change in dream.changes] == ["create"] + ["supersede"] * 6
        assert dream.changes[1].content == "I like tea number 0."
        assert dream.changes[1].successor == "Alice likes tea."
        page = dream_descriptions.page(memory.rt, PRINCIPAL, WORKSPACE, Paging())
        assert [(item.uid, item.state, item.changes) for item in page.items] == [
            (task.uid, "held", ())
        ]

    @pytest.mark.slow
    def test_an_applied_proposal_is_stored_without_a_call(self, memory: DreamingMemory) -> None:
        task = self.held_dream(memory)
        called = memory.model.dreams
        dream_changes.apply(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        memory.pipeline.work()
        assert memory.model.dreams == called
        assert memory.live() == {
            "Alice likes tea.",
            "I like tea number 6.",
            "I like tea number 7.",
        }
        assert show(memory, task).state == "done"
        assert dream_changes.PROPOSAL not in memory.pipeline.tasks(kinds.DREAM)[-1].payload

    @pytest.mark.slow
    def test_a_callers_line_that_was_replaced_since_does_not_return(
        self, memory: DreamingMemory
    ) -> None:
        """A proposal has the lines of callers that the dream read."""
        memory.tell(*(f"I like tea number {n}." for n in range(8)))
        cards.put(memory.rt, PRINCIPAL, WORKSPACE, "alice", None, ["ATTRIBUTE: old", "stays"])

        def plan(candidates: Sequence[Known]) -> Consolidated:
            lines = ["ATTRIBUTE: old", "stays", "ATTRIBUTE: Likes tea"]
            return replace(dropping_all(candidates), card=lines)

        task = memory.dream(plan)
        cards.put(memory.rt, PRINCIPAL, WORKSPACE, "alice", None, ["ATTRIBUTE: new", "stays"])
        dream_changes.apply(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        memory.pipeline.work()
        assert cards.get(memory.rt, PRINCIPAL, WORKSPACE, "alice") == [
            "ATTRIBUTE: new",
            "stays",
            "ATTRIBUTE: Likes tea",
        ]

    @pytest.mark.slow
    def test_a_discarded_proposal_leaves_no_text(self, memory: DreamingMemory) -> None:
        task = self.held_dream(memory)
        dream_changes.discard(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        assert len(memory.live()) == 8
        assert show(memory, task).state == "discarded"
        assert "Alice likes tea." not in str(memory.pipeline.tasks(kinds.DREAM)[-1])
        for command in (dream_changes.discard, dream_changes.apply, dream_changes.undo):
            with pytest.raises(Conflict):
                command(memory.rt, PRINCIPAL, WORKSPACE, task.uid)

    @pytest.mark.slow
    def test_a_newer_proposal_replaces_the_older_one(self, memory: DreamingMemory) -> None:
        older, newer = self.held_dream(memory), memory.dream(dropping_all)
        assert [show(memory, task).state for task in (older, newer)] == ["discarded", "held"]

    @pytest.mark.slow
    def test_doctor_and_the_failures_show_it(self, memory: DreamingMemory) -> None:
        task = self.held_dream(memory)
        (check,) = [check for check in doctor.look(memory.rt) if check.name == "dreams"]
        assert (check.state, check.found.split()[0]) == (doctor.DEGRADED, "1")
        (job,) = jobs.failures(memory.rt, PRINCIPAL, WORKSPACE, Paging()).items
        assert (job.task.uid, job.task.state) == (task.uid, "held")

    @pytest.mark.slow
    def test_a_proposal_is_erased_with_its_source_session(self, memory: DreamingMemory) -> None:
        task = self.held_dream(memory)
        deletion.delete_session(memory.rt, PRINCIPAL, WORKSPACE, "s")
        memory.pipeline.work()
        assert show(memory, task).state == "discarded"

    @pytest.mark.slow
    def test_an_applied_proposal_is_stored_although_dreams_are_switched_off(
        self, memory: DreamingMemory
    ) -> None:
        task = self.held_dream(memory)
        workspaces.update(memory.rt, PRINCIPAL, WORKSPACE, None, {"dream": {"enabled": False}})
        dream_changes.apply(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        memory.pipeline.work()
        assert "Alice likes tea." in memory.live()
        assert "skipped" not in show_task(memory, task).outcome

    @pytest.mark.slow
    @pytest.mark.parametrize("is_applied", [False, True])
    def test_a_proposal_is_erased_with_its_source_conclusion(
        self, memory: DreamingMemory, is_applied: bool
    ) -> None:
        task = self.held_dream(memory)
        if is_applied:
            dream_changes.apply(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        (source, *_) = task.payload[dream_changes.PROPOSAL]["reads"]
        conclusions.delete(memory.rt, PRINCIPAL, WORKSPACE, source)
        assert "Alice likes tea." not in str(show_task(memory, task))
        memory.pipeline.work()
        assert show(memory, task).state == "discarded"
        assert len(memory.live()) == 7

    @pytest.mark.slow
    def test_an_applied_proposal_waits_for_no_model(
        self, memory: DreamingMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The model is unavailable, and the budget is used up."""
        task = self.held_dream(memory)
        memory.model.capabilities = frozenset({Capability.COSTLY, Capability.REMOTE})
        failure = ModelFailure("status 500", retryable=True, status=500, retry_after=600)
        assert model_breaker.open_(memory.rt, "reasoner scripted", failure, task) is not None
        tomorrow = memory.pipeline.clock() + timedelta(days=1)
        monkeypatch.setattr(budget, "paused_until", lambda rt, key: tomorrow)
        dream_changes.apply(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        memory.pipeline.work()
        assert show(memory, task).state == "done"
        assert "Alice likes tea." in memory.live()

    @pytest.mark.slow
    def test_a_skipped_proposal_leaves_no_text(
        self, memory: DreamingMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = self.held_dream(memory)
        dream_changes.apply(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        monkeypatch.setattr(
            handler, "_read", lambda *arguments, **more: "no conclusions are stored"
        )
        memory.pipeline.work()
        assert show_task(memory, task).outcome == {"skipped": "no conclusions are stored"}
        assert "Alice likes tea." not in str(show_task(memory, task))

    @pytest.mark.slow
    def test_a_proposal_that_is_not_reviewed_is_erased_like_other_dreams(
        self, memory: DreamingMemory
    ) -> None:
        task = self.held_dream(memory)
        for days, tasks in ((2, 1), (31, 0)):
            sweep(memory, task, days)
            assert len(memory.pipeline.tasks(kinds.DREAM, uid=task.uid)) == tasks

    @pytest.mark.slow
    def test_its_card_goes_with_any_conclusion_that_the_model_could_read(
        self, memory: DreamingMemory
    ) -> None:
        task = self.held_dream(memory)
        other = show(memory, task).changes
        with memory.rt.storage.read() as tx:
            (last,) = tx.rows.page(Conclusion, equals(content="I like tea number 6."))
        assert last.uid not in {change.conclusion_id for change in other}
        assert show(memory, task).card is not None
        conclusions.delete(memory.rt, PRINCIPAL, WORKSPACE, last.uid)
        dream = show(memory, task)
        assert (dream.state, dream.card, dream.created) == ("held", None, 1)
        assert "Likes tea" not in str(show_task(memory, task))

    @pytest.mark.slow
    def test_its_card_stays_if_a_newer_conclusion_is_deleted(self, memory: DreamingMemory) -> None:
        task = self.held_dream(memory)
        memory.tell("I like coffee.")
        with memory.rt.storage.read() as tx:
            (newer,) = tx.rows.page(Conclusion, equals(content="I like coffee."))
        conclusions.delete(memory.rt, PRINCIPAL, WORKSPACE, newer.uid)
        assert show(memory, task).card is not None

    @pytest.mark.slow
    def test_another_workspace_has_no_such_dream(self, memory: DreamingMemory) -> None:
        task = self.held_dream(memory)
        for command in (dream_descriptions.show, dream_changes.apply, dream_changes.undo):
            with pytest.raises(NotFound):
                command(memory.rt, PRINCIPAL, "other", task.uid)
        with pytest.raises(NotFound):
            dream_descriptions.show(
                memory.rt, PRINCIPAL, WORKSPACE, memory.pipeline.tasks(kinds.REPRESENTATION)[0].uid
            )


def show_task(memory: DreamingMemory, task: Task) -> Task:
    (row,) = [row for row in memory.pipeline.tasks(kinds.DREAM) if row.uid == task.uid]
    return row


def replace_sources(statement: Statement, *uids: str) -> Statement:
    return Statement(statement.content, (), statement.level, (*statement.source_ids, *uids))


class TestUndo:
    @pytest.mark.slow
    def test_rows_indexes_counts_and_card_are_as_before(self, memory: DreamingMemory) -> None:
        memory.tell("I live in Rome.", "I live in Oslo.", "I like tea.")
        cards.put(memory.rt, PRINCIPAL, WORKSPACE, "alice", None, ["Name: Alice"])
        before = (memory.live(), memory.pipeline.counted("alice"))

        def plan(candidates: Sequence[Known]) -> Consolidated:
            oslo = uid(candidates, "I live in Oslo.")
            statement = Statement(
                "Alice moved to Oslo.", (), "deductive", (oslo, candidates[0].uid)
            )
            steps = [
                Superseded(uid(candidates, "I live in Rome."), oslo, "moved"),
                Superseded(uid(candidates, "I like tea."), None, "wrong"),
            ]
            return Consolidated([statement], steps, ["Name: Alice", "ATTRIBUTE: Lives in Oslo"])

        task = memory.dream(plan)
        assert memory.live() == {"I live in Oslo.", "Alice moved to Oslo."}
        assert "I like tea." not in memory.search("tea")
        assert cards.get(memory.rt, PRINCIPAL, WORKSPACE, "alice") == [
            "Name: Alice",
            "ATTRIBUTE: Lives in Oslo",
        ]
        dream = show(memory, task)
        assert {(change.action, change.content) for change in dream.changes} == {
            ("create", "Alice moved to Oslo."),
            ("supersede", "I live in Rome."),
            ("supersede", "I like tea."),
        }
        undone = dream_changes.undo(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        memory.pipeline.work()
        assert undone == dream_changes.Undone(2, 1, 0, card_restored=True)
        assert (memory.live(), memory.pipeline.counted("alice")) == before
        assert "I like tea." in memory.search("tea")
        assert "Alice moved to Oslo." not in memory.search("moved to Oslo")
        assert cards.get(memory.rt, PRINCIPAL, WORKSPACE, "alice") == ["Name: Alice"]
        assert show(memory, task).state == "undone"
        with pytest.raises(Conflict):
            dream_changes.undo(memory.rt, PRINCIPAL, WORKSPACE, task.uid)

    def test_later_changes_are_not_undone(self, memory: DreamingMemory) -> None:
        memory.tell("I live in Rome.", "I live in Oslo.")

        def plan(candidates: Sequence[Known]) -> Consolidated:
            moved = Statement("Alice moved to Oslo.", (), "deductive", (candidates[1].uid,))
            return Consolidated(
                [moved], [Superseded(candidates[0].uid, candidates[1].uid, "moved")]
            )

        first = memory.dream(plan)
        assert "Alice moved to Oslo." in memory.live()
        with memory.rt.storage.read() as tx:
            (moved,) = tx.rows.page(Conclusion, equals(content="Alice moved to Oslo."))
        conclusions.delete(memory.rt, PRINCIPAL, WORKSPACE, moved.uid)
        undone = dream_changes.undo(memory.rt, PRINCIPAL, WORKSPACE, first.uid)
        assert (undone.restored, undone.removed, undone.kept) == (1, 0, 1)

    @pytest.mark.slow
    def test_recorded_card_lines_go_with_any_conclusion_of_the_pair(
        self, memory: DreamingMemory
    ) -> None:
        memory.tell("I live in Rome.", "I live in Oslo.", "I like tea.")

        def plan(candidates: Sequence[Known]) -> Consolidated:
            oslo = uid(candidates, "I live in Oslo.")
            steps = [Superseded(uid(candidates, "I live in Rome."), oslo, "moved")]
            return Consolidated([], steps, ["ATTRIBUTE: Likes tea"])

        task = memory.dream(plan)
        assert show(memory, task).card is not None
        (tea,) = [row for row in memory.pipeline.conclusions("alice") if "tea" in row.content]
        conclusions.delete(memory.rt, PRINCIPAL, WORKSPACE, tea.uid)
        assert show(memory, task).card is None
        assert "Likes tea" not in str(show_task(memory, task))
        undone = dream_changes.undo(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        assert (undone.restored, undone.card_restored) == (1, False)

    @pytest.mark.slow
    def test_finished_dreams_are_kept_longer_than_other_tasks(self, memory: DreamingMemory) -> None:
        memory.tell("I live in Rome.", "I live in Oslo.")
        task = memory.dream(dropping("I live in Rome."))
        for days, expected in ((2, 1), (31, 0)):
            sweep(memory, task, days)
            assert len(memory.pipeline.tasks(kinds.DREAM, uid=task.uid)) == expected
            assert memory.pipeline.tasks(kinds.REPRESENTATION) == []


class TestTwins:
    """A conclusion that is restored after the same was stated again."""

    def again(self, memory: DreamingMemory, session: str = "s") -> tuple[Task, str]:
        memory.tell("I like tea.", "I sing.")
        task = memory.dream(dropping("I like tea."))
        memory.pipeline.clock.advance(minutes=1)
        memory.pipeline.say(session, ("alice", "I like tea."))
        memory.pipeline.work()
        (change,) = show(memory, task).changes
        assert change.conclusion_id is not None
        return task, change.conclusion_id

    @pytest.mark.slow
    @pytest.mark.parametrize("session", ["s", "another"])
    def test_restore_answers_with_the_live_one(self, memory: DreamingMemory, session: str) -> None:
        _, old = self.again(memory, session)
        before = memory.pipeline.conclusions("alice")
        restored = supersession.restore(memory.rt, PRINCIPAL, WORKSPACE, old)
        assert (restored.content, restored.state) == ("I like tea.", "live")
        assert restored.uid != old
        assert memory.pipeline.conclusions("alice") == before
        assert memory.pipeline.counted("alice") == len(before)
        with memory.rt.storage.read() as tx:
            (row,) = tx.rows.page(Conclusion, equals(uid=old))
        assert (row.state, row.superseded_by) == ("superseded", restored.key)

    @pytest.mark.slow
    def test_undo_leaves_it_superseded(self, memory: DreamingMemory) -> None:
        task, _ = self.again(memory)
        undone = dream_changes.undo(memory.rt, PRINCIPAL, WORKSPACE, task.uid)
        assert (undone.restored, undone.kept) == (0, 1)
        assert sorted(memory.pipeline.texts("alice")) == ["I like tea.", "I sing."]

    def test_undo_takes_back_the_merge_of_equal_ones(self, memory: DreamingMemory) -> None:
        """Of two sessions: they were held side by side before the dream."""
        memory.tell("I like tea.")
        memory.pipeline.say("another", ("alice", "I like tea."))
        memory.pipeline.work()
        assert memory.pipeline.texts("alice") == ["I like tea."] * 2
        task = memory.dream(
            lambda candidates: Consolidated(
                superseded=[Superseded(candidates[0].uid, candidates[1].uid, "same")]
            )
        )
        assert memory.pipeline.texts("alice") == ["I like tea."]
        assert dream_changes.undo(memory.rt, PRINCIPAL, WORKSPACE, task.uid).restored == 1
        assert memory.pipeline.texts("alice") == ["I like tea."] * 2

    @pytest.mark.slow
    def test_the_deletion_of_the_live_ones_session_brings_it_back(
        self, memory: DreamingMemory
    ) -> None:
        _, old = self.again(memory, "another")
        supersession.restore(memory.rt, PRINCIPAL, WORKSPACE, old)
        deletion.delete_session(memory.rt, PRINCIPAL, WORKSPACE, "another")
        memory.pipeline.work()
        assert {
            row.uid for row in memory.pipeline.conclusions("alice") if "tea" in row.content
        } == {old}


class TestOverHttp:
    @pytest.mark.slow
    def test_a_superseded_conclusion_can_be_deleted(self, memory: DreamingMemory) -> None:
        memory.tell("I live in Rome.", "I live in Oslo.")
        memory.dream(
            lambda candidates: Consolidated(
                superseded=[Superseded(candidates[0].uid, candidates[1].uid, "old")]
            )
        )
        http = create_app(runtime=memory.rt).test_client()
        at = f"/v3/workspaces/{WORKSPACE}/conclusions"

        def rows() -> list[dict[str, Any]]:
            body: Any = http.post(f"{at}/list?include=superseded").json
            return list(body["items"])

        (old,) = [row["id"] for row in rows() if row["state"] == "superseded"]
        assert http.delete(f"{at}/{old}").status_code == 204
        assert http.delete(f"{at}/{old}").status_code == 404
        assert [row["content"] for row in rows()] == ["I live in Oslo."]
        assert memory.pipeline.counted("alice") == 1
        assert "I live in Oslo." in memory.search("Oslo")

    @pytest.mark.slow
    def test_list_show_undo_and_restore(self, memory: DreamingMemory) -> None:
        memory.tell("I live in Rome.", "I live in Oslo.")
        task = memory.dream(
            lambda candidates: Consolidated(
                superseded=[Superseded(candidates[0].uid, candidates[1].uid, "old")]
            )
        )
        http = create_app(runtime=memory.rt).test_client()
        at = f"/v3/workspaces/{WORKSPACE}"

        def do(method: str, path: str, status: int = 200) -> Any:
            answer = http.open(f"{at}{path}", method=method)
            assert answer.status_code == status, answer.text
            return answer.json

        (listed,) = do("GET", "/dreams")["items"]
        assert (listed["id"], listed["state"], listed["superseded"]) == (task.uid, "done", 1)
        (change,) = do("GET", f"/dreams/{task.uid}")["changes"]
        assert (change["content"], change["reason"]) == ("I live in Rome.", "old")
        rows = do("POST", "/conclusions/list?include=superseded")["items"]
        assert {row["content"]: row["state"] for row in rows} == {
            "I live in Rome.": "superseded",
            "I live in Oslo.": "live",
        }
        assert len(do("POST", "/conclusions/list")["items"]) == 1
        old = change["conclusion_id"]
        assert do("POST", f"/conclusions/{old}/restore")["content"] == "I live in Rome."
        assert memory.live() == {"I live in Rome.", "I live in Oslo."}
        assert memory.pipeline.counted("alice") == 2
        do("POST", f"/conclusions/{old}/restore")
        do("POST", "/conclusions/unknown/restore", 404)
        assert do("POST", f"/dreams/{task.uid}/undo")["kept"] == 1
        do("POST", f"/dreams/{task.uid}/undo", 409)
        do("POST", f"/dreams/{task.uid}/apply", 409)
        do("GET", "/dreams/unknown", 404)
