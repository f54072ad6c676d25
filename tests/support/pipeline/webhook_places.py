"""Places whose webhooks reach a receiver on this machine, and what is looked at in them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

from memservice.domain.records import Delivery, WebhookEndpoint
from memservice.services import sessions, webhooks
from memservice.services.paging import Paging
from memservice.services.tasks import kinds
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place
from support.receiver import LOOPBACK, Receiver

Start = Callable[..., Place]
SECRET = "an older secret"
SETTINGS = {
    "WEBHOOK_ALLOW_NETWORKS": f'["{LOOPBACK}"]',
    "WEBHOOK_SECRET": SECRET,
    "WEBHOOK_TIMEOUT_SECONDS": "1",
    "WEBHOOK_MAX_ATTEMPTS": "3",
    "WEBHOOK_PAUSE_AFTER": "2",
}
DAY = 86_400.0


def opened(start: Start, *plugins: object, **settings: str) -> Place:
    place = start(*plugins, **{**SETTINGS, **settings})
    place.join("s", alice=sessions.MemberConfig())
    return place


def register(place: Place, receiver: Receiver, path: str = "/hook") -> WebhookEndpoint:
    return webhooks.register(place.rt, PRINCIPAL, WORKSPACE, receiver.url(path)).endpoint


def endpoint(place: Place, uid: str) -> WebhookEndpoint:
    (found,) = [
        one
        for one in webhooks.page(place.rt, PRINCIPAL, WORKSPACE, Paging()).items
        if one.uid == uid
    ]
    return found


def attempts(place: Place, uid: str) -> list[Delivery]:
    """Oldest first."""
    return list(
        webhooks.deliveries(
            place.rt, PRINCIPAL, WORKSPACE, uid, Paging(reverse=True, size=100)
        ).items
    )


def letters(place: Place, uid: str) -> list[webhooks.DeadLetter]:
    return list(webhooks.dead_letters(place.rt, PRINCIPAL, WORKSPACE, uid, Paging()).items)


def emit_test(place: Place) -> None:
    webhooks.send_test(place.rt, PRINCIPAL, WORKSPACE)


def try_all(place: Place, seconds: float = DAY) -> None:
    """Until nothing is tried any more."""
    for _ in range(20):
        place.work()
        if not place.tasks(kinds.WEBHOOK, state="pending"):
            return
        place.clock.advance(seconds=seconds)
    raise AssertionError("still trying")


def legacy_signature(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def standard_signature(secret: str, number: str, timestamp: str, body: bytes) -> str:
    """As the Standard Webhooks specification writes it, in words of its own."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(
        key, f"{number}.{timestamp}.{body.decode()}".encode(), hashlib.sha256
    ).digest()
    return "v1," + base64.b64encode(digest).decode()
