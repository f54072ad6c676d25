"""Workers that are killed while a model is asked, over a real connection: nothing is lost, and
nothing is there twice."""

from __future__ import annotations

import json
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from redis import Redis

from memservice.reasoning.prompts import consolidate, derive
from memservice.services import conclusions, deletion, dreams, messages
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft
from memservice.services.dreams import DreamRequest
from memservice.services.messages import Draft
from memservice.testing.llm import Say
from memservice.testing.model_server import KEY, Handler, Request, Server, scripted
from support.processes.processes import below, eventually, send
from support.redis_server import RedisServer
from support.rq.scripted_model import ScriptedModelServer, calling
from support.rq.workers import Delivery

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]

Deliver = Callable[..., Delivery]
PRINCIPAL = Principal(admin=True)

OSLO, BERGEN, BOAT = "Alice lives in Oslo.", "Alice lives in Bergen.", "Alice owns a boat."
COAST, SETTLES = "Alice lives on the west coast.", "Alice moves every few years."


@pytest.fixture
def server() -> Iterator[Server]:
    with scripted() as running:
        yield running


def all_of(connection: Any) -> bytes:
    """Everything that Redis holds, jobs unpacked. The client's types are for both of its kinds, so
    they are of no use here."""
    read: dict[bytes, Callable[[bytes], Any]] = {
        b"string": connection.get,
        b"hash": lambda key: [part for pair in connection.hgetall(key).items() for part in pair],
        b"list": lambda key: connection.lrange(key, 0, -1),
        b"set": connection.smembers,
        b"zset": lambda key: connection.zrange(key, 0, -1),
    }
    parts: list[object] = []
    for key in connection.scan_iter("*"):
        kind = connection.type(key)
        if kind in read:  # else it is gone already
            content = read[kind](key)
            values = [content] if isinstance(content, bytes) else list(content or ())
            parts += [key, values, [unpacked(value) for value in values]]
    return repr(parts).encode()


def unpacked(value: bytes) -> bytes:
    try:
        return zlib.decompress(value)
    except zlib.error:
        return b""


def kill_the_worker(delivery: Delivery, pool: int) -> None:
    (child,) = below(pool)
    send(child, signal.SIGKILL)


def test_deriving_interrupted_during_a_call_is_done_once(deliver: Deliver, server: Server) -> None:
    def reply(role: str, is_told: bool) -> Say:
        assert role.startswith(derive.PROMPT.text)
        answer = {
            "statements": [
                {"content": "Alice keeps bees.", "messages": [1]},
                {"content": BOAT, "messages": [1]},
            ]
        }
        return Say((json.dumps(answer),))

    model = ScriptedModelServer(server, reply)
    delivery = deliver(**model.settings(KEY), PEER_CARD_REFRESH="false")
    model.cut(1)
    worker = delivery.worker("--num-workers", "1")
    delivery.say("s", "I keep bees, and I own a boat.")
    for number in (1, 0):
        eventually(model.cut_off.is_set, what="the model is asked")
        model.cut(number)
        kill_the_worker(delivery, worker.pid)
    delivery.derived("Alice keeps bees.", BOAT)
    assert delivery.rows("SELECT state, attempts FROM tasks WHERE kind = 'representation'") == [
        ("done", 0)
    ]
    assert delivery.rows("SELECT DISTINCT model, reasoner FROM conclusions") == [
        ("gpt-5.4-mini", "llm")
    ]
    assert KEY not in delivery.log()
    assert "bees" not in delivery.log()


def test_a_session_is_erased_while_the_only_worker_waits_on_a_model(
    deliver: Deliver, server: Server
) -> None:
    model = ScriptedModelServer(server, lambda role, has_result: Say(('{"statements": []}',)))
    delivery = deliver(**model.settings(KEY), DERIVER_FLUSH_ENABLED="true")
    model.cut(1)
    delivery.worker("--num-workers", "1")
    delivery.say("s", "I keep bees, and I own a boat.")
    eventually(model.cut_off.is_set, what="the model is asked")
    messages.create(delivery.rt, PRINCIPAL, "w", "gone", [Draft("Hello.", "bob")])
    deletion.delete_session(delivery.rt, PRINCIPAL, "w", "gone")
    eventually(
        lambda: delivery.rows("SELECT state FROM tasks WHERE kind = 'erase'") == [("done",)],
        what="the session is erased",
    )
    assert model.calls == 1


def test_completed_calls_are_in_the_ledger_after_a_second_sigterm(
    deliver: Deliver, server: Server
) -> None:
    """The call in progress is not, because its cost is unknown. No work is lost."""
    model = ScriptedModelServer(server, lambda role, has_result: Say(("DONE",)))
    delivery = deliver(**model.settings(KEY))
    delivery.say("s", "Hello.")
    conclusions.create(delivery.rt, PRINCIPAL, "w", [ConclusionDraft(BOAT, "alice", "alice")])
    assert dreams.schedule(delivery.rt, PRINCIPAL, "w", DreamRequest("alice", dreams.OMNI))
    model.cut(2)
    worker = delivery.worker("--queues", "dream", "--num-workers", "1")
    calls = "SELECT task, outcome FROM usage ORDER BY key"
    eventually(model.cut_off.is_set, what="the second phase asks")
    eventually(
        lambda: delivery.rows(calls) == [("dream.deduction", "success")],
        what="a call is noted soon, not at the end",
    )
    worker.terminate()
    time.sleep(0.5)
    worker.terminate()
    assert worker.wait(30) == 128 + signal.SIGTERM
    model.cut(0)
    assert delivery.worker("--queues", "dream", "--burst").wait(60) == 0, delivery.log(1)
    assert delivery.rows("SELECT state, attempts FROM tasks WHERE kind = 'dream'") == [("done", 0)]
    assert delivery.rows(calls) == [("dream.deduction", "success")] * 2 + [
        ("dream.induction", "success")
    ]


