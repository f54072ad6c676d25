"""The client of a request of the second generation, and what depends on it."""

from __future__ import annotations

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from memservice.api.v2.client import Client, client_of, current, serving
from memservice.api.v2.schemas.configuration import Configuration
from memservice.api.v2.schemas.messages import MessageGet


def request(path: str, **headers: str) -> Request:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Request(EnvironBuilder(path, headers=named).get_environ())


@pytest.mark.parametrize(
    ("headers", "client"),
    [
        ({}, Client()),
        ({"User_Agent": "curl/8.5.0"}, Client()),
        ({"User_Agent": "AsyncHoncho/Python 1.8.0"}, Client("python", (1, 8))),
        ({"User_Agent": "Honcho/JS 2.2.0"}, Client("js", (2, 2))),
        (
            {"X_Stainless_Lang": "JS", "X_Stainless_Package_Version": "1.8.0"},
            Client("js", (1, 8)),
        ),
        (
            {"X_Stainless_Package_Version": "1.0.1", "User_Agent": "Honcho/JS 2.2.0"},
            Client("", (1, 0)),
        ),
        (
            {"X_Stainless_Package_Version": "new", "User_Agent": "Honcho/JS 2.2.0"},
            Client("js", (2, 2)),
        ),
        ({"X_Stainless_Package_Version": f"{'9' * 5000}.0"}, Client("", (999_999_999, 0))),
    ],
)
def test_headers_name_the_client(headers: dict[str, str], client: Client) -> None:
    assert client_of(request("/v2/workspaces", **headers)) == client


@pytest.mark.parametrize(
    ("client", "is_early", "reads_text", "has_newest_names"),
    [
        (Client(), False, False, False),
        (Client(uses_earliest_path=True), True, True, False),
        (Client("python", (1, 2)), True, True, False),
        (Client("python", (1, 3)), False, True, False),
        (Client("python", (1, 5)), False, False, False),
        (Client("python", (1, 9)), False, True, True),
        (Client("js", (1, 9)), False, False, False),
        (Client("js", (2, 0)), False, True, True),
    ],
)
def test_versions_differ(
    client: Client, is_early: bool, reads_text: bool, has_newest_names: bool
) -> None:
    assert (client.is_early, client.reads_text, client.has_newest_names) == (
        is_early,
        reads_text,
        has_newest_names,
    )


def test_the_path_shows_the_earliest_clients() -> None:
    assert client_of(request("/v1/workspaces/w/peers")).uses_earliest_path
    assert not client_of(request("/v2/workspaces/w/peers")).uses_earliest_path


def test_a_client_ends_with_its_request() -> None:
    client = Client("js", (2, 0))
    with pytest.raises(LookupError), serving(client):
        assert current() == client
        raise LookupError
    assert current() == Client()


def test_schemas_take_the_client_without_a_request() -> None:
    body = {"filter": {"peer_id": "alice"}}
    assert MessageGet().load(body)["filters"] == {"peer_id": "alice"}
    with serving(Client(uses_earliest_path=True)):
        assert MessageGet().load(body)["filters"] == {
            "AND": [{}, {"metadata": {"peer_id": "alice"}}]
        }


def test_configurations_are_shown_with_the_names_of_the_client() -> None:
    stored = {"reasoning": {"enabled": True}}
    assert Configuration.wire(stored) == {"deriver": {"enabled": True}}
    with serving(Client("python", (1, 9))):
        assert Configuration.wire(stored) == stored
