"""How a model writes an answer: its text, its format, the number of calls and what it took."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.reasoning.answer import answer
from memservice.reasoning.client import BUFFERED_CHARS
from memservice.reasoning.limits import ClientDisconnected
from memservice.reasoning.prompts import answer as prompt
from memservice.spi.llm import Completion, MalformedAnswer, ModelFailure
from memservice.spi.reasoner import Origin
from support.reasoning.answer_run import FULL, LOOK, READY, AnswerRun
from support.reasoning.model import calling


class TestWriting:
    def test_whole_answers_take_one_exchange_if_nothing_is_missing(self) -> None:
        answering = AnswerRun("Yes.")
        assert answering.run() == "Yes."
        assert answering.pieces == ["Yes."]
        assert len(answering.model.requests) == 1

    def test_text_beside_tool_calls_is_left_out(self) -> None:
        for stream in (False, True):
            answering = AnswerRun(LOOK, "She does.", stream=stream)
            assert answering.run().replace(" ", "") == "Shedoes."
            assert len(answering.model.requests) == 2, "the answer takes no call of its own"

    def test_a_stream_is_written_in_the_round_that_answers(self) -> None:
        words = [f"word{n} " for n in range(60)]
        answering = AnswerRun(LOOK, [*words, Completion("".join(words))], stream=True)
        assert answering.run() == "".join(words)
        assert len(answering.pieces[0]) >= BUFFERED_CHARS
        assert answering.pieces[1:] == words[len(answering.pieces[0].split()) :]
        look, last = answering.model.requests
        assert prompt.ANSWER_WHEN_READY in look.turns[1].content
        assert look.tools
        assert last.tools
        assert [call.is_stream for call in answering.harness.calls] == [True, True]
        assert "Alice keeps bees." in last.turns[-1].content

    def test_a_long_text_before_a_call_is_passed_on_as_a_paragraph(self) -> None:
        preface = "Let me see what is known. " * 10
        call = replace(LOOK, content=preface)
        answering = AnswerRun([preface, call], "She does.", stream=True)
        assert answering.run() == f"{preface}\n\nShedoes."

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_empty_answer_is_retried_once(self, stream: bool) -> None:
        answering = AnswerRun("", " \n", "She does.", stream=stream)
        assert answering.run().replace(" ", "") == "Shedoes."
        assert prompt.EMPTY in answering.model.last.turns[-1].content
        again = AnswerRun("", "", "", "never asked", stream=stream)
        assert again.run() == ""
        assert again.took.run_id == "run-1"

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_answer_that_is_cut_is_continued_once(self, stream: bool) -> None:
        begun = Completion("Alice keeps bees and ", finish_reason="length")
        for tools in (True, False):
            more = {} if tools else {"tools": None}
            answering = AnswerRun([begun.content, begun], begun, stream=stream, **more)
            if not stream:
                answering.model.replies = [begun, begun]
            assert "".join(answering.run().split()) == "Alicekeepsbeesand" * 2
            assert answering.model.last.turns[-2].content == begun.content
            assert answering.model.last.turns[-1].content == prompt.GO_ON
            assert len(answering.model.requests) == 2

    @pytest.mark.slow
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("has_tools", [False, True])
    def test_a_cut_answer_is_kept_if_its_continuation_fails(
        self, stream: bool, has_tools: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        cut = Completion("Alice keeps bees and ", finish_reason="length")
        more = {} if has_tools else {"tools": None}
        answering = AnswerRun(stream=stream, settings={"LLM_MAX_ATTEMPTS": "2"}, **more)
        failures = [ModelFailure("busy", retryable=True), ModelFailure("down", retryable=True)]
        answering.model.replies = [[cut.content, cut] if stream else cut, *failures]
        assert answering.run() == cut.content
        assert len(answering.model.requests) == 3
        assert (answering.took.spent.calls, len(answering.took.steps)) == (1, 1)
        (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
        assert warning.getMessage() == "an answer was cut off at its maximum length: down"

    def test_a_continuation_that_fails_midway_keeps_its_pieces(self) -> None:
        cut = Completion("Alice keeps bees and ", finish_reason="length")
        further = "wasps, which " * BUFFERED_CHARS
        answering = AnswerRun(stream=True)
        answering.model.replies = [
            [cut.content, cut],
            [further, ModelFailure("cut off", retryable=True)],
        ]
        assert answering.run() == cut.content + further

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_disconnected_client_ends_a_continuation(
        self, stream: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        cut = Completion("Alice keeps bees and ", finish_reason="length")
        answering = AnswerRun(seconds=60.0, stream=stream)
        # A provider that sees that the answer is no longer wanted ends its call with a failure.
        failure = ModelFailure("not wanted", retryable=True)
        answering.model.replies = (
            [[cut.content, cut], ["wasps " * BUFFERED_CHARS, failure]] if stream else [cut, failure]
        )
        answering.request = replace(
            answering.request, is_wanted=lambda: len(answering.model.requests) < 2
        )
        with pytest.raises(ClientDisconnected):
            answering.collect(
                answer(answering.harness.models.within(answering.request), answering.request)
            )
        assert len(answering.model.requests) == 2
        assert caplog.records == []

    def test_a_cut_stream_raises_after_its_pieces(self) -> None:
        answering = AnswerRun(
            LOOK, ["She " * BUFFERED_CHARS, ModelFailure("cut", retryable=True)], stream=True
        )
        with pytest.raises(ModelFailure):
            answering.run()
        assert answering.pieces == ["She " * BUFFERED_CHARS]
        assert (answering.took.run_id, answering.took.spent.calls, len(answering.took.steps)) == (
            "run-1",
            1,
            1,
        ), "what was done until then"

    def test_a_stream_is_retried_before_its_first_piece(self) -> None:
        answering = AnswerRun(
            ["held back", ModelFailure("busy", retryable=True)],
            ["Yes.", Completion("Yes.")],
            stream=True,
        )
        assert answering.run() == "Yes."

    def test_closing_a_stream_ends_the_exchange(self) -> None:
        answering = AnswerRun(
            ["She " * BUFFERED_CHARS, "does", Completion("She does")], stream=True
        )
        pieces = answer(answering.harness.models, answering.request)
        assert next(pieces) == "She " * BUFFERED_CHARS
        pieces.close()  # type: ignore[attr-defined]
        assert answering.model.closed == 1

    def test_a_failing_model_fails_the_answer(self) -> None:
        answering = AnswerRun(*[ModelFailure("down", retryable=True)] * 9)
        with pytest.raises(ModelFailure):
            answering.run()
        assert len(answering.model.requests) == answering.harness.models.settings.llm.max_attempts


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"keeps": {"type": "boolean"}},
    "required": ["keeps"],
}


class TestFormat:
    @pytest.mark.parametrize("stream", [False, True])
    def test_a_structured_answer_is_a_separate_request_in_one_piece(self, stream: bool) -> None:
        answering = AnswerRun(LOOK, READY, {"keeps": True}, response_format=SCHEMA, stream=stream)
        assert json.loads(answering.run()) == {"keeps": True}
        assert len(answering.pieces) == 1
        assert [request.response_schema for request in answering.model.requests] == [
            None,
            None,
            SCHEMA,
        ]
        assert "Alice keeps bees." in answering.model.last.turns[-1].content

    def test_an_answer_that_violates_the_format_is_retried_once(self) -> None:
        answering = AnswerRun(READY, {"keeps": "yes"}, {"keeps": True}, response_format=SCHEMA)
        assert json.loads(answering.run()) == {"keeps": True}

    def test_an_answer_that_never_fits_the_format_fails(self) -> None:
        answering = AnswerRun(READY, "I cannot say.", "Really not.", response_format=SCHEMA)
        with pytest.raises(MalformedAnswer):
            answering.run()
        assert answering.pieces == []


class TestFormatWithTools:
    """A model that combines a schema with tools answers in the schema when it ends its calls."""

    def ask(self, *replies: Any, **options: Any) -> AnswerRun:
        answering = AnswerRun(*replies, response_format=SCHEMA, **options)
        answering.model.combines = True
        return answering

    @pytest.mark.parametrize("stream", [False, True])
    def test_the_document_ends_the_rounds(self, stream: bool) -> None:
        answering = self.ask(LOOK, {"keeps": True}, stream=stream)
        assert json.loads(answering.run()) == {"keeps": True}
        assert [request.response_schema for request in answering.model.requests] == [SCHEMA, SCHEMA]
        assert prompt.ANSWER_AS_JSON_WHEN_READY in answering.opening
        assert [len(step.uses) for step in answering.took.steps] == [1, 0]

    def test_after_the_last_round_it_is_requested_in_the_same_conversation(self) -> None:
        answering = self.ask(LOOK, {"keeps": True}, level="minimal")
        assert json.loads(answering.run()) == {"keeps": True}
        last = answering.model.last
        assert (last.tool_choice, last.response_schema) == ("none", SCHEMA)
        assert [tool.name for tool in last.tools] == FULL[:2]

    @pytest.mark.parametrize(
        "unfit",
        ["In words.", {"keeps": "yes"}, Completion('{"keeps": tr', finish_reason="length")],
        ids=["words", "another form", "cut"],
    )
    def test_one_that_does_not_fit_is_requested_apart(self, unfit: Any) -> None:
        answering = self.ask(LOOK, unfit, {"keeps": True})
        assert json.loads(answering.run()) == {"keeps": True}
        last = answering.model.last
        assert (last.tools, last.response_schema) == ((), SCHEMA)
        assert "Alice keeps bees." in last.turns[-1].content

    def test_a_mode_without_schema_is_requested_apart(self) -> None:
        mode = "DIALECTIC_LEVELS__LOW__MODEL_CONFIG__STRUCTURED_OUTPUT_MODE"
        answering = self.ask(READY, {"keeps": True}, settings={mode: "json_object"})
        answering.run()
        assert [request.response_schema for request in answering.model.requests] == [None, SCHEMA]


class TestCalls:
    @pytest.mark.parametrize("stream", [False, True])
    def test_calls_that_are_not_allowed_are_not_made(self, stream: bool) -> None:
        """Some servers ignore the tool choice `none`."""
        answering = AnswerRun(LOOK, LOOK, "She does.", level="minimal", stream=stream)
        assert answering.run().replace(" ", "") == "Shedoes."
        assert [request.tool_choice for request in answering.model.requests] == [
            "auto",
            "none",
            None,
        ]
        assert answering.model.last.tools == ()
        assert len(answering.toolbox.calls) == 1

    def test_a_cut_answer_is_continued_in_the_same_conversation(self) -> None:
        begun = Completion("Alice keeps bees and ", finish_reason="length")
        answering = AnswerRun(LOOK, begun, "wasps.")
        assert answering.run() == "Alice keeps bees and wasps."
        *_, before, last = answering.model.requests
        assert last.turns[: len(before.turns)] == before.turns
        assert (last.tools, last.tool_choice) == (before.tools, "none")

    def test_requests_for_one_workspace_share_a_cache_key(self) -> None:
        keys = []
        for workspace in ("w", "w", "other"):
            answering = AnswerRun(LOOK, "Yes.", origin=Origin(1, workspace, "run-1"))
            answering.run()
            (key,) = {request.cache_key for request in answering.model.requests}
            keys.append(key)
        assert keys[0] == keys[1] != keys[2]


class TestTook:
    def test_steps_tokens_and_the_run_are_reported(self) -> None:
        answering = AnswerRun(
            LOOK,
            calling(("listen", {})),
            ["Yes.", Completion("Yes.", input_tokens=7, output_tokens=2)],
            stream=True,
        )
        answering.run()
        took = answering.took
        assert (took.run_id, took.hit_input_cap) == ("run-1", False)
        assert (took.spent.input_tokens, took.spent.output_tokens, took.spent.calls) == (
            50 + 50 + 7,
            5 + 5 + 2,
            3,
        )
        assert [step.input_tokens for step in took.steps] == [50, 50, 7]
        assert [[(use.name, use.error is None) for use in step.uses] for step in took.steps] == [
            [("search_memory", True)],
            [("listen", False)],
            [],
        ]
        assert [
            (call.purpose, call.run_id, call.workspace, call.iteration)
            for call in answering.harness.calls
        ] == [("dialectic.answer", "run-1", "w", number) for number in (1, 2, 3)]

    def test_requests_share_no_state(self) -> None:
        answering = AnswerRun("Yes.", "No.")
        first, second = (
            answer(answering.harness.models, answering.request),
            answer(answering.harness.models, replace(answering.request, question="Wasps?")),
        )
        assert next(first) == "Yes."
        assert next(second) == "No."
