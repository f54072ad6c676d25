"""The loop of a model and its tools: what the model receives, when the loop ends, and what is
dropped first."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from math import inf, nan
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import tokens
from memservice.domain.errors import Unavailable
from memservice.reasoning.client import ModelClient
from memservice.reasoning.tool_loop import MAX_CALLS, Bounds, BoundTool, ToolLoop, ToolResult
from memservice.spi.llm import ModelFailure, Tool, Turn
from memservice.spi.reasoner import Origin
from memservice.spi.toolbox import ToolRefused
from support.reasoning.model import ModelHarness, Reply, ScriptedModel, calling

OPENING = (Turn("system", "Be brief."), Turn("user", "Who?"))
DEEP: Any = []
for _ in range(700):
    DEEP = [DEEP]
USUAL = Bounds(iterations=3, output=100, history=10_000, input=None, result=1_000)

LOOK = Tool(
    "look",
    "Look it up.",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


def look(arguments: Mapping[str, Any]) -> ToolResult:
    """Gives what the query says, so many times."""
    if arguments["query"] == "refuse":
        raise ToolRefused("There is no such thing.")
    if arguments["query"] == "fail":
        raise ZeroDivisionError("secret")
    if arguments["query"] == "away":
        raise Unavailable("The store is away", 1)
    return ToolResult([arguments["query"]] * arguments.get("limit", 1), arguments.get("limit", 1))


class Run:
    def __init__(
        self, *replies: Reply, bounds: Bounds = USUAL, opening: tuple[Turn, ...] = OPENING
    ) -> None:
        self.model = ScriptedModel(*replies)
        harness = ModelHarness(self.model, DERIVER_MODEL_CONFIG__TRANSPORT="scripted")
        client = ModelClient(
            harness.models,
            "dialectic.answer",
            harness.models.settings.deriver.model_config,
            Origin(run_id="r"),
        )
        self.calls = harness.calls
        self.loop = ToolLoop(client, opening, "Look it up.", [BoundTool(LOOK, look)], bounds)

    def results(self) -> list[str]:
        """Results of tools, as the last request sent them."""
        return [turn.content for turn in self.model.last.turns if turn.role == "tool"]


def query(text: str, limit: int = 1) -> tuple[str, dict[str, Any]]:
    return ("look", {"query": text, "limit": limit})


class TestRounds:
    def test_an_answer_without_a_call_ends_the_loop(self) -> None:
        run = Run(calling(query("bees")), "Bees.")
        done = run.loop.run()
        assert done is not None
        assert done.content == "Bees."
        first, second = run.model.requests
        assert [tool.name for tool in first.tools] == ["look"]
        assert [turn.content for turn in first.turns] == ["Be brief.", "Who?\n\nLook it up."]
        call_turn, result_turn = second.turns[-2:]
        assert (call_turn.role, call_turn.tool_calls[0].id) == ("assistant", "call-0")
        assert (result_turn.role, result_turn.content, result_turn.tool_call_id) == (
            "tool",
            "bees",
            "call-0",
        )

    def test_the_maximum_number_of_rounds_ends_the_loop(self) -> None:
        run = Run(*[calling(query("more"))] * 5)
        assert run.loop.run() is None
        assert len(run.model.requests) == 3
        assert [call.iteration for call in run.calls] == [1, 2, 3]

    @pytest.mark.parametrize(
        ("choice", "sent"),
        [(None, [None] * 3), ("auto", ["auto"] * 3), ("any", ["any", "auto", "auto"])],
    )
    def test_a_call_is_required_in_the_first_round_only(
        self, choice: str | None, sent: list[str | None]
    ) -> None:
        run = Run(*[calling(query("more"))] * 3, bounds=replace(USUAL, tool_choice=choice))
        run.loop.run()
        assert [request.tool_choice for request in run.model.requests] == sent

    def test_steps_record_calls_and_tokens(self) -> None:
        run = Run(
            calling(query("bees", 4), ("look", {}), ("listen", {}), beside="Let me see."), "Bees."
        )
        run.loop.run()
        first, second = run.loop.steps
        assert (first.input_tokens, first.output_tokens, second.input_tokens) == (50, 5, 100)
        assert second.uses == ()
        good, unfit, unknown = first.uses
        assert (good.name, good.input, good.call_id, good.error, good.results) == (
            "look",
            {"query": "bees", "limit": 4},
            "call-0",
            None,
            4,
        )
        assert (good.result_chars, good.full_chars) == (19, 19)
        assert unfit.error is not None
        assert unknown.error is not None

    def test_steps_are_available_after_an_error(self) -> None:
        run = Run(calling(query("bees")), ModelFailure("no", retryable=False))
        with pytest.raises(ModelFailure):
            run.loop.run()
        assert len(run.loop.steps) == 1
        assert run.loop.steps[0].uses[0].name == "look"


class TestMistakes:
    """They are answered to the model, in words that help it on."""

    @pytest.mark.parametrize(
        ("call", "messages"),
        [
            (("listen", {"query": "x"}), ["no tool 'listen'", "look"]),
            (("look", {}), ["query"]),
            (("look", {"query": 5}), ["query", "string"]),
            (("look", {"query": "x", "limit": "many"}), ["limit", "integer"]),
            (("look", {"query": "x", "depth": 3}), ["depth", "query, limit"]),
            (("look", {"query": "x", "limit": nan}), ["$.limit must be a finite number"]),
            (("look", {"query": "x", "limit": inf}), ["$.limit must be a finite number"]),
            (("look", {"query": ["x", {"y": inf}]}), ["$.query[1].y must be a finite number"]),
            (("look", {"query": DEEP}), ["nested more than 64 levels"]),
            (query("refuse"), ["There is no such thing."]),
            (query("fail"), ["failed"]),
        ],
        ids=[
            "unknown tool",
            "missing",
            "wrong type",
            "wrong type of another",
            "unknown argument",
            "not a number",
            "infinite",
            "infinite, inside",
            "too deep",
            "refused",
            "failed",
        ],
    )
    def test_the_model_gets_an_error_text(
        self, call: tuple[str, dict[str, Any]], messages: list[str]
    ) -> None:
        run = Run(calling(call), "Well.")
        assert run.loop.run() is not None
        (result,) = run.results()
        assert result.startswith("Error: ")
        assert all(word in result for word in messages)
        assert "secret" not in result
        json.dumps(run.model.last.turns[-2].tool_calls[0].arguments, allow_nan=False)

    def test_a_failing_tool_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.ERROR):
            Run(calling(query("fail")), "Well.").loop.run()
        assert "the tool look failed (ZeroDivisionError)" in caplog.text
        assert "in look" in caplog.text, "and where"
        assert "ZeroDivisionError: secret" not in caplog.text

    def test_an_unreachable_store_ends_the_loop(self) -> None:
        with pytest.raises(Unavailable):
            Run(calling(query("away")), "Well.").loop.run()

    def test_unstorable_characters_are_removed_from_arguments(self) -> None:
        run = Run(calling(query("a\0b\ud800c")), "Well.")
        run.loop.run()
        assert run.results() == ["ab\ufffdc"]
        assert run.loop.steps[0].uses[0].input["query"] == "ab\ufffdc"

    def test_too_many_calls_in_one_round_are_refused(self) -> None:
        run = Run(calling(*[query(str(number)) for number in range(MAX_CALLS + 2)]), "Well.")
        run.loop.run()
        results = run.results()
        assert results[:MAX_CALLS] == [str(number) for number in range(MAX_CALLS)]
        assert len(results) == MAX_CALLS + 2
        assert all(result.startswith("Error: At most") for result in results[MAX_CALLS:])


class TestBounds:
    def test_results_are_bounded_by_characters_and_whole_lines(self) -> None:
        run = Run(calling(query("twelve chars", 1_000)), "Well.")
        run.loop.run()
        (result,) = run.results()
        assert len(result) <= USUAL.result
        *lines, note = result.splitlines()
        assert set(lines) == {"twelve chars"}
        assert f"{1_000 - len(lines)} more" in note
        (use,) = run.loop.steps[0].uses
        assert (use.result_chars, use.full_chars) == (len(result), 12_999)

    def test_one_long_line_is_cut(self) -> None:
        run = Run(calling(query("x" * 5_000)), "Well.")
        run.loop.run()
        (result,) = run.results()
        assert 500 < len(result) <= USUAL.result

    def test_an_empty_result_is_stated(self) -> None:
        run = Run(calling(("look", {"query": "x", "limit": 0})), "Well.")
        run.loop.run()
        assert run.results() == ["Nothing was found."]

    def test_the_oldest_rounds_are_dropped_first_and_completely(self) -> None:
        rounds = [
            calling(query(f"{name} " * 100), query(f"{name}2 " * 100))
            for name in ("one", "two", "three")
        ]
        run = Run(*rounds, bounds=replace(USUAL, history=700))
        assert run.loop.run() is None
        transcript = run.loop.transcript("Now.")[-1].content
        assert {
            name: f'"{name} {name}' in transcript for name in ("one", "two", "three", "three2")
        } == {
            "one": False,
            "two": False,
            "three": True,
            "three2": True,
        }
        for request in run.model.requests:
            call_ids = {call.id for turn in request.turns for call in turn.tool_calls}
            answered = {turn.tool_call_id for turn in request.turns if turn.role == "tool"}
            assert call_ids == answered
        assert not run.loop.hit_input_cap

    def test_the_input_cap_cuts_even_the_last_round(self) -> None:
        bounds = replace(USUAL, input=300, result=100_000)
        run = Run(calling(query("word " * 20, 100)), "Well.", bounds=bounds)
        run.loop.run()
        assert run.loop.hit_input_cap
        sent = sum(tokens.count(turn.content) for turn in run.model.last.turns)
        assert sent <= 300
        assert run.results()[0].endswith("[…]")

    def test_a_small_history_keeps_the_last_round(self) -> None:
        run = Run(calling(query("bees " * 50)), "Well.", bounds=replace(USUAL, history=1))
        run.loop.run()
        assert run.results() == ["bees " * 50]


class TestTold:
    def test_look_ups_are_passed_on_as_text(self) -> None:
        """The last question is put without tools, so nothing of a protocol for tools may be in
        it."""
        run = Run(calling(query("bees")), calling(query("honey")), "Well.")
        run.loop.run()
        system, user = run.loop.transcript("Answer now.")
        assert system == OPENING[0]
        assert user.role == "user"
        assert user.content.split("\n\n") == [
            "Who?",
            'Looked up with look({"query": "bees", "limit": 1}):\nbees',
            'Looked up with look({"query": "honey", "limit": 1}):\nhoney',
            "Answer now.",
        ]
