"""The meaning of a provider's answers that are errors.

No text that is made here holds a key, or anything of what was said: servers quote both in their
messages. What is passed on of an error is its status and the short names (`rate_limit_exceeded`,
`messages[0]`) that protocols give to errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from memservice.spi.llm import ContextTooLong, Fault, ModelFailure, Refusal

RETRYABLE = frozenset({408, 409, 425, 429})
"""Besides every 5xx but 501: a little later the same request may succeed."""
REJECTIONS = frozenset({400, 404, 415, 422, 501})
"""The server did not understand the request: it may understand another form of it."""
MAX_REPORTED = 8_000
"""Characters of an error that are examined."""
MAX_OPENING = 120
"""Characters of the provider's own sentence that are searched for its meaning."""
MAX_WAIT_SECONDS = 24 * 3600.0

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\[\]-]{0,79}")
_REFUSING = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "content_policy",
        "responsibleaipolicyviolation",
        "prohibited_content",
    }
)
_CONTEXT_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_CONTEXT = re.compile(
    r"context[ _](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?"
    r"tokens|input token count|exceeds the (?:available )?context|input is too long"
)
_NO_TOOLS = re.compile(r"\btools?\b.{0,40}(?:requires? -|not support)")
"""llama.cpp rejects tools with a status that otherwise means a fault of its own."""
_ACCOUNT = re.compile(
    r"credit balance|insufficient[_ ](?:quota|balance|credits)|billing|api[_ ]key[_ ](?:not valid|"
    r"invalid|expired)|invalid[_ ]api[_ ]key|exceeded your current quota"
)
"""The account is the problem, at any status: some providers answer with 400."""
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_UNITS = {"retry-after-ms": 0.001, "retry-after": 1.0}

_HINTS = {
    401: "is the key right?",
    403: "is the key allowed to do this?",
    404: "is there such a model, and is the base URL right?",
    413: "the request is larger than the provider takes",
}


class Rejected(Exception):
    """The server does not understand the request as it is. Never leaves the plugins: callers get
    `failure`."""

    def __init__(self, failure: ModelFailure, complaint: str) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.complaint = complaint
        """The server's words in lower case, to search them for the part that it does not
        support. They may quote anything: never pass them on."""


def from_answer(
    provider: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    clock: Callable[[], datetime],
    secrets: Collection[str],
) -> ModelFailure | Rejected:
    """The failure of an answer with a status other than 2xx. `headers` by lower-case name."""
    complaint = body[:MAX_REPORTED].decode(errors="replace").lower()
    error = _error_of(body)
    names = [
        name for name in _names(error) if not any(secret and secret in name for secret in secrets)
    ]
    lower = {name.lower() for name in names}
    if lower & _REFUSING:
        return Refusal(f"{provider} refuses to answer ({', '.join(names)})", status=status)
    text = f"{provider} answered with status {status}" + (f" ({', '.join(names)})" if names else "")
    opening = _opening(error)
    if status in (400, 413, 422, 500) and (lower & _CONTEXT_CODES or _CONTEXT.search(opening)):
        return ContextTooLong(f"{text}: the request is longer than the model reads", status=status)
    is_account = _ACCOUNT.search(" ".join((*lower, opening))) is not None
    if status in _HINTS:
        text += f": {_HINTS[status]}"
    elif is_account:
        text += ": is the key right, and does its account have credit?"
    elif 300 <= status < 400:
        text += (
            ": redirects are not followed, because the key would be; set the base URL to the "
            "target of the redirect"
        )
    retryable = status in RETRYABLE or (status >= 500 and status != 501)
    if (should_retry := headers.get("x-should-retry")) in ("true", "false"):
        retryable = should_retry == "true"
    pause = retry_after(headers, clock)
    fault: Fault | None = "provider" if is_account else None
    failure = ModelFailure(
        text,
        retryable=retryable,
        status=status,
        retry_after=_delay(error) if pause is None else pause,
        fault=fault,
    )
    is_rejection = status in REJECTIONS or (status == 500 and _NO_TOOLS.search(opening))
    return Rejected(failure, complaint) if is_rejection and not is_account else failure


def in_stream(provider: str, error: object, secrets: Collection[str] = ()) -> ModelFailure:
    """An error in place of a piece of the answer. It is retryable unless it is clearly a fault of
    the request."""
    names = [
        name for name in _names(error) if not any(secret and secret in name for secret in secrets)
    ]
    lower = {name.lower() for name in names}
    if lower & _REFUSING:
        return Refusal(f"{provider} refuses to answer ({', '.join(names)})")
    lasting = lower & {
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "invalid_argument",
    }
    return ModelFailure(
        f"{provider} broke off its answer" + (f" ({', '.join(names)})" if names else ""),
        retryable=not lasting,
        fault="content" if "invalid_request_error" in lower else "provider",
    )


def retry_after(headers: Mapping[str, str], clock: Callable[[], datetime]) -> float | None:
    """Seconds of the pause that the provider requests: `retry-after-ms`, or `retry-after` as
    seconds or as a date. None if it requests none."""
    for name, unit in _UNITS.items():
        text = headers.get(name, "").strip()
        if not text:
            continue
        try:
            seconds = float(text) * unit
        except ValueError:
            try:
                date = parsedate_to_datetime(text)
            except ValueError:
                continue
            seconds = (date.replace(tzinfo=date.tzinfo or UTC) - clock()).total_seconds()
        if seconds == seconds:
            return min(max(seconds, 0.0), MAX_WAIT_SECONDS)
    return None


def _error_of(body: bytes) -> Any:
    """The part of an answer that describes the error; {} if there is no readable one."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(document, list) and document:
        document = document[0]
    return document.get("error", document) if isinstance(document, dict) else {}


def _opening(error: object) -> str:
    """The beginning of the provider's sentence, in lower case: the rest may quote a message,
    and no message may decide the meaning of an error."""
    message = error.get("message") if isinstance(error, dict) else error
    return message[:MAX_OPENING].lower() if isinstance(message, str) else ""


def _names(error: object) -> Iterator[str]:
    if not isinstance(error, dict):
        return
    inner = error.get("innererror")
    for value in (
        error.get("code"),
        error.get("status"),
        error.get("type"),
        error.get("param"),
        inner and inner.get("code"),
    ):
        if isinstance(value, str) and _NAME.fullmatch(value):
            yield value


def _delay(error: Any) -> float | None:
    """`{"details": [{"@type": "…RetryInfo", "retryDelay": "12s"}]}`, the format of Google's
    APIs."""
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else []:
        match = (
            _DELAY.fullmatch(str(detail.get("retryDelay"))) if isinstance(detail, dict) else None
        )
        if match:
            return min(float(match[1]), MAX_WAIT_SECONDS)
    return None
