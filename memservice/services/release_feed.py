"""Newer releases of memservice, from a feed that the operator names (`CONSOLE_RELEASE_FEED`).

Workers read the feed in the background and save its newest release in the store; pages read only
the store. Nothing is installed. `docs/console.md` describes the format.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

import memservice
from memservice.domain.errors import ConfigurationError, InvalidInput
from memservice.domain.values import loads, storable
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.spi.webhooks import FetchFailed, Fetching

log = logging.getLogger("memservice.releases")

FACT = "release feed"
INTERVAL = timedelta(hours=6)
"""Interval between reads of the feed."""
MAX_BYTES = 256 * 1024
MAX_RELEASES = 200
MAX_CHANGES = 20_000
"""Maximum number of stored characters of the changes of one release."""
MAX_TEXT = 500
"""Maximum number of stored characters of a date, a URL or an error."""

_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,3}", re.ASCII)
"""A release. Others (`1.2rc1`, `1.2.dev3`) are not offered."""


class Release(Struct, frozen=True):
    version: str
    date: str = ""
    url: str = ""
    """Text for the reader: pages do not link to it."""
    changes: str = ""


class Upgrade(Struct, frozen=True):
    """The result of the last read of the feed."""

    newest: Release | None
    """The newest release, if it is newer than this one."""
    checked_at: datetime
    error: str | None
    """The reason if the feed could not be read; `newest` is then from an earlier read."""


class Unusable(Exception):
    """The feed cannot be used. The message is for the operator."""


def available(rt: Runtime, principal: Principal) -> Upgrade | None:
    """The last result; None: no feed is configured, or it has not been read yet."""
    policy.require_admin(principal, needs=Permission.VIEW)
    if not rt.settings.console.release_feed:
        return None
    last_read = _last_read(rt)
    if last_read is None or last_read["feed"] != _digest(rt.settings.console.release_feed):
        return None
    newest = None if last_read["newest"] is None else Release(**last_read["newest"])
    if newest is not None and not _is_newer(newest.version):
        newest = None  # this process was upgraded since
    return Upgrade(newest, datetime.fromisoformat(last_read["checked_at"]), last_read["error"])


def is_due(rt: Runtime) -> bool:
    """Whether the feed must be read: it is configured, and no process has read it for
    `INTERVAL`."""
    feed = rt.settings.console.release_feed
    if not feed:
        return False
    last_read = _last_read(rt)
    if last_read is None or last_read["feed"] != _digest(feed):
        return True
    # A time in the future comes from a clock that was ahead.
    return abs(rt.clock() - datetime.fromisoformat(last_read["checked_at"])) >= INTERVAL


def refresh(rt: Runtime) -> None:
    """Read the feed, and save its newest release. Can take as long as the delivery of a webhook."""
    feed = rt.settings.console.release_feed
    if not feed:
        return
    error: str | None = None
    newest: Mapping[str, str] | None = None
    try:
        newest = asdict(newest_of(_document(rt, feed)))
    except Unusable as unusable:
        error = storable(str(unusable), MAX_TEXT)
        log.warning("the release feed cannot be used: %s", error)
        last_read = _last_read(rt)
        newest = last_read["newest"] if last_read and last_read["feed"] == _digest(feed) else None
    value = json.dumps(
        {
            "feed": _digest(feed),
            "checked_at": rt.clock().isoformat(),
            "newest": newest,
            "error": error,
        }
    )
    rt.storage.write(lambda tx: tx.facts.set(FACT, value))


def newest_of(document: bytes) -> Release:
    """The newest release of a feed. Raises `Unusable`."""
    try:
        feed = loads(document)
    except InvalidInput as error:
        raise Unusable(f"it is not valid JSON: {error}") from error
    rows = feed.get("releases") if isinstance(feed, dict) else None
    if not isinstance(rows, list) or len(rows) > MAX_RELEASES:
        raise Unusable(f"it must be an object with a list `releases` of at most {MAX_RELEASES}")
    releases = [_release(row, number) for number, row in enumerate(rows, 1)]
    final = [release for release in releases if _VERSION.fullmatch(release.version)]
    if not final:
        raise Unusable("it has no release with a version such as 1.2.3")
    return max(final, key=lambda release: _numbers(release.version))


def _release(row: Any, number: int) -> Release:
    if not isinstance(row, dict):
        raise Unusable(f"release {number} must be an object")
    values = {name: row.get(name, "") for name in ("version", "date", "url", "changes")}
    for name, value in values.items():
        if not isinstance(value, str):
            raise Unusable(f"`{name}` of release {number} must be a string")
    limits = {"changes": MAX_CHANGES}
    return Release(
        **{name: storable(value, limits.get(name, MAX_TEXT)) for name, value in values.items()}
    )


def _document(rt: Runtime, feed: str) -> bytes:
    if "://" not in feed:
        return _file(Path(feed))
    if not feed.lower().startswith("https://"):
        raise Unusable("CONSOLE_RELEASE_FEED must be an https URL or the path of a file")
    try:
        transport = rt.webhook_transport(feed)
        if not isinstance(transport, Fetching):
            raise Unusable("the webhook transport of https cannot read documents")
        return transport.fetch(feed, MAX_BYTES)
    except (FetchFailed, InvalidInput, ConfigurationError) as error:
        raise Unusable(str(error)) from error


def _file(path: Path) -> bytes:
    try:
        if not path.is_file():  # reading a pipe would wait
            raise Unusable("CONSOLE_RELEASE_FEED names no file")
        with path.open("rb") as file:
            document = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unusable(f"the file cannot be read: {type(error).__name__}") from error
    if len(document) > MAX_BYTES:
        raise Unusable(f"it has more than {MAX_BYTES} bytes")
    return document


def _last_read(rt: Runtime) -> dict[str, Any] | None:
    with rt.storage.read() as tx:
        value = tx.facts.get(FACT)
    last_read: dict[str, Any] | None = None if value is None else json.loads(value)
    return last_read


def _digest(feed: str) -> str:
    """The digest detects a changed setting. A URL can contain a secret, which the store must not
    have."""
    return hashlib.sha256(feed.encode("utf-8", "surrogatepass")).hexdigest()


def _numbers(version: str) -> tuple[int, ...]:
    """`1.2` and `1.2.0` are the same release."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _is_newer(version: str) -> bool:
    """Newer than the release that this process runs; a pre-release is older than its release."""
    match = _VERSION.match(memservice.__version__)
    if match is None:
        return True
    own = _numbers(match[0])
    is_final = match[0] == memservice.__version__
    return _numbers(version) > own or (not is_final and _numbers(version) == own)
