"""The configuration of workspaces, sessions and messages: its structure, and how it is stored,
shown, merged and resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

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
    "retention": frozenset({"messages_days", "conclusions_days"}),
    "self_service": frozenset({"enabled"}),
}
"""The sections and their keys. The top-level text `custom_instructions` applies to every
component."""

INSTRUCTIONS = "custom_instructions"
MIN_MESSAGES: Mapping[str, int] = {
    "messages_per_short_summary": 10,
    "messages_per_long_summary": 20,
}
"""The smallest numbers that a caller may set in the section `summary`."""


def clean(configuration: Mapping[str, Any] | None) -> dict[str, Any]:
    """The configuration as it is stored: without null leaves and unknown keys inside sections;
    unknown top-level keys stay."""
    sections: dict[str, Any] = {}
    for name, value in (configuration or {}).items():
        if value is None:
            continue
        if name in SECTIONS and isinstance(value, Mapping):
            sections[name] = {
                key: leaf
                for key, leaf in value.items()
                if key in SECTIONS[name] and leaf is not None
            }
        else:
            sections[name] = value
    return sections


def public(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration as it is shown: sections have known keys only and no null leaf, whatever is
    stored (clients reject anything else)."""
    return {
        name: value
        for name, value in clean(configuration).items()
        if name not in SECTIONS or isinstance(value, dict)
    }


def merge(configuration: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`stored` with `changes`: a section replaces the whole stored one; null and absent sections
    change nothing."""
    return {**configuration, **clean(changes)}


MAX_RETENTION_DAYS = 36_500


class Retention(Struct, frozen=True):
    """After how many days messages and conclusions are erased; None: never."""

    messages_days: int | None = None
    conclusions_days: int | None = None


def retention(*layers: Mapping[str, Any] | None) -> Retention:
    """The effective retention; `layers` go from the strongest (session) to the weakest
    (workspace)."""

    def days(key: str) -> int | None:
        for layer in layers:
            section = (layer or {}).get("retention")
            value = section.get(key) if isinstance(section, Mapping) else None
            # Other generations store sections that they do not know without a check.
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return min(value, MAX_RETENTION_DAYS)
        return None

    return Retention(days("messages_days"), days("conclusions_days"))


def allows_self_service(workspace_configuration: Mapping[str, Any]) -> bool:
    """Whether a peer's own key may export and erase that peer."""
    return _enabled(workspace_configuration, "self_service") is True


def texts(configuration: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every `custom_instructions` text in a configuration, after its path."""
    top = configuration.get(INSTRUCTIONS)
    if isinstance(top, str):
        yield (INSTRUCTIONS,), top
    for name in SECTIONS:
        section = configuration.get(name)
        if isinstance(section, Mapping) and isinstance(section.get(INSTRUCTIONS), str):
            yield (name, INSTRUCTIONS), section[INSTRUCTIONS]


class Defaults(Struct, frozen=True):
    """The operator's settings: they apply where no layer sets a value."""

    reasoning: bool = True
    card: bool = True
    summary: bool = True
    dream: bool = True
    messages_per_short_summary: int = 20
    messages_per_long_summary: int = 60


class Resolved(Struct, frozen=True):
    """The effective configuration of one message, session or workspace."""

    reasoning: bool
    card_use: bool
    card_create: bool
    summary: bool
    dream: bool
    messages_per_short_summary: int
    messages_per_long_summary: int
    instructions: Mapping[str, str] = field(default_factory=dict)
    """Texts by section name; no blank ones."""


def resolve(defaults: Defaults, *layers: Mapping[str, Any] | None) -> Resolved:
    """The effective configuration. `layers` go from the strongest (message) to the weakest
    (workspace); nulls are skipped."""
    present = [layer for layer in layers if layer]

    def leaf(section: str, key: str, default: Any) -> Any:
        for layer in present:
            part = layer.get(section)
            if isinstance(part, Mapping) and part.get(key) is not None:
                return part[key]
        return default

    reasoning = _reasoning(present)
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
        instructions=_instructions(present),
    )


def _interval(value: Any, default: int) -> int:
    """A number of messages. Any other value that a store may contain, written by other generations
    or by hand, counts as unset."""
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
    )


def _reasoning(layers: list[Mapping[str, Any]]) -> bool | None:
    """The strongest layer with `reasoning.enabled` decides; None if no layer has a switch. The
    switches of older generations count in stronger layers than that one, or in all layers if no
    layer has it: one of them that is off switches reasoning off."""
    enabled_by_older_key: bool | None = None
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
            enabled_by_older_key = True
    return enabled_by_older_key


def _enabled(layer: Mapping[str, Any], section: str) -> Any:
    part = layer.get(section)
    return part.get("enabled") if isinstance(part, Mapping) else None


def _instructions(layers: list[Mapping[str, Any]]) -> dict[str, str]:
    def first(path: tuple[str, ...]) -> str | None:
        for layer in layers:
            for text_path, text in texts(layer):
                if text_path == path:
                    return text
        return None

    general = first((INSTRUCTIONS,))
    by_section: dict[str, str] = {}
    for section in (name for name, keys in SECTIONS.items() if INSTRUCTIONS in keys):
        parts = [
            text.strip()
            for text in (general, first((section, INSTRUCTIONS)))
            if text and text.strip()
        ]
        if parts:
            by_section[section] = "\n\n".join(parts)
    return by_section
