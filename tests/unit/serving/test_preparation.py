"""Preparing the store in a process that ends afterwards."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import pytest

from memservice.serving.preparation import in_child


def test_the_lines_come_from_a_process_that_leaves_nothing() -> None:
    def prepare() -> list[str]:
        import colorsys  # noqa: F401 - a module that nothing else imports

        return [str(os.getpid()), "é\n"]

    sys.modules.pop("colorsys", None)
    lines = in_child(prepare)
    assert lines is not None
    assert lines[0] != str(os.getpid())
    assert lines[1] == "é\n"
    assert "colorsys" not in sys.modules
    with pytest.raises(ChildProcessError):
        os.waitpid(int(lines[0]), 0)


def test_what_fails_there_is_reported_there() -> None:
    def prepare() -> Sequence[str]:
        raise RuntimeError

    def prepare_or_exit() -> Sequence[str]:
        try:
            return prepare()
        except RuntimeError:
            os._exit(1)  # what the command does after it has printed the message

    assert in_child(prepare_or_exit) is None


def test_a_process_that_is_killed_has_prepared_nothing() -> None:
    def prepare() -> Sequence[str]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    assert in_child(prepare) is None
