"""Dreams of a language model: phases and their tools, valid results, and the errors that the model
receives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memservice.domain.errors import Unavailable
from memservice.reasoning.prompts import consolidate as prompt
from memservice.reasoning.reasoner import LlmReasoner
from memservice.spi.llm import ModelFailure
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Known, Origin, Superseded
from support.reasoning.model import NOW, SCRIPTED, ModelHarness, ScriptedModel, calling
from support.reasoning.toolbox import FakeToolbox, conclusion_evidence, message_evidence

DONE = "DONE"
READS = ["get_recent_conclusions", "search_memory", "search_messages"]


def known_conclusion(uid: str, content: str, day: int = 0, **values: Any) -> Known:
    defaults: dict[str, Any] = {
        "level": "explicit",
        "times_derived": 1,
        "observer": "alice",
        "observed": "alice",
        "session": "s",
        **values,
    }
    return Known(uid, content, said_at=NOW + timedelta(days=day), **defaults)


ROWS = (
    known_conclusion("k-1", "Alice lives in Rome.", 1),
    known_conclusion("k-2", "Alice likes green tea.", 2),
    known_conclusion("k-3", "Alice drinks green tea every morning.", 3),
    known_conclusion("k-4", "Alice moved to Berlin.", 4),
)


class Consolidation:
    def __init__(
        self,
        *replies: Any,
        settings: dict[str, str] | None = None,
        conclusions: tuple[Known, ...] = ROWS,
        **request: Any,
    ) -> None:
        self.model = ScriptedModel(*replies)
        self.harness = ModelHarness(self.model, **{**SCRIPTED, **(settings or {})})
        defaults: dict[str, Any] = {
            "card": (),
            "tools": FakeToolbox(),
            "asked_at": NOW,
            "origin": Origin(1, "w", "run-1"),
        }
        self.request = ConsolidateRequest("alice", "alice", conclusions, **(defaults | request))

    def run(self) -> Consolidated:
        return LlmReasoner(self.harness.models).consolidate(self.request)

    def results(self) -> list[str]:
        """Results of tools, as sent to the model in any request, in order."""
        answers: dict[int, list[str]] = {}
        for request in self.model.requests:
            for turn in request.turns:
                if turn.role == "tool":
                    answers.setdefault(id(turn), []).append(turn.content)
        return [texts[0] for texts in answers.values()]


def create(*conclusions: dict[str, Any]) -> Any:
    return calling(("create_conclusions", {"conclusions": list(conclusions)}))


def supersede(*steps: tuple[str, str | None]) -> Any:
    steps_ = [
        {"id": old, "reason": "newer", **({"replaced_by": new} if new else {})}
        for old, new in steps
    ]
    return calling(("supersede_conclusions", {"conclusions": steps_}))


def deduced(content: str, *sources: str, level: str = "deductive", **more: Any) -> dict[str, Any]:
    return {"content": content, "level": level, "source_ids": list(sources), **more}


class TestPhases:
    def test_deduction_precedes_induction(self) -> None:
        consolidation = Consolidation(
            supersede(("c1", "c4")),
            create(deduced("Alice is at home in Germany.", "c4")),
            DONE,
            create(
                deduced(
                    "Alice has a tea habit.",
                    "c2",
                    "c3",
                    level="inductive",
                    pattern_type="behavior",
                    confidence="low",
                )
            ),
            DONE,
        )
        result = consolidation.run()
        assert [
            (s.content, s.level, s.source_ids, s.pattern_type, s.confidence, s.model)
            for s in result.created
        ] == [
            ("Alice is at home in Germany.", "deductive", ("k-4",), None, None, "scripted-1"),
            (
                "Alice has a tea habit.",
                "inductive",
                ("k-2", "k-3"),
                "behavior",
                "low",
                "scripted-1",
            ),
        ]
        assert list(result.superseded) == [Superseded("k-1", "k-4", "newer")]
        assert result.card is None
        assert [call.purpose for call in consolidation.harness.calls] == ["dream.deduction"] * 3 + [
            "dream.induction"
        ] * 2
        assert {call.run_id for call in consolidation.harness.calls} == {"run-1"}
        first, second = result.phases
        assert (first.name, first.error, first.created, first.superseded, len(first.steps)) == (
            "deduction",
            None,
            ("deductive",),
            ("explicit",),
            3,
        )
        assert (second.name, second.error, second.created, second.superseded) == (
            "induction",
            None,
            ("inductive",),
            (),
        )
        assert result.spent.calls == 5
        assert (
            result.spent.input_tokens
            == first.spent.input_tokens + second.spent.input_tokens
            == 150 + 200
        )

    def test_tools_of_each_phase(self) -> None:
        consolidation = Consolidation(DONE, DONE)
        consolidation.run()
        tools = [[tool.name for tool in request.tools] for request in consolidation.model.requests]
        assert tools == [
            [*READS, "create_conclusions", "supersede_conclusions", "update_peer_card"],
            [*READS, "create_conclusions"],
        ]
        assert [request.max_output_tokens for request in consolidation.model.requests] == [
            8192,
            8192,
        ]

    def test_without_a_card_there_is_no_tool_for_it(self) -> None:
        consolidation = Consolidation(DONE, DONE, write_card=False)
        consolidation.run()
        assert all(
            tool.name != "update_peer_card"
            for request in consolidation.model.requests
            for tool in request.tools
        )
        assert (
            "card"
            not in consolidation.model.requests[0].turns[0].content.split(prompt.DEDUCTION.text)[-1]
        )

    @pytest.mark.parametrize(
        ("setting", "rounds"), [(None, [12, 10]), ("11", [11, 10]), ("3", [3, 3])]
    )
    def test_a_setting_limits_the_rounds(self, setting: str | None, rounds: list[int]) -> None:
        consolidation = Consolidation(
            settings={} if setting is None else {"DREAM_MAX_TOOL_ITERATIONS": setting}
        )
        consolidation.model.say = lambda request: calling(("get_recent_conclusions", {}))
        assert [len(phase.steps) for phase in consolidation.run().phases] == rounds

    def test_each_phase_has_its_own_model(self) -> None:
        consolidation = Consolidation(
            DONE,
            DONE,
            settings={
                "DREAM_INDUCTION_MODEL_CONFIG__MODEL": "deep",
                "DREAM_INDUCTION_MODEL_CONFIG__MAX_OUTPUT_TOKENS": "50",
            },
        )
        consolidation.run()
        assert [
            (request.model, request.max_output_tokens) for request in consolidation.model.requests
        ] == [
            ("scripted-1", 8192),
            ("deep", 50),
        ]

    def test_the_second_phase_gets_the_results_of_the_first(self) -> None:
        consolidation = Consolidation(
            supersede(("c1", "c4")),
            create(deduced("Alice is at home in Germany.", "c4")),
            DONE,
            create(deduced("Alice likes the north.", "#0", "c4", level="inductive")),
            DONE,
        )
        result = consolidation.run()
        opening = consolidation.model.requests[3].turns[1].content
        assert "#0 deductive: Alice is at home in Germany." in opening
        assert "[c1]" not in opening
        assert "no longer shown: c1." in opening
        assert result.created[1].source_ids == ("#0", "k-4")
        assert result.created[1].confidence == "medium"

    @pytest.mark.parametrize("failing", ["deduction", "induction"])
    def test_a_failed_phase_does_not_stop_the_other(self, failing: str) -> None:
        refused = ModelFailure("no", retryable=False)
        creation = create(deduced("Alice is at home in Germany.", "c4"))
        consolidation = Consolidation(
            *([creation, refused, DONE] if failing == "deduction" else [creation, DONE, refused])
        )
        result = consolidation.run()
        assert {phase.name: phase.error for phase in result.phases} == {
            "deduction": "ModelFailure" if failing == "deduction" else None,
            "induction": "ModelFailure" if failing == "induction" else None,
        }
        # What was noted before the failure counts.
        assert [statement.content for statement in result.created] == [
            "Alice is at home in Germany."
        ]

    def test_the_dream_fails_if_no_phase_succeeds(self) -> None:
        consolidation = Consolidation()
        consolidation.model.say = lambda request: ModelFailure("no", retryable=False)
        with pytest.raises(ModelFailure):
            consolidation.run()

    def test_an_unreachable_store_ends_the_dream(self) -> None:
        class Away(FakeToolbox):
            def conclusions(self, query: str, limit: int) -> Any:
                raise Unavailable("The store is away", 1)

        consolidation = Consolidation(
            calling(("search_memory", {"query": "x"})), DONE, DONE, tools=Away()
        )
        with pytest.raises(Unavailable):
            consolidation.run()

    def test_without_conclusions_no_model_is_called(self) -> None:
        consolidation = Consolidation(conclusions=())
        assert consolidation.run() == Consolidated()
        assert consolidation.model.requests == []


class TestOpening:
    def test_contains_conclusions_card_and_instructions(self) -> None:
        consolidation = Consolidation(
            DONE,
            DONE,
            card=["IDENTITY: Alice"],
            instructions="Mind the tea.",
            card_instructions="Short lines.",
        )
        consolidation.run()
        system, user = consolidation.model.requests[0].turns
        assert "Mind the tea." in system.content
        assert "Short lines." in system.content
        assert user.content.splitlines() == [
            "The time is 2024-05-17 12:30:00 (UTC). Observer: alice. Observed: alice.",
            "",
            prompt.CARD,
            "- IDENTITY: Alice",
            "",
            "The newest of 4 conclusions, oldest first:",
            "[c1] Sat 2024-05-18: Alice lives in Rome.",
            "[c2] Sun 2024-05-19: Alice likes green tea.",
            "[c3] Mon 2024-05-20: Alice drinks green tea every morning.",
            "[c4] Tue 2024-05-21: Alice moved to Berlin.",
            "",
            prompt.TASK["deduction"],
        ]
        induction = consolidation.model.requests[1].turns[0].content
        assert "Mind the tea." in induction
        assert "Short lines." not in induction

    def test_contains_the_newest_conclusions_that_fit(self) -> None:
        rows = tuple(
            known_conclusion(f"k-{n}", f"Alice saw whale number {n} off the coast of Iceland.", n)
            for n in range(100)
        )
        consolidation = Consolidation(
            calling(("get_recent_conclusions", {"limit": 2, "skip": 97})),
            DONE,
            DONE,
            conclusions=rows,
            settings={"DREAM_HISTORY_TOKEN_LIMIT": "1000"},
        )
        consolidation.run()
        opening = consolidation.model.requests[0].turns[1].content
        assert "number 99 " in opening
        assert "number 10 " not in opening
        assert "100 conclusions" in opening
        # Older ones can be listed.
        assert [line.split()[-6] for line in consolidation.results()[0].splitlines()] == ["2", "1"]

    def test_outliers_come_first(self) -> None:
        settings = {"DREAM_SURPRISAL__MIN_HIGH_SURPRISAL_FOR_REPLACE": "2"}
        few = Consolidation(DONE, DONE, surprising=("k-2",), settings=settings)
        few.run()
        opening = few.model.requests[0].turns[1].content
        assert opening.index(prompt.SURPRISING) < opening.index("[c1]") < opening.index("[c2]")
        many = Consolidation(DONE, DONE, surprising=("k-2", "k-1"), settings=settings)
        many.run()
        assert "[c3]" not in many.model.requests[0].turns[1].content


class TestCreating:
    @pytest.mark.parametrize(
        ("item", "problem"),
        [
            (deduced("Alice said so.", "c1", level="explicit"), "level"),
            (deduced("Alice is a pattern.", "c1", level="inductive"), "level"),
            (deduced("Rests on nothing."), "at least 1"),
            (deduced("Rests on an unknown one.", "c77"), "no conclusion 'c77'"),
            (deduced("Rests on a later one.", "#5"), "no conclusion '#5'"),
            (deduced("One side only.", "c1", "[c1]", level="contradiction"), "at least 2"),
            (deduced("  ", "c1"), "1 to"),
            ({"content": "No level.", "source_ids": ["c1"]}, "level"),
        ],
    )
    def test_invalid_conclusions_return_an_error_to_the_model(
        self, item: dict[str, Any], problem: str
    ) -> None:
        consolidation = Consolidation(create(item), DONE, DONE)
        assert consolidation.run().created == ()
        (result,) = consolidation.results()
        assert problem in result

    def test_each_conclusion_is_validated_by_itself(self) -> None:
        consolidation = Consolidation(
            create(
                deduced("Good.", "c1"),
                deduced("Bad.", "c77"),
                deduced(" good. ", "c2"),
                deduced("Both.", "c1", "#0"),
            ),
            DONE,
            DONE,
        )
        assert [(s.content, s.source_ids) for s in consolidation.run().created] == [
            ("Good.", ("k-1",)),
            ("Both.", ("k-1", "#0")),
        ]
        lines = consolidation.results()[0].splitlines()
        assert lines[0] == "Created #0: Good."
        assert "c77" in lines[1]
        assert "already, as #0" in lines[2]
        assert lines[3].startswith("Created #1")

    def test_looked_up_conclusions_may_be_cited(self) -> None:
        toolbox = FakeToolbox(conclusion_evidence("older", "Alice was born in Turin."))
        consolidation = Consolidation(
            calling(("search_memory", {"query": "born"})),
            create(deduced("Alice is Italian.", "c5")),
            DONE,
            DONE,
            tools=toolbox,
        )
        assert [s.source_ids for s in consolidation.run().created] == [("older",)]

    def test_superseded_conclusions_are_not_found(self) -> None:
        toolbox = FakeToolbox(
            conclusion_evidence("k-1", "Alice lives in Rome."),
            passages=[[message_evidence("alice", "I live in Rome.")]],
        )
        consolidation = Consolidation(
            supersede(("c1", "c4")),
            calling(("search_memory", {"query": "Rome"})),
            calling(("get_recent_conclusions", {})),
            DONE,
            DONE,
            tools=toolbox,
        )
        consolidation.run()
        assert all("[c1]" not in result for result in consolidation.results())


class TestSuperseding:
    def test_by_an_existing_one_a_new_one_or_none(self) -> None:
        consolidation = Consolidation(
            create(deduced("Alice moved from Rome to Berlin.", "c1", "c4")),
            supersede(("c1", "#0"), ("c4", "[#0]"), ("c2", None)),
            DONE,
            DONE,
        )
        assert list(consolidation.run().superseded) == [
            Superseded("k-1", "#0", "newer"),
            Superseded("k-4", "#0", "newer"),
            Superseded("k-2", None, "newer"),
        ]

    @pytest.mark.parametrize(
        ("steps", "problem"),
        [
            ([("c77", None)], "no conclusion with that id; there are c1 to c4"),
            ([("c1", "c77")], "no conclusion 'c77'"),
            ([("c1", "c1")], "replace itself"),
            ([("c1", "#0")], "no conclusion '#0'"),
            ([("c1", "c2"), ("c1", "c3")], "already"),
            ([("c1", "c2"), ("c2", "c1")], "replace itself"),
        ],
    )
    def test_impossible_requests_return_an_error_to_the_model(
        self, steps: list[tuple[str, str | None]], problem: str
    ) -> None:
        consolidation = Consolidation(supersede(*steps), DONE, DONE)
        assert len(consolidation.run().superseded) == len(steps) - 1
        assert problem in consolidation.results()[0].splitlines()[-1]

    def test_a_reason_is_needed(self) -> None:
        consolidation = Consolidation(
            calling(("supersede_conclusions", {"conclusions": [{"id": "c1", "reason": " "}]})),
            DONE,
            DONE,
        )
        assert consolidation.run().superseded == ()
        assert "reason" in consolidation.results()[0]


class TestCard:
    def write(self, *lines: str, card: tuple[str, ...] = ()) -> tuple[Any, str]:
        consolidation = Consolidation(
            calling(("update_peer_card", {"lines": list(lines)})), DONE, DONE, card=card
        )
        return consolidation.run().card, consolidation.results()[0]

    def test_valid_lines_are_kept_and_others_reported(self) -> None:
        card, message = self.write(
            "IDENTITY: Alice",
            " identity:  ALICE",
            "IDENTITY: alice",
            "Hobby: tea",
            "ATTRIBUTE: ",
            "ATTRIBUTE: " + "x" * 200,
            "INSTRUCTION: Be  brief",
        )
        assert card == ["IDENTITY: Alice", "INSTRUCTION: Be brief"]
        dropped = [line for line in message.splitlines() if line.startswith("Dropped")]
        assert len(dropped) == 4
        assert "'IDENTITY: '" in message
        assert "200 characters" in message
        assert message.splitlines()[-1] == "The card has 2 lines now."

    def test_lines_written_by_callers_may_stay(self) -> None:
        card, _ = self.write("please be brief", "IDENTITY: Alice", card=("Please be brief",))
        assert card == ["Please be brief", "IDENTITY: Alice"]

    def test_has_at_most_forty_lines(self) -> None:
        card, message = self.write(*(f"ATTRIBUTE: number {n}" for n in range(50)))
        assert len(card) == 40
        assert "first 40" in message

    @pytest.mark.parametrize("lines", [(), ("nothing good",)])
    def test_without_a_valid_line_the_card_is_unchanged(self, lines: tuple[str, ...]) -> None:
        card, message = self.write(*lines)
        assert card is None
        assert message.endswith("The card was left as it is.")

    def test_refreshing_uses_only_the_card_tool_and_instructions(self) -> None:
        consolidation = Consolidation(
            calling(("update_peer_card", {"lines": ["IDENTITY: Alice"]})),
            DONE,
            card_only=True,
            instructions="Mind the tea.",
            card_instructions="Short.",
        )
        result = consolidation.run()
        assert (result.card, [phase.name for phase in result.phases]) == (
            ["IDENTITY: Alice"],
            ["card_refresh"],
        )
        assert result.phases[0].card_written
        assert [tool.name for tool in consolidation.model.requests[0].tools] == [
            "get_recent_conclusions",
            "search_memory",
            "update_peer_card",
        ]
        assert {call.purpose for call in consolidation.harness.calls} == {"dream.card_refresh"}
        assert "Short." in consolidation.model.requests[0].turns[0].content

    def test_refreshing_takes_six_rounds_at_most(self) -> None:
        consolidation = Consolidation(card_only=True)
        consolidation.model.say = lambda request: calling(("get_recent_conclusions", {}))
        assert len(consolidation.run().phases[0].steps) == 6
