"""Feature negotiation: a request is repeated without the part that a server rejects, and each model
is remembered with the parts that its server lacks.

Servers of one protocol differ in what they support, and say so by rejecting a request and naming
the part. Repeating it without the part is not another try: nothing was answered.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec import Struct

from memservice.spi.llm import ModelFailure, ToolsUnsupported
from memservice_http.failures import Rejected

T = TypeVar("T")

MAX_FORMS = 8
"""Forms of one request that are tried before its rejection is final."""
MAX_MODELS = 1_000
REMEMBERED = timedelta(hours=24)
"""Servers are updated: after this time a part is tried again."""
TOOLS = "tools"
"""A request without this part is a different one, so the caller gets an error."""

_UNKNOWN = re.compile(
    r"unsupported|not support|n't support|unknown|unrecogni[sz]ed|unexpected|extra "
    r"(?:inputs|fields)|not permitted|not allowed|"
    r"cannot find field|only the default|unavailable|not available|not "
    r"implemented|incompatible|not compatible|cannot both|may only|"
    r"deprecated|removed|no longer|instead|invalid parameter|no endpoints found|"
    r"requires? -{1,2}|requires the flag|must be enabled|not enabled"
)
_THIS_TIME = re.compile(
    r"invalid[_ ](?:json[_ ])?schema|schema (?:is )?(?:too|invalid|exceeds)|(?:function "
    r"calling|tools?) with a"
)
"""The server rejects this schema, or this combination: another request may have the part."""
_ADVICE = re.compile(r"\b(?:use|try|instead use|switch to)\b[^\n]*?(?=\.(?:[\s\"\\]|\Z)|;|\n|\Z)")
"""The recommendation of a server, which names other parts than the rejected one."""


class OptionalFeature(Struct, frozen=True):
    """A part of requests that some servers do not support."""

    name: str
    words: tuple[str, ...]
    """The names of it in the messages of servers, in lower case."""
    any_complaint: bool = False
    """Whether its name is enough. Otherwise the server has to say that it does not support it, not
    only that its value is wrong."""
    options: tuple[str, ...] = ()
    """Names of `CompletionRequest.options` (or `temperature`) that use it: if one is set, leaving
    out the part is logged as a warning."""
    pattern: str | None = None
    """A regular expression that matches complaints about this part only, whatever else they
    name."""

    def position(self, text: str) -> tuple[int, int] | None:
        """The position of this part's name in a text, and minus the length of the name; None if the
        text does not have it."""
        positions = [
            (match.start(), -len(word))
            for word in self.words
            if (match := re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text))
        ]
        return min(positions, default=None)


class _Request(Struct, frozen=True):
    """One request, as far as it is negotiated."""

    model: str
    options: Collection[str]


class FeatureNegotiation:
    """The parts that servers do not support, by model. Safe to share between threads."""

    def __init__(
        self,
        provider: str,
        parts: Sequence[OptionalFeature],
        log: logging.Logger,
        clock: Callable[[], datetime],
    ) -> None:
        self._provider, self._parts, self._log, self._clock = provider, parts, log, clock
        self._lock = threading.Lock()
        self._lacking: dict[str, dict[str, datetime]] = {}

    def lacking(self, model: str) -> frozenset[str]:
        """The parts that requests to a model currently leave out."""
        now = self._clock()
        with self._lock:
            learned = self._lacking.get(model, {})
            return frozenset(name for name, at in learned.items() if now - at < REMEMBERED)

    def ask(
        self,
        model: str,
        send: Callable[[frozenset[str]], T],
        used: Callable[[frozenset[str]], Collection[str]],
        options: Collection[str] = (),
    ) -> T:
        """`send` the request without the parts that this model's server is known to lack, and
        without more of them as it complains.

        `used` returns the parts of the request when it goes without some, `options` are the names
        of the options that the operator set. Raises the exceptions of `send`, and `ModelFailure`
        if every form is rejected.
        """
        request = _Request(model, options)
        lacking = self.lacking(model)
        lasting: frozenset[str] = frozenset()
        failure: ModelFailure | None = None
        for _ in range(MAX_FORMS):
            try:
                answer = send(lacking)
            except Rejected as error:
                failure = error.failure
                part = self._meant(error.complaint, used(lacking))
                if part is None:
                    break
                lacking |= {part}
                is_pattern = any(one.pattern and one.name == part for one in self._parts)
                if is_pattern or not _THIS_TIME.search(error.complaint):
                    lasting |= {part}
                continue
            except ToolsUnsupported:
                self._remember(request, lasting)
                raise
            self._remember(request, lasting)
            return answer
        assert failure is not None
        raise failure

    def _meant(self, message: str, used: Collection[str]) -> str | None:
        """The part that a server rejects: the one that its message means and no other, else the one
        that it names first, by the longest name."""
        parts = [part for part in self._parts if part.name in used]
        for part in parts:
            if part.pattern is not None and re.search(part.pattern, message, re.DOTALL):
                return part.name
        is_unknown = _UNKNOWN.search(message) is not None
        candidates = [part for part in parts if part.any_complaint or is_unknown]
        for text in (_ADVICE.sub(" ", message), message):
            named = [
                (position, part.name)
                for part in candidates
                if (position := part.position(text)) is not None
            ]
            if named:
                # Of equal names the earlier part in the protocol's list counts.
                return min(named, key=lambda item: item[0])[1]
        return None

    def _remember(self, request: _Request, lasting: frozenset[str]) -> None:
        if not lasting:
            return
        for part in self._parts:
            if part.name not in lasting:
                continue
            settings = [name for name in part.options if name in request.options]
            if settings:
                self._log.warning(
                    "%s: %s does not accept %s, which is set for it: it is left out of requests",
                    self._provider,
                    request.model,
                    " and ".join(settings),
                )
            else:
                self._log.info(
                    "%s: requests to %s are sent without %s from here on",
                    self._provider,
                    request.model,
                    part.name,
                )
        now = self._clock()
        with self._lock:
            if len(self._lacking) < MAX_MODELS or request.model in self._lacking:
                learned = self._lacking.setdefault(request.model, {})
                learned.update(dict.fromkeys(lasting, now))
