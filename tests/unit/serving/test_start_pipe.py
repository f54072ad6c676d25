"""The processes of the server wait until the supervisor has opened the store."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from gunicorn.errors import HaltServer

from memservice.serving import gunicorn_config, start_pipe
from memservice.serving.start_pipe import StartPipe


def test_processes_wait_until_the_pipe_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = StartPipe()
    inherited = os.dup(pipe.read_end)
    monkeypatch.setenv(start_pipe.VARIABLE, str(inherited))
    process = threading.Thread(target=start_pipe.wait, daemon=True)
    process.start()
    process.join(0.1)
    assert process.is_alive()
    pipe.close()
    process.join(20)
    assert not process.is_alive()
    start_pipe.wait()  # that of a process that is started later
    pipe.close()
    os.close(inherited)


def test_closing_leaves_no_end_open(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = os.pipe()
    monkeypatch.setattr(os, "pipe", lambda: ends)
    StartPipe().close()
    for end in ends:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(end)


def test_without_a_supervisor_nobody_waits() -> None:
    start_pipe.wait()


def test_a_second_process_that_cannot_start_does_not_interrupt_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reaped: list[str] = []

    def reap_workers() -> None:
        reaped.append("a worker")
        raise HaltServer("App failed to load.", 4)

    # Both are for processes that fork.
    monkeypatch.setattr(gunicorn_config, "importing", nullcontext)
    monkeypatch.setattr(gunicorn_config, "preload", lambda: None)
    server = SimpleNamespace(reap_workers=reap_workers)
    gunicorn_config.on_starting(server)
    with pytest.raises(HaltServer):
        server.reap_workers()
    server.reap_workers()
    assert len(reaped) == 2
