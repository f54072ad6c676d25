"""The configuration that workspaces, sessions and messages carry: its shape, how it is stored,
shown, merged and resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SECTIONS: Mapping[str, frozenset[str]] = {
    "reasoning": frozenset({"enabled", "custom_instructions"}),
    "peer_card": frozenset({"use", "create", "custom_instructions"}),
    "summary": frozenset(
        {
            "enabled",
            "messages_per_short_summary",
            "messages_per_long_summary",
            "custom_instructions",
        }
    ),
    "dream": frozenset({"enabled", "custom_instructions"}),
    "dialectic": frozenset({"custom_instructions"}),
}
"""The sections and their keys. Beside them stands the top-level text `custom_instructions`, which
goes to every component."""

INSTRUCTIONS = "custom_instructions"
MIN_MESSAGES: Mapping[str, int] = {
    "messages_per_short_summary": 10,
    "messages_per_long_summary": 20,
}
"""The smallest numbers that a caller may set in the section `summary`."""


def clean(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """As it is stored: unknown keys inside sections and null leaves are dropped, unknown top-level
    keys kept."""
    stored: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if value is None:
            continue
        if name in SECTIONS and isinstance(value, Mapping):
            stored[name] = {
                key: leaf
                for key, leaf in value.items()
                if key in SECTIONS[name] and leaf is not None
            }
        else:
            stored[name] = value
    return stored


def public(stored: Mapping[str, Any]) -> dict[str, Any]:
    """As it is shown: a section with its known keys only and no null leaf, whatever is stored
    (clients refuse anything else)."""
    return {
        name: value
        for name, value in clean(stored).items()
        if name not in SECTIONS or isinstance(value, dict)
    }


def merge(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A given section replaces the stored one whole; null and absent ones stay as they are."""
    return {**stored, **clean(given)}


def texts(given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every `custom_instructions` text in a configuration, with its path."""
    top = given.get(INSTRUCTIONS)
    if isinstance(top, str):
        yield (INSTRUCTIONS,), top
    for name in SECTIONS:
        section = given.get(name)
        if isinstance(section, Mapping) and isinstance(section.get(INSTRUCTIONS), str):
            yield (name, INSTRUCTIONS), section[INSTRUCTIONS]


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the operator's settings say where nobody else does."""

    reasoning: bool = True
    card: bool = True
    summary: bool = True
    dream: bool = True
    messages_per_short_summary: int = 20
    messages_per_long_summary: int = 60


@dataclass(frozen=True, slots=True)
class Resolved:
    """What holds for one message, session or workspace."""

    reasoning: bool
    card_use: bool
    card_create: bool
    summary: bool
    dream: bool
    messages_per_short_summary: int
    messages_per_long_summary: int
    instructions: Mapping[str, str] = field(default_factory=dict)
    """By section name, only where there is a text that is not blank."""


def resolve(defaults: Defaults, *layers: Mapping[str, Any] | None) -> Resolved:
    """The effective configuration. `layers` go from the strongest (message) to the weakest
    (workspace); nulls are skipped."""
    given = [layer for layer in layers if layer]

    def leaf(section: str, key: str, default: Any) -> Any:
        for layer in given:
            part = layer.get(section)
            if isinstance(part, Mapping) and part.get(key) is not None:
                return part[key]
        return default

    reasoning = _reasoning(given)
    return Resolved(
        reasoning=defaults.reasoning if reasoning is None else bool(reasoning),
        card_use=bool(leaf("peer_card", "use", defaults.card)),
        card_create=bool(leaf("peer_card", "create", defaults.card)),
        summary=bool(leaf("summary", "enabled", defaults.summary)),
        dream=bool(leaf("dream", "enabled", defaults.dream)),
        messages_per_short_summary=_interval(
            leaf("summary", "messages_per_short_summary", None), defaults.messages_per_short_summary
        ),
        messages_per_long_summary=_interval(
            leaf("summary", "messages_per_long_summary", None), defaults.messages_per_long_summary
        ),
        instructions=_instructions(given),
    )


def _interval(given: Any, default: int) -> int:
    """A number of messages. What else a store may hold, written by other generations or by hand,
    counts as nothing said."""
    return (
        given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else default
    )


def _reasoning(layers: list[Mapping[str, Any]]) -> bool | None:
    """The strongest layer that has the present switch decides. Older generations' switches count in
    the layers above it, or everywhere if none has it: off if any of them says off."""
    said: bool | None = None
    for layer in layers:
        present = _enabled(layer, "reasoning")
        if present is not None:
            return bool(present)
        enabled = _enabled(layer, "deriver")
        if enabled is None:
            enabled = layer.get("deriver_enabled")
        if (
            layer.get("skip_deriver") is True
            or layer.get("deriver_disabled") is True
            or enabled is False
        ):
            return False
        if enabled is True:
            said = True
    return said


def _enabled(layer: Mapping[str, Any], section: str) -> Any:
    part = layer.get(section)
    return part.get("enabled") if isinstance(part, Mapping) else None


def _instructions(layers: list[Mapping[str, Any]]) -> dict[str, str]:
    def first(path: tuple[str, ...]) -> str | None:
        for layer in layers:
            for found, text in texts(layer):
                if found == path:
                    return text
        return None

    general = first((INSTRUCTIONS,))
    found: dict[str, str] = {}
    for section in SECTIONS:
        parts = [
            text.strip()
            for text in (general, first((section, INSTRUCTIONS)))
            if text and text.strip()
        ]
        if parts:
            found[section] = "\n\n".join(parts)
    return found
