"""The page on webhooks is true: its check accepts what is delivered and nothing else, its numbers
are the defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memservice.domain.ids import new_uid
from memservice.domain.records import WebhookEndpoint
from memservice.pipeline import webhook_delivery
from memservice.runtime import Runtime, utc_now
from memservice.services.webhooks import WIRE_TYPES
from memservice.settings import Settings, families
from memservice.settings.declare import tree
from support.docs.blocks import blocks

ENDPOINT = WebhookEndpoint(
    uid=new_uid(),
    workspace_key=1,
    url="https://a.example/",
    secret="whsec_MDEyMzQ1Njc4OTAx",
    created_at=utc_now(),
)


@pytest.fixture(scope="module")
def page(root: Path) -> Path:
    return root / "docs" / "webhooks.md"


@pytest.fixture(scope="module")
def is_genuine(page: Path) -> Callable[[str, dict[str, str], bytes], bool]:
    (block,) = blocks(page, "python")
    names: dict[str, Any] = {}
    exec(block.text, names)
    return cast(Callable[[str, dict[str, str], bytes], bool], names["is_genuine"])


def signed(body: bytes, **settings: str) -> dict[str, str]:
    rt = SimpleNamespace(
        clock=utc_now,
        settings=SimpleNamespace(webhook=SimpleNamespace(secret=settings.get("secret"))),
    )
    return {
        name.lower(): value
        for name, value in webhook_delivery.signed_headers(
            cast(Runtime, rt), ENDPOINT, "msg", body
        ).items()
    }


def test_the_signature_check_accepts_deliveries(
    page: Path, is_genuine: Callable[[str, dict[str, str], bytes], bool]
) -> None:
    (example,) = blocks(page, "json")
    body = example.text.strip().encode()
    headers = signed(body)
    assert is_genuine(ENDPOINT.secret, headers, body)
    assert not is_genuine(ENDPOINT.secret, headers, body + b" ")
    assert not is_genuine("whsec_b3RoZXI=", headers, body)
    assert not is_genuine(ENDPOINT.secret, {**headers, "webhook-id": "other"}, body)
    assert not is_genuine(ENDPOINT.secret, {**headers, "webhook-timestamp": "1700000000"}, body)
    assert is_genuine(
        ENDPOINT.secret,
        {**headers, "webhook-signature": "v1,AAAA " + headers["webhook-signature"]},
        body,
    )


def test_the_example_has_the_form_of_events(page: Path) -> None:
    (example,) = blocks(page, "json")
    assert (
        json.dumps(json.loads(example.text), sort_keys=True, separators=(",", ":"))
        == example.text.strip()
    )


def test_kinds_and_defaults_equal_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `(\w+)` \| `([\w.]+)`", text, re.M)) == dict(WIRE_TYPES)
    variables = tree(Settings).by_variable
    for name in re.findall(r"`([A-Z]+_[A-Z_]+)(?:=[^`]*)?`", text):
        assert name in variables or families.of_variable(name), name
    numbers = {
        name: float(number)
        for number, name in re.findall(r"(\d+) [a-z ]+\(`([A-Z_]+)`\)", " ".join(text.split()))
    }
    assert numbers.keys() == {
        "WEBHOOK_FIRST_PAUSE_SECONDS",
        "RETENTION_DELIVERIES_DAYS",
        "WEBHOOK_MAX_ATTEMPTS",
        "WEBHOOK_PAUSE_AFTER",
    }
    for name, number in numbers.items():
        assert float(variables[name].default) == number, name
    assert (webhook_delivery.GROWTH, webhook_delivery.MAX_PAUSE_SECONDS) == (3, 4 * 3600)
