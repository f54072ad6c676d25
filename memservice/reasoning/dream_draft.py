"""The results of a dream before they are stored. They are checked at once, so that the model gets
the errors and can correct them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memservice.domain.card_rules import KINDS, MAX_LINE_LENGTH, MAX_LINES, folded, is_good
from memservice.domain.derived_rules import (
    CONFIDENCES,
    MAX_CONTENT_LENGTH,
    MIN_SOURCES,
    PATTERNS,
    USUAL_CONFIDENCE,
)
from memservice.domain.ids import fingerprint
from memservice.reasoning.short_ids import CONCLUSION, ShortIds
from memservice.reasoning.tool_loop import ToolResult
from memservice.spi.reasoner import ConsolidateRequest, Statement, Superseded
from memservice.spi.toolbox import Evidence, ToolRefused


class DreamDraft:
    """The conclusions that a dream creates and supersedes, and the card that it writes."""

    def __init__(self, request: ConsolidateRequest) -> None:
        self.created: list[Statement] = []
        self.superseded: dict[str, Superseded] = {}
        self.card: list[str] | None = None
        self.ids = ShortIds()
        self._levels = {row.uid: row.level for row in request.known}
        self._written_by_hand = {folded(line): line for line in request.card if not is_good(line)}

    def shows(self, candidates: Sequence[Evidence]) -> list[Evidence]:
        """The conclusions that this dream did not supersede. The model sees them, so it may cite
        them."""
        evidence = [item for item in candidates if item.uid not in self.superseded]
        self._levels.update({item.uid: item.level or "" for item in evidence})
        return evidence

    def create(
        self, arguments: Mapping[str, Any], levels: Sequence[str], model: str | None, version: str
    ) -> ToolResult:
        """New conclusions of those levels, with the model and the version of its prompt. Each is
        checked separately."""
        lines: list[str] = []
        created_levels: list[str] = []
        for item in arguments["conclusions"]:
            try:
                statement = replace(self._statement(item, levels), model=model, prompt=version)
            except ToolRefused as problem:
                lines.append(f"Not created ({_beginning(item['content'])}): {problem}")
                continue
            self.created.append(statement)
            created_levels.append(statement.level)
            lines.append(f"Created #{len(self.created) - 1}: {_beginning(statement.content)}")
        return ToolResult(
            lines or ["No conclusions were given."], len(created_levels), created_levels
        )

    def _statement(self, item: Mapping[str, Any], levels: Sequence[str]) -> Statement:
        content, level = " ".join(item["content"].split()), item["level"]
        if not content or len(content) > MAX_CONTENT_LENGTH:
            raise ToolRefused(f"the content must have 1 to {MAX_CONTENT_LENGTH} characters")
        if level not in levels or level not in MIN_SOURCES:
            raise ToolRefused(
                f"conclusions of level {level!r} are not made here; only {', '.join(levels)}"
            )
        sources = tuple(dict.fromkeys(self._named(name) for name in item["source_ids"]))
        if len(sources) < MIN_SOURCES[level]:
            raise ToolRefused(
                f"a conclusion of level {level} names at least {MIN_SOURCES[level]} of the "
                "conclusions that it rests on"
            )
        same = fingerprint(content)
        for number, other in enumerate(self.created):
            if other.level == level and fingerprint(other.content) == same:
                raise ToolRefused(f"you have created that already, as #{number}")
        inductive = level == "inductive"
        pattern, confidence = item.get("pattern_type"), item.get("confidence")
        return Statement(
            content,
            (),
            level,
            sources,
            tuple(item.get("premises") or ()),
            pattern_type=pattern if inductive and pattern in PATTERNS else None,
            confidence=(confidence if confidence in CONFIDENCES else USUAL_CONFIDENCE)
            if inductive
            else None,
        )

    def supersede(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Conclusions to supersede. Each is checked separately."""
        lines: list[str] = []
        superseded_levels: list[str] = []
        for item in arguments["conclusions"]:
            try:
                step = self._step(item)
            except ToolRefused as problem:
                lines.append(f"Not superseded ({item['id']}): {problem}")
                continue
            self.superseded[step.old] = step
            superseded_levels.append(self._levels[step.old])
            lines.append(
                f"Superseded {self.shown(step.old)}"
                + (f" by {self.shown(step.new)}" if step.new else "")
            )
        return ToolResult(
            lines or ["No conclusions were given."], len(superseded_levels), superseded_levels
        )

    def _step(self, item: Mapping[str, Any]) -> Superseded:
        old = self.ids.uid(item["id"], CONCLUSION)
        new = (item.get("replaced_by") or "").strip() or None
        reason = " ".join(item["reason"].split())
        if old is None or old not in self._levels:
            raise ToolRefused(
                f"there is no conclusion with that id; there are {self.ids.range(CONCLUSION)}"
            )
        if old in self.superseded:
            raise ToolRefused("it was superseded already")
        if not reason:
            raise ToolRefused("say why, in reason")
        if new is not None:
            new = self._named(new)
            following: str | None = new
            while following is not None:
                if following == old:
                    raise ToolRefused("it would replace itself")
                step = self.superseded.get(following)
                following = None if step is None else step.new
        return Superseded(old, new, reason)

    def rewrite_card(self, arguments: Mapping[str, Any]) -> ToolResult:
        """The whole card. Invalid lines are dropped and reported; without a valid line the card
        does not change."""
        accepted: dict[str, str] = {}
        lines: list[str] = []
        for line in arguments["lines"]:
            text = " ".join(line.split())
            mark = folded(text)
            if mark in self._written_by_hand:
                accepted.setdefault(mark, self._written_by_hand[mark])
            elif not is_good(text):
                kinds = ", ".join(f"'{kind}: '" for kind in KINDS)
                why = (
                    f"it has more than {MAX_LINE_LENGTH} characters"
                    if len(text) > MAX_LINE_LENGTH
                    else f"it must begin with one of {kinds}, and text"
                )
                lines.append(f"Dropped ({_beginning(text)}): {why}")
            else:
                accepted.setdefault(mark, text)
        if len(accepted) > MAX_LINES:
            lines.append(f"Only the first {MAX_LINES} lines were kept.")
        if not accepted:
            return ToolResult([*lines, "The card was left as it is."], 0)
        self.card = list(accepted.values())[:MAX_LINES]
        return ToolResult([*lines, f"The card has {len(self.card)} lines now."], len(self.card))

    def _named(self, name: str) -> str:
        """The uid of a conclusion, or the number of a created one."""
        uid = self.ids.uid(name, CONCLUSION)
        if uid is not None and uid in self._levels:
            return uid
        plain = name.strip().strip("[]")
        if plain.startswith("#") and plain[1:].isdecimal() and int(plain[1:]) < len(self.created):
            return f"#{int(plain[1:])}"
        raise ToolRefused(
            f"there is no conclusion {name!r}; there are {self.ids.range(CONCLUSION)}, and #n for "
            "those that you created"
        )

    def shown(self, name: str) -> str:
        """The short id of a conclusion, or the number of a created one."""
        return name if name.startswith("#") else self.ids.conclusion(name)


def _beginning(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 60 else plain[:60] + " …"
