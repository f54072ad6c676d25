"""Messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from api.conftest import Api

URL = "/sessions/s/messages"


def send(api: Api, *messages: Any, **options: Any) -> Any:
    return api.post(URL, {"messages": list(messages)}, **options)


def test_create_answers_the_messages_in_order_of_input(api: Api) -> None:
    messages = api.say("s", ("alice", "hello world"), ("bob", "hi"), ("alice", "bye"))
    assert [item["content"] for item in messages] == ["hello world", "hi", "bye"]
    assert list(messages[0]) == [
        "id",
        "content",
        "peer_id",
        "session_id",
        "metadata",
        "created_at",
        "workspace_id",
        "token_count",
    ]
    assert messages[0]["peer_id"] == "alice"
    assert messages[0]["session_id"] == "s"
    assert messages[0]["workspace_id"] == api.workspace
    assert messages[0]["metadata"] == {}
    assert messages[0]["token_count"] == 2
    assert len({item["id"] for item in messages}) == 3
    assert all(len(item["id"]) == 21 for item in messages)


def test_create_creates_workspace_session_authors_and_memberships(api: Api) -> None:
    api.say("s", ("alice", "hello"), ("bob", "hi"))
    assert sorted(peer["id"] for peer in api.ok(api.get("/sessions/s/peers"))["items"]) == [
        "alice",
        "bob",
    ]
    api.ok(api.delete("/sessions/s/peers", ["alice"]))
    api.say("s", ("alice", "back"))
    assert sorted(peer["id"] for peer in api.ok(api.get("/sessions/s/peers"))["items"]) == [
        "alice",
        "bob",
    ]


def test_the_form_with_a_trailing_slash_is_served_directly(api: Api) -> None:
    answer = api.post(URL + "/", {"messages": [{"content": "hello", "peer_id": "alice"}]})
    assert [item["content"] for item in api.ok(answer, 201)] == ["hello"]
    assert api.ids(URL + "/list") == [api.ok(answer, 201)[0]["id"]]


def test_other_methods_and_slashes_of_the_create_path(api: Api) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        for path in (URL, URL + "/"):
            assert api.call(method, path).status_code == 405, (method, path)
    answer = api.post(URL + "//", {"messages": []})
    assert answer.status_code == 307
    assert answer.headers["Location"].endswith(URL)


def test_metadata_and_times(api: Api) -> None:
    messages = api.ok(
        send(
            api,
            {
                "content": "a",
                "peer_id": "p",
                "metadata": {"k": [1, None, {"x": "y"}]},
                "created_at": "2024-02-29T12:30:00.250000+05:30",
            },
            {"content": "b", "peer_id": "p", "metadata": None, "created_at": "2024-01-01T00:00:00"},
            {"content": "c", "peer_id": "p", "created_at": 1_700_000_000},
            {"content": "d", "peer_id": "p", "created_at": 1_700_000_000.5},
            {"content": "e", "peer_id": "p", "created_at": None},
            {"content": "f", "peer_id": "p", "created_at": "2024-01-01"},
        ),
        201,
    )
    assert messages[0]["metadata"] == {"k": [1, None, {"x": "y"}]}
    answer = api.ok(api.post(URL + "/list"))["items"]
    times = [item["created_at"] for item in answer]
    assert times[:4] == [
        "2024-02-29T07:00:00.250000Z",
        "2024-01-01T00:00:00Z",
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:20.500000Z",
    ]
    assert abs(datetime.fromisoformat(times[4]) - datetime.now(UTC)) < timedelta(minutes=5)
    assert times[5] == "2024-01-01T00:00:00Z"
    assert [item["content"] for item in answer] == list("abcdef"), (
        "the order is that of storing, whatever created_at says"
    )
    assert [datetime.fromisoformat(item["created_at"]).timestamp() for item in messages[:1]] == [
        datetime.fromisoformat(times[0]).timestamp()
    ], "what create answers is the same instant"


@pytest.mark.parametrize(
    "when",
    [
        "",
        "yesterday",
        "2024-13-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01",
        "0001-01-01T00:00:00+14:00",
        True,
        [],
        {},
        1e20,
    ],
)
def test_odd_times_are_refused(api: Api, when: object) -> None:
    api.refused(
        send(api, {"content": "a", "peer_id": "p", "created_at": when}),
        ["body", "messages", 0, "created_at"],
    )


@pytest.mark.slow
def test_content_is_bounded_in_characters_and_may_be_empty(api: Api) -> None:
    messages = api.ok(
        send(
            api, {"content": "", "peer_id": "p"}, {"content": "\U0001f600" * 25_000, "peer_id": "p"}
        ),
        201,
    )
    assert messages[0]["token_count"] == 0
    assert messages[1]["content"] == "\U0001f600" * 25_000
    problems = api.refused(
        send(api, {"content": "x" * 25_001, "peer_id": "p"}), ["body", "messages", 0, "content"]
    )
    assert problems[0]["type"] == "string_too_long"


def test_nul_is_stripped_from_content_and_metadata(api: Api) -> None:
    messages = api.ok(
        send(api, {"content": "a\0b\0", "peer_id": "p", "metadata": {"k\0": ["\0v"]}}), 201
    )
    assert messages[0]["content"] == "ab"
    assert messages[0]["metadata"] == {"k": ["v"]}


@pytest.mark.parametrize("name", ["a b", "", "scope.mine", "p\0", "x" * 513])
def test_bad_author_names_are_refused_and_nothing_is_stored(api: Api, name: str) -> None:
    problems = api.refused(
        send(api, {"content": "fine", "peer_id": "p"}, {"content": "x", "peer_id": name})
    )
    assert problems[0]["loc"][:2] == ["body", "messages"]
    assert api.ids(URL + "/list") == []


def test_one_to_a_hundred_messages(api: Api) -> None:
    one = {"content": "x", "peer_id": "p"}
    api.refused(send(api), ["body", "messages"])
    api.refused(send(api, *[one] * 101), ["body", "messages"])
    assert len(api.ok(send(api, *[one] * 100), 201)) == 100


def test_every_problem_of_a_batch_is_reported(api: Api) -> None:
    problems = api.refused(
        send(
            api,
            {"content": 5, "peer_id": "p"},
            {"peer_id": "p"},
            "text",
            {"content": "x", "peer_id": None, "metadata": []},
        ),
        ["body", "messages", 0, "content"],
        ["body", "messages", 1, "content"],
        ["body", "messages", 2],
        ["body", "messages", 3, "peer_id"],
        ["body", "messages", 3, "metadata"],
    )
    kinds = {tuple(problem["loc"]): problem["type"] for problem in problems}
    assert kinds["body", "messages", 0, "content"] == "string_type"
    assert kinds["body", "messages", 1, "content"] == "missing"
    assert kinds["body", "messages", 2] == "model_attributes_type"
    assert kinds["body", "messages", 3, "metadata"] == "dict_type"


def test_peer_name_is_not_an_alias(api: Api) -> None:
    api.refused(send(api, {"content": "x", "peer_name": "p"}), ["body", "messages", 0, "peer_id"])


def test_metadata_of_a_message_is_bounded(api: Api) -> None:
    many = {f"k{number}": 1 for number in range(101)}
    api.refused(
        send(api, {"content": "x", "peer_id": "p", "metadata": many}),
        ["body", "messages", 0, "metadata"],
    )


def test_configuration_of_a_message(api: Api) -> None:
    api.ok(
        send(
            api,
            {
                "content": "x",
                "peer_id": "p",
                "configuration": {"reasoning": {"enabled": False}, "odd": 1},
            },
        ),
        201,
    )
    api.ok(send(api, {"content": "x", "peer_id": "p", "configuration": None}), 201)
    wrong = {"content": "x", "peer_id": "p", "configuration": {"reasoning": {"enabled": "?"}}}
    api.refused(send(api, wrong), ["body", "messages", 0, "configuration", "reasoning", "enabled"])


def test_a_repeated_request_with_the_same_key_stores_nothing_again(api: Api) -> None:
    first = api.ok(
        send(api, {"content": "once", "peer_id": "p"}, headers={"Idempotency-Key": "k1"}), 201
    )
    again = api.ok(
        send(api, {"content": "once", "peer_id": "p"}, headers={"Idempotency-Key": "k1"}), 201
    )
    other = api.ok(
        send(api, {"content": "once", "peer_id": "p"}, headers={"Idempotency-Key": "k2"}), 201
    )
    assert again == first
    assert other != first
    assert len(api.ids(URL + "/list")) == 2
    for wrong in ("k" * 256, ""):
        answer = send(api, {"content": "x"}, headers={"Idempotency-Key": wrong})
        api.refused(answer, ["header", "Idempotency-Key"], ["body", "messages", 0, "peer_id"])


def test_a_message_is_read_by_its_id(api: Api) -> None:
    message = api.say("s", ("alice", "hello"))[0]
    assert api.ok(api.get(f"{URL}/{message['id']}")) == message
    api.missing(api.get(f"{URL}/nothing"), "nothing")
    api.missing(api.get(f"/sessions/other/messages/{message['id']}"), message["id"])
    api.refused(api.get(f"{URL}/%00"), ["path", "message_id"])
    elsewhere = api.get(f"//v3/workspaces/elsewhere{URL}/{message['id']}")
    api.missing(elsewhere, message["id"])


def test_update_replaces_metadata_only(api: Api) -> None:
    message = api.say("s", ("alice", "hello"), metadata={"a": 1})[0]
    changed = api.ok(
        api.put(
            f"{URL}/{message['id']}", {"metadata": {"b": 2}, "content": "changed", "peer_id": "bob"}
        )
    )
    assert changed == {**message, "metadata": {"b": 2}}
    assert api.ok(api.put(f"{URL}/{message['id']}", {"metadata": None})) == changed
    assert api.ok(api.put(f"{URL}/{message['id']}", {})) == changed
    assert api.ok(api.get(f"{URL}/{message['id']}")) == changed
    api.missing(api.put(f"{URL}/nothing", {"metadata": {}}), "nothing")
    api.refused(api.put(f"{URL}/{message['id']}", {"metadata": []}), ["body", "metadata"])


def test_list_filters(api: Api) -> None:
    messages = api.ok(
        send(
            api,
            {
                "content": "one",
                "peer_id": "alice",
                "metadata": {"n": 1},
                "created_at": "2024-01-01T00:00:00Z",
            },
            {
                "content": "two words",
                "peer_id": "bob",
                "metadata": {"n": 2},
                "created_at": "2025-01-01T00:00:00Z",
            },
            {"content": "three", "peer_id": "alice", "created_at": "2026-01-01T00:00:00Z"},
        ),
        201,
    )
    ids = [item["id"] for item in messages]

    def positions(filters: dict[str, Any]) -> list[int]:
        return [ids.index(one) for one in api.ids(URL + "/list", {"filters": filters})]

    assert positions({"peer_id": "alice"}) == [0, 2]
    assert positions({"peer_id": ["bob", "nobody"]}) == [1]
    assert positions({"created_at": {"gte": "2025-01-01", "lt": "2025-06-01 00:00:00"}}) == [1]
    assert positions({"metadata": {"n": {"gte": 2}}}) == [1]
    assert positions({"NOT": [{"metadata": {"n": 1}}]}) == [1, 2]
    assert positions({"OR": [{"peer_id": "bob"}, {"token_count": {"gt": 1_000}}]}) == [1]
    assert positions({"session_id": "other"}) == []
    assert positions({"workspace_id": "other"}) == []
    for name in ("id", "content", "configuration", "seq"):
        api.refused(api.post(URL + "/list", {"filters": {name: "x"}}))


def test_list_of_an_unknown_session_is_empty_and_creates_nothing(api: Api) -> None:
    assert api.ok(api.post("/sessions/none/messages/list"))["total"] == 0
    api.create()
    assert api.ids("/sessions/list") == []