def test_redis_and_logs_contain_no_message_text_however_work_ends(
    deliver: Deliver, server: Server, own_redis: RedisServer
) -> None:
    """In hand, waiting, and failed with an answer that quotes everything."""
    own_redis.start()
    requests: list[Request] = []

    def quote(handler: Handler, request: Request) -> None:
        requests.append(request)
        body = {"error": {"message": f"{KEY} cannot do {request.raw.decode()}", "code": "marzipan"}}
        handler.json(body, 400)

    server.then(quote)
    delivery = deliver(
        REDIS_URL=own_redis.url,
        WORKER_MAX_ATTEMPTS="2",
        **ScriptedModelServer.settings_of(server, KEY),
    )
    with closing(Redis.from_url(own_redis.url)) as connection:
        delivery.say("s", "I live on marshmallows.")
        eventually(lambda: b"representation:" in all_of(connection), what="a job waits")
        values = all_of(connection)
        worker = delivery.worker("--num-workers", "1")
        eventually(
            lambda: (
                delivery.rows("SELECT state FROM tasks WHERE kind = 'representation'")
                == [("failed",)]
            ),
            what="it rests",
        )
        values += all_of(connection)
    assert any(b"marshmallows" in request.raw for request in requests)
    worker.terminate()
    assert worker.wait(30) == 0
    ((error,),) = delivery.rows("SELECT last_error FROM tasks WHERE kind = 'representation'")
    for text in (values.decode(errors="replace"), delivery.log(), error):
        assert "marshmallows" not in text
        assert KEY not in text
    assert "400" in error


@pytest.mark.parametrize(
    "cuts", [(3,), pytest.param((1, 2, 3, 4), marks=pytest.mark.heavy)], ids=["one", "every"]
)
def test_a_dream_interrupted_in_any_call_leaves_no_partial_result(
    deliver: Deliver, server: Server, cuts: tuple[int, ...]
) -> None:
    ids = {OSLO: "c1", BERGEN: "c2"}

    def reply(role: str, has_result: bool) -> Say:
        if has_result:
            return Say(("DONE",))
        if role.startswith(consolidate.DEDUCTION.text):
            conclusion = {"content": COAST, "level": "deductive", "source_ids": [ids[BERGEN]]}
            return Say(
                (),
                (
                    *calling("create_conclusions", conclusions=[conclusion]).tool_calls,
                    *calling(
                        "supersede_conclusions",
                        conclusions=[
                            {"id": ids[OSLO], "replaced_by": ids[BERGEN], "reason": "moved"}
                        ],
                    ).tool_calls,
                ),
                "tool_calls",
            )
        assert role.startswith(consolidate.INDUCTION.text)
        conclusion = {
            "content": SETTLES,
            "level": "inductive",
            "source_ids": [ids[OSLO], ids[BERGEN]],
            "pattern_type": "tendency",
        }
        return calling("create_conclusions", conclusions=[conclusion])

    model = ScriptedModelServer(server, reply)
    delivery = deliver(**model.settings(KEY))
    delivery.say("s", "Hello.")
    drafts = [ConclusionDraft(text, "alice", "alice") for text in (OSLO, BERGEN, BOAT)]
    conclusions.create(delivery.rt, PRINCIPAL, "w", drafts)
    assert dreams.schedule(delivery.rt, PRINCIPAL, "w", DreamRequest("alice", dreams.OMNI))
    before = delivery.rows("SELECT content, state, times_derived FROM conclusions ORDER BY key")
    model.cut(cuts[0])
    worker = delivery.worker("--queues", "dream", "--num-workers", "1")
    for number in (*cuts[1:], 0):
        eventually(model.cut_off.is_set, what="the model is asked")
        assert (
            delivery.rows("SELECT content, state, times_derived FROM conclusions ORDER BY key")
            == before
        ), "nothing is stored by halves"
        model.cut(number)
        kill_the_worker(delivery, worker.pid)
    eventually(
        lambda: (
            delivery.rows("SELECT state, attempts FROM tasks WHERE kind = 'dream'") == [("done", 0)]
        ),
        what="the dream is dreamt",
    )
    assert delivery.rows("SELECT content, level, state FROM conclusions ORDER BY key") == [
        (OSLO, "explicit", "superseded"),
        (BERGEN, "explicit", "live"),
        (BOAT, "explicit", "live"),
        (COAST, "deductive", "live"),
        (SETTLES, "inductive", "live"),
    ]
    assert model.calls == 4, "the last run asked each question once"
    eventually(
        lambda: delivery.rows("SELECT unit FROM leases") == [], what="the lease is given back"
    )
    assert "Traceback" not in delivery.log()
