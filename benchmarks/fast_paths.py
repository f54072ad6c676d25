"""What each fast path saves: `python -m benchmarks.fast_paths [--postgres URI]`.

The table of docs/decisions/fast-paths.md comes from here.

Each row measures the product's code and the plain way to do the same, in CPU microseconds of one
call. The best of several rounds counts, since other programs only ever make a round slower.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import struct
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import sqlalchemy as sa
from flask import Flask
from gunicorn.config import Config
from gunicorn.http.parser import RequestParser
from gunicorn.http.wsgi import Response, create
from marshmallow import Schema, fields, validate
from werkzeug.routing import Map, Rule

from memservice.api.encoding import encoder
from memservice.api.v3.schemas.messages import Message as MessageSchema
from memservice.api.v3.schemas.messages import MessageBatchCreate
from memservice.app import LateRule, create_app
from memservice.domain.json_bytes import encode, encode_plainly
from memservice.domain.records import Message
from memservice.domain.times import wire
from memservice.domain.values import check_json, loads
from memservice.serving.incoming import IncomingRequest
from memservice.serving.usual import Peer, UsualResponse, usual_request
from memservice.settings import load_settings
from memservice_postgres.reals import FloatArray
from memservice_sql.statements import Cursor, Slots, Statements
from memservice_sql.tables import messages

Work = Callable[[], Any]

ROUNDS = 7
ROUND_SECONDS = 0.15
NOW = datetime(2024, 3, 1, 12, tzinfo=UTC)


def microseconds(work: Work) -> float:
    """CPU time of one call: the best of `ROUNDS` rounds of about `ROUND_SECONDS`."""
    work()
    calls, spent = 1, 0.0
    while spent < ROUND_SECONDS / 4:
        calls *= 2
        spent = _cpu(work, calls)
    calls = max(1, int(calls * ROUND_SECONDS / spent))
    return min(_cpu(work, calls) for _ in range(ROUNDS)) / calls * 1e6


def _cpu(work: Work, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        work()
    return time.process_time() - start


def message(number: int) -> Message:
    return Message(
        key=number,
        uid=f"m{number:020}",
        workspace_key=1,
        session_key=1,
        author_key=1,
        session="session",
        author="alice",
        seq=number,
        content="The quick brown fox jumps over the lazy dog. " * 3,
        metadata={"source": "benchmark"},
        tokens=30,
        tokens_through=30 * number,
        created_at=NOW,
    )


def batch() -> dict[str, Any]:
    return {
        "messages": [
            {"peer_id": "alice", "content": message(n).content, "metadata": {"n": n}}
            for n in range(100)
        ]
    }


def _plain_json(raw: bytes) -> None:
    check_json(json.loads(raw), ("body",))


def json_bodies() -> tuple[str, Work, Work]:
    raw = json.dumps(batch()).encode()
    return "100 messages read from JSON", lambda: loads(raw), lambda: _plain_json(raw)


def json_body() -> tuple[str, Work, Work]:
    raw = json.dumps({"messages": batch()["messages"][:1]}).encode()
    return "1 message read from JSON", lambda: loads(raw), lambda: _plain_json(raw)


def encoding() -> tuple[str, Work, Work]:
    app, rows = Flask("plain"), [message(n) for n in range(100)]
    encode_row, schema, path = encoder(MessageSchema), MessageSchema(), {"workspace_id": "w"}

    def plain() -> None:
        with app.test_request_context("/"):
            from flask import request

            request.view_args = path
            schema.dump(rows, many=True)

    return "100 messages to dictionaries", lambda: [encode_row(row, path) for row in rows], plain


def schema_fields() -> tuple[str, Work, Work]:
    class PlainMessage(Schema):
        content = fields.String(required=True, validate=validate.Length(max=25_000))
        peer_id = fields.String(required=True)
        metadata = fields.Dict(allow_none=True, load_default=None)
        configuration = fields.Dict(allow_none=True, load_default=None)
        created_at = fields.AwareDateTime(allow_none=True, load_default=None)

    class PlainBatch(Schema):
        messages = fields.List(fields.Nested(PlainMessage), required=True)

    app, body = create_app(load_settings(environ={"DB_CONNECTION_URI": "memory://"})), batch()
    fast, plain = MessageBatchCreate(), PlainBatch()

    def ours() -> None:
        with app.app_context():
            fast.load(body)

    def theirs() -> None:
        with app.app_context():
            plain.load(body)

    return "100 messages validated", ours, theirs


def statements(folder: Path) -> tuple[str, Work, Work]:
    engine = sa.create_engine(f"sqlite:///{folder / 'fast.db'}")
    messages.metadata.create_all(engine)
    compiled = Statements(engine.dialect)
    connection = engine.connect()
    cursor = cast(Cursor, connection.connection.cursor())
    columns = [messages.c[name] for name in Message.__struct_fields__]

    def write(slots: Slots) -> sa.Select[*tuple[Any, ...]]:
        return sa.select(*columns).where(messages.c.uid == slots.take(messages.c.uid.type))

    def ours() -> None:
        compiled.get("message by uid", write).run(cursor, ["m1"]).fetchone()

    def plain() -> None:
        connection.execute(sa.select(*columns).where(messages.c.uid == "m1")).fetchone()

    return "a message selected by its id (SQLite)", ours, plain


def floats() -> tuple[str, Work, Work]:
    import numpy as np

    vector = np.random.default_rng(1).random(1536, dtype=np.float32)
    return (
        "a vector of 1,536 dimensions as a parameter",
        lambda: FloatArray(vector),
        lambda: "[" + ",".join(map(repr, vector.tolist())) + "]",
    )


def vectors_read() -> tuple[str, Work, Work]:
    import numpy as np

    from memservice_postgres.reals import vector_of

    vector = np.random.default_rng(1).random(1536, dtype=np.float32)
    sent = struct.pack(">HH", 1536, 0) + vector.astype(">f4").tobytes()
    text = "[" + ",".join(map(repr, vector.tolist())) + "]"
    return (
        "a vector of 1,536 dimensions as a result",
        lambda: vector_of(sent),
        lambda: np.array([float(part) for part in text[1:-1].split(",")], dtype=np.float32),
    )


def keys_sent() -> tuple[str, Work, Work]:
    from psycopg.adapt import PyFormat, Transformer
    from psycopg.types.array import ListDumper
    from psycopg.types.numeric import Int8Dumper

    from memservice_postgres.integers import IntegerListDumper

    keys = list(range(1_000, 1_400))
    transformer = Transformer()
    transformer.adapters.register_dumper(int, Int8Dumper)
    ours, plain = (
        kind(list, transformer).upgrade(keys, PyFormat.TEXT)
        for kind in (IntegerListDumper, ListDumper)
    )
    assert ours.dump(keys) == plain.dump(keys)
    return "400 keys as a parameter", lambda: ours.dump(keys), lambda: plain.dump(keys)


def integers_read() -> tuple[str, Work, Work]:
    import numpy as np
    from psycopg.adapt import Transformer
    from psycopg.pq import Format

    from memservice_postgres.integers import numbers

    sent = struct.pack(">5i", 1, 0, 20, 1_000, 1)
    sent += b"".join(struct.pack(">iq", 8, number) for number in range(1_000))
    transformer = Transformer()
    plain = transformer.get_loader(1016, Format.BINARY)
    assert numbers(sent).tolist() == plain.load(sent)
    return "1,000 integers as a result", lambda: numbers(sent), lambda: np.array(plain.load(sent))


def settings_groups() -> tuple[str, Work, Work]:
    names = [f"setting_{number}" for number in range(10)]

    def define(methods: bool) -> None:
        for number in range(30):
            dataclasses.make_dataclass(
                f"Group{number}",
                [(name, int, 0) for name in names],
                frozen=True,
                eq=methods,
                repr=methods,
            )

    return "30 groups of settings defined", lambda: define(False), lambda: define(True)


def url_builders() -> tuple[str, Work, Work]:
    paths = [rule.rule for rule in create_app(load_settings(environ={})).url_map.iter_rules()]

    def routes(rule: type[Rule]) -> Map:
        return Map([rule(path, endpoint=str(number)) for number, path in enumerate(paths)])

    return f"{len(paths)} routes made", partial(routes, LateRule), partial(routes, Rule)


def json_answers() -> tuple[str, Work, Work]:
    rows, path = [message(n) for n in range(50)], {"workspace_id": "w"}
    items = [encoder(MessageSchema, keep_times=True)(row, path) for row in rows]

    def plain() -> None:
        encode_plainly([{**item, "created_at": wire(item["created_at"])} for item in items])

    return "50 messages with their times written as JSON", lambda: encode(items), plain


class _Sink:
    """A client's connection that has one request, and forgets what is sent to it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.incoming = IncomingRequest(2**20)
        self.incoming.add(data)

    def recv(self, size: int) -> bytes:
        return self.data

    def sendall(self, data: bytes) -> None:
        pass


