"""What a model looks up for an answer, and the short ids that stand for rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memservice.spi.llm import Completion
from memservice.spi.reasoner import Utterance
from support.reasoning.answer_run import READY, AnswerRun
from support.reasoning.model import NOW, calling
from support.reasoning.toolbox import FakeToolbox, conclusion_evidence, message_evidence


class TestLookups:
    def ask(
        self, tool: str, toolbox: FakeToolbox | None = None, **arguments: Any
    ) -> tuple[FakeToolbox, str]:
        evidence = [
            *(toolbox.stored if toolbox else [conclusion_evidence("c-1", "Bees.")]),
            message_evidence("bob", "Bees?"),
        ]
        answering = AnswerRun(
            calling((tool, arguments)), "Yes.", toolbox=toolbox, level="max", evidence=evidence
        )
        answering.run()
        return answering.toolbox, answering.model.last.turns[-1].content

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("tool", "arguments", "call"),
        [
            ("search_memory", {"query": " bees "}, ("conclusions", "bees", 20)),
            ("search_memory", {"query": "bees", "limit": 1000}, ("conclusions", "bees", 40)),
            ("search_messages", {"query": "bees"}, ("messages", "bees", 10, None, None)),
            (
                "search_messages",
                {"query": "bees", "limit": 50},
                ("messages", "bees", 20, None, None),
            ),
            (
                "search_messages",
                {"query": "bees", "limit": -5},
                ("messages", "bees", 1, None, None),
            ),
            ("grep_messages", {"text": "bees"}, ("containing", "bees", 10)),
            ("grep_messages", {"text": "bees", "limit": 99}, ("containing", "bees", 30)),
            (
                "get_messages_by_date_range",
                {"since": "2024-05-01", "until": "2024-05-02", "limit": 50},
                (
                    "between",
                    datetime(2024, 5, 1, tzinfo=UTC),
                    datetime(2024, 5, 2, 23, 59, 59, 999_999, tzinfo=UTC),
                    20,
                    True,
                ),
            ),
            (
                "get_messages_by_date_range",
                {"until": "2024-05-02T10:00:00Z", "order": "oldest"},
                ("between", None, datetime(2024, 5, 2, 10, tzinfo=UTC), 20, False),
            ),
            (
                "search_messages_temporal",
                {"query": "bees", "since": "2024-05-01T00:00:00+02:00", "limit": 20},
                ("messages", "bees", 10, datetime(2024, 4, 30, 22, tzinfo=UTC), None),
            ),
            ("get_observation_context", {"id": "[c1]"}, ("behind", "c-1")),
            ("get_observation_context", {"id": "M1"}, ("around", "m-Bees?")),
        ],
    )
    def test_look_ups_return_their_results(
        self, tool: str, arguments: dict[str, Any], call: tuple[Any, ...]
    ) -> None:
        toolbox, _ = self.ask(tool, **arguments)
        assert toolbox.calls == [call]

    @pytest.mark.parametrize(
        ("tool", "arguments", "message"),
        [
            ("search_memory", {"query": "  "}, "query is empty"),
            ("get_messages_by_date_range", {}, "since, until"),
            ("get_messages_by_date_range", {"since": "yesterday"}, "since: "),
            (
                "search_messages_temporal",
                {"query": "x", "since": "2024-05-02", "until": "2024-05-01"},
                "since lies after until",
            ),
            ("get_messages_by_date_range", {"since": "2024-05-02", "order": "sideways"}, "order"),
            (
                "get_reasoning_chain",
                {"conclusion_id": "c77"},
                "no conclusion with the id 'c77'. There are: c1.",
            ),
            (
                "get_observation_context",
                {"id": "m9"},
                "nothing with the id 'm9'. Conclusions: c1; messages: m1.",
            ),
        ],
    )
    def test_impossible_look_ups_return_an_error_to_the_model(
        self, tool: str, arguments: dict[str, Any], message: str
    ) -> None:
        _, result = self.ask(tool, **arguments)
        assert result.startswith("Error: ")
        assert message in result

    def test_an_empty_memory_falls_back_to_messages(self) -> None:
        toolbox, result = self.ask(
            "search_memory",
            FakeToolbox(passages=[[message_evidence("alice", "I keep bees.")]]),
            query="bees",
        )
        assert [call[0] for call in toolbox.calls] == ["conclusions", "messages"]
        assert (
            result.splitlines()[1] == "> [m2] Fri 2024-05-17 12:30 alice (session s): I keep bees."
        )
        assert self.ask("search_memory", FakeToolbox(), query="bees")[1] == "Nothing was found."

    def test_hits_are_marked_among_their_neighbours(self) -> None:
        passages = [
            [
                message_evidence("bob", "Bees?", asked_for=False),
                message_evidence("alice", "Yes, bees."),
            ],
            [message_evidence("alice", "No wasps.")],
        ]
        _, result = self.ask("search_messages", FakeToolbox(passages=passages), query="bees")
        assert result.splitlines() == [
            "[m1] Fri 2024-05-17 12:30 bob (session s): Bees?",
            "> [m2] Fri 2024-05-17 12:30 alice (session s): Yes, bees.",
            "---",
            "> [m3] Fri 2024-05-17 12:30 alice (session s): No wasps.",
        ]

    def test_a_chain_lists_sources_and_consequences(self) -> None:
        toolbox = FakeToolbox(
            conclusion_evidence("c-1", "Alice keeps bees."),
            conclusion_evidence(
                "c-2",
                "Alice likes insects.",
                level="deductive",
                source_ids=("c-1",),
                replaced=(conclusion_evidence("c-0", "Alice likes\nno insects."),),
            ),
        )
        _, result = self.ask("get_reasoning_chain", toolbox, conclusion_id="c2")
        assert result.splitlines() == [
            "[c2] Fri 2024-05-17 deductive: Alice likes insects. "
            "(replaced: Fri 2024-05-17: Alice likes no insects.)",
            "It rests on:",
            "[c1] Fri 2024-05-17: Alice keeps bees.",
            "On it rest:",
            "(nothing)",
            "It replaced:",
            "[c3] Fri 2024-05-17: Alice likes",
            "    no insects.",
        ]


class TestShortIds:
    def test_they_stay_the_same_from_round_to_round(self) -> None:
        answering = AnswerRun(
            calling(("search_memory", {"query": "bees"})),
            calling(("get_observation_context", {"id": "c1"})),
            "Yes.",
            toolbox=FakeToolbox(
                conclusion_evidence("uid-b", "Bob keeps bees."),
                conclusion_evidence("uid-a", "Alice keeps bees."),
            ),
            evidence=[conclusion_evidence("uid-a", "Alice keeps bees.")],
        )
        answering.run()
        assert "[c1] Fri 2024-05-17: Alice keeps bees." in answering.opening
        results = [
            turn.content for turn in answering.model.requests[1].turns if turn.role == "tool"
        ]
        assert results == [
            "[c2] Fri 2024-05-17: Bob keeps bees.\n[c1] Fri 2024-05-17: Alice keeps bees."
        ]
        assert answering.toolbox.calls[-1] == ("behind", "uid-a")

    def test_no_uid_is_shown(self) -> None:
        answering = AnswerRun(
            calling(("search_memory", {"query": "bees"}), ("search_messages", {"query": "bees"})),
            "Yes.",
            toolbox=FakeToolbox(
                conclusion_evidence("uid-b", "Bob keeps bees."),
                passages=[[message_evidence("bob", "Bees?")]],
            ),
            evidence=[
                conclusion_evidence("uid-a", "Alice keeps bees."),
                message_evidence("bob", "Wasps?"),
            ],
            recent=[Utterance(1, "uid-u", "bob", "Hello.", NOW, new=False)],
        )
        answering.run()
        text = "\n".join(turn.content for turn in answering.model.last.turns)
        assert all(uid not in text for uid in ("uid-", "m-Bees?", "m-Wasps?"))

    @pytest.mark.parametrize("stream", [False, True])
    def test_citations_of_an_answer_name_real_ids(self, stream: bool) -> None:
        text = "She does [c1, m1], says bob [m1]. Not a[c1], nor [c2] or [C1]."
        pieces: Any = [*text, Completion(text)] if stream else text
        answering = AnswerRun(
            pieces,
            evidence=[
                conclusion_evidence("uid-a", "Alice keeps bees."),
                message_evidence("bob", "Bees?"),
            ],
            stream=stream,
        )
        assert answering.run() == (
            "She does [uid-a, m-Bees?], says bob [m-Bees?]. Not a[c1], nor [c2] or [C1]."
        )

    def test_citations_of_a_document_name_real_ids(self) -> None:
        answering = AnswerRun(
            READY,
            {"sources": ["[c1]"]},
            evidence=[conclusion_evidence("uid-a", "Alice keeps bees.")],
            response_format={
                "type": "object",
                "properties": {"sources": {"type": "array", "items": {"type": "string"}}},
            },
        )
        assert json.loads(answering.run()) == {"sources": ["[uid-a]"]}

    def test_the_steps_of_an_answer_name_real_ids(self) -> None:
        answering = AnswerRun(
            calling(("get_observation_context", {"id": "c1"}), ("grep_messages", {"text": "c1"})),
            "Yes.",
            evidence=[conclusion_evidence("uid-a", "Alice keeps bees.")],
        )
        answering.run()
        uses = answering.took.steps[0].uses
        assert [use.input for use in uses] == [{"id": "uid-a"}, {"text": "c1"}]
