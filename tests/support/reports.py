"""What the processes of a test run tell the one that reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def needed(data: dict[str, Any]) -> bool:
    """Whether a report says anything: one of a setup or teardown that passed without output does
    not."""
    return bool(data["when"] == "call" or data["outcome"] != "passed" or data["sections"])


def send_needed_reports(config: pytest.Config) -> None:
    """In a process of pytest-xdist, leave out the reports that say nothing, which are two thirds.
    To write, send and read them takes a millisecond for each test. Those who ask how long setups
    take, or for a file of results, get all reports."""
    if config.option.durations is not None or config.option.xmlpath:
        return
    from xdist.remote import WorkerInteractor  # type: ignore[import-untyped]

    send = WorkerInteractor.sendevent

    def send_if_needed(interactor: object, name: str, **content: Any) -> None:
        if name != "testreport" or needed(content["data"]):
            send(interactor, name, **content)

    WorkerInteractor.sendevent = send_if_needed
