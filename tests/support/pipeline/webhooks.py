"""Pipelines whose webhooks reach a receiver on this machine, and what tests check in them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

from memservice.domain.records import Delivery, WebhookEndpoint
from memservice.services import sessions, webhooks
from memservice.services.paging import Paging
from memservice.services.tasks import kinds
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.receiver import LOOPBACK, Receiver

OpenPipeline = Callable[..., Pipeline]
SECRET = "an older secret"
SETTINGS = {
    "WEBHOOK_ALLOW_NETWORKS": f'["{LOOPBACK}"]',
    "WEBHOOK_SECRET": SECRET,
    "WEBHOOK_TIMEOUT_SECONDS": "1",
    "WEBHOOK_MAX_ATTEMPTS": "3",
    "WEBHOOK_PAUSE_AFTER": "2",
}
DAY = 86_400.0


def opened(open_pipeline: OpenPipeline, *plugins: object, **settings: str) -> Pipeline:
    pipeline = open_pipeline(*plugins, **{**SETTINGS, **settings})
    pipeline.join("s", alice=sessions.MemberConfig())
    return pipeline


def register(pipeline: Pipeline, receiver: Receiver, path: str = "/hook") -> WebhookEndpoint:
    return webhooks.register(pipeline.rt, PRINCIPAL, WORKSPACE, receiver.url(path)).endpoint


def endpoint(pipeline: Pipeline, uid: str) -> WebhookEndpoint:
    (match,) = [
        one
        for one in webhooks.page(pipeline.rt, PRINCIPAL, WORKSPACE, Paging()).items
        if one.uid == uid
    ]
    return match


def attempts(pipeline: Pipeline, uid: str) -> list[Delivery]:
    """Oldest first."""
    return list(
        webhooks.deliveries(
            pipeline.rt, PRINCIPAL, WORKSPACE, uid, Paging(reverse=True, size=100)
        ).items
    )


def letters(pipeline: Pipeline, uid: str) -> list[webhooks.DeadLetter]:
    return list(webhooks.dead_letters(pipeline.rt, PRINCIPAL, WORKSPACE, uid, Paging()).items)


def emit_test(pipeline: Pipeline) -> None:
    webhooks.send_test(pipeline.rt, PRINCIPAL, WORKSPACE)


def try_all(pipeline: Pipeline, seconds: float = DAY) -> None:
    """Until nothing is tried any more."""
    for _ in range(20):
        pipeline.work()
        if not pipeline.tasks(kinds.WEBHOOK, state="pending"):
            return
        pipeline.clock.advance(seconds=seconds)
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
