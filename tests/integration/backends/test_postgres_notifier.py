"""The connection that notifies other processes of commits."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator

import pytest

from memservice_postgres.connections import config_of
from memservice_postgres.notifier import Notifier
from support.stores.postgres_server import drop_database
from support.stores.postgres_store import new_store


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    uri = new_store()
    yield uri
    drop_database(uri)


def _notifier(uri: str, notified: threading.Event) -> Notifier:
    return Notifier(config_of(uri), notified.set, logging.getLogger("test"))


def test_another_process_is_notified(uri: str) -> None:
    notified = threading.Event()
    sending, receiving = _notifier(uri, threading.Event()), _notifier(uri, notified)
    try:
        receiving.listen()
        assert notified.wait(10)  # there may have been commits before it listened
        notified.clear()
        sending.notify()
        assert notified.wait(10)
    finally:
        sending.close()
        receiving.close()


def test_a_closed_notifier_keeps_no_file_open(uri: str) -> None:
    notifier = _notifier(uri, threading.Event())
    before = len(os.listdir("/proc/self/fd"))
    notifier.notify()
    notifier.close()
    for _ in range(10):
        notifier.notify()
        notifier.listen()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert notifier._thread is not None
    assert not notifier._thread.is_alive()