def usual_requests() -> tuple[str, Work, Work]:
    """Without sockets and threads."""
    fields = ("Host: localhost", "Accept: */*", "Accept-Encoding: gzip", "User-Agent: a/1")
    data = "\r\n".join(("GET /v3/workspaces/w/peers/p HTTP/1.1", *fields, "", "")).encode()
    cfg, client, server = Config(), ("127.0.0.1", 4242), ("127.0.0.1", 8000)
    cfg.set("forwarder_headers", "")
    answer = [("Content-Type", "application/json"), ("Content-Length", "2"), ("X-Id", "1")]
    peer = Peer(cfg, None, client, server)

    def respond(response: Response) -> None:
        response.start_response("200 OK", answer)
        response.write(b"{}")
        response.close()

    def ours() -> None:
        sink = _Sink(data)
        request = usual_request(sink.incoming, peer)
        respond(UsualResponse(request, sink, cfg))

    def plain() -> None:
        sink = _Sink(data)
        request = next(RequestParser(cfg, sink, client))
        respond(create(request, sink, client, server, cfg)[0])

    return "a request read, and its response written", ours, plain


def commands(uri: str) -> tuple[str, Work, Work]:
    from memservice_postgres.connections import Driver, execute_directly

    driver = Driver.connect(uri, autocommit=True)
    begin = b"BEGIN READ ONLY; SET LOCAL statement_timeout = 5000"

    def ours() -> None:
        execute_directly(driver, begin)
        execute_directly(driver, b"COMMIT")

    def plain() -> None:
        driver.execute("BEGIN READ ONLY")
        driver.execute("SET LOCAL statement_timeout = 5000")
        driver.execute("COMMIT")

    return "an empty transaction with its settings (client only)", ours, plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postgres", metavar="URI", help="measure transactions on this database")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        cases = {
            "json-bodies": json_bodies(),
            "json-bodies (1)": json_body(),
            "encoding": encoding(),
            "fields": schema_fields(),
            "statements": statements(Path(folder)),
            "floats": floats(),
            "floats (read)": vectors_read(),
            "integers": keys_sent(),
            "integers (read)": integers_read(),
            "settings-groups": settings_groups(),
            "url-builders": url_builders(),
            "json-answers": json_answers(),
            "usual-requests": usual_requests(),
        }
        if arguments.postgres:
            cases["commands"] = commands(arguments.postgres)
        print("| fast path | what | ours, µs | plain, µs | plain / ours |")
        print("| --- | --- | --: | --: | --: |")
        for name, (what, fast, plain) in cases.items():
            ours, theirs = microseconds(fast), microseconds(plain)
            print(f"| {name} | {what} | {ours:,.1f} | {theirs:,.1f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
