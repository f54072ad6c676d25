"""Pages: the same rules on every listing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from api.conftest import Api

LISTINGS = {
    "workspaces": ("POST", "//v3/workspaces/list"),
    "peers": ("POST", "/peers/list"),
    "sessions": ("POST", "/sessions/list"),
    "a peer's sessions": ("POST", "/peers/alice/sessions"),
    "messages": ("POST", "/sessions/s0/messages/list"),
    "conclusions": ("POST", "/conclusions/list"),
    "session peers": ("GET", "/sessions/s0/peers"),
}

every_listing = pytest.mark.parametrize("listing", LISTINGS)
every_body_listing = pytest.mark.parametrize(
    "listing", [name for name, (method, _) in LISTINGS.items() if method == "POST"]
)


@pytest.fixture
def full(api: Api) -> Api:
    """Five of everything."""
    for number in range(5):
        api.session(f"s{number}", peers={"alice": {}})
    api.ok(api.post("/sessions/s0/peers", {f"p{number}": {} for number in range(4)}))
    api.say("s0", *[("alice", f"message {number}") for number in range(5)])
    for number in range(5):
        api.conclude("alice", "alice", f"conclusion {number}")
    for number in range(4):
        api.ok(api.put(f"//v3/workspaces/{api.workspace}-{number}", {}))
    return api


def read(api: Api, listing: str, **query: Any) -> Any:
    method, path = LISTINGS[listing]
    options: dict[str, Any] = {"query_string": query}
    if listing == "workspaces":
        ids = [api.workspace, *(f"{api.workspace}-{number}" for number in range(4))]
        options["json"] = {"filters": {"id": ids}}
    return api.ok(api.call(method, path, **options))


@pytest.mark.slow
@every_listing
def test_pages_partition_the_listing(full: Api, listing: str) -> None:
    whole = read(full, listing)
    assert (whole["total"], whole["page"], whole["size"], whole["pages"]) == (5, 1, 50, 1)
    assert list(whole) == ["items", "total", "page", "size", "pages"]
    pages = [read(full, listing, page=number, size=2) for number in (1, 2, 3)]
    assert [len(page["items"]) for page in pages] == [2, 2, 1]
    assert [item for page in pages for item in page["items"]] == whole["items"]
    assert {(page["total"], page["size"], page["pages"]) for page in pages} == {(5, 2, 3)}
    assert [page["page"] for page in pages] == [1, 2, 3]


@pytest.mark.slow
@every_listing
def test_reverse_reverses_the_whole_listing(full: Api, listing: str) -> None:
    whole = read(full, listing)["items"]
    assert read(full, listing, reverse="true")["items"] == whole[::-1]
    assert read(full, listing, reverse="false")["items"] == whole
    assert read(full, listing, reverse="true", size=2, page=2)["items"] == whole[::-1][2:4]


@pytest.mark.slow
def test_rows_of_the_same_time_keep_their_order_in_both_directions(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The internal id decides, not the name, and `reverse` turns that round too: no page repeats or
    skips a row."""
    moment = api.runtime.clock()
    monkeypatch.setattr(api.runtime, "clock", lambda: moment)
    names = ["s5", "s1", "s4", "s2", "s3"]
    for name in names:
        api.session(name, peers={"alice": {}, f"p-{name}": {}}, scopes=[f"x-{name}"])
        api.ok(api.post("/scopes/x-s5/sessions", {"session_ids": [name]}), 204)
        api.ok(api.post("/webhooks", {"url": f"https://93.184.215.14/{name}"}), 201)
        api.ok(api.put(f"//v3/workspaces/{api.workspace}-{name}", {}))
        api.ok(api.post("/sessions/s5/peers", {f"p-{name}": {}}))
    api.say("s5", *[("alice", name) for name in names])
    api.conclude("alice", "alice", *names)
    ours = {"id": [f"{api.workspace}-{name}" for name in names]}
    peers = ["alice", *(f"p-{name}" for name in names)]
    for method, path, body, shown, expected in (
        ("POST", "//v3/workspaces/list", {"filters": ours}, "id", ours["id"]),
        ("POST", "/peers/list", {}, "id", peers),
        ("POST", "/peers/list", {"kind": "scope"}, "id", [f"scope.x-{name}" for name in names]),
        ("POST", "/sessions/list", {}, "id", names),
        ("POST", "/peers/alice/sessions", {}, "id", names),
        ("POST", "/sessions/s5/messages/list", {}, "content", names),
        (
            "POST",
            "/sessions/s5/messages/list",
            {"filters": {"token_count": {"gt": 0}}},
            "content",
            names,
        ),
        ("POST", "/conclusions/list", {}, "content", names[::-1]),
        ("GET", "/sessions/s5/peers", ..., "id", peers),
        ("POST", "/scopes/list", ..., "id", [f"x-{name}" for name in names]),
        ("POST", "/scopes/x-s5/sessions/list", ..., "id", names),
        ("GET", "/webhooks", ..., "url", [f"https://93.184.215.14/{name}" for name in names]),
    ):

        def pages(
            how: str, method: str = method, path: str = path, body: Any = body, shown: str = shown
        ) -> list[str]:
            answers = [
                api.ok(api.call(method, f"{path}?size=2&page={number}&reverse={how}", body))
                for number in (1, 2, 3)
            ]
            return [item[shown] for answer in answers for item in answer["items"]]

        assert pages("false") == expected, path
        assert pages("true") == expected[::-1], path


