"""What a process that is forked for each run of `memservice` does once for all of them: it imports
the product, and computes what is the same in each.

It leaves nothing open and starts no thread. It does none of the work of a server or a worker
either: a fork could not use what that leaves, such as a lock that a thread has.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import threading
from collections.abc import Hashable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from support import sharing

if TYPE_CHECKING:
    from memservice.settings import Settings

PRELOADED = (
    "encodings.ascii",
    "encodings.idna",
    "gunicorn.app.wsgiapp",
    "gunicorn.glogging",
    "gunicorn.workers.gthread",
    "httpcore",
    "httpx",
    "hypothesis",
    "memservice.cli",
    "memservice.domain.auth.jwt_signing",
    "memservice.serving.clients",
    "memservice.serving.free_memory",
    "memservice.worker.polling",
    "memservice.worker.retention",
    "memservice_extractive.consolidate",
    "memservice_extractive.duplicates",
    "memservice_memory",
    "memservice_postgres.storage",
    "memservice_sqlite.reclaiming",
    "pytest",
    "rq",
)


def preload() -> None:
    """Import what commands, the server and the worker import, except prometheus_client, which
    reads the environment when it is imported."""
    from memservice.app import create_app
    from memservice.cli import COMMANDS
    from memservice.compose import open_runtime
    from memservice.domain import tokens
    from memservice.settings import load_settings

    patch = pytest.MonkeyPatch()  # never undone: this process only forks
    sharing.share_maps(patch)
    sharing.share_statements(patch)
    sharing.share_metadata(patch)
    sharing.find_hooks_fast(patch)
    sharing.share_certificates(patch)
    commands = {path.partition(":")[0] for path in COMMANDS.values()}
    for module in (*PRELOADED, *(f"memservice.cli.{name}" for name in sorted(commands))):
        importlib.import_module(module)
    share_compiled_rules()
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(
            environ={
                "DB_CONNECTION_URI": f"sqlite:///{folder}/store.db",
                "METRICS_ENABLED": "false",
            }
        )
        create_app(settings)
        runtime = open_runtime(settings)
        runtime.storage.migrate()
        runtime.close()
        empty_store = Path(folder, "store.db").read_bytes()
        sharing.copy_new_stores(patch, lambda: empty_store)
        compile_statements(settings)
    tokens.count("")
    httpx.create_ssl_context()
    answer_once()
    assert "prometheus_client" not in sys.modules
    assert threading.active_count() == 1, threading.enumerate()


def compile_statements(settings: Settings) -> None:
    """Let SQLAlchemy compile the statements that each worker runs when it starts:
    `share_statements` shares them with the stores of the forks."""
    from memservice.compose import open_runtime
    from memservice.worker.housekeeping import Housekeeping

    runtime = open_runtime(settings)
    Housekeeping(runtime).run_due()
    runtime.close()


def answer_once() -> None:
    """Let the reasoner that most tests use load and compile what it needs for usual texts. It only
    computes."""
    from memservice.spi.reasoner import AnswerRequest, DeriveRequest, SummarizeRequest, Utterance
    from memservice.spi.toolbox import Evidence
    from memservice_extractive.reasoner import ExtractiveReasoner

    reasoner, now, text = ExtractiveReasoner(), datetime.now(UTC), "I keep bees in the garden."
    messages = [Utterance(1, "m1", "ada", text, now)]
    reasoner.derive(DeriveRequest("ada", messages))
    reasoner.summarize(SummarizeRequest("short", messages, "", 500))
    evidence = [Evidence("message", "m1", text, now, author="ada")]
    list(reasoner.answer(AnswerRequest("What do I keep?", "ada", evidence)))


def share_compiled_rules() -> None:
    """Compile each route once for all applications of this process: Werkzeug parses it and
    compiles two functions, which takes nine tenths of what it costs to make an application."""
    from werkzeug.routing import Rule

    compile_rule = Rule.compile
    compiled: dict[Hashable, Rule] = {}

    def share(rule: Rule) -> None:
        key = (rule.rule, rule.subdomain, rule.host, rule.merge_slashes)
        if rule.defaults or key not in compiled:
            compile_rule(rule)
            if not rule.defaults:
                compiled[key] = rule
            return
        other = compiled[key]
        rule._parts, rule._trace = list(other._parts), list(other._trace)
        rule._converters = dict(other._converters)
        rule.arguments |= other.arguments
        for name in ("_build", "_build_unknown"):
            setattr(rule, name, getattr(other, name).__func__.__get__(rule, None))

    Rule.compile = share  # type: ignore[method-assign,assignment]
