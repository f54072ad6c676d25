"""Webhook transports that are wrong in one way each, and the test of the kit that has to say so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from msgspec.structs import replace

from memservice.domain.errors import InvalidInput
from memservice.spi.webhooks import Outcome
from memservice.testing.webhooks import TransportFixture, WebhookTransportContract
from memservice_webhooks.jsonl import JsonLinesTransport


class Broken(WebhookTransportContract):
    """The kit on a broken transport. `caught_by` names tests that have to fail."""

    broken: ClassVar[type[JsonLinesTransport]]
    caught_by: ClassVar[tuple[str, ...]]

    @pytest.fixture
    def world(self, tmp_path: Path) -> TransportFixture:
        (tmp_path / "linked.jsonl").symlink_to(tmp_path / "elsewhere")
        file = tmp_path / "events.jsonl"

        def received() -> list[tuple[dict[str, str], bytes]]:
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            return [(line["headers"], line["body"].encode()) for line in map(json.loads, lines)]

        return TransportFixture(
            transport=self.broken(str(tmp_path)),
            url="jsonl:events",
            received=received,
            failing=["jsonl:linked"],
            refused=["jsonl:../events", "jsonl:a.b"],
        )


class AcceptsAnything(JsonLinesTransport):
    def check(self, url: str) -> None:
        return None


class RefusesWithoutAPlace(JsonLinesTransport):
    def check(self, url: str) -> None:
        try:
            super().check(url)
        except InvalidInput as error:
            raise InvalidInput.at("body", "url", message=str(error)) from error


class DeliversToTheRefused(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        return super().deliver("jsonl:events" if ".." in url else url, body, headers)


class WritesTheBodyAnew(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        return super().deliver(url, json.dumps(json.loads(body)).encode(), headers)


class DropsHeaders(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        return super().deliver(url, body, {"Content-Type": headers["Content-Type"]})


class DeliversTwice(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        super().deliver(url, body, headers)
        return super().deliver(url, body, headers)


class SaysDeliveredAlways(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        super().deliver(url, body, headers)
        return Outcome(status=200)


class RaisesItsFailures(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        outcome = super().deliver(url, body, headers)
        if outcome.error:
            raise OSError(outcome.error)
        return outcome


class SaysNothingOfAFailure(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        return replace(super().deliver(url, body, headers), error=None)


class CutsLongBodies(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        return super().deliver(url, body[:100_000], headers)


class AddsToTheCallersHeaders(JsonLinesTransport):
    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        assert isinstance(headers, dict)
        headers["User-Agent"] = "broken"
        return super().deliver(url, body, headers)


class HoldsOneBack(JsonLinesTransport):
    """Delivers each event when the next one comes."""

    _delayed: tuple[str, bytes, Mapping[str, str]] | None = None

    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        delayed, self._delayed = self._delayed, (url, body, headers)
        return super().deliver(*delayed) if delayed else Outcome(status=200)


class TestAcceptsAnything(Broken):
    broken = AcceptsAnything
    caught_by = ("test_an_invalid_endpoint_is_refused_with_a_reason",)


class TestRefusesWithoutAPlace(Broken):
    broken = RefusesWithoutAPlace
    caught_by = ("test_an_invalid_endpoint_is_refused_with_a_reason",)


class TestDeliversToTheRefused(Broken):
    broken = DeliversToTheRefused
    caught_by = ("test_refused_endpoints_get_no_deliveries",)


class TestWritesTheBodyAnew(Broken):
    broken = WritesTheBodyAnew
    caught_by = ("test_an_event_arrives_unchanged",)


class TestDropsHeaders(Broken):
    broken = DropsHeaders
    caught_by = ("test_an_event_arrives_unchanged",)


class TestDeliversTwice(Broken):
    broken = DeliversTwice
    caught_by = ("test_events_arrive_once_and_in_order", "test_threads_do_not_disturb_each_other")


class TestSaysDeliveredAlways(Broken):
    broken = SaysDeliveredAlways
    caught_by = (
        "test_a_failure_is_an_outcome_and_is_not_raised",
        "test_refused_endpoints_get_no_deliveries",
    )


class TestRaisesItsFailures(Broken):
    broken = RaisesItsFailures
    caught_by = ("test_a_failure_is_an_outcome_and_is_not_raised",)


class TestSaysNothingOfAFailure(Broken):
    broken = SaysNothingOfAFailure
    caught_by = ("test_a_failure_is_an_outcome_and_is_not_raised",)


class TestCutsLongBodies(Broken):
    broken = CutsLongBodies
    caught_by = ("test_any_text_arrives[long]",)


class TestAddsToTheCallersHeaders(Broken):
    broken = AddsToTheCallersHeaders
    caught_by = ("test_the_callers_headers_are_not_changed",)


class TestHoldsOneBack(Broken):
    broken = HoldsOneBack
    caught_by = ("test_events_arrive_once_and_in_order",)
