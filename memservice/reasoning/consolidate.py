"""Dreaming with a language model: first deduction, then induction; or only the card.

Nothing is stored here. The results of the phases are collected, and the pipeline stores them all at
once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memservice.domain import tokens
from memservice.domain.errors import Damaged, Unavailable
from memservice.domain.ids import new_uid
from memservice.domain.json_schema import violation
from memservice.domain.records import CONTRADICTION, DEDUCTIVE, INDUCTIVE
from memservice.reasoning import structured
from memservice.reasoning.client import ModelClient
from memservice.reasoning.dream_draft import DreamDraft
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import Prompt, tools
from memservice.reasoning.prompts import consolidate as prompt
from memservice.reasoning.render import Renderer, text_of
from memservice.reasoning.retrieval_tools import RetrievalTools
from memservice.reasoning.tool_loop import Bounds, BoundTool, ToolLoop, ToolResult
from memservice.reasoning.transcript import name, stamp
from memservice.settings.models import ModelConfig
from memservice.settings.sections import Dream
from memservice.spi.llm import ModelFailure, ToolCall, ToolsUnsupported, Turn
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Known, Phase, Spent

log = logging.getLogger("memservice.reasoning")

MAX_OUTPUT_TOKENS = 8_192
"""Tokens of one round, unless the model's settings have a limit."""
SURPRISING_SHOWN = 10
SURPRISING_CHARS = 200
ID_TOKENS = 6
"""Tokens of a short id in brackets and the end of its line."""


class _Kind(Struct, frozen=True):
    """The properties of a phase."""

    name: str
    prompt: Prompt
    iterations: int
    creates: tuple[str, ...] = ()
    supersedes: bool = False
    writes_card: bool = False
    reads_messages: bool = True

    def config(self, dream: Dream) -> ModelConfig:
        return (
            dream.induction_model_config
            if self.name == "induction"
            else dream.deduction_model_config
        )


DEDUCTION = _Kind(
    "deduction", prompt.DEDUCTION, 12, (DEDUCTIVE, CONTRADICTION), supersedes=True, writes_card=True
)
INDUCTION = _Kind("induction", prompt.INDUCTION, 10, (INDUCTIVE,))
CARD_REFRESH = _Kind("card_refresh", prompt.CARD_REFRESH, 6, writes_card=True, reads_messages=False)


def consolidate(models: Models, request: ConsolidateRequest) -> Consolidated:
    """The results of the phases. If one fails, the other still runs, and `phases` names the
    failure. If all fail, the error of the last is raised, so that the dream is retried. A failure
    of a model's provider is raised at once."""
    kinds = [CARD_REFRESH] if request.card_only else [DEDUCTION, INDUCTION]
    if (request.card_only and not request.write_card) or not (request.known or request.card_only):
        return Consolidated()
    draft = DreamDraft(request)
    phases: list[Phase] = []
    failure: Exception | None = None
    for kind in kinds:
        phase = _Phase(models, request, draft, kind)
        try:
            phase.run()
        except (Unavailable, Damaged):
            # The store is unavailable, or damaged: no result could be stored.
            raise
        except Exception as error:
            if isinstance(error, ModelFailure) and error.fault == "provider":
                raise  # the dream waits for the model
            failure = error
            phase.error = type(error).__name__
            log.warning("the phase %s of a dream failed: %s", kind.name, phase.error)
        phases.append(phase.report())
    if failure is not None and all(phase.error is not None for phase in phases):
        raise failure
    return Consolidated(
        created=tuple(draft.created),
        superseded=tuple(draft.superseded.values()),
        card=draft.card,
        spent=sum((phase.spent for phase in phases), Spent()),
        phases=tuple(phases),
    )


