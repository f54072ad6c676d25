"""What a dream is asked, and the sessions and peers that are removed before it."""

from __future__ import annotations

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import Conclusion
from memservice.services import conclusions, deletion, dreams, scopes, sessions
from memservice.services.dreams import DreamRequest
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions
from memservice.services.tasks import kinds
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Statement, Superseded
from memservice.testing.storage.base import together
from support.pipeline.dreams import NO_REFRESH, Dreamer, DreamingMemory, OpenPipeline
from support.pipeline.dreams import memory as memory
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE


class TestRequest:
    def test_has_live_conclusions_oldest_first(self, memory: DreamingMemory) -> None:
        one, two, three = memory.tell("One.", "Two.", "Three.")
        conclusions.delete(memory.pipeline.rt, PRINCIPAL, WORKSPACE, two.uid)
        memory.dream()
        (request,) = memory.reasoner.dream_requests
        assert [(conclusion.uid, conclusion.content) for conclusion in request.known] == [
            (one.uid, "One."),
            (three.uid, "Three."),
        ]
        assert (request.observer, request.observed, request.card) == ("alice", "alice", [])
        assert {conclusion.session for conclusion in request.known} == {"s"}

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
        (conclusion,) = memory.pipeline.conclusions("bob", "alice")
        memory.dream(
            Consolidated([Statement("Alice is an artist.", (), "deductive", (conclusion.uid,))]),
            observer="bob",
            observed="alice",
        )
        assert memory.pipeline.texts("alice") == ["Alice paints."]
        assert memory.pipeline.texts("bob", "alice") == ["Alice paints.", "Alice is an artist."]
        # The word is not in the message, but in a conclusion that rests on it.
        (message,) = search.search(
            memory.pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions("artist")
        )
        assert message.content == "Alice paints."


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

    @pytest.mark.slow
    def test_a_superseded_conclusion_is_live_again(self, memory: DreamingMemory) -> None:
        memory.tell("One.", session="s")
        memory.tell("Two.", session="t")
        self.merge(memory, ("One.", "Two."))
        assert (memory.pipeline.texts("alice"), memory.collection().explicit_count) == (["Two."], 1)
        self.delete(memory, "t")
        assert (memory.pipeline.texts("alice"), memory.collection().explicit_count) == (["One."], 1)
        row = memory.rows()["One."]
        assert (row.superseded_by, row.internal) == (None, {})
        hits = conclusions.query(
            memory.pipeline.rt,
            PRINCIPAL,
            WORKSPACE,
            "One",
            filters={"observer": "alice", "observed": "alice"},
        )
        assert [item.content for item in hits] == ["One."]

    @pytest.mark.slow
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

    @pytest.mark.slow
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
    results: dict[str, list[str]] = {}

    def look(request: ConsolidateRequest) -> Consolidated:
        assert request.tools is not None
        for name, passages in (
            ("containing", request.tools.containing("bees", 9)),
            ("messages", request.tools.messages("bees", 9)),
            ("between", request.tools.between(None, None, 9)),
        ):
            results[name] = sorted(item.content for passage in passages for item in passage)
        return Consolidated()

    sessions.remove_peers(memory.pipeline.rt, PRINCIPAL, WORKSPACE, "s", ["alice"])
    memory.pipeline.say("s", ("bob", "Her bees are to be a surprise."))
    memory.reasoner.dream = look
    memory.dream()
    assert results == {name: ["I keep bees."] for name in ("containing", "messages", "between")}
