"""One exchange with a provider over HTTP, limited in time and in size.

Proxies and certificates are taken from the usual variables (`HTTPS_PROXY`, `SSL_CERT_FILE` …;
`memservice_http.transport`). Redirects are not followed: they would take the key along.
"""

from __future__ import annotations

import json
import weakref
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache, partial
from types import TracebackType
from typing import Any

import httpx

from memservice.domain import json_bytes
from memservice.domain.errors import ConfigurationError
from memservice.spi.llm import ModelFailure
from memservice_http import failures
from memservice_http.connections import Connection, Connections
from memservice_http.sse import data_of
from memservice_http.transport import open_transport
from memservice_http.watch import Watch

SECONDS = 180.0
"""Default time limit of an exchange, from its connection to the end of its answer."""
CONNECT_SECONDS = 10.0
MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer, plain or streamed. A long conversation is well below one megabyte."""
MAX_ERROR = 64 * 1024
MAX_URLS = 64
"""URLs of an endpoint that are remembered: one for each path."""


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
        """`provider` is its name in messages. `settings` are those of `ConnectionSettings`. Raises
        `ConfigurationError` for an invalid URL, key or header."""
        self.provider = provider
        self._clock = clock
        self.max_answer = max_answer
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
        own = {"accept-encoding": "identity", "user-agent": "memservice"} | dict(headers)
        overridden = {name.lower() for name in extra}
        sent = {name: value for name, value in own.items() if name.lower() not in overridden}
        try:
            self._headers = httpx.Headers(sent | extra)
        except (UnicodeError, ValueError):
            raise ConfigurationError(
                f"{provider}: the key and the extra headers must be plain ASCII, without "
                "line breaks"
            ) from None

        self._joined = lru_cache(MAX_URLS)(partial(_joined, self._base, self._query))
        self._headers.update(_credentials(self._base))
        self._connections = Connections(partial(open_transport, self._base))
        # Models and embedders have no `close`: the connections close with this object.
        weakref.finalize(self, self._connections.close)

    def url(self, path: str) -> httpx.URL:
        """The base URL with a path behind its own; a query that it has is kept."""
        return self._joined(path)

    def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        timeout: float | None = None,
        start_timeout: float | None = None,
        query: Mapping[str, str] | None = None,
        is_wanted: Callable[[], bool] | None = None,
        stream: bool = False,
    ) -> ModelResponse:
        """Send a request and wait for the head of its answer. The caller closes the exchange.

        `timeout`: seconds of the whole exchange. `start_timeout`: seconds until
        `ModelResponse.begun` is called. The exchange ends once `is_wanted` is false, or, while
        its connection is being opened, when that has ended.

        Raises ModelFailure, or `Rejected` for a request that the server does not understand.
        """
        whole = timeout or self._seconds
        seconds = min(whole, start_timeout or whole)
        connection = self._connections.take()
        watch = Watch(connection.cut_off, seconds, is_wanted)
        url = self.url(path)
        url = url.copy_merge_params(query) if query else url
        sent: httpx.Response | ModelFailure | None = None
        try:
            sent = self._send(connection, url, body, seconds, stream=stream)
        finally:
            if not isinstance(sent, httpx.Response):
                watch.end()
                self.give_back(connection)
        if isinstance(sent, ModelFailure):
            raise self.ended(watch, seconds) or sent
        # From now on a single read may take longer, up to the limit that the watch keeps.
        sent.request.extensions["timeout"]["read"] = whole
        exchange = ModelResponse(self, sent, watch, connection, seconds)
        exchange.further = whole - seconds
        if sent.is_success:
            return exchange
        with exchange:
            text = exchange.error()
        raise failures.from_answer(
            self.provider, sent.status_code, sent.headers, text, self._clock, self._secrets
        )

    def _send(
        self,
        connection: Connection,
        url: httpx.URL,
        body: Mapping[str, Any],
        seconds: float,
        *,
        stream: bool,
    ) -> httpx.Response | ModelFailure:
        """The head of the answer, or why there is none. The failure is returned so that the
        library's error, which contains the request and with it the key, is no part of it."""
        try:
            content = json.dumps(merged(body, self._body), ensure_ascii=False, allow_nan=False)
            headers = self._headers.copy()
            headers["content-type"] = "application/json"
            headers["accept"] = "text/event-stream" if stream else "application/json"
            timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
            request = httpx.Request(
                "POST",
                url,
                headers=headers,
                content=content.encode(),
                extensions={"timeout": timeout.as_dict()},
            )
            return connection.send(request, seconds)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as error:
            return self._lost(error, seconds)

    def post(self, path: str, body: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """The whole answer to a request, as JSON."""
        with self.ask(path, body, timeout=timeout) as exchange:
            return exchange.json()

    def give_back(self, connection: Connection) -> None:
        """The exchange is over: the connection can serve another one."""
        self._connections.give_back(connection)

    def broken(self, error: object) -> ModelFailure:
        """An error that arrived inside a stream."""
        return failures.in_stream(self.provider, error, self._secrets)

    def ended(self, watch: Watch, seconds: float) -> ModelFailure | None:
        """The failure of an exchange that its watch has ended."""
        if watch.is_unwanted:
            return ModelFailure(
                f"the request to {self.provider} was cancelled", retryable=False, fault="provider"
            )
        return late(self.provider, seconds) if watch.is_late else None

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
    """An answer whose head has arrived. Closing it before its end ends the connection."""

    def __init__(
        self,
        endpoint: Endpoint,
        response: httpx.Response,
        watch: Watch,
        connection: Connection,
        seconds: float,
    ) -> None:
        self._endpoint = endpoint
        self._response = response
        self._watch = watch
        self._connection: Connection | None = connection
        self._seconds = seconds
        self._max = endpoint.max_answer
        self.further = 0.0
        """Seconds that are added once the answer has begun."""

    def begun(self) -> None:
        """The first text of the answer has arrived, which reasoning is not: from now on the limit
        of the whole applies."""
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
        connection, self._connection = self._connection, None
        if connection is not None:
            self._endpoint.give_back(connection)

    def json(self) -> Any:
        """The whole answer. Raises ModelFailure for one that is cut, too large, or not JSON."""
        return self.parse(b"".join(self._chunks(self._max)))

    def events(self) -> Iterator[bytes]:
        """The data of each event of a stream, as it arrives. Ends with the connection; whether the
        answer is complete, its protocol says."""
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
        """The beginning of an error's body; b"" if the connection is lost: its status says
        enough."""
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
            return json_bytes.parse(data)
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
                    f"the response of {self._endpoint.provider} was cut off "
                    f"({type(error).__name__})",
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
        failed = self._endpoint.ended(self._watch, self._seconds) or failed
        if failed is not None:
            raise failed

    def _type(self) -> str:
        header: str = self._response.headers.get("content-type", "")
        return header.partition(";")[0].strip().lower()


def late(provider: str, seconds: float) -> ModelFailure:
    return ModelFailure(f"{provider} took longer than {seconds:g} s", retryable=True)


def merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`extra` over `body`, object by object."""
    result = dict(body)
    for name, value in extra.items():
        own = result.get(name)
        both = isinstance(own, Mapping) and isinstance(value, Mapping)
        result[name] = merged(own, value) if both else value  # type: ignore[arg-type]
    return result


def _url(provider: str, text: str) -> httpx.URL:
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError(f"{provider}: the base URL must be an http:// or https:// URL")
    return url


def _credentials(url: httpx.URL) -> dict[str, str]:
    """The header for a user and password in a URL."""
    if not url.username and not url.password:
        return {}
    plain = f"{url.username}:{url.password}".encode()
    return {"authorization": f"Basic {b64encode(plain).decode()}"}


def _joined(base: httpx.URL, query: Mapping[str, str], path: str) -> httpx.URL:
    """The base URL with a path behind its own, and with its own query and this one."""
    joined = base.copy_with(path=base.path.rstrip("/") + path)
    return joined.copy_merge_params(query) if query else joined


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