class _Phase:
    """One run of a model with the tools of a phase."""

    def __init__(
        self, models: Models, request: ConsolidateRequest, draft: DreamDraft, kind: _Kind
    ) -> None:
        self.error: str | None = None
        dream = models.settings.dream
        config = kind.config(dream)
        self._settings, self._request, self._draft_of_dream, self._kind = (
            models.settings,
            request,
            draft,
            kind,
        )
        self._renderer = Renderer(draft.ids, models.settings.llm.max_message_content_chars)
        self._model = models.target(config).model
        self._caller = ModelClient(models, f"dream.{kind.name}", config, request.origin)
        self._loop = ToolLoop(
            self._caller,
            self._opening(),
            prompt.TASK[kind.name],
            self._bound_tools(),
            Bounds(
                iterations=min(kind.iterations, dream.max_tool_iterations),
                output=MAX_OUTPUT_TOKENS,
                history=dream.history_token_limit,
                input=None,
                result=models.settings.llm.max_tool_output_chars,
            ),
        )
        self._began = time.monotonic()

    def run(self) -> None:
        try:
            self._loop.run()
        except ToolsUnsupported:
            self._run_without_tools()

    def _run_without_tools(self) -> None:
        """Run the phase as one request, whose answer is a document."""
        writing = {
            bound_tool.tool.name: _WRITING[bound_tool.tool.name]
            for bound_tool in self._bound_tools()
            if bound_tool.tool.name in _WRITING
        }
        parts = {
            key: bound_tool.tool.parameters["properties"][argument]
            for bound_tool in self._bound_tools()
            for key, argument in [writing.get(bound_tool.tool.name, ("", ""))]
            if key
        }
        schema = {"type": "object", "properties": parts, "required": []}
        before = self._caller.spent
        answer = structured.ask_once_more(
            self._caller,
            self._loop.transcript(
                prompt.WITHOUT_TOOLS.format(
                    parts="; ".join(prompt.PARTS[tool_name] for tool_name in writing)
                )
                + f"\n\n{prompt.TASK[self._kind.name]}"
            ),
            schema,
            shape=lambda value: _shaped(value, parts),
            max_output_tokens=MAX_OUTPUT_TOKENS,
        )
        self._loop.spend(before)
        calls = [
            ToolCall(new_uid(), tool_name, {argument: answer.value[key]})
            for tool_name, (key, argument) in writing.items()
            if answer.value.get(key)
        ]
        if calls:
            self._loop.perform(calls)

    def report(self) -> Phase:
        uses = [use for step in self._loop.steps for use in step.uses if use.error is None]
        return Phase(
            self._kind.name,
            tuple(self._loop.steps),
            self._caller.spent,
            round((time.monotonic() - self._began) * 1000),
            self.error,
            created=tuple(
                level
                for use in uses
                if use.name == tools.CREATE_CONCLUSIONS
                for level in use.levels
            ),
            superseded=tuple(
                level
                for use in uses
                if use.name == tools.SUPERSEDE_CONCLUSIONS.name
                for level in use.levels
            ),
            card_written=any(
                use.name == tools.UPDATE_PEER_CARD.name and use.results for use in uses
            ),
        )

    def _bound_tools(self) -> list[BoundTool]:
        kind, draft = self._kind, self._draft_of_dream
        bound_tools = [BoundTool(tools.RECENT_CONCLUSIONS, self._recent)]
        if self._request.tools is not None:
            memory, messages = RetrievalTools(
                self._request.tools, self._renderer, keep=draft.shows
            ).search_only()
            bound_tools += [memory, messages] if kind.reads_messages else [memory]
        if kind.creates:
            create = tools.create_conclusions(kind.creates)
            bound_tools.append(BoundTool(create, self._create))
        if kind.supersedes:
            bound_tools.append(BoundTool(tools.SUPERSEDE_CONCLUSIONS, draft.supersede))
        if kind.writes_card and self._request.write_card:
            bound_tools.append(BoundTool(tools.UPDATE_PEER_CARD, draft.rewrite_card))
        return bound_tools

    def _create(self, arguments: Mapping[str, Any]) -> ToolResult:
        model = self._caller.spent.model or self._model
        return self._draft_of_dream.create(
            arguments, self._kind.creates, model, self._kind.prompt.version
        )

    def _live(self) -> list[Known]:
        """The stored conclusions that this dream has not superseded, oldest first."""
        return [
            row for row in self._request.known if row.uid not in self._draft_of_dream.superseded
        ]

    def _recent(self, arguments: Mapping[str, Any]) -> ToolResult:
        usual, maximum = tools.LIMITS[tools.RECENT_CONCLUSIONS.name]
        limit, skip = (
            max(1, min(int(arguments.get("limit") or usual), maximum)),
            max(0, int(arguments.get("skip") or 0)),
        )
        rows = [
            row for row in reversed(self._live()) if arguments.get("level") in (None, row.level)
        ][skip : skip + limit]
        return ToolResult([self._renderer.known_line(row) for row in rows], len(rows))

    def _opening(self) -> list[Turn]:
        request, kind = self._request, self._kind
        writes_card = kind.writes_card and request.write_card
        system = kind.prompt.text + (prompt.CARD_RULES if writes_card else "")
        if request.instructions and request.instructions.strip() and not request.card_only:
            system += prompt.INSTRUCTIONS.format(request.instructions.strip())
        if request.card_instructions and request.card_instructions.strip() and writes_card:
            system += prompt.CARD_INSTRUCTIONS.format(request.card_instructions.strip())
        now = f"{stamp(request.asked_at)} (UTC)" if request.asked_at is not None else "not known"
        parts = [
            prompt.HEAD.format(
                now=now, observer=name(request.observer), observed=name(request.observed)
            )
        ]
        if writes_card:
            card = [f"- {text_of(line, self._renderer.maximum)}" for line in request.card]
            parts.append("\n".join([prompt.CARD, *card]) if card else prompt.NO_CARD)
        parts += [*self._conclusions(), *self._before()]
        return [Turn("system", system), Turn("user", "\n\n".join(parts))]

    def _conclusions(self) -> list[str]:
        """The surprising ones and, unless these are enough, the newest ones that fit."""
        live = {row.uid: row for row in self._live()}
        if not live:
            return [prompt.NONE]
        odd = [live[uid] for uid in self._request.surprising if uid in live][:SURPRISING_SHOWN]
        parts = (
            [
                "\n".join(
                    [
                        prompt.SURPRISING,
                        *(self._renderer.known_line(row, SURPRISING_CHARS) for row in odd),
                    ]
                )
            ]
            if odd
            else []
        )
        enough = self._settings.dream.surprisal.min_high_surprisal_for_replace
        if odd and len(self._request.surprising) >= enough:
            return parts
        remaining = self._settings.dream.history_token_limit
        newest: list[Known] = []
        for row in reversed(live.values()):
            remaining -= tokens.count(self._renderer.known_text(row)) + ID_TOKENS
            if remaining < 0 and newest:
                break
            newest.append(row)
        lines = [self._renderer.known_line(row) for row in reversed(newest)]
        return [*parts, "\n".join([prompt.NEWEST.format(total=len(live)), *lines])]

    def _before(self) -> list[str]:
        """The results of the previous phase."""
        created = [
            f"#{n} {row.level}: {text_of(row.content, self._renderer.maximum)}"
            for n, row in enumerate(self._draft_of_dream.created)
        ]
        superseded = ", ".join(map(self._draft_of_dream.shown, self._draft_of_dream.superseded))
        return (["\n".join([prompt.CREATED, *created])] if created else []) + (
            [prompt.SUPERSEDED.format(superseded)] if superseded else []
        )


_WRITING = {
    tools.CREATE_CONCLUSIONS: ("create", "conclusions"),
    tools.SUPERSEDE_CONCLUSIONS.name: ("supersede", "conclusions"),
    tools.UPDATE_PEER_CARD.name: ("card", "lines"),
}
"""Tool that writes → its key in the document of a phase without tools, and its argument."""


def _shaped(value: Any, parts: Mapping[str, Any]) -> Any:
    """The document without its invalid items."""
    if not isinstance(value, dict):
        return value
    return {
        key: [item for item in value[key] if violation(part["items"], item) is None]
        for key, part in parts.items()
        if isinstance(value.get(key), list)
    }
