"""When a child that died is replaced."""

from __future__ import annotations

from memservice.serving.children import FIRST_PAUSE, MAX_PAUSE, STEADY_SECONDS, RestartPause


def test_the_pause_doubles_while_children_end_early() -> None:
    pause = RestartPause()
    assert [pause.after(1.0) for _ in range(8)] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert MAX_PAUSE == 30.0


def test_a_child_that_ran_long_is_restarted_soon() -> None:
    pause = RestartPause()
    pause.after(1.0)
    pause.after(1.0)
    assert pause.after(STEADY_SECONDS + 1) == FIRST_PAUSE
    assert pause.after(1.0) == 2 * FIRST_PAUSE
