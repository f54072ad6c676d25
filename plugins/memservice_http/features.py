"""Asking in another form what a server does not understand, and remembering for each model which
form works.

Servers of one protocol differ in what they know of it, and say so by refusing a request and naming
the part. Going without that part is not another try: nothing was answered.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memservice_http.failures import Rejected

T = TypeVar("T")

MAX_FORMS = 8
"""Forms of one request that are tried before its refusal is believed."""
MAX_MODELS = 1_000

_UNKNOWN = re.compile(
    r"unsupported|not support|n't support|unknown|unrecogni[sz]ed|unexpected|extra "
    r"(?:inputs|fields)|not permitted|not allowed|"
    r"cannot find field|only the default|unavailable|not available|not "
    r"implemented|incompatible|not compatible|cannot both|may only|"
    r"deprecated|removed|no longer|instead|invalid parameter"
)
_THIS_TIME = re.compile(
    r"invalid[_ ](?:json[_ ])?schema|schema (?:is )?(?:too|invalid|exceeds)|(?:function "
    r"calling|tools?) with a"
)
"""It is this schema that is not taken, or this combination: another request may have the part."""


@dataclass(frozen=True, slots=True)
class OptionalFeature:
    """A part of requests that some servers do not know."""

    name: str
    words: tuple[str, ...]
    """By which a server means it, in lower case."""
    any_complaint: bool = False
    """Whether its being named is enough. Else the server has to say that it does not know it, not
    only that its value is wrong."""

    def is_meant(self, told: str) -> bool:
        if not any(
            re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", told) for word in self.words
        ):
            return False
        return self.any_complaint or _UNKNOWN.search(told) is not None


class FeatureNegotiation:
    """What servers said that they do not know, by model. Safe to share between threads."""

    def __init__(self, who: str, parts: Sequence[OptionalFeature], log: logging.Logger) -> None:
        self._provider, self._parts, self._log = who, parts, log
        self._lock = threading.Lock()
        self._lacking: dict[str, frozenset[str]] = {}

    def ask(
        self,
        model: str,
        send: Callable[[frozenset[str]], T],
        used: Callable[[frozenset[str]], Collection[str]],
    ) -> T:
        """`send` the request without the parts that this model's server is known to lack, and
        without more of them as it complains.

        `used` says which parts the request has when it goes without some. Raises what `send`
        raises, a `ModelFailure` for a refusal that no other form helps against.
        """
        with self._lock:
            lacking = self._lacking.get(model, frozenset())
        lasting: frozenset[str] = frozenset()
        failed = None
        for _ in range(MAX_FORMS):
            try:
                answer = send(lacking)
            except Rejected as error:
                failed = error.failure
                part = next(
                    (p for p in self._parts if p.name in used(lacking) and p.is_meant(error.told)),
                    None,
                )
                if part is None:
                    break
                lacking |= {part.name}
                if not _THIS_TIME.search(error.told):
                    lasting |= {part.name}
                continue
            self._remember(model, lasting)
            return answer
        assert failed is not None
        raise failed

    def _remember(self, model: str, lasting: frozenset[str]) -> None:
        if not lasting:
            return
        self._log.info(
            "%s: %s is asked without %s from here on",
            self._provider,
            model,
            ", ".join(sorted(lasting)),
        )
        with self._lock:
            if len(self._lacking) < MAX_MODELS or model in self._lacking:
                self._lacking[model] = self._lacking.get(model, frozenset()) | lasting
