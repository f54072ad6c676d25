"""A real HTTP server on loopback that speaks a model's protocol, with scripted answers or
faults."""

from __future__ import annotations

import itertools
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from msgspec import Struct

from memservice.spi.llm import LanguageModel
from memservice.testing.llm import Fault, Say

KEY = "sk-test-0123456789abcdef"
MAX_WAIT = 30.0
"""Maximum seconds of any wait, so that a faulty test ends."""


class Request(Struct, frozen=True):
    path: str
    """With its query."""
    headers: Mapping[str, str]
    """By lower-case name."""
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Wire(Protocol):
    """The wire format of a protocol."""

    def whole(self, say: Say) -> Any:
        """An answer, to be sent as JSON."""
        ...

    def events(self, say: Say) -> Iterator[bytes]:
        """The same as server-sent events: first everything before the text with its first piece,
        then one for each further piece or call."""
        ...

    def refusal(self) -> Any: ...

    def refusal_events(self) -> Iterator[bytes]: ...

    def error(self, status: int, message: str) -> Any:
        """The body of an error."""
        ...

    def error_event(self) -> bytes: ...

    def is_stream(self, request: Request) -> bool: ...

    def last_text(self, request: Request) -> str: ...


Answer = Callable[["Handler", Request], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        request = Request(
            self.path, {name.lower(): value for name, value in self.headers.items()}, raw
        )
        self.server.requests.append(request)
        try:
            self.server.answer(request)(self, request)
        except OSError:
            self.server.left.set()
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def json(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.whole(
            json.dumps(value, ensure_ascii=False).encode(), "application/json", status, headers
        )

    def whole(
        self, body: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.head(
            status, {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}
        )
        self.wfile.write(body)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def begin_chunks(self, kind: str) -> None:
        self.head(200, {"Content-Type": kind, "Transfer-Encoding": "chunked"})

    def chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

    def end_chunks(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def wait_to_be_left(self) -> None:
        """Wait until the other side ends the connection."""
        self.connection.settimeout(MAX_WAIT)
        if not self.connection.recv(1):
            self.server.left.set()
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[Request] = []
        self.left = threading.Event()
        self.closed = threading.Event()
        self.script: deque[Answer] = deque()
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, request: Request) -> Answer:
        """The next answer of the script; the last one is repeated."""
        with self._lock:
            return self.script.popleft() if len(self.script) > 1 else self.script[0]

    def then(self, *answers: Answer) -> None:
        with self._lock:
            self.script = deque(answers)
        self.left.clear()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore connections that the client closed early."""

    def close(self) -> None:
        self.closed.set()
        self.shutdown()
        self.server_close()


@contextmanager
def scripted() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


class ScriptedPeer:
    """`memservice.testing.llm.Peer` for a protocol."""

    def __init__(
        self,
        server: Server,
        wire: Wire,
        model: LanguageModel,
        *,
        cannot: Sequence[str] = (),
        counts_cache: bool = True,
    ) -> None:
        self.model, self.key = model, KEY
        self.cannot, self.counts_cache = frozenset(cannot), counts_cache
        self._server, self._wire = server, wire
        self.says(Say())

    def says(self, *answers: Say) -> None:
        self._server.then(*(self._saying(say) for say in answers))

    def echoes(self) -> None:
        def answer(handler: Handler, request: Request) -> None:
            self._saying(Say((self._wire.last_text(request),)))(handler, request)

        self._server.then(answer)

    def fails(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        def answer(handler: Handler, request: Request) -> None:
            quoted = f"wrong: key {KEY}, request {request.raw.decode()}"
            handler.json(self._wire.error(status, quoted), status, headers)

        self._server.then(answer)

    def misbehaves(self, fault: Fault) -> None:
        self._server.then(self._fault(fault))

    def received(self) -> Sequence[str]:
        return [json.dumps(request.body, ensure_ascii=False) for request in self._server.requests]

    def was_left(self, timeout: float) -> bool:
        return self._server.left.wait(timeout)

    def _saying(self, say: Say) -> Answer:
        def answer(handler: Handler, request: Request) -> None:
            if not self._wire.is_stream(request):
                handler.json(self._wire.whole(say))
                return
            handler.begin_chunks("text/event-stream; charset=utf-8")
            for number, event in enumerate(self._wire.events(say)):
                if number == 1 and say.gate is not None and not _set_or_left(handler, say.gate):
                    return
                handler.chunk(event)
            handler.end_chunks()

        return answer

    def _fault(self, fault: Fault) -> Answer:
        def answer(handler: Handler, request: Request) -> None:
            streamed = self._wire.is_stream(request)
            kind = "text/event-stream" if streamed else "application/json"
            if fault == "hang":
                handler.wait_to_be_left()
            elif fault == "drip head":
                drip_head(handler, interval=0.05)
            elif fault == "html":
                handler.whole(b"<!doctype html><title>Sign in</title>", "text/html; charset=utf-8")
            elif fault == "garbage":
                handler.whole(
                    b'data: {"choices": [{"delta"\n\n' if streamed else b'{"choices": [', kind
                )
            elif fault == "refuse":
                if not streamed:
                    handler.json(self._wire.refusal())
                    return
                handler.whole(b"".join(self._wire.refusal_events()), kind)
            else:
                handler.begin_chunks(kind)
                self._broken(fault, handler, streamed)

        return answer

    def _broken(self, fault: Fault, handler: Handler, streamed: bool) -> None:
        """Answer with a valid beginning and a broken end."""
        begun = (
            b"".join(list(self._wire.events(Say(("one " * 50, "two", "three"))))[:2])
            if streamed
            else b'{"half": "of an ans'
        )
        if fault == "drip":
            while not handler.server.closed.wait(0.05):
                handler.chunk(b":" if streamed else b" ")
        elif fault == "huge":
            filler = b": nothing\n" * 6_000 if streamed else b" " * 65_536
            while not handler.server.closed.is_set():
                handler.chunk(filler)
        elif fault == "error in stream":
            handler.chunk(begun + self._wire.error_event())
            handler.end_chunks()
        else:
            handler.chunk(begun)
            handler.close_connection = True


def drip_head(handler: Handler, interval: float) -> None:
    """Send a head that never ends, a byte at a time."""
    head = itertools.chain(b"HTTP/1.1 200 OK\r\n", itertools.cycle(b"X-Long: head\r\n"))
    while not handler.server.closed.wait(interval):
        handler.wfile.write(bytes([next(head)]))


def _set_or_left(handler: Handler, gate: threading.Event) -> bool:
    """Wait for the gate; False if the other side disconnected before, or nobody opens the gate."""
    import select

    for _ in range(400):
        if gate.wait(0.05):
            return True
        if select.select([handler.connection], [], [], 0)[0]:
            handler.wait_to_be_left()
            return False
    handler.close_connection = True
    return False


def sse(value: Any, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
