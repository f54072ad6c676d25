"""A model with tools: it gets a request, its calls are run, and it gets the results in the next
request, within bounds.

For a mistake in a call (its tool, its arguments, an id that does not exist) the model gets an error
as the result, so that it can correct the call in its next round.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain import tokens
from memservice.domain.answers.json_text import flaw, storable
from memservice.domain.errors import MemserviceError
from memservice.domain.failures import redacted_traceback
from memservice.domain.json_schema import violation
from memservice.reasoning.client import ModelClient
from memservice.reasoning.prompts import again as prompt
from memservice.reasoning.render import within
from memservice.reasoning.transcript import cut
from memservice.spi.llm import Completion, Tool, ToolCall, Turn
from memservice.spi.reasoner import Spent
from memservice.spi.toolbox import Step, ToolRefused, ToolUse

log = logging.getLogger("memservice.reasoning")

MAX_CALLS = 10
"""Calls of one round that are run; further calls get an error."""
CALL_OVERHEAD = 12
"""Approximate tokens of a turn or a call besides its text."""
CLOSING_TOKENS = 60
"""Reserved for the turn that ends a conversation."""
ONCE_ONLY = ("any", "required")
"""Tool choices that demand a call. They apply to the first round: otherwise the loop would always
run to its last round."""


class ToolResult(Struct, frozen=True):
    """The result of a tool: lines for the model, the number of items in them, and the levels of the
    conclusions that it changed."""

    lines: Sequence[str]
    results: int | None = None
    levels: Sequence[str] = ()


class BoundTool(Struct, frozen=True):
    """A tool and its function. `run` gets arguments that fit the tool's schema; it raises
    ToolRefused if it cannot run."""

    tool: Tool
    run: Callable[[Mapping[str, Any]], ToolResult]


class Bounds(Struct, frozen=True):
    """Limits of a loop. `history` and `input` are tokens, `result` is characters of one tool's
    result."""

    iterations: int
    output: int | None
    history: int
    input: int | None
    result: int
    tool_choice: str | None = None


class ToolLoop:
    """One run of a model with its tools. `steps` lists the steps so far, also after an error.

    `opening` ends with a turn of the user; `task` is added to it as long as there are tools.
    """

    def __init__(
        self,
        client: ModelClient,
        opening: Sequence[Turn],
        task: str,
        bound_tools: Sequence[BoundTool],
        bounds: Bounds,
        schema: dict[str, Any] | None = None,
    ) -> None:
        """`schema`: of the answer that ends the calls."""
        self.schema = schema
        self.steps: list[Step] = []
        self.hit_input_cap = False
        self._caller = client
        self._opening = tuple(opening)
        self._task = task
        self._bound_tools = {bound_tool.tool.name: bound_tool for bound_tool in bound_tools}
        self._bounds = bounds
        self._rounds: list[list[Turn]] = []

    def run(self) -> Completion | None:
        """The first answer without a call of a tool; None if there was none within the rounds.
        Raises ToolsUnsupported, besides what `ModelClient.complete` raises."""
        for number, choice in self._choices():
            before = self._caller.spent
            completion = self._caller.complete(
                self.conversation(),
                tools=self.tools,
                tool_choice=choice,
                schema=self.schema,
                max_output_tokens=self._bounds.output,
                iteration=number,
            )
            self.spend(before)
            if not completion.tool_calls:
                return replace(completion, content=storable(completion.content))
            self.perform(completion.tool_calls, completion.content)
        return None

    def stream(self) -> Iterator[str | Completion]:
        """`run` with the pieces of the answer as they come, and the answer last, if there is one.
        Text in front of a call is dropped, unless it is longer than `ModelClient.stream` holds
        back."""
        has_spoken = False
        for number, choice in self._choices():
            before = self._caller.spent
            completion: Completion | None = None
            text = ""
            pieces = self._caller.stream(
                self.conversation(),
                tools=self.tools,
                tool_choice=choice,
                max_output_tokens=self._bounds.output,
                iteration=number,
            )
            for piece in pieces:
                if isinstance(piece, Completion):
                    completion = piece
                    continue
                if has_spoken and not text:
                    yield "\n\n"
                text = text or piece
                yield piece
            self.spend(before)
            if completion is None or not completion.tool_calls:
                if completion is not None:
                    yield completion
                return
            has_spoken = has_spoken or bool(text)
            self.perform(completion.tool_calls, completion.content)

    def perform(self, calls: Sequence[ToolCall], content: str = "") -> None:
        """Run the calls of a round, which came with the text `content`, and store the results."""
        problems = [flaw(call.arguments) for call in calls]
        calls = [_storable(call) for call in calls]
        turns = [Turn("assistant", storable(content), calls)]
        uses: list[ToolUse] = []
        for index, (call, problem) in enumerate(zip(calls, problems, strict=True)):
            text, use = self._use(call, index, problem)
            turns.append(Turn("tool", text, tool_call_id=call.id))
            uses.append(use)
        self._rounds.append(turns)
        self.steps[-1] = replace(self.steps[-1], uses=tuple(uses))

    @property
    def rounds(self) -> int:
        """Maximum number of rounds."""
        return self._bounds.iterations

    @property
    def tools(self) -> list[Tool]:
        return [bound_tool.tool for bound_tool in self._bound_tools.values()]

    def _choices(self) -> Iterator[tuple[int, str | None]]:
        """The number of each round, and its tool choice."""
        choice = self._bounds.tool_choice
        for number in range(1, self._bounds.iterations + 1):
            yield number, "auto" if number > 1 and choice in ONCE_ONLY else choice

    def spend(self, before: Spent) -> None:
        """Record a further call of the model, from the usage before it."""
        now = self._caller.spent
        self.steps.append(
            Step(
                input_tokens=now.input_tokens - before.input_tokens,
                output_tokens=now.output_tokens - before.output_tokens,
                cache_read_tokens=now.cache_read_tokens - before.cache_read_tokens,
                cache_write_tokens=now.cache_write_tokens - before.cache_write_tokens,
            )
        )

    def transcript(self, last: str) -> list[Turn]:
        """The opening with all results as plain text, and `last` at its end: for a request without
        any tools.

        It has no tool turns, since some protocols refuse them in a request without tools.
        """
        *head, user = self._opening
        looked_up: list[str] = []
        for round_ in self._fitting():
            calls = {call.id: call for call in round_[0].tool_calls}
            for turn in round_[1:]:
                call = calls.get(turn.tool_call_id or "")
                looked_up.append(
                    prompt.LOOKED_UP.format(
                        call=_shown(call) if call else "a tool", result=turn.content
                    )
                )
        return [*head, replace(user, content="\n\n".join([user.content, *looked_up, last]))]

    def conversation(self, *further: Turn) -> list[Turn]:
        """The opening with its task, the rounds so far, and further turns. Offer the tools with it.
        It begins with the conversation of the round before, which providers have cached, unless
        the oldest rounds had to be left out."""
        *head, user = self._opening
        turn = replace(user, content=f"{user.content}\n\n{self._task}")
        rounds = [turn for round_ in self._fitting() for turn in round_]
        return [*head, turn, *rounds, *further]

    def _fitting(self) -> list[list[Turn]]:
        """The newest rounds that fit, whole: a call is never separated from its result. The last
        round is always included."""
        remaining = self._bounds.history
        if self._bounds.input is not None:
            opening = sum(map(_size, self._opening)) + tokens.count(self._task)
            left = self._bounds.input - opening - CLOSING_TOKENS
            capped = left < remaining
            remaining = min(remaining, left)
        else:
            capped = False
        fitting: list[list[Turn]] = []
        for round_ in reversed(self._rounds):
            size = sum(map(_size, round_))
            if fitting and size > remaining:
                self.hit_input_cap = self.hit_input_cap or capped
                break
            if size > remaining and capped:
                self.hit_input_cap = True
                round_ = _shortened(round_, remaining)
            fitting.append(round_)
            remaining -= size
        return fitting[::-1]

    def _use(self, call: ToolCall, index: int, problem: str | None) -> tuple[str, ToolUse]:
        """`problem`: the flaw of the arguments as the model wrote them."""
        began = time.monotonic()
        error: str | None = None
        tool_result = ToolResult(())
        try:
            tool_result = self._run_tool(call, index, problem)
        except ToolRefused as refused:
            error = str(refused)
        except MemserviceError:
            # For example, the store is unavailable: an answer without it would be unreliable.
            raise
        except Exception as failure:
            log.error(
                "the tool %s failed (%s)\n%s",
                call.name,
                type(failure).__name__,
                redacted_traceback(failure),
            )
            error = prompt.LOOK_UP_FAILED
        if error is not None:
            tool_result = ToolResult([f"Error: {error}"])
        text, whole = within(list(tool_result.lines) or ["Nothing was found."], self._bounds.result)
        return text, ToolUse(
            name=call.name,
            input=call.arguments,
            call_id=call.id,
            duration_ms=round((time.monotonic() - began) * 1000),
            error=error,
            result_chars=len(text),
            full_chars=whole,
            results=tool_result.results,
            levels=tuple(tool_result.levels),
        )

    def _run_tool(self, call: ToolCall, index: int, problem: str | None) -> ToolResult:
        if index >= MAX_CALLS:
            raise ToolRefused(
                f"At most {MAX_CALLS} calls are done at once. Call again, if you still need to."
            )
        bound_tool = self._bound_tools.get(call.name)
        if bound_tool is None:
            raise ToolRefused(
                f"There is no tool {call.name!r}. There are: {', '.join(self._bound_tools)}."
            )
        schema = bound_tool.tool.parameters
        unknown = sorted(set(call.arguments) - set(schema["properties"]))
        problem = problem or violation(schema, call.arguments)
        if problem is None and unknown:
            problem = (
                f"{', '.join(unknown)}: no such argument; there are "
                f"{', '.join(schema['properties'])}"
            )
        if problem is not None:
            raise ToolRefused(f"The arguments do not fit: {problem}.")
        return bound_tool.run(call.arguments)


def _storable(call: ToolCall) -> ToolCall:
    try:
        return replace(call, arguments=storable(call.arguments))
    except RecursionError:
        return replace(call, arguments={})


def _size(turn: Turn) -> int:
    """Approximate tokens of a turn: the protocol adds an unknown frame."""
    calls = sum(tokens.count(_shown(call)) + CALL_OVERHEAD for call in turn.tool_calls)
    return tokens.count(turn.content) + CALL_OVERHEAD + calls


def _shown(call: ToolCall) -> str:
    return f"{call.name}({json.dumps(dict(call.arguments), ensure_ascii=False)})"


def _shortened(round_: Sequence[Turn], remaining: int) -> list[Turn]:
    """A round whose results are cut evenly, so that it fits as far as results can be cut."""
    first, *results = round_
    share = max(0, remaining - _size(first)) // max(1, len(results)) - CALL_OVERHEAD
    return [
        first,
        *(
            replace(turn, content=cut(turn.content, max(1, share)) or "(left out)")
            for turn in results
        ),
    ]
