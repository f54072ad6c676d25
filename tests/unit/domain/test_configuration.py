"""Configuration: what is stored of it, what is shown, and what holds in the end."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.domain.configuration import Defaults, clean, merge, public, resolve


def test_null_leaves_and_unknown_keys_of_sections_are_dropped_unknown_sections_kept() -> None:
    configuration = {
        "reasoning": {"enabled": None, "custom_instructions": "be brief", "other": 1},
        "summary": None,
        "dream": {},
        "own": {"a": None, "b": 1},
        "empty": None,
    }
    assert clean(configuration) == {
        "reasoning": {"custom_instructions": "be brief"},
        "dream": {},
        "own": {"a": None, "b": 1},
    }


def test_invalid_stored_sections_are_shown_in_a_valid_form() -> None:
    stored = {
        "reasoning": ["no", "object"],
        "summary": {"enabled": None, "every": 5},
        "dialectic": {"x": 1},
        "own": 1,
    }
    assert public(stored) == {"summary": {}, "dialectic": {}, "own": 1}


def test_a_given_section_replaces_the_stored_one_whole() -> None:
    stored = {"reasoning": {"enabled": False, "custom_instructions": "be brief"}, "own": 1}
    assert merge(
        stored, {"reasoning": {"enabled": True}, "summary": None, "dream": {"enabled": False}}
    ) == {
        "reasoning": {"enabled": True},
        "dream": {"enabled": False},
        "own": 1,
    }


def test_the_strongest_layer_with_a_value_wins_leaf_by_leaf() -> None:
    message = {"reasoning": {"enabled": True}}
    session = {
        "reasoning": {"enabled": False, "custom_instructions": "session"},
        "summary": {"messages_per_short_summary": 10},
    }
    workspace = {
        "summary": {"enabled": False, "messages_per_short_summary": 12},
        "peer_card": {"use": False},
    }
    settings = resolve(Defaults(), message, session, workspace)
    assert settings.reasoning is True
    assert settings.summary is False
    assert (settings.messages_per_short_summary, settings.messages_per_long_summary) == (10, 60)
    assert (settings.card_use, settings.card_create) == (False, True)
    assert settings.instructions == {"reasoning": "session"}


def test_general_instructions_precede_those_of_a_section() -> None:
    settings = resolve(
        Defaults(),
        {
            "custom_instructions": "all",
            "dream": {"custom_instructions": " dreams "},
            "summary": None,
        },
    )
    assert settings.instructions == {
        "reasoning": "all",
        "peer_card": "all",
        "summary": "all",
        "dream": "all\n\ndreams",
        "dialectic": "all",
    }
    assert resolve(Defaults(), {"custom_instructions": " \n"}).instructions == {}


@pytest.mark.parametrize(
    ("layers", "reasoning"),
    [
        ([{"deriver": {"enabled": False}}], False),
        ([{"skip_deriver": True}], False),
        ([{"skip_deriver": False}], True),
        ([{"skip_deriver": True, "reasoning": {"enabled": True}}], True),
        ([{"reasoning": {"enabled": None}}, {"deriver_disabled": True}], False),
        ([{"deriver_disabled": True}, {"reasoning": {"enabled": True}}], False),
        ([{"reasoning": {"enabled": True}}, {"deriver_disabled": True}], True),
        ([{"deriver": {"enabled": True}}, {"reasoning": {"enabled": False}}], False),
        ([{"deriver": {"enabled": True}}, {"deriver_enabled": False}], False),
    ],
)
def test_older_switches_count_unless_a_stronger_layer_has_the_present_one(
    layers: list[dict[str, Any]], reasoning: bool
) -> None:
    assert resolve(Defaults(), *layers).reasoning is reasoning


@pytest.mark.parametrize("odd", [0, -5, "12", 1.5, True, [], {}])
def test_an_invalid_interval_counts_as_unset(odd: object) -> None:
    settings = resolve(
        Defaults(),
        {"summary": {"messages_per_short_summary": odd, "messages_per_long_summary": odd}},
    )
    assert (settings.messages_per_short_summary, settings.messages_per_long_summary) == (20, 60)
