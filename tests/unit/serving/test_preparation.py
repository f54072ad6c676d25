"""Preparing the store in a process that ends afterwards."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import pytest

from memservice.serving.preparation import Preparation


def test_the_lines_come_from_a_process_that_leaves_nothing() -> None:
    def prepare() -> list[str]:
        import colorsys  # noqa: F401 - a module that nothing else imports

        return [str(os.getpid()), "é\n"]

    sys.modules.pop("colorsys", None)
    lines = Preparation(prepare).lines()
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

    assert Preparation(prepare_or_exit).lines() is None


def test_a_process_that_is_killed_has_prepared_nothing() -> None:
    def prepare() -> Sequence[str]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    assert Preparation(prepare).lines() is None


def test_it_is_prepared_while_the_caller_goes_on() -> None:
    read_end, write_end = os.pipe()

    def prepare() -> list[str]:
        return [os.read(read_end, 1).decode()]

    preparation = Preparation(prepare)
    os.write(write_end, b"!")
    assert preparation.lines() == ["!"]
    os.close(read_end)
    os.close(write_end)
