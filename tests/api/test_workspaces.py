"""Workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from api.conftest import Api

SECTIONS = {
    "reasoning": {"enabled": False, "custom_instructions": "be brief"},
    "peer_card": {"use": True, "create": False, "custom_instructions": "card"},
    "summary": {
        "enabled": True,
        "messages_per_short_summary": 10,
        "messages_per_long_summary": 30,
        "custom_instructions": "sum",
    },
    "dream": {"enabled": False, "custom_instructions": "dream"},
    "dialectic": {"custom_instructions": "chat"},
    "custom_instructions": "all",
}


def create(api: Api, status: int = 201, **body: Any) -> Any:
    return api.ok(api.post("//v3/workspaces", {"id": api.workspace, **body}), status)


def test_create_answers_all_fields_in_order(api: Api) -> None:
    workspace = create(api, metadata={"a": 1})
    assert list(workspace) == ["id", "uid", "metadata", "configuration", "created_at"]
    assert workspace["id"] == api.workspace
    assert len(workspace["uid"]) == 21
    assert workspace["metadata"] == {"a": 1}
    assert workspace["configuration"] == {}
    assert workspace["created_at"].endswith("Z")


def test_an_existing_workspace_is_returned_unchanged(api: Api) -> None:
    workspace = create(api, metadata={"a": 1}, configuration={"dream": {"enabled": False}})
    again = create(api, 200, metadata={"b": 2}, configuration={"dream": {"enabled": True}})
    assert again == workspace


def test_name_is_accepted_for_id(api: Api) -> None:
    workspace = api.ok(api.post("//v3/workspaces", {"name": api.workspace}), 201)
    assert workspace["id"] == api.workspace


def test_id_overrides_name(api: Api) -> None:
    workspace = api.ok(api.post("//v3/workspaces", {"name": "other", "id": api.workspace}), 201)
    assert workspace["id"] == api.workspace


@pytest.mark.parametrize("name", ["", "a b", "ä", "a/b", "a.b", "a\n", "x" * 513, "a\0"])
def test_bad_names_are_refused(api: Api, name: str) -> None:
    api.refused(api.post("//v3/workspaces", {"id": name}), ["body", "id"])


def test_the_longest_name_is_512_characters(api: Api) -> None:
    name = (api.workspace + "-" * 512)[:512]
    assert api.ok(api.post("//v3/workspaces", {"id": name}), 201)["id"] == name
    assert api.ok(api.put(f"//v3/workspaces/{name}", {"metadata": {"long": True}}))["metadata"] == {
        "long": True
    }


@pytest.mark.parametrize("field", ["metadata", "configuration"])
@pytest.mark.parametrize("value", [None, [], "x", 1, True])
@pytest.mark.slow
def test_metadata_and_configuration_must_be_objects(api: Api, field: str, value: object) -> None:
    api.refused(api.post("//v3/workspaces", {"id": api.workspace, field: value}), ["body", field])


def test_update_creates_a_missing_workspace(api: Api) -> None:
    workspace = api.ok(api.put("", {"metadata": {"a": 1}}))
    assert workspace["metadata"] == {"a": 1}
    assert create(api, 200)["uid"] == workspace["uid"]


def test_update_replaces_metadata(api: Api) -> None:
    create(api, metadata={"a": 1})
    assert api.ok(api.put("", {"metadata": {"b": 2}}))["metadata"] == {"b": 2}
    assert api.ok(api.put("", {"metadata": None}))["metadata"] == {"b": 2}
    assert api.ok(api.put("", {}))["metadata"] == {"b": 2}
    assert api.ok(api.put("", {"metadata": {}}))["metadata"] == {}


def test_update_merges_configuration_by_section(api: Api) -> None:
    create(
        api,
        configuration={
            "reasoning": {"enabled": False, "custom_instructions": "x"},
            "dream": {"enabled": False},
        },
    )
    changed = api.ok(
        api.put("", {"configuration": {"reasoning": {"enabled": True}, "dream": None}})
    )
    assert changed["configuration"] == {"reasoning": {"enabled": True}, "dream": {"enabled": False}}
    assert api.ok(api.put("", {"configuration": None}))["configuration"] == changed["configuration"]


def test_configuration_keeps_every_known_key_and_unknown_top_level_keys(api: Api) -> None:
    workspace = create(api, configuration={**SECTIONS, "mine": {"any": [1, None]}, "flag": 3})
    assert workspace["configuration"] == {**SECTIONS, "mine": {"any": [1, None]}, "flag": 3}


def test_sections_are_answered_with_known_keys_only_and_without_nulls(api: Api) -> None:
    configuration = {
        "reasoning": {"enabled": None, "custom_instructions": None, "odd": 1},
        "peer_card": {"use": False, "odd": 1},
        "dialectic": {"odd": 1},
        "summary": None,
    }
    workspace = create(api, configuration=configuration)
    assert workspace["configuration"] == {
        "reasoning": {},
        "peer_card": {"use": False},
        "dialectic": {},
    }


@pytest.mark.parametrize(
    ("configuration", "where"),
    [
        ({"summary": {"messages_per_short_summary": 9}}, ["summary", "messages_per_short_summary"]),
        ({"summary": {"messages_per_long_summary": 19}}, ["summary", "messages_per_long_summary"]),
        ({"reasoning": {"enabled": "maybe"}}, ["reasoning", "enabled"]),
        ({"reasoning": []}, ["reasoning"]),
        ({"custom_instructions": 5}, ["custom_instructions"]),
        ({"dialectic": {"custom_instructions": {}}}, ["dialectic", "custom_instructions"]),
        (
            {"summary": {"messages_per_short_summary": 30, "messages_per_long_summary": 30}},
            ["summary"],
        ),
    ],
)
def test_configuration_of_the_wrong_shape_is_refused(
    api: Api, configuration: object, where: list[str | int]
) -> None:
    api.refused(
        api.post("//v3/workspaces", {"id": api.workspace, "configuration": configuration}),
        ["body", "configuration", *where],
    )
    api.refused(api.put("", {"configuration": configuration}), ["body", "configuration", *where])


def test_custom_instructions_are_bounded_in_tokens(api: Api) -> None:
    long = "word " * 2100
    api.refused(api.put("", {"configuration": {"reasoning": {"custom_instructions": long}}}))
    api.refused(api.put("", {"configuration": {"custom_instructions": long}}))


def test_nul_is_stripped(api: Api) -> None:
    workspace = create(
        api,
        metadata={"a\0b": ["x\0", {"y": "\0"}]},
        configuration={"custom_instructions": "a\0b", "mine": {"k\0": "\0"}},
    )
    assert workspace["metadata"] == {"ab": ["x", {"y": ""}]}
    assert workspace["configuration"] == {"custom_instructions": "ab", "mine": {"k": ""}}


def test_metadata_may_have_100_keys_and_five_levels(api: Api) -> None:
    create(api, metadata={f"k{number}": number for number in range(100)})
    api.refused(
        api.put("", {"metadata": {f"k{number}": number for number in range(101)}}),
        ["body", "metadata"],
    )
    five: dict[str, Any] = {"1": {"2": {"3": {"4": {}}}}}
    assert api.ok(api.put("", {"metadata": five}))["metadata"] == five
    api.refused(
        api.put("", {"metadata": {"1": {"2": {"3": {"4": {"5": {}}}}}}}), ["body", "metadata"]
    )
    lists: dict[str, Any] = {"1": [{"2": {"3": {"4": {"5": {"6": {}}}}}}]}
    assert api.ok(api.put("", {"metadata": lists}))["metadata"] == lists


def test_list_filters_by_metadata_and_id(api: Api) -> None:
    create(api, metadata={"mark": api.workspace})
    page = api.ok(
        api.post("//v3/workspaces/list", {"filters": {"metadata": {"mark": api.workspace}}})
    )
    assert [item["id"] for item in page["items"]] == [api.workspace]
    assert page["total"] == 1
    assert list(page) == ["items", "total", "page", "size", "pages"]
    assert list(page["items"][0]) == ["id", "uid", "metadata", "configuration", "created_at"]
    page = api.ok(
        api.post(
            "//v3/workspaces/list", {"filters": {"id": [api.workspace, f"{api.workspace}-unknown"]}}
        )
    )
    assert page["total"] == 1


def test_workspaces_cannot_be_filtered_by_other_names(api: Api) -> None:
    for name in ("configuration", "name", "workspace_id", "uid", "state"):
        api.refused(api.post("//v3/workspaces/list", {"filters": {name: "x"}}))


def test_a_workspace_with_a_bad_name_in_the_path_is_422_everywhere(api: Api) -> None:
    for bad in ("a%20b", "%C3%A9", "a.b", "a%00b", "x" * 513):
        url = f"//v3/workspaces/{bad}"
        api.refused(api.put(url, {}), ["path", "workspace_id"])
        api.refused(api.post(url + "/peers/list"), ["path", "workspace_id"])
        api.refused(api.post(url + "/sessions", {"id": "s"}), ["path", "workspace_id"])
        api.refused(api.get(url + "/queue/status"), ["path", "workspace_id"])
        api.refused(
            api.post(
                url + "/sessions/s/messages", {"messages": [{"content": "x", "peer_id": "p"}]}
            ),
            ["path", "workspace_id"],
        )
