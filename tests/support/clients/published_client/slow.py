"""The client and a server that takes its time:
`python -m support.clients.published_client.slow URL FOLDER`.

The server is that of `e2e.test_streaming`: its answer to the path of a file is "first", and when
the file is there " and second"; it has room for one such answer. Whatever is not as expected ends
this with an error.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import honcho as client  # type: ignore[import-not-found]  # installed in the client's own environment only
import httpx

from support.clients.published_client.harness import PATIENCE, Caller

T = TypeVar("T")
WHOLE = "first and second"
PATIENT = 30
"""Tries, each after the time that the server names."""


class Slow:
    def __init__(self, url: str, folder: Path, asynchronous: bool) -> None:
        self.c = Caller(url, asynchronous)
        self._url = url
        self._names = iter(
            folder / f"{'async' if asynchronous else 'sync'}-{number}" for number in range(100)
        )
        self.there = self.new()
        self.there.touch()

    def new(self) -> Path:
        """The path of a file that is not there."""
        return next(self._names)

    async def alice(self, max_retries: int = 0, **further: Any) -> Any:
        honcho = client.Honcho(
            base_url=self._url, workspace_id="w", max_retries=max_retries, timeout=60.0, **further
        )
        return await self.c(honcho).peer("alice")

    async def free(self) -> None:
        """Until there is room again."""
        assert await self.c(await self.alice(PATIENT)).chat(str(self.there)) == WHOLE

    async def with_room(self, call: Callable[[], Awaitable[T]]) -> T:
        """What a call gives as soon as there is room for it: that of an answer before is free a
        moment after that was read."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await call()
            except client.ServerError as error:
                if error.status != 503 or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.05)

    async def streamed(self, question: str, **options: Any) -> tuple[Any, str]:
        """An answer in pieces, and the first of them."""
        alice = await self.alice()

        async def begun() -> tuple[Any, str]:
            stream = await self.c(alice).chat_stream(question, **options)
            return stream, await self.next(stream)

        return await self.with_room(begun)

    async def next(self, stream: Any) -> str:
        piece: str = await anext(stream) if self.c.asynchronous else next(stream)
        return piece


async def pieces_come_as_they_are_made(s: Slow) -> None:
    mark = s.new()
    stream, first = await s.streamed(str(mark))
    assert first == "first"
    assert (mark.exists(), stream.is_complete) == (False, False)
    mark.touch()
    assert await s.c.every(stream) == [" and second"]
    assert (stream.is_complete, stream.get_final_response()) == (True, {"content": WHOLE})


async def a_broken_answer_does_not_look_complete(s: Slow) -> None:
    stream, first = await s.streamed("fail", include_evidence=True)
    pieces = [first]
    broken: Exception | None = None
    try:
        while True:
            pieces.append(await s.next(stream))
    except (StopIteration, StopAsyncIteration):
        pass
    except (httpx.TransportError, client.HonchoError) as error:
        broken = error
    assert broken is not None, "it looks complete"
    assert (pieces, stream.is_complete, stream.evidence) == (["first"], False, None)


async def who_finds_no_room_is_told_so_and_tries_again(s: Slow) -> None:
    mark = s.new()
    stream, _ = await s.streamed(str(mark))
    impatient = await s.alice()
    for call in (s.c(impatient).chat(str(s.there)), s.c(impatient).chat_stream(str(s.there))):
        error = await s.c.raises("ServerError", _begun(s, call))
        assert (error.status, "try again" in error.message) == (503, True)
    refused = threading.Event()

    def note_answer(answer: httpx.Response) -> None:
        if answer.status_code == 503:
            refused.set()

    # Only the plain face takes an HTTP client, whose answers can be looked at.
    watched = {"http_client": httpx.Client(event_hooks={"response": [note_answer]})}
    patient = await s.alice(PATIENT, **watched)
    question = asyncio.create_task(asyncio.to_thread(patient.chat, str(s.there)))
    await s.c.until(lambda: _is(refused))
    mark.touch()
    assert await s.c.every(stream) == [" and second"]
    assert await question == WHOLE
    watched["http_client"].close()


async def who_does_not_wait_leaves_room(s: Slow) -> None:
    mark = s.new()
    alice = await s.alice()
    try:
        await s.with_room(lambda: s.c(alice).chat(str(mark), timeout=0.5))
    except client.TimeoutError:
        pass
    else:
        raise AssertionError("it waited")
    mark.touch()
    await s.free()
    mark = s.new()
    stream, _ = await s.streamed(str(mark))
    del stream
    mark.touch()
    await s.free()


async def _is(event: threading.Event) -> bool:
    return event.is_set()


async def _begun(s: Slow, call: Any) -> Any:
    """The answer; of a stream its first piece, for the request is made with it."""
    answer = await call
    return answer if isinstance(answer, str) else await s.next(answer)


async def run(url: str, folder: Path) -> None:
    for asynchronous in (False, True):
        s = Slow(url, folder, asynchronous)
        for scenario in (
            pieces_come_as_they_are_made,
            a_broken_answer_does_not_look_complete,
            who_finds_no_room_is_told_so_and_tries_again,
            who_does_not_wait_leaves_room,
        ):
            await s.free()
            await asyncio.wait_for(scenario(s), 120)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], Path(sys.argv[2])))
    print(json.dumps("as expected"))
