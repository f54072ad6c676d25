"""Answering with a language model: it looks up missing information, round by round, and then writes
the answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import UTC
from typing import Any

from msgspec.structs import replace

from memservice.domain import tokens
from memservice.domain.answers.json_text import Unreadable
from memservice.domain.records import EXPLICIT
from memservice.reasoning import search_plan, structured
from memservice.reasoning.calculation_tools import calculation_tools
from memservice.reasoning.client import CUT_OFF, ModelClient
from memservice.reasoning.limits import ClientDisconnected
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import answer as prompt
from memservice.reasoning.render import Renderer, minute, text_of
from memservice.reasoning.retrieval_tools import ID_ARGUMENTS, RetrievalTools
from memservice.reasoning.short_ids import ShortIds
from memservice.reasoning.tool_loop import Bounds, BoundTool, ToolLoop
from memservice.reasoning.transcript import called, name
from memservice.settings.sections import DialecticLevel
from memservice.spi.llm import Completion, ModelFailure, ToolsUnsupported, Turn
from memservice.spi.reasoner import Answered, AnswerRequest

log = logging.getLogger("memservice.reasoning")

PURPOSE = "dialectic.answer"
SEARCH_ONLY_LEVELS = ("minimal",)
"""Levels whose tools only search."""


def answer(models: Models, request: AnswerRequest) -> Iterator[str | Answered]:
    """The answer, then its usage and steps, also after a failure. With `stream` its pieces arrive
    as the model writes them, otherwise it arrives whole.

    Text that a model writes beside its calls is not passed on. An answer in a `response_format`
    arrives whole even in a stream, since parts of it are unusable and a second request may follow.
    A model without tools plans its searches in JSON.
    """
    level: DialecticLevel = getattr(models.settings.dialectic.levels, request.level)
    client = ModelClient(models, PURPOSE, level.model_config, request.origin)
    renderer = Renderer(
        ShortIds(),
        models.settings.llm.max_message_content_chars,
        with_pair=request.subject is None,
    )
    bound_tools = _bound_tools(request, level, renderer)
    schema = request.response_format
    if not (bound_tools and schema is not None and client.combines_schema_with_tools):
        schema = None
    task = _task(request, level.max_tool_iterations, schema) if bound_tools else ""
    turns, was_cut = opening(models, request, task, renderer)
    bounds = Bounds(
        iterations=level.max_tool_iterations,
        output=level.max_output_tokens or models.settings.dialectic.max_output_tokens,
        history=models.settings.dialectic.history_token_limit,
        input=models.settings.dialectic.max_input_tokens,
        result=models.settings.llm.max_tool_output_chars,
        tool_choice=level.tool_choice,
    )
    loop = ToolLoop(client, turns, task, bound_tools, bounds, schema)
    writer = _Writer(client, loop, bounds, models.answer_begun if request.stream else None)
    ids = renderer.ids
    try:
        if request.response_format is None:
            yield from ids.restored_pieces(writer.text(has_tools=bool(bound_tools)))
        else:
            document = writer.document(request.response_format, has_tools=bool(bound_tools))
            yield ids.restored(document)
    except Exception:
        # The calls so far have costs.
        yield _took(client, writer.loop, request, ids, was_cut)
        raise
    yield _took(client, writer.loop, request, ids, was_cut)


class _Writer:
    """Writes one answer, whole or in pieces."""

    def __init__(
        self,
        client: ModelClient,
        loop: ToolLoop,
        bounds: Bounds,
        on_first_text: Callable[[], None] | None,
    ) -> None:
        """`on_first_text`: for a stream, called before its first text is passed on."""
        self.loop = loop
        self._client, self._bounds = client, bounds
        self._is_stream, self._on_first_text = on_first_text is not None, on_first_text
        self._has_tools = False

    def document(self, schema: dict[str, Any], *, has_tools: bool) -> str:
        """An answer that fits a schema: the one that ends the rounds, if the model can combine the
        schema with tools, otherwise the answer to a separate request."""
        if has_tools:
            try:
                completion = self.loop.run()
                if self.loop.schema is not None and (text := self._fitting(completion, schema)):
                    return text
            except ToolsUnsupported:
                search_plan.look_up(self._client, self.loop)
        before = self._client.spent
        value = structured.ask(
            self._client,
            self.loop.transcript(prompt.ANSWER_AS_JSON),
            schema,
            max_output_tokens=self._bounds.output,
        )
        self.loop.spend(before)
        return json.dumps(value, ensure_ascii=False)

    def _fitting(self, completion: Completion | None, schema: dict[str, Any]) -> str | None:
        """The answer that ended the rounds, or the one that is requested after the last of them, if
        it fits."""
        if completion is None:
            turn = Turn("user", prompt.ANSWER_AS_JSON)
            before = self._client.spent
            completion = self._client.complete(
                self.loop.conversation(turn),
                tools=self.loop.tools,
                tool_choice="none",
                schema=schema,
                max_output_tokens=self._bounds.output,
                iteration=len(self.loop.steps) + 1,
            )
            self.loop.spend(before)
        try:
            answer = structured.parsed(
                completion, schema, lambda value: structured.fitted(value, schema)
            )
        except Unreadable:
            return None
        return None if answer.is_cut else json.dumps(answer.value, ensure_ascii=False)

    def text(self, *, has_tools: bool) -> Iterator[str]:
        """An answer in words. One that is empty is requested once more, one that is cut is
        continued once."""
        self._has_tools = has_tools
        if has_tools:
            try:
                if (yield from self._passed_on(self._rounds())):
                    return
            except ToolsUnsupported:
                self._has_tools = False
                search_plan.look_up(self._client, self.loop)
        turns = (
            self.loop.conversation(Turn("user", prompt.ANSWER_NOW))
            if self._has_tools
            else self.loop.transcript(prompt.ANSWER_NOW)
        )
        if (yield from self._passed_on(self._ask(turns), turns)):
            return
        self._has_tools = False
        turns = self.loop.transcript(f"{prompt.ANSWER_NOW}\n\n{prompt.EMPTY}")
        yield from self._passed_on(self._ask(turns), turns)

    def _rounds(self) -> Iterator[str | Completion]:
        """The answer that ends the rounds with tools, if one does."""
        if self._is_stream:
            yield from self.loop.stream()
        elif (completion := self.loop.run()) is not None:
            yield completion

    def _ask(self, turns: Sequence[Turn]) -> Iterator[str | Completion]:
        """A question that must not be answered with calls. Its tools remain as long as the model
        supports them: they are part of the prefix that its provider has cached."""
        before, number = self._client.spent, len(self.loop.steps) + 1
        tools = self.loop.tools if self._has_tools else []
        if self._is_stream:
            yield from self._client.stream(
                turns,
                tools=tools,
                tool_choice="none",
                max_output_tokens=self._bounds.output,
                iteration=number,
            )
        else:
            yield self._client.complete(
                turns,
                tools=tools,
                tool_choice="none",
                max_output_tokens=self._bounds.output,
                iteration=number,
            )
        self.loop.spend(before)

    def _passed_on(
        self, pieces: Iterator[str | Completion], turns: Sequence[Turn] | None = None
    ) -> Generator[str, None, bool]:
        """The pieces of an answer from its first word on, and its continuation if it was cut;
        returns whether it has any text. An answer that did not arrive in pieces is one piece. If
        the continuation fails, the answer ends where it was cut.
        `turns`: those of the request; None: those of the last round."""
        text, was_cut = yield from self._from_first_word(pieces)
        if text.strip() and was_cut:
            request = self.loop.conversation() if turns is None else turns
            further = [*request, Turn("assistant", text), Turn("user", prompt.GO_ON)]
            try:
                yield from self._from_first_word(self._ask(further), keep_blanks=True)
            except ClientDisconnected:
                raise
            except ModelFailure as error:
                log.warning("an answer was cut off at its maximum length: %s", error)
        return bool(text.strip())

    def _from_first_word(
        self, pieces: Iterator[str | Completion], *, keep_blanks: bool = False
    ) -> Generator[str, None, tuple[str, bool]]:
        text, blank, was_cut = "", "", False
        for piece in pieces:
            if isinstance(piece, Completion):
                was_cut = piece.finish_reason in CUT_OFF
                if self._is_stream:
                    continue
                piece = piece.content
            if not text and not piece.strip() and not keep_blanks:
                blank += piece
                continue
            if self._on_first_text is not None:
                self._on_first_text()
            yield blank + piece
            text, blank = text + blank + piece, ""
        return text, was_cut


def _took(
    client: ModelClient, loop: ToolLoop, request: AnswerRequest, ids: ShortIds, was_cut: bool
) -> Answered:
    """The usage and the steps, with uids in the arguments of tools."""
    steps = [
        replace(
            step,
            uses=tuple(
                replace(
                    use,
                    input={
                        name: ids.restored_id(value) if name in ID_ARGUMENTS else value
                        for name, value in use.input.items()
                    },
                )
                for use in step.uses
            ),
        )
        for step in loop.steps
    ]
    return Answered(
        client.spent, tuple(steps), request.origin.run_id, loop.hit_input_cap or was_cut
    )


def _task(request: AnswerRequest, rounds: int, schema: dict[str, Any] | None) -> str:
    """`schema`: of the answer, if it can be requested together with tools."""
    if request.response_format is None:
        task = prompt.ANSWER_WHEN_READY
    else:
        task = prompt.SAY_WHEN_READY if schema is None else prompt.ANSWER_AS_JSON_WHEN_READY
    return f"{prompt.ONE_ROUND if rounds == 1 else prompt.ROUNDS.format(rounds)} {task}"


def _bound_tools(
    request: AnswerRequest, level: DialecticLevel, renderer: Renderer
) -> list[BoundTool]:
    if request.tools is None or level.tool_choice == "none":
        return []
    retrieval_tools = RetrievalTools(request.tools, renderer)
    if request.level in SEARCH_ONLY_LEVELS:
        return retrieval_tools.search_only()
    today = None if request.asked_at is None else request.asked_at.astimezone(UTC).date()
    return [*retrieval_tools.all(), *calculation_tools(today)]


def opening(
    models: Models, request: AnswerRequest, task: str, renderer: Renderer
) -> tuple[list[Turn], bool]:
    """The first turns, and whether a part of them was left out. `task` is added to them if there
    are tools.

    What changes most from question to question comes last, so that providers can cache the rest.
    """
    system = (prompt.WORKSPACE if request.asker is None else prompt.PEER).text
    if task:
        system += prompt.TOOLS
        if request.level not in SEARCH_ONLY_LEVELS:
            system += prompt.CALCULATIONS
    if request.instructions and request.instructions.strip():
        system += prompt.INSTRUCTIONS.format(request.instructions.strip())
    question = prompt.QUESTION.format(
        now="not known" if request.asked_at is None else f"{minute(request.asked_at)} (UTC)",
        question=text_of(request.question, len(request.question)),
    )
    head = ["\n".join(_head(request)), *_cards(request, renderer.maximum)]
    fixed = sum(tokens.count(text) + 2 for text in (system, *head, question, task))
    sections, was_cut = _sections(
        request, renderer, models.settings.dialectic.max_input_tokens - fixed
    )
    text = "\n\n".join(part for part in (*head, *sections, question) if part)
    return [Turn("system", system), Turn("user", text)], was_cut


def _head(request: AnswerRequest) -> list[str]:
    asker, subject = name(request.asker or ""), name(request.subject or "")
    if request.asker is None:
        introduction = prompt.ASKED_ALL
    elif asker == subject:
        introduction = prompt.ASKED_ITSELF.format(asker=asker)
    else:
        introduction = prompt.ASKED_ABOUT.format(asker=asker, subject=subject)
    return [introduction, *called(request.names)]


def _cards(request: AnswerRequest, maximum: int) -> list[str]:
    return [
        "\n".join(
            [
                prompt.CARD.format(peer=name(peer_id)),
                *(f"- {text_of(line, maximum)}" for line in lines),
            ]
        )
        for peer_id, lines in request.cards.items()
        if lines
    ]


def _sections(request: AnswerRequest, renderer: Renderer, remaining: int) -> tuple[list[str], bool]:
    """The evidence that fits: conclusions before messages, the best of each, and the newest
    messages of the session."""
    conclusions = [item for item in request.evidence if item.kind == "conclusion"]
    hits = [item for item in request.evidence if item.kind == "message"]
    stated = [renderer.conclusion(item) for item in conclusions if item.level == EXPLICIT]
    drawn = [renderer.conclusion(item) for item in conclusions if item.level != EXPLICIT]
    messages = [renderer.message(item) for item in hits]
    recent = [renderer.utterance(item) for item in request.recent if item.content.strip()]
    texts_by_section: dict[str, list[str]] = {}
    was_cut = False
    for heading, lines, newest_last in (
        (prompt.STATED, stated, False),
        (prompt.DRAWN, drawn, False),
        (prompt.SAID, messages, False),
        (prompt.RECENT, recent, True),
    ):
        fitting, remaining = _that_fit(
            lines[::-1] if newest_last else lines, remaining - tokens.count(heading) - 2
        )
        was_cut = was_cut or len(fitting) < len(lines)
        texts_by_section[heading] = fitting[::-1] if newest_last else fitting
    nothing = [] if stated or drawn or messages else [prompt.NOTHING]
    # The session comes first, as it does in time: the evidence stands next to the question.
    order = (prompt.RECENT, prompt.STATED, prompt.DRAWN, prompt.SAID)
    return [
        "\n".join([heading, *texts_by_section[heading]])
        for heading in order
        if texts_by_section[heading]
    ] + nothing, was_cut


def _that_fit(lines: Sequence[str], remaining: int) -> tuple[list[str], int]:
    fitting: list[str] = []
    for line in lines:
        remaining -= tokens.count(line) + 1
        if remaining < 0:
            break
        fitting.append(line)
    return fitting, max(0, remaining)
