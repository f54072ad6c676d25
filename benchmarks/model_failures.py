"""What failing language models cost: `python -m benchmarks.model_failures [--quick]`.

Each row runs one scenario against a model server on loopback that misbehaves, and prints what is
required and what was measured. The status is 1 if a row does not meet its requirement. `--quick`
runs smaller scenarios, and says so.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.installation import (
    PRINCIPAL,
    WORKSPACE,
    Installation,
    documented,
    installation,
    seconds_until,
)
from memservice.pipeline.derive.attribution import attributed
from memservice.services import deletion, dream_changes, dream_descriptions
from memservice.services.tasks import kinds
from memservice.spi.llm import ToolCall
from memservice.testing.badmodel import DRAFT, BadModel, ModelRequest, bad_model, good_answer
from memservice.testing.confirmations import CONFIRMED, NOT_CONFIRMED, Dialogue
from memservice.testing.llm import Say
from memservice.testing.model_protocols import OpenAiWire
from memservice.testing.model_server import Handler, Request, scripted

ROOT = Path(__file__).resolve().parents[1]
CHAT = f"/v3/workspaces/{WORKSPACE}/peers/alice/chat"
QUESTION = {"query": "What does alice keep?"}
NOTICE = "X-Memservice-Notice"
LEVELS = ("minimal", "low", "medium", "high", "max")
UNCLEAN = (
    "think",
    "think, empty list inside",
    "trailing comma",
    "single quotes",
    "string ids",
    "list of strings",
    "missing messages",
)
"""Behaviours of `memservice.testing.badmodel`: ways to write JSON that is not clean."""
MAX_SLOWNESS = 1.0
"""How many times longer than required a scenario may take. Tests, which run on busy machines, set
it; it stays below what a call that blocks others would cost."""


@dataclass(frozen=True, slots=True)
class Row:
    behaviour: str
    required: str
    measured: str
    is_met: bool


Scenario = Callable[[bool], Row]
"""Runs with the argument `quick`."""


def at(model: BadModel) -> str:
    return f"{model.url}/v1"


def slow_call(quick: bool) -> Row:
    seconds = 15.0
    measured = threading.Event()

    def answer(request: ModelRequest) -> Say:
        if "A slow one." in request.text:
            measured.wait(seconds)
        return good_answer(request)

    with bad_model("ok", answer) as model, installation(at(model)) as store:
        store.say("gone", "carol", "I sing.")
        store.work()
        model.requests.clear()
        with store.worker():
            store.say("slow", "bob", "A slow one.")
            seconds_until(lambda: model.requests)
            store.say("free", "alice", "I like tea.")
            derived = seconds_until(lambda: store.live("alice"))
            deletion.delete_session(store.rt, PRINCIPAL, WORKSPACE, "gone")
            erased = seconds_until(
                lambda: {task.state for task in store.tasks(kinds.ERASE)} == {"done"}
            )
            measured.set()
    return Row(
        f"one call takes {seconds:g} s",
        "another session's message and a deletion: at most 2 s each",
        f"message {derived:.2f} s, deletion {erased:.2f} s",
        max(derived, erased) <= 2 * MAX_SLOWNESS,
    )


def provider_down(quick: bool) -> Row:
    sessions, each = (2, 6) if quick else (6, 10)
    number = sessions * each
    with bad_model("500") as model, installation(at(model)) as store:
        for session in range(sessions):
            contents = [f"I like tea number {n}." for n in range(each)]
            store.say(f"s{session}", "alice", *contents)
        for _ in range(120):
            store.work()
            store.clock.advance(5)
        calls = len(model.requests)
        waiting = _states(store).count("pending")
        model.behaviour = "ok"
        recovered = store.clock.now
        for _ in range(12):
            store.work()
            if set(_states(store)) == {"done"}:
                break
            store.clock.advance(5)
        seconds = (store.clock.now - recovered).total_seconds()
        states = _states(store)
    done, failed = states.count("done"), states.count("failed")
    return Row(
        f"provider down for ten minutes, {number} messages (scripted clock)",
        "0 failed, at most 12 calls, all derived within 60 s of recovery",
        f"{failed} failed, {waiting} waited, {calls} calls, {done} derived within {seconds:g} s",
        (failed, waiting, done) == (0, number, number) and calls <= 12 and seconds <= 60,
    )


def _states(store: Installation) -> list[str]:
    return [task.state for task in store.tasks(kinds.REPRESENTATION)]


def bad_dream(quick: bool) -> Row:
    number = 30
    alone, merged = 2, 4

    def steps(ids: Sequence[str]) -> list[dict[str, str]]:
        if hides_all:
            return [{"id": one, "reason": "hidden"} for one in ids]
        return [
            *({"id": one, "reason": "wrong"} for one in ids[:alone]),
            *(
                {"id": one, "replaced_by": ids[-1], "reason": "the same"}
                for one in ids[alone : alone + merged]
            ),
        ]

    def answer(request: ModelRequest) -> Say:
        if "supersede_conclusions" in request.tools and not request.has_results:
            ids = list(dict.fromkeys(re.findall(r"^\[([^\]\s]+)\]", request.text, re.M)))
            call = ToolCall("call-1", "supersede_conclusions", {"conclusions": steps(ids)})
            return Say((), (call,), "tool_calls")
        return Say(("DONE",)) if request.tools else good_answer(request)

    with bad_model("ok", answer) as model, installation(at(model)) as store:
        for n in range(number):
            store.clock.advance(60)
            store.say("s", "alice", f"I like tea number {n}.")
        store.work()
        before = sorted(store.live("alice"))
        hides_all = True
        dream = store.dream("alice")
        after_held = len(store.live("alice"))
        hides_all = False
        task = store.dream("alice")
        superseded = len(before) - len(store.live("alice"))
        changes = dream_descriptions.show(store.rt, PRINCIPAL, WORKSPACE, task.uid).changes
        without = sum(change.successor is None for change in changes)
        dream_changes.undo(store.rt, PRINCIPAL, WORKSPACE, task.uid)
        restored = sorted(store.live("alice")) == before
    is_met = (len(before), dream.state, after_held, restored) == (number, "held", number, True)
    return Row(
        f"a dream supersedes everything, another one a fifth, of {number} conclusions",
        "at most max(5, 20 %) superseded, at most 2 without a successor; undo restores all",
        f"first: {dream.state}, {number - after_held} superseded; second: {superseded} superseded, "
        f"{without} without a successor, {'all' if restored else 'not all'} restored",
        is_met and 0 < superseded <= max(5, number // 5) and without <= 2,
    )


def unclean_json(quick: bool) -> Row:
    expected = ["alice: I keep bees.", "alice: I live in Oslo."]
    recovered, drafts = 0, 0
    for behaviour in UNCLEAN:
        with bad_model(behaviour) as model, installation(at(model)) as store:
            store.say("s", "alice", "I keep bees. I live in Oslo.")
            store.work()
            contents = sorted(store.live("alice"))
        recovered += contents == expected
        drafts += any(DRAFT in content for content in contents)
    return Row(
        f"{len(UNCLEAN)} kinds of unclean JSON",
        f"{len(UNCLEAN)} recovered, 0 drafts stored",
        f"{recovered} recovered, {drafts} drafts stored",
        (recovered, drafts) == (len(UNCLEAN), 0),
    )


def long_message(quick: bool) -> Row:
    sentence = "On day {} I walked to the old mill by the river and counted {} herons there. "
    paragraphs = 10 if quick else 29
    sentences = [[sentence.format(n * 10 + m, m + 2) for m in range(10)] for n in range(paragraphs)]
    text = "\n\n".join("".join(paragraph).strip() for paragraph in sentences)
    with bad_model("obeys max_tokens") as model, installation(at(model)) as store:
        store.say("s", "alice", text)
        store.work()
        contents = {" ".join(content.split()) for content in store.live("alice")}
        calls = len(model.requests)
    whole = {f"alice: {one.strip()}" for paragraph in sentences for one in paragraph}
    return Row(
        f"a message of {len(text):,} characters, a model that obeys its limit of tokens",
        "derived in parts, all statements kept, at most 15 calls",
        f"{len(contents & whole)} of {len(whole)} statements in {calls} calls",
        contents == whole and 1 < calls <= 15,
    )


def confirmations(quick: bool) -> Row:
    remaining = sum(map(_is_kept, CONFIRMED))
    wrong = sum(map(_is_kept, NOT_CONFIRMED))
    return Row(
        f"{len(CONFIRMED)} dialogues of confirmations, {len(NOT_CONFIRMED)} that confirm nothing",
        "at least 38 kept, 0 misattributed",
        f"{remaining} kept, {wrong} misattributed",
        remaining >= 38 and wrong == 0,
    )


def _is_kept(dialogue: Dialogue) -> bool:
    window = dialogue.messages()
    remaining, _ = attributed([dialogue.derived(window)], window[-1:], window, ["alice"])
    return bool(remaining)


def ollama(quick: bool) -> Row:
    with TemporaryDirectory() as folder, bad_model() as model:
        config = Path(folder) / "ollama.toml"
        config.write_text(documented(ROOT, "ollama.toml"), encoding="utf-8")
        with installation(at(model), config) as store:
            store.say("s", "alice", *(f"I keep bees, hive number {n}." for n in range(60)))
            store.work()
            store.dream("alice")
            done = [
                kind
                for kind in (kinds.REPRESENTATION, kinds.SUMMARY, kinds.DREAM)
                if {task.state for task in store.tasks(kind)} == {"done"}
            ]
            done += [level for level in LEVELS if _chat(store, reasoning_level=level).is_by_model]
        models = {str(request.body["model"]) for request in model.requests}
    return Row(
        "the block for Ollama in docs/models.md",
        "derives, summarises, dreams and answers at 5 levels, with the one model that it names",
        f"{len(done)} of 8 tasks; asked for {', '.join(sorted(models))}",
        len(done) == 8 and len(models) == 1,
    )


def without_tools(quick: bool) -> Row:
    with bad_model("no tools") as model, installation(at(model)) as store:
        store.say("s", "alice", "I keep bees.", "I live in Oslo.")
        store.work()
        chat = _chat(store)
        dream = store.dream("alice")
    created = dream.outcome.get("created", 0)
    return Row(
        "a model without tools",
        "answers and dreams",
        f"{'answered' if chat.is_by_model else 'not answered'}; dream {dream.state}, "
        f"{created} created",
        chat.is_by_model and dream.state == "done" and created > 0,
    )


def unreachable(quick: bool) -> Row:
    deadline = 1.0
    codes: list[int] = []
    with bad_model() as model:
        settings = {
            "DIALECTIC_DEADLINE_SECONDS": str(deadline),
            "LLM_MAX_ATTEMPTS": "1",
        }
        with installation(at(model), None, **settings) as store:
            store.say("s", "alice", "I keep bees.")
            store.work()
            model.behaviour = "hang"
            chat = _chat(store)
        with installation(at(model), None, DIALECTIC_ON_FAILURE="error", **settings) as store:
            model.behaviour = "ok"
            store.say("s", "alice", "I keep bees.")
            store.work()
            for model.behaviour in ("500", "429"):
                answer = _chat(store)
                codes.append(answer.status if "status" in answer.text else 0)
    is_extractive = chat.status == 200 and bool(chat.notice) and "keep bees" in chat.text
    return Row(
        "the model cannot be reached during chat",
        f"extractive answer with a notice at the deadline ({deadline:g} s, at most 0.5 s later), "
        "or 502 and 503 with the cause",
        f"{'extractive' if is_extractive else chat.status} with notice after {chat.seconds:.2f} s; "
        f"{', '.join(map(str, codes))}",
        is_extractive and chat.seconds <= (deadline + 0.5) * MAX_SLOWNESS and codes == [502, 503],
    )


def first_byte(quick: bool) -> Row:
    wire, first, pause = OpenAiWire(), 0.3, 0.03
    say = Say(("Alice keeps bees in the garden behind her house. ",) * 20)
    has_first_byte = threading.Event()
    is_early: list[bool] = []

    def answer(handler: Handler, request: Request) -> None:
        if not wire.is_stream(request):
            time.sleep(first + pause * len(say.pieces))
            handler.json(wire.whole(say))
            return
        handler.begin_chunks("text/event-stream")
        time.sleep(first)
        events = list(wire.events(say))
        for number, event in enumerate(events):
            if number == len(events) // 2:
                is_early.append(has_first_byte.wait(10.0))
            handler.chunk(event)
            time.sleep(pause)
        handler.end_chunks()

    with scripted() as server:
        server.then(answer)
        with installation(server.url, DERIVER_ENABLED="false") as store:
            store.say("s", "alice", "I keep bees.")
            plain = _chat(store)
            plain_calls = len(server.requests)
            client = store.client()
            began = time.monotonic()
            response = client.post(CHAT, json=QUESTION | {"stream": True})
            pieces = iter(response.response)
            next(pieces)
            seconds = time.monotonic() - began
            has_first_byte.set()
            for _ in pieces:
                pass
            calls = len(server.requests) - plain_calls
    return Row(
        "a stream beside a plain answer",
        "the first byte comes before the model has sent half of its answer, 1 call each",
        f"first byte {seconds:.2f} s, plain answer {plain.seconds:.2f} s; "
        f"{calls} and {plain_calls} calls",
        is_early == [True] and (calls, plain_calls) == (1, 1),
    )


@dataclass(frozen=True, slots=True)
class Chat:
    status: int
    text: str
    notice: str | None
    seconds: float

    @property
    def is_by_model(self) -> bool:
        return self.status == 200 and self.notice is None and "bees" in self.text


def _chat(store: Installation, **options: Any) -> Chat:
    client = store.client()
    began = time.monotonic()
    response = client.post(CHAT, json=QUESTION | options)
    seconds = time.monotonic() - began
    return Chat(response.status_code, response.text, response.headers.get(NOTICE), seconds)


SCENARIOS: tuple[Scenario, ...] = (
    slow_call,
    provider_down,
    bad_dream,
    unclean_json,
    long_message,
    confirmations,
    ollama,
    without_tools,
    unreachable,
    first_byte,
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_failures")
    parser.add_argument("--quick", action="store_true", help="run smaller scenarios")
    quick = parser.parse_args(arguments).quick
    print("| behaviour | required | measured | met |\n| --- | --- | --- | --- |", flush=True)
    rows = []
    for scenario in SCENARIOS:
        row = scenario(quick)
        rows.append(row)
        cells = (row.behaviour, row.required, row.measured, "yes" if row.is_met else "NO")
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
