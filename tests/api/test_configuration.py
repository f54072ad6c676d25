"""Configuration on every way in: what is refused, what is stored, what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from api.conftest import Api

WAYS = {
    "workspace": ("PUT", "", {}),
    "session": ("POST", "/sessions", {"id": "s"}),
    "session update": ("PUT", "/sessions/s", {}),
}
TEXTS = ("custom_instructions", "reasoning", "peer_card", "summary", "dream", "dialectic")


def sent(way: str, configuration: object) -> tuple[str, str, dict[str, Any]]:
    method, path, body = WAYS[way]
    return method, path, {**body, "configuration": configuration}


@pytest.mark.parametrize("way", WAYS)
def test_nul_is_stripped_before_validation(api: Api, way: str) -> None:
    for wrong in (
        {"\0summary": {"messages_per_short_summary": 0}},
        {"summary": {"enabled\0": 5}},
        {"reason\0ing": {"enabled": "perhaps"}},
        {"custom_instructions\0": 5},
    ):
        api.refused(api.call(*sent(way, wrong)))
    answer = api.call(
        *sent(
            way,
            {"own\0": {"k\0ey": ["a\0b"]}, "reasoning\0": {"custom_instructions": "be\0 brief"}},
        )
    )
    assert answer.status_code in (200, 201)
    assert answer.get_json()["configuration"] == {
        "own": {"key": ["ab"]},
        "reasoning": {"custom_instructions": "be brief"},
    }
    api.say("s", ("ann", "it still works"))


def test_nul_is_stripped_from_peer_and_message_configuration(api: Api) -> None:
    assert api.peer("p", configuration={"observe_me\0": False, "a": {"b\0": ["\0c"]}})[
        "configuration"
    ] == {
        "observe_me": False,
        "a": {"b": ["c"]},
    }
    api.say("s", ("p", "hello"), configuration={"reasoning": {"custom_instructions": "a\0b"}})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("section", TEXTS)
def test_long_instructions_are_refused_in_every_section(api: Api, way: str, section: str) -> None:
    long, full = " word" * 2001, " word" * 2000
    inside = (
        (lambda text: text)
        if section == "custom_instructions"
        else (lambda text: {"custom_instructions": text})
    )
    problems = api.refused(api.call(*sent(way, {section: inside(long)})))
    assert problems[0]["loc"][:3] == ["body", "configuration", section]
    assert "2001 tokens; at most 2000" in problems[0]["msg"]
    assert api.call(*sent(way, {section: inside(full)})).status_code in (200, 201)


def test_long_instructions_of_a_message_are_refused(api: Api) -> None:
    message = {
        "peer_id": "a",
        "content": "x",
        "configuration": {"reasoning": {"custom_instructions": " word" * 2001}},
    }
    problems = api.refused(api.post("/sessions/s/messages", {"messages": [message]}))
    assert problems[0]["loc"] == [
        "body",
        "messages",
        0,
        "configuration",
        "reasoning",
        "custom_instructions",
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "wrong",
    [
        [],
        "text",
        {"reasoning": []},
        {"reasoning": {"enabled": "perhaps"}},
        {"summary": {"messages_per_short_summary": 9}},
        {"summary": {"messages_per_long_summary": 19}},
        {"summary": {"messages_per_short_summary": 30, "messages_per_long_summary": 30}},
        {"summary": {"messages_per_short_summary": 1.5}},
        {"dialectic": {"custom_instructions": 5}},
    ],
)
def test_bad_configuration_is_refused(api: Api, way: str, wrong: object) -> None:
    api.refused(api.call(*sent(way, wrong)))


def test_sections_merge_by_name_and_nulls_change_nothing(api: Api) -> None:
    api.session(
        "s", configuration={"reasoning": {"enabled": False, "custom_instructions": "x"}, "own": 1}
    )
    changed = api.ok(
        api.put(
            "/sessions/s",
            {"configuration": {"reasoning": {"enabled": True}, "own": None, "summary": None}},
        )
    )
    assert changed["configuration"] == {"reasoning": {"enabled": True}, "own": 1}
    changed = api.ok(
        api.put("/sessions/s", {"configuration": {"dream": {"enabled": None, "often": True}}})
    )
    assert changed["configuration"] == {"reasoning": {"enabled": True}, "own": 1, "dream": {}}


@pytest.mark.parametrize("way", WAYS)
def test_a_misspelt_retention_is_refused(api: Api, way: str) -> None:
    wrong = {"retention": {"message_days": 30, "conclusions_days": 5}}
    (problem,) = api.refused(
        api.call(*sent(way, wrong)), ["body", "configuration", "retention", "message_days"]
    )
    assert problem["type"] == "extra_forbidden"


def test_a_misspelt_permission_of_peers_is_refused(api: Api) -> None:
    answer = api.call(*sent("workspace", {"self_service": {"enable": True}}))
    api.refused(answer, ["body", "configuration", "self_service", "enable"])