@pytest.mark.slow
@every_listing
def test_a_page_past_the_end_is_empty_with_the_real_totals(full: Api, listing: str) -> None:
    for number in (4, 1_000, 92_233_720_368_547_758):
        page = read(full, listing, page=number, size=2)
        assert page == {"items": [], "total": 5, "page": number, "size": 2, "pages": 3}
        assert read(full, listing, page=number, size=2, reverse=1)["items"] == []


ODD: dict[str, list[str]] = {
    "page": [
        "0",
        "-1",
        "x",
        "",
        "1.5",
        "99999999999999999999",
        "9223372036854775807",
        "1e3",
        "true",
        "٣",
    ],
    "size": ["0", "-1", "101", "x", "", "99999999999999999999"],
    "reverse": ["backwards"],
}
"""Parameter of every listing → values that it refuses."""


@pytest.mark.slow
@every_listing
def test_odd_page_numbers_sizes_and_directions_are_refused(
    api: Api, listing: str, subtests: pytest.Subtests
) -> None:
    method, path = LISTINGS[listing]
    for parameter, values in ODD.items():
        for value in values:
            with subtests.test(parameter=parameter, value=value):
                api.refused(
                    api.call(method, path, query_string={parameter: value}), ["query", parameter]
                )


NO_FILTERS: list[dict[str, Any]] = [
    {},
    {"content_type": "application/json"},
    {"content_type": "application/json", "data": b""},
    {"content_type": "application/json", "data": b" \n"},
    {"content_type": "application/json", "data": b"null"},
    {"content_type": "application/json", "data": b"{}"},
    {"content_type": "application/json", "data": b'{"filters":{}}'},
    {"content_type": "application/json", "data": b'{"filters":null,"unknown":1}'},
    {"content_type": "application/json; charset=utf-8", "data": b"{}"},
]


@every_body_listing
def test_bodies_of_listings_are_optional(api: Api, listing: str, subtests: pytest.Subtests) -> None:
    _, path = LISTINGS[listing]
    for options in NO_FILTERS:
        with subtests.test(**options):
            page = api.ok(api.post(path, **options))
            assert set(page) == {"items", "total", "page", "size", "pages"}


@every_body_listing
def test_filters_must_be_an_object(api: Api, listing: str, subtests: pytest.Subtests) -> None:
    _, path = LISTINGS[listing]
    wrong: tuple[object, ...] = ("x", 1, [], True)
    for filters in wrong:
        with subtests.test(filters=filters):
            api.refused(api.post(path, {"filters": filters}), ["body", "filters"])


BAD_FILTERS: list[dict[str, Any]] = [
    {"nonsense": 1},
    {"created_at": "soon"},
    {"created_at": {"gt": None}},
    {"created_at": {"about": "2024-01-01"}},
    {"created_at": {"gt": "2024-01-01", "about": 1}},
    {"AND": {}},
    {"OR": [1]},
    {"NOT": {"created_at": "2024-01-01"}},
    {"metadata": "x"},
    {"metadata": {"ne": 1}},
    {"AND": [{"AND": [{"AND": [{"AND": [{"AND": [{"AND": []}]}]}]}]}]},
]


@pytest.mark.slow
@every_body_listing
def test_invalid_filters_are_refused_with_a_location(
    full: Api, listing: str, subtests: pytest.Subtests
) -> None:
    _, path = LISTINGS[listing]
    for filters in BAD_FILTERS:
        with subtests.test(filters=filters):
            problems = full.refused(full.post(path, {"filters": filters}))
            assert problems[0]["loc"][:2] == ["body", "filters"]


@pytest.mark.slow
@every_body_listing
def test_five_levels_of_nesting_are_accepted(full: Api, listing: str) -> None:
    _, path = LISTINGS[listing]
    five: dict[str, Any] = {"AND": [{"AND": [{"AND": [{"AND": [{"AND": []}]}]}]}]}
    assert full.ok(full.post(path, {"filters": five}))["total"] >= 5


@pytest.mark.slow
@every_body_listing
def test_a_filter_that_matches_nothing_returns_an_empty_page(full: Api, listing: str) -> None:
    _, path = LISTINGS[listing]
    nothing = full.ok(full.post(path, {"filters": {"created_at": {"lt": "1970-01-01"}}}))
    assert (nothing["items"], nothing["total"], nothing["pages"]) == ([], 0, 0)
