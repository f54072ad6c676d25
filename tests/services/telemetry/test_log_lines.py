"""Lines of the log: as text or JSON, with the id of the request that they were written for, in the
background too."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger

from memservice.app import create_app
from memservice.domain.records import Task
from memservice.serving.logs import set_up_logging
from memservice.settings import load_settings
from memservice.telemetry.context import request_id, working_for
from memservice.worker.polling import Worker
from services.conftest import OpenServices

MESSAGES = {"messages": [{"peer_id": "ann", "content": "sekretwort is my dog"}]}


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str], process_as_before: None) -> Callable[[], str]:
    """What is logged. The captured stream ends after the logging."""
    return lambda: capsys.readouterr().err


def set_up(form: str) -> None:
    set_up_logging(load_settings(environ={"LOG_FORMAT": form, "LOG_LEVEL": "info"}))


def test_text_is_the_default_and_lines_of_a_request_have_its_id(written: Callable[[], str]) -> None:
    set_up("text")
    log = logging.getLogger("memservice.test")
    log.info("alone")
    with working_for("abc"):
        log.warning("for %s", "somebody")
    alone, of_request = written().splitlines()
    assert re.fullmatch(r"\S+ \S+ INFO memservice\.test alone", alone)
    assert of_request.endswith("WARNING memservice.test for somebody request_id=abc")
    assert request_id() is None


def test_json_is_one_object_a_line_with_errors_in_it(written: Callable[[], str]) -> None:
    set_up("json")
    log = logging.getLogger("memservice.test")
    with working_for("abc"):
        try:
            raise KeyError("x")
        except KeyError:
            log.exception("two\nlines")
    log.debug("not shown")
    (line,) = written().splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["logger"], entry["message"], entry["request_id"]) == (
        "error",
        "memservice.test",
        "two\nlines",
        "abc",
    )
    assert "KeyError: 'x'" in entry["error"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", entry["time"])


@pytest.mark.slow
@pytest.mark.parametrize("incoming", ["my-request.1", None, "two words", "x" * 200])
def test_a_valid_request_id_is_kept_and_passed_to_tasks(
    open_services: OpenServices, written: Callable[[], str], incoming: str | None
) -> None:
    set_up("json")
    services = open_services()
    client = create_app(runtime=services.rt).test_client()
    headers = {} if incoming is None else {"X-Request-Id": incoming}
    answer = client.post("/v3/workspaces/w/sessions/s/messages", json=MESSAGES, headers=headers)
    assert answer.status_code == 201
    number = answer.headers["X-Request-Id"]
    assert (number == incoming) == (incoming == "my-request.1")
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", number)
    assert request_id() is None, "the request is over"
    with services.rt.storage.read() as tx:
        assert {task.request_id for task in tx.rows.page(Task)} == {number}
    Worker(services.rt).run_until_idle(30)
    text = written()
    lines = [json.loads(line) for line in text.splitlines()]
    (request,) = [line for line in lines if line["logger"] == "memservice.requests"]
    assert (request["method"], request["path"], request["status"], request["request_id"]) == (
        "POST",
        "/v3/workspaces/w/sessions/s/messages",
        201,
        number,
    )
    work = [line for line in lines if line["logger"] == "memservice.pipeline"]
    assert work
    assert {line.get("request_id") for line in work} == {number}
    assert "sekretwort" not in text


def test_tasks_created_by_tasks_keep_the_request_id(open_services: OpenServices) -> None:
    services = open_services(DREAM_DOCUMENT_THRESHOLD="1", DREAM_IDLE_TIMEOUT_MINUTES="0")
    client = create_app(runtime=services.rt).test_client()
    client.post(
        "/v3/workspaces/w/sessions/s/messages",
        json={"messages": [{"peer_id": "ann", "content": "I live in Ghent."}]},
        headers={"X-Request-Id": "first"},
    )
    Worker(services.rt).run_until_idle(30)
    with services.rt.storage.read() as tx:
        tasks = tx.rows.page(Task)
    assert {"representation", "dream_timer"} <= {task.kind for task in tasks}
    assert {task.request_id for task in tasks} == {"first"}


def test_texts_of_users_cannot_begin_a_log_line(written: Callable[[], str]) -> None:
    """A text that looks like a line of the log, in a message and in an error, and one that a
    terminal would obey."""
    set_up("text")
    forged = "2026-01-01 00:00:00,000 ERROR memservice.auth all keys were revoked"
    log = logging.getLogger("memservice.test")
    log.warning("the server said %s", f"no\r\n{forged}\x1b[2J\x9b2J")
    try:
        raise KeyError("x") from ValueError(f"no\n{forged}")
    except KeyError:
        log.exception("it failed")
    lines = written().splitlines()
    assert not [line for line in lines if line.startswith("2026-01-01")]
    assert "\\x1b[2J\\x9b2J" in lines[0]
    assert [line for line in lines if not line.startswith("  ")] == [lines[0], lines[1]]
    assert any(forged in line for line in lines[2:])


def test_lines_of_gunicorn_are_complete(written: Callable[[], str]) -> None:
    """They show the process, unlike ours."""
    set_up("text")
    server_log = Logger(Config())
    server_log.error("a worker has failed")
    assert re.search(rf"\[{os.getpid()}\] \[ERROR\] a worker has failed", written())
