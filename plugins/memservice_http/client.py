"""One exchange with a provider over HTTP, bounded in time and in size.

The client is httpx, so proxies and certificates are taken from the usual variables (`HTTPS_PROXY`,
`SSL_CERT_FILE` …). Redirects are not followed: they would take the key along.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any

import httpx

from memservice.domain.errors import ConfigurationError
from memservice.spi.llm import ModelFailure
from memservice_http import failures
from memservice_http.sse import data_of

SECONDS = 180.0
"""That an exchange may take where nothing else is said."""
CONNECT_SECONDS = 10.0
MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer, plain or streamed. A long conversation is well below one megabyte."""
MAX_ERROR = 64 * 1024
CONNECTIONS = 100


class Endpoint:
    """A provider at a base URL. Safe to share between threads; connections are kept between
    exchanges."""

    def __init__(
        self,
        provider: str,
        base_url: str,
        headers: Mapping[str, str],
        settings: Mapping[str, Any],
        clock: Callable[[], datetime],
        *,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        """`provider` is how messages call the provider. `settings` are those of `Place`. Raises
        `ConfigurationError` for a URL that is none."""
        # httpx tells its log every URL, and a URL may hold what is secret.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        self.provider = provider
        self._clock = clock
        self._max_answer = max_answer
        self._body: Mapping[str, Any] = settings["extra_body"]
        self._query = {name: _text(value) for name, value in settings["extra_query"].items()}
        self._seconds: float = settings["timeout"] or SECONDS
        extra = {name: _text(value) for name, value in settings["extra_headers"].items()}
        self._base = _url(provider, base_url)
        self._secrets = [
            text
            for text in (
                settings["api_key"],
                *extra.values(),
                *self._query.values(),
                self._base.password,
            )
            if text
        ]
        sent = {"accept-encoding": "identity", "user-agent": "memservice"} | dict(headers)
        sent = {
            name: value
            for name, value in sent.items()
            if name.lower() not in {other.lower() for other in extra}
        } | extra
        try:
            self._client = httpx.Client(
                headers=sent,
                follow_redirects=False,
                limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=20),
            )
        except (UnicodeError, ValueError):
            raise ConfigurationError(
                f"{provider}: the key and the extra headers must be plain ASCII, without "
                "line breaks"
            ) from None

        # Neither models nor embedders are closed by anybody: the connections go with whoever holds
        # this.
        weakref.finalize(self, self._client.close)

    def url(self, path: str) -> httpx.URL:
        """The base URL with a path behind its own; a query that it has is kept."""
        joined = self._base.copy_with(path=self._base.path.rstrip("/") + path)
        return joined.copy_merge_params(self._query) if self._query else joined

    def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        timeout: float | None = None,
        start_timeout: float | None = None,
        query: Mapping[str, str] | None = None,
        stream: bool = False,
    ) -> ModelResponse:
        """Send a request and wait for the head of its answer. The caller closes the exchange.
        `start_timeout`: seconds until `ModelResponse.begun` is called.

        Raises ModelFailure, or `Rejected` for a request that the server does not understand.
        """
        whole = timeout or self._seconds
        seconds = min(whole, start_timeout or whole)
        began = time.monotonic()
        url = self.url(path)
        limits = httpx.Timeout(
            seconds, connect=min(CONNECT_SECONDS, seconds), pool=min(CONNECT_SECONDS, seconds)
        )
        failed: ModelFailure | None = None
        try:
            content = json.dumps(
                merged(body, self._body), ensure_ascii=False, allow_nan=False
            ).encode()
            headers = {
                "content-type": "application/json",
                "accept": "text/event-stream" if stream else "application/json",
            }
            request = self._client.build_request(
                "POST",
                url.copy_merge_params(query) if query else url,
                content=content,
                headers=headers,
                timeout=limits,
            )
            response = self._client.send(request, stream=True)
            # The head is there: from now on a single read may take longer, up to the limit that
            # the watch keeps.
            request.extensions["timeout"]["read"] = whole
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as error:
            failed = self._lost(error, seconds)
        if failed is not None:
            # Raised here, so that the library's error, which holds the request and with it the key,
            # is no part of it.
            raise failed
        exchange = ModelResponse(
            self, response, began + seconds - time.monotonic(), seconds, self._max_answer
        )
        exchange.further = whole - seconds
        if response.is_success:
            return exchange
        with exchange:
            told = exchange.error()
        answer = failures.from_answer(
            self.provider, response.status_code, response.headers, told, self._clock, self._secrets
        )
        raise answer

    def post(self, path: str, body: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """The whole answer to a request, as JSON."""
        with self.ask(path, body, timeout=timeout) as exchange:
            return exchange.json()

    def broken(self, error: object) -> ModelFailure:
        """An error that arrived inside a stream."""
        return failures.in_stream(self.provider, error, self._secrets)

    def _lost(self, error: Exception, seconds: float) -> ModelFailure:
        if isinstance(error, httpx.ConnectTimeout):
            return ModelFailure(
                f"{self.provider} could not be reached in {min(CONNECT_SECONDS, seconds):g} s",
                retryable=True,
            )
        if isinstance(error, httpx.TimeoutException):
            return late(self.provider, seconds)
        if isinstance(error, httpx.ConnectError):
            return ModelFailure(
                f"{self.provider} cannot be reached: is the base URL right, and is it running?",
                retryable=True,
            )
        if isinstance(error, httpx.TransportError) and not isinstance(
            error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
        ):
            return ModelFailure(
                f"the connection to {self.provider} was lost ({type(error).__name__})",
                retryable=True,
            )
        return ModelFailure(
            f"the request to {self.provider} could not be sent ({type(error).__name__})",
            retryable=False,
            fault="provider",
        )


class ModelResponse:
    """An answer whose head is there. Closing it before its end ends the connection."""

    def __init__(
        self,
        endpoint: Endpoint,
        response: httpx.Response,
        left: float,
        seconds: float,
        max_answer: int,
    ) -> None:
        self._endpoint = endpoint
        self._response = response
        self._seconds = seconds
        self._max = max_answer
        self._watch = _Watch(response, left)
        self.further = 0.0
        """Seconds that are added once the answer has begun."""

    def begun(self) -> None:
        """The first text of the answer is there, which reasoning is not: from now on the limit of
        the whole holds."""
        if self.further:
            self._seconds += self.further
            self._watch.extend(self.further)
            self.further = 0.0

    def __enter__(self) -> ModelResponse:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._watch.end()
        self._response.close()

    def json(self) -> Any:
        """The whole answer. Raises ModelFailure for one that is cut, too large, or not JSON."""
        return self.parse(b"".join(self._chunks(self._max)))

    def events(self) -> Iterator[bytes]:
        """The data of each event of a stream, as it arrives. Ends where the connection does:
        whether that was the end, the caller knows."""
        kind = self._type()
        if kind != "text/event-stream":
            raise ModelFailure(
                (
                    f"{self._endpoint.provider} answered with {kind or 'no content type'}, not "
                    "with a stream: is the base URL right?"
                ),
                retryable=False,
                fault="provider",
            )
        yield from data_of(self._chunks(self._max))

    def error(self) -> bytes:
        """The beginning of an answer that says what is wrong; b"" where it is lost on the way: its
        status says enough."""
        parts: list[bytes] = []
        try:
            for chunk in self._chunks(10 * MAX_ERROR):
                parts.append(chunk)
                if sum(map(len, parts)) > MAX_ERROR:
                    break
        except ModelFailure:
            pass
        return b"".join(parts)[:MAX_ERROR]

    def parse(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):  # the latter for brackets without end
            pass
        kind = self._type()
        if "json" not in kind and kind != "text/event-stream":
            raise ModelFailure(
                (
                    f"{self._endpoint.provider} answered with {kind or 'no content type'}, not "
                    "with JSON: is the base URL right?"
                ),
                retryable=False,
                fault="provider",
            )
        raise ModelFailure(
            f"{self._endpoint.provider} answered with JSON that cannot be read", retryable=True
        )

    def _chunks(self, maximum: int) -> Iterator[bytes]:
        taken = 0
        failed: ModelFailure | None = None
        chunks = self._response.iter_bytes()
        while failed is None:
            try:
                chunk = next(chunks, None)
            except httpx.TimeoutException:
                failed = late(self._endpoint.provider, self._seconds)
            except (httpx.TransportError, httpx.DecodingError, httpx.StreamError) as error:
                failed = ModelFailure(
                    f"{self._endpoint.provider} was cut off in its answer ({type(error).__name__})",
                    retryable=True,
                )
            else:
                if chunk is None:
                    break
                taken += len(chunk)
                if taken > maximum:
                    raise ModelFailure(
                        f"the answer of {self._endpoint.provider} is larger than {maximum:,} bytes",
                        retryable=False,
                    )
                yield chunk
        if self._watch.fired:
            failed = late(self._endpoint.provider, self._seconds)
        if failed is not None:
            raise failed

    def _type(self) -> str:
        header: str = self._response.headers.get("content-type", "")
        return header.partition(";")[0].strip().lower()


class _Watch:
    """Ends a connection when the time of its exchange is over. Limits of single reads never end an
    answer that comes byte by byte."""

    def __init__(self, response: httpx.Response, left: float) -> None:
        self.fired = False
        self._over = False
        self._lock = threading.Lock()
        stream = response.extensions.get("network_stream")
        self._socket = None if stream is None else stream.get_extra_info("socket")
        self._ends = time.monotonic() + max(left, 0.0)
        self._start()

    def extend(self, seconds: float) -> None:
        """Allow more time, if it is not over."""
        with self._lock:
            self._timer.cancel()
            self._ends += seconds
            if not self._over and not self.fired:
                self._start()

    def _start(self) -> None:
        self._timer = threading.Timer(max(self._ends - time.monotonic(), 0.0), self._fire)
        self._timer.daemon = True
        self._timer.name = "model-deadline"
        self._timer.start()

    def end(self) -> None:
        """From here on the connection may serve somebody else."""
        with self._lock:
            self._over = True
        self._timer.cancel()

    def _fire(self) -> None:
        with self._lock:
            if self._over or self._socket is None:
                return
            self.fired = True
            try:
                # Of the plain socket, also under TLS: this is not a goodbye.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                return  # it is closed already, which is all that is wanted


def late(who: str, seconds: float) -> ModelFailure:
    return ModelFailure(f"{who} took longer than {seconds:g} s", retryable=True)


def merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`extra` over `body`, object by object."""
    found = dict(body)
    for name, value in extra.items():
        mine = found.get(name)
        found[name] = (
            merged(mine, value)
            if isinstance(mine, Mapping) and isinstance(value, Mapping)
            else value
        )
    return found


def _url(who: str, text: str) -> httpx.URL:
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError(f"{who}: the base URL must be an http:// or https:// URL")
    return url


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
