"""What the processes of a test run tell the one that reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def needed(event: str, content: dict[str, Any], *, is_verbose: bool) -> bool:
    """Whether an event says anything. A report of a setup or teardown that passed without output
    does not, and only a verbose run prints which test begins."""
    if event in ("logstart", "logfinish"):
        return is_verbose
    if event != "testreport":
        return True
    data = content["data"]
    return bool(data["when"] == "call" or data["outcome"] != "passed" or data["sections"])


def send_needed_reports(config: pytest.Config) -> None:
    """In a process of pytest-xdist, leave out the events that say nothing, which are four of five.
    To write, send and read them takes more than a millisecond for each test. Those who ask how long
    setups take, or for a file of results, get all of them."""
    if config.option.durations is not None or config.option.xmlpath:
        return
    from xdist.remote import WorkerInteractor  # type: ignore[import-untyped]

    send = WorkerInteractor.sendevent
    is_verbose = config.option.verbose > 0

    def send_if_needed(interactor: object, name: str, **content: Any) -> None:
        if needed(name, content, is_verbose=is_verbose):
            send(interactor, name, **content)

    WorkerInteractor.sendevent = send_if_needed
