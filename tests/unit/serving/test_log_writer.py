"""Access lines are written together, in order with all others, and soon."""

from __future__ import annotations

import io
import logging
import time

import pytest

from memservice.serving import log_writer
from memservice.serving.log_writer import LogWriter


class CountingStream(io.StringIO):
    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


def line(text: str, *, of_request: bool = False) -> logging.LogRecord:
    record = logging.LogRecord("test", logging.INFO, __file__, 1, text, (), None)
    if of_request:
        record.request = {"path": "/"}
    return record


@pytest.fixture
def stream() -> CountingStream:
    return CountingStream()


@pytest.fixture
def writer(stream: CountingStream, monkeypatch: pytest.MonkeyPatch) -> LogWriter:
    monkeypatch.setattr(log_writer, "WRITE_SECONDS", 60.0)
    return LogWriter(stream)


def test_access_lines_wait_and_stand_before_the_next_line(
    writer: LogWriter, stream: CountingStream
) -> None:
    for number in range(3):
        writer.handle(line(f"request {number}", of_request=True))
    assert stream.getvalue() == ""
    writer.handle(line("something else"))
    assert stream.getvalue().splitlines() == [
        "request 0",
        "request 1",
        "request 2",
        "something else",
    ]
    assert stream.writes == 1


def test_few_access_lines_wait(
    writer: LogWriter, stream: CountingStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "MAX_WAITING", 3)
    for number in range(4):
        writer.handle(line(str(number), of_request=True))
    assert stream.getvalue() == "0\n1\n2\n"
    writer.flush()  # as at the end of a process
    assert stream.getvalue() == "0\n1\n2\n3\n"


def test_access_lines_are_written_without_another_line(
    stream: CountingStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "WRITE_SECONDS", 0.01)
    writer = LogWriter(stream)
    for number in range(2):
        writer.handle(line(str(number), of_request=True))
        deadline = time.monotonic() + 10
        while not stream.getvalue().endswith(f"{number}\n") and time.monotonic() < deadline:
            time.sleep(0.005)
    assert stream.getvalue() == "0\n1\n"


def test_lines_that_wait_are_written_when_logging_is_set_up_again(stream: CountingStream) -> None:
    writer = LogWriter(stream)
    writer.handle(line("0", of_request=True))
    writer.close()
    assert stream.getvalue() == "0\n"
    stream.close()
    writer.close()  # nothing waits, so the stream is not needed


def test_lines_that_cannot_be_written_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "WRITE_SECONDS", 0.01)
    stream = CountingStream()
    writer = LogWriter(stream)
    reports: list[logging.LogRecord] = []
    monkeypatch.setattr(writer, "handleError", reports.append)
    stream.close()
    writer.handle(line("0", of_request=True))
    deadline = time.monotonic() + 10
    while not reports and time.monotonic() < deadline:
        time.sleep(0.005)
    assert [report.getMessage() for report in reports] == ["0"]
