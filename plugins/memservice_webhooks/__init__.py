"""Webhook transports: HTTP, and lines appended to a file in a directory that the operator
chooses."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from marshmallow import EXCLUDE, Schema, fields

from memservice.hookspecs import hookimpl
from memservice.spi.providers import Context, Settings, WebhookTransportProvider

if TYPE_CHECKING:
    from memservice.spi.webhooks import TransportFixture, WebhookTransport


class JsonLinesSettings(Schema):
    """`directory`: where endpoints `jsonl:NAME` are files; None: there are no such endpoints."""

    class Meta:
        unknown = EXCLUDE

    directory = fields.String(
        load_default=None,
        allow_none=True,
        metadata={"help": "the directory of the files", "secrecy": "public"},
    )


def _open_http(settings: Settings, context: Context) -> WebhookTransport:
    from memservice_webhooks.http import HttpTransport

    return HttpTransport(tuple(settings["allow_networks"]), float(settings["timeout_seconds"]))


def _open_jsonl(settings: Settings, context: Context) -> WebhookTransport:
    from memservice_webhooks.jsonl import JsonLinesTransport

    return JsonLinesTransport(settings["directory"])


def _http_fixture(folder: Path, context: Context) -> AbstractContextManager[TransportFixture]:
    from memservice_webhooks.fixtures import http_fixture

    return http_fixture()


def _jsonl_fixture(folder: Path, context: Context) -> AbstractContextManager[TransportFixture]:
    from memservice_webhooks.fixtures import jsonl_fixture

    return jsonl_fixture(folder)


@hookimpl
def memservice_webhook_transports() -> Iterable[WebhookTransportProvider]:
    yield WebhookTransportProvider(
        name="http", schemes=("http", "https"), open=_open_http, world=_http_fixture
    )
    yield WebhookTransportProvider(
        name="jsonl",
        schemes=("jsonl",),
        open=_open_jsonl,
        settings=JsonLinesSettings,
        world=_jsonl_fixture,
    )
