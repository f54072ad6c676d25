"""What tests of a process share is as it was after each of them."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from typing import Any

import pytest

from support.process_state import changes, process_state, restored_process


def change_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    before = process_state()
    monkeypatch.chdir(folder)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    logging.logThreads = logging.logMultiprocessing = False
    for name in ("", "memservice", "rq.worker", "rq.job"):
        logging.getLogger(name).setLevel(33)
    logging.getLogger().addHandler(logging.NullHandler())
    return changes(before, process_state())


def test_changes_are_named_and_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, handlers = process_state(), list(logging.getLogger().handlers)
    with restored_process():
        changed = change_all(tmp_path, monkeypatch)
    monkeypatch.undo()
    assert len(changed) == len(before)
    assert f"the working directory is {tmp_path}, it was " in changed[0]
    assert changes(before, process_state()) == []
    assert logging.getLogger().handlers == handlers


def test_a_test_that_leaves_a_change_fails(request: pytest.FixtureRequest, root: Path) -> None:
    hooks: Any = request.config.pluginmanager.get_plugin(str(root / "tests/conftest.py"))
    with restored_process():
        end_of_test = hooks.pytest_runtest_teardown(request.node)
        next(end_of_test)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with pytest.raises(pytest.fail.Exception, match="process_as_before: the handler of SIGT"):
            next(end_of_test)
