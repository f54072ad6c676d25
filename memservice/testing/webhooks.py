"""The contract of a webhook transport: subclass `WebhookTransportContract` and give it the fixture
`world`."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from memservice.domain.errors import InvalidInput
from memservice.spi.webhooks import TransportFixture

HEADERS = {
    "Content-Type": "application/json",
    "webhook-id": "msg_1",
    "webhook-timestamp": "1700000000",
    "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
}
BODY = (
    b'{"data":{"session_id":"s","workspace_id":"w"},'
    b'"timestamp":"2024-03-01T12:00:00Z","type":"queue.empty"}'
)


__all__ = ["TransportFixture", "WebhookTransportContract"]


class WebhookTransportContract:
    """The requirements of a webhook transport."""

    @pytest.fixture
    def world(self) -> TransportFixture:
        raise NotImplementedError(
            "give your subclass of WebhookTransportContract a fixture `world` that returns "
            "a TransportFixture"
        )

    def test_a_good_endpoint_may_be_registered(self, world: TransportFixture) -> None:
        assert world.transport.check(world.url) is None  # type: ignore[func-returns-value]
        assert world.received() == [], "checking a URL delivers nothing"

    def test_an_invalid_endpoint_is_refused_with_a_reason(self, world: TransportFixture) -> None:
        assert world.refused, "name at least one URL that the transport must refuse"
        for url in world.refused:
            with pytest.raises(InvalidInput) as caught:
                world.transport.check(url)
            assert all(
                problem.loc == ("url",) and problem.message for problem in caught.value.problems
            ), url

    def test_refused_endpoints_get_no_deliveries(self, world: TransportFixture) -> None:
        """A store may be restored, or settings may change, after an endpoint was registered."""
        for url in world.refused:
            outcome = world.transport.deliver(url, BODY, HEADERS)
            assert not outcome.delivered, url
            assert outcome.error, url
        assert world.received() == []

    def test_an_event_arrives_unchanged(self, world: TransportFixture) -> None:
        """Unchanged to the byte, because these bytes are signed."""
        outcome = world.transport.deliver(world.url, BODY, HEADERS)
        assert outcome.delivered
        assert outcome.status is not None
        assert outcome.error is None
        assert outcome.duration_ms >= 0
        ((headers, body),) = world.received()
        assert body == BODY
        lower = {name.lower(): value for name, value in headers.items()}
        assert {name: lower.get(name.lower()) for name in HEADERS} == HEADERS

    @pytest.mark.parametrize(
        "text",
        ["", "Grüße, 世界 🧺", "line\\nbreak\u2028", "x" * 200_000],
        ids=["empty", "scripts", "breaks", "long"],
    )
    def test_any_text_arrives(self, world: TransportFixture, text: str) -> None:
        for body in (
            json.dumps({"text": text}).encode(),
            json.dumps({"text": text}, ensure_ascii=False).encode(),
        ):
            assert world.transport.deliver(world.url, body, HEADERS).delivered
            assert world.received()[-1][1] == body

    def test_events_arrive_once_and_in_order(self, world: TransportFixture) -> None:
        bodies = [b'{"n":%d}' % n for n in range(20)]
        for body in bodies:
            assert world.transport.deliver(world.url, body, HEADERS).delivered
        assert [body for _, body in world.received()] == bodies

    def test_a_failure_is_an_outcome_and_is_not_raised(self, world: TransportFixture) -> None:
        assert world.failing, "name at least one endpoint that fails"
        for url in world.failing:
            world.transport.check(url)
            outcome = world.transport.deliver(url, BODY, HEADERS)
            assert not outcome.delivered, url
            assert (outcome.status is None) != (outcome.error is None), (
                f"exactly one of status and error must be set: {outcome}"
            )

    def test_after_a_failure_the_next_event_arrives(self, world: TransportFixture) -> None:
        for url in world.failing:
            world.transport.deliver(url, BODY, HEADERS)
            assert world.transport.deliver(world.url, BODY, HEADERS).delivered

    def test_an_endpoint_that_never_answers_times_out(self, world: TransportFixture) -> None:
        if world.stuck is None:
            pytest.skip(
                "this transport has no endpoint that never answers (TransportFixture.stuck is None)"
            )
        began = time.monotonic()
        outcome = world.transport.deliver(world.stuck, BODY, HEADERS)
        spent = time.monotonic() - began
        assert not outcome.delivered
        assert spent < world.patience_seconds + 10
        assert spent / 2 <= outcome.duration_ms / 1000 <= spent + 0.001

    def test_the_callers_headers_are_not_changed(self, world: TransportFixture) -> None:
        headers = dict(HEADERS)
        world.transport.deliver(world.url, BODY, headers)
        assert headers == HEADERS

    def test_threads_do_not_disturb_each_other(self, world: TransportFixture) -> None:
        start = threading.Barrier(4)

        def deliver(thread: int) -> None:
            start.wait(30)
            for n in range(10):
                body = json.dumps({"thread": thread, "n": n, "filling": "x" * 5_000}).encode()
                assert world.transport.deliver(world.url, body, HEADERS).delivered

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(deliver, range(4)))
        delivered = [
            (event["thread"], event["n"])
            for event in (json.loads(body) for _, body in world.received())
        ]
        assert sorted(delivered) == [(thread, n) for thread in range(4) for n in range(10)]
        for thread in range(4):
            assert [n for of, n in delivered if of == thread] == list(range(10))
