"""From messages to conclusions: observed peers, observers and instructions, and messages that are
not derived from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import DELETED, DELETING, Collection, Session
from memservice.pipeline.derive import handler as derive
from memservice.services import conclusions, peers, sessions, workspaces
from memservice.services.conclusions import ConclusionDraft
from memservice.services.indexing import CONCLUSION
from memservice.services.sessions import MemberConfig, SessionFields
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


def test_a_message_becomes_a_conclusion_with_its_source(pipeline: Pipeline) -> None:
    (message,) = pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.clock.advance(seconds=3)
    pipeline.work()
    (conclusion,) = pipeline.conclusions("alice")
    assert conclusion.content == "I live in Oslo."
    assert (conclusion.level, conclusion.session, conclusion.times_derived) == ("explicit", "s", 1)
    assert conclusion.message_keys == [message.key]
    assert (conclusion.said_at, conclusion.created_at) == (message.created_at, pipeline.clock())
    assert (conclusion.reasoner, conclusion.model) == ("scripted", "scripted-1")


@pytest.mark.slow
def test_the_default_reasoner_derives_from_end_to_end(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(REASONER="extractive")
    pipeline.say(
        "s",
        ("alice", "Hello! I moved to Lisbon in March. How are you?"),
        ("bob", "Alice plays the violin."),
    )
    pipeline.work()
    assert pipeline.texts("alice") == ["I moved to Lisbon in March."]
    assert pipeline.texts("bob") == ["Alice plays the violin."], (
        "what Bob says of Alice is Bob's statement"
    )
    assert pipeline.texts("alice", "bob") == []


def test_derived_conclusions_are_searchable(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I keep bees on the roof."), ("alice", "My car is green."))
    pipeline.work()
    hits = conclusions.query(
        pipeline.rt,
        PRINCIPAL,
        WORKSPACE,
        "bees",
        1,
        filters={"observer": "alice", "observed": "alice"},
    )
    assert [conclusion.content for conclusion in hits] == ["I keep bees on the roof."]


def test_a_task_that_derives_nothing_has_an_outcome(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(REASONER="extractive")
    pipeline.say("s", ("alice", "ok thanks"))
    pipeline.work()
    (task,) = pipeline.tasks()
    assert task.state == "done"
    assert task.finished_at is not None
    assert (task.outcome["statements"], task.outcome["stored"]) == (0, 0)
    with pipeline.rt.storage.read() as tx:
        assert tx.rows.count(Collection) == 0


def test_the_reasoner_gets_context_and_new_messages(pipeline: Pipeline) -> None:
    pipeline.say(
        "s",
        ("bob", "Where do you live?"),
        ("alice", "In Oslo."),
        ("bob", "I see."),
        ("alice", "Since May."),
    )
    pipeline.work()
    (request,) = [request for request in pipeline.reasoner.requests if request.observed == "alice"]
    shown = [(message.author, message.content, message.new) for message in request.messages]
    assert shown == [
        ("bob", "Where do you live?", False),
        ("alice", "In Oslo.", True),
        ("bob", "I see.", False),
        ("alice", "Since May.", True),
    ]


def test_the_reasoner_gets_display_names(pipeline: Pipeline) -> None:
    peers.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, "u-17", {"name": "Alice"}, None)
    pipeline.say("s", ("u-17", "I live in Oslo."), ("bob", "Good."))
    pipeline.work()
    (request,) = [request for request in pipeline.reasoner.requests if request.observed == "u-17"]
    assert request.names == {"u-17": "Alice"}


def test_messages_are_derived_in_order_however_they_are_batched(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derive, "MAX_BATCH", 3)
    for number in range(8):
        pipeline.say("s", ("alice", f"Fact number {number}."))
    pipeline.work()
    assert pipeline.reasoner.new_messages() == [
        [f"Fact number {n}." for n in batch] for batch in ((0, 1, 2), (3, 4, 5), (6, 7))
    ]
    assert pipeline.texts("alice") == [f"Fact number {n}." for n in range(8)]


def test_a_costly_reasoner_gets_batches_of_bounded_tokens(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY),
        DERIVER_REPRESENTATION_BATCH_TARGET_INPUT_TOKENS="40",
        DERIVER_FLUSH_ENABLED="true",
    )
    messages = pipeline.say(
        "s",
        *[
            ("alice", f"Fact number {number} is about a lighthouse in the north.")
            for number in range(7)
        ],
    )
    each = messages[0].tokens
    pipeline.work()
    sizes = [len(batch) for batch in pipeline.reasoner.new_messages()]
    assert sum(sizes) == 7
    assert all(size == 40 // each for size in sizes[:-1])


def test_one_long_message_is_derived_whatever_the_bound(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY),
        DERIVER_REPRESENTATION_BATCH_TARGET_INPUT_TOKENS="1",
        DERIVER_FLUSH_ENABLED="true",
    )
    pipeline.say(
        "s", ("alice", "A message with many more tokens than one."), ("alice", "And another one.")
    )
    pipeline.work()
    assert [len(batch) for batch in pipeline.reasoner.new_messages()] == [1, 1]


def test_observers_get_the_same_conclusions_in_their_own_collections(pipeline: Pipeline) -> None:
    pipeline.join("s", bob=MemberConfig(observe_others=True), carol=MemberConfig())
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert pipeline.texts("alice") == pipeline.texts("bob", "alice") == ["I live in Oslo."]
    assert pipeline.texts("carol", "alice") == []
    assert pipeline.conclusions("alice")[0].uid != pipeline.conclusions("bob", "alice")[0].uid
    assert (pipeline.counted("alice"), pipeline.counted("bob", "alice")) == (1, 1)
    assert len(pipeline.reasoner.requests) == 1, "the reasoner is asked once, whoever observes"


def test_a_member_that_left_no_longer_observes(pipeline: Pipeline) -> None:
    pipeline.join("s", bob=MemberConfig(observe_others=True))
    sessions.remove_peers(pipeline.rt, PRINCIPAL, WORKSPACE, "s", ["bob"])
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I live in Oslo."]
    assert pipeline.texts("bob", "alice") == []


def test_a_deleted_conclusion_is_neither_counted_nor_indexed(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I keep bees."), ("alice", "I live in Oslo."))
    pipeline.work()
    deleted = next(row for row in pipeline.conclusions("alice") if "bees" in row.content)
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, deleted.uid)
    pipeline.work()
    assert pipeline.counted("alice") == 1
    with pipeline.rt.storage.read() as tx:
        matches = pipeline.rt.storage.text.search(
            tx, CONCLUSION, deleted.workspace_key, ["bee", "oslo"], 10, EVERYTHING
        )
    assert [hit.key for hit in matches.hits] == [row.key for row in pipeline.conclusions("alice")]


def test_a_speaker_that_observes_others_gets_its_own_statements_once(pipeline: Pipeline) -> None:
    pipeline.join(
        "s", alice=MemberConfig(observe_others=True), bob=MemberConfig(observe_others=True)
    )
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.work()
    for observer in ("alice", "bob"):
        assert [
            (row.content, row.times_derived) for row in pipeline.conclusions(observer, "alice")
        ] == [("I keep bees.", 1)]
    assert (pipeline.outcome("stored"), pipeline.outcome("reinforced")) == (2, 0)


def test_the_observers_are_those_at_the_time_of_the_message(pipeline: Pipeline) -> None:
    pipeline.join("s", bob=MemberConfig(observe_others=True))
    pipeline.say("s", ("alice", "I live in Oslo."))
    sessions.set_peer_config(
        pipeline.rt, PRINCIPAL, WORKSPACE, "s", "bob", MemberConfig(observe_others=False)
    )
    pipeline.say("s", ("alice", "I work at night."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I live in Oslo.", "I work at night."]
    assert pipeline.texts("bob", "alice") == ["I live in Oslo."]


def test_an_observer_that_speaks_is_observed_as_well(pipeline: Pipeline) -> None:
    pipeline.join("s", bob=MemberConfig(observe_others=True), alice=MemberConfig())
    pipeline.say("s", ("bob", "I teach physics."), ("alice", "I sing in a choir."))
    pipeline.work()
    assert pipeline.texts("bob") == ["I teach physics."]
    assert pipeline.texts("bob", "alice") == ["I sing in a choir."]
    assert pipeline.texts("alice", "bob") == []


@pytest.mark.parametrize(
    ("peer", "member", "derived"),
    [
        (None, None, True),
        (False, None, False),
        (False, True, True),
        (None, False, False),
        (True, False, False),
    ],
)
def test_observe_me_of_the_session_overrides_that_of_the_peer(
    pipeline: Pipeline, peer: bool | None, member: bool | None, derived: bool
) -> None:
    if peer is not None:
        peers.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", None, {"observe_me": peer})
    pipeline.join("s", alice=MemberConfig(observe_me=member))
    pipeline.say("s", ("alice", "I live in Oslo."))
    assert len(pipeline.tasks()) == derived
    pipeline.work()
    assert pipeline.texts("alice") == (["I live in Oslo."] if derived else [])


OFF = {"reasoning": {"enabled": False}}
ON = {"reasoning": {"enabled": True}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workspace", "session", "message", "setting", "derived"),
    [
        (None, None, None, None, True),
        (OFF, None, None, None, False),
        (None, OFF, None, None, False),
        (None, None, OFF, None, False),
        (None, None, None, "false", False),
        (OFF, ON, None, None, True),
        (OFF, OFF, ON, None, True),
        (None, None, ON, "false", True),
        (ON, ON, OFF, None, False),
    ],
)
def test_deriving_is_switched_at_four_levels(
    open_pipeline: OpenPipeline,
    workspace: dict[str, Any] | None,
    session: dict[str, Any] | None,
    message: dict[str, Any] | None,
    setting: str | None,
    derived: bool,
) -> None:
    pipeline = open_pipeline(**({} if setting is None else {"DERIVER_ENABLED": setting}))
    workspaces.get_or_create(pipeline.rt, PRINCIPAL, WORKSPACE, None, workspace)
    sessions.get_or_create(
        pipeline.rt, PRINCIPAL, WORKSPACE, "s", SessionFields(configuration=session)
    )
    pipeline.say("s", *[("alice", f"Fact {n}.") for n in range(20)], configuration=message)
    assert len(pipeline.tasks()) == (20 if derived else 0)
    assert len(pipeline.tasks(kinds.SUMMARY)) == 1, "summaries do not depend on it"


def test_instructions_are_those_at_the_time_of_the_message(pipeline: Pipeline) -> None:
    def instruct(text: str) -> None:
        workspaces.update(
            pipeline.rt, PRINCIPAL, WORKSPACE, None, {"reasoning": {"custom_instructions": text}}
        )

    instruct("Only food.")
    pipeline.say("s", ("alice", "I like plums."), ("alice", "I like pears."))
    instruct("Only travel.")
    pipeline.say("s", ("alice", "I went to Rome."))
    pipeline.work()
    assert [request.instructions for request in pipeline.reasoner.requests] == [
        "Only food.",
        "Only travel.",
    ]
    assert pipeline.reasoner.new_messages() == [
        ["I like plums.", "I like pears."],
        ["I went to Rome."],
    ]


def test_the_same_statement_within_a_batch_is_stored_once_with_all_its_sources(
    pipeline: Pipeline,
) -> None:
    messages = pipeline.say(
        "s", ("alice", "I like tea."), ("alice", "I own a boat."), ("alice", "  i LIKE tea.  ")
    )
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea.", "I own a boat."]
    assert [c.times_derived for c in pipeline.conclusions("alice")] == [2, 1]
    assert pipeline.conclusions("alice")[0].message_keys == [messages[0].key, messages[2].key]


def test_a_repeated_statement_reinforces_its_conclusion(pipeline: Pipeline) -> None:
    for times in (1, 2, 3):
        pipeline.say("s", ("alice", "I like tea."))
        pipeline.work()
        (conclusion,) = pipeline.conclusions("alice")
        assert conclusion.times_derived == times
    assert pipeline.counted("alice") == 1
    assert pipeline.outcome("reinforced") == 2


def test_the_same_statement_in_another_session_is_another_conclusion(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.say("t", ("alice", "I like tea."))
    pipeline.work()
    assert [(c.session, c.times_derived) for c in pipeline.conclusions("alice")] == [
        ("s", 1),
        ("t", 1),
    ]


def test_a_deleted_conclusion_is_not_reinforced_but_derived_anew(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    (first,) = pipeline.conclusions("alice")
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, first.uid)
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    (second,) = pipeline.conclusions("alice")
    assert second.uid != first.uid
    assert second.times_derived == 1


def test_the_count_of_a_collection_is_right_after_each_change(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    pipeline.work()
    assert pipeline.counted("alice") == 2
    draft = ConclusionDraft("Alice is tall.", "alice", "alice")
    conclusion_rows = conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, [draft, draft])
    assert pipeline.counted("alice") == 4
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, conclusion_rows[0].uid)
    assert pipeline.counted("alice") == 3
    with pipeline.rt.storage.read() as tx:
        assert tx.conclusions.count(conclusion_rows[0].workspace_key) == 3
    assert DELETED not in {c.state for c in pipeline.conclusions("alice")}


def erase(pipeline: Pipeline, session: int) -> None:
    """Begin to."""
    pipeline.rt.storage.write(
        lambda tx: tx.rows.change(Session, equals(key=session), state=DELETING)
    )


def test_a_session_that_is_being_erased_is_not_derived_from(pipeline: Pipeline) -> None:
    (message,) = pipeline.say("s", ("alice", "I like tea."))
    erase(pipeline, message.session_key)
    pipeline.work()
    assert pipeline.texts("alice") == []
    assert pipeline.reasoner.requests == []
    (task,) = pipeline.tasks()
    assert task.state == "done"
    assert task.outcome["skipped"]


def test_a_session_deleted_while_the_reasoner_works_gets_no_conclusions(pipeline: Pipeline) -> None:
    (message,) = pipeline.say("s", ("alice", "I like tea."))

    def vanish(request: object) -> None:
        erase(pipeline, message.session_key)

    pipeline.reasoner.act = vanish
    pipeline.work()
    assert pipeline.texts("alice") == []
    (task,) = pipeline.tasks()
    assert (task.state, task.attempts) == ("done", 0)
    assert task.outcome["skipped"]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[1] * 7, [7], [3, 4], [1, 5, 1]], ids=str)
def test_repeated_statements_count_the_same_alone_and_in_batches(
    pipeline: Pipeline, sizes: list[int]
) -> None:
    for size in sizes:
        pipeline.say("s", *[("alice", "I keep bees.")] * size, ("bob", "I see."))
        pipeline.work()
    assert [(row.content, row.times_derived) for row in pipeline.conclusions("alice")] == [
        ("I keep bees.", 7)
    ]


def test_a_statement_repeated_in_one_message_counts_once(pipeline: Pipeline) -> None:
    pipeline.say(
        "s",
        ("alice", "I keep bees.\nI keep bees."),
        ("bob", "I see."),
        ("alice", "I keep bees.\nI keep bees."),
    )
    pipeline.work()
    assert [row.times_derived for row in pipeline.conclusions("alice")] == [2]
