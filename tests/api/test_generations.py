"""Generations of the API side by side: documents, pages, switches and what is said of the older
ones."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from flask.testing import FlaskClient

from memservice.api.generations import GENERATIONS
from memservice.app import create_app
from memservice.domain.errors import ConfigurationError
from memservice.settings import load_settings

NAMES = [generation.name for generation in GENERATIONS]


def client(**settings: str) -> FlaskClient:
    return create_app(
        load_settings(environ={}, overrides={"DB_CONNECTION_URI": "memory://", **settings})
    ).test_client()


def pages(at: FlaskClient) -> list[str]:
    documents = re.search(r'data-documents="([^"]*)"', at.get("/docs").text)
    assert documents is not None
    return [each["name"] for each in json.loads(unescape(documents[1]))]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), [("v1", "1.1.0"), ("v2", "2.5.1"), ("v3", "3.2.1")])
def test_each_generation_has_its_own_document(name: str, version: str) -> None:
    document = client().get(f"/{name}/openapi.json").get_json()
    assert document["openapi"] == "3.1.0"
    assert document["info"] == {"title": f"memservice {name}", "version": version}
    assert {path for path in document["paths"] if not path.startswith(f"/{name}/")} <= {
        "/health",
        "/health/ready",
        "/metrics",
    }


@pytest.mark.slow
def test_the_newest_document_has_a_short_path_too() -> None:
    at = client()
    assert at.get("/openapi.json").get_json() == at.get("/v3/openapi.json").get_json()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_generation_can_be_switched_off(name: str) -> None:
    at = client(**{f"API_{name.upper()}_ENABLED": "false"})
    rest = [other for other in NAMES if other != name]
    assert at.get(f"/{name}/openapi.json").status_code == 404
    assert not [
        rule.rule
        for rule in at.application.url_map.iter_rules()
        if rule.rule.startswith(f"/{name}/")
    ]
    assert pages(at) == rest
    assert at.get("/openapi.json").get_json()["info"]["title"] == f"memservice {rest[0]}"
    assert at.get("/health").status_code == 200
    for other in rest:
        assert at.get(f"/{other}/openapi.json").status_code == 200


def test_not_all_generations_can_be_switched_off() -> None:
    with pytest.raises(ConfigurationError, match="API_V3_ENABLED, API_V2_ENABLED, API_V1_ENABLED"):
        client(**{f"API_{name.upper()}_ENABLED": "false" for name in NAMES})


@pytest.mark.slow
def test_nothing_is_deprecated_by_default() -> None:
    at = client()
    for name in NAMES:
        assert "Deprecation" not in at.get(f"/{name}/openapi.json").headers


@pytest.mark.slow
def test_older_generations_can_be_marked_as_deprecated() -> None:
    at = client(
        API_V1_DEPRECATED_SINCE="2025-06-01", API_V2_DEPRECATED_SINCE="2026-01-31T12:00:00Z"
    )
    for path, mark in (
        ("/v1/openapi.json", "@1748736000"),
        ("/v1/nothing/here", "@1748736000"),
        ("/v2/openapi.json", "@1769860800"),
    ):
        answer = at.get(path)
        assert answer.headers["Deprecation"] == mark
        assert answer.headers["Link"] == '</v3/openapi.json>; rel="successor-version"'
    for path in ("/v3/openapi.json", "/openapi.json", "/health"):
        assert "Deprecation" not in at.get(path).headers


def test_an_invalid_date_prevents_the_start() -> None:
    with pytest.raises(ConfigurationError, match="API_V2_DEPRECATED_SINCE is 'soon'"):
        client(API_V2_DEPRECATED_SINCE="soon")
