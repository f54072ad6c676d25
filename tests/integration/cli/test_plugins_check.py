"""`memservice plugins check`: what a provider says that it can do, and whether it does what its
kind has to."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from integration.cli.conftest import Run
from memservice.spi.llm import ToolCall
from memservice.testing.llm import Say
from memservice.testing.model_protocols import OpenAiWire
from memservice.testing.model_server import Handler, Request, scripted
from memservice.testing.vectors import OURS
from support.models.vectors import openai_vectors
from support.processes.command import MEMSERVICE, environment
from support.stores import redis_vectors
from support.stores.postgres_server import connect, drop_database, new_database
from support.stores.redis_vectors import index_at

Install = Callable[[str, str], str]

BROKEN = """
import numpy as np
from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import EmbedderProvider


class Same:
    id, dimension, duplicate_distance = "same-1", 4, None
    capabilities = frozenset({Capability.INLINE})

    def embed(self, texts, purpose="document"):
        return [np.array([1, 0, 0, 0], np.float32) for text in texts]


@hookimpl
def memservice_embedders():
    yield EmbedderProvider(name="same", open=lambda settings, context: Same(), \
capabilities=Same.capabilities)
"""


def test_a_provider_that_fulfils_its_contract_passes(memservice: Run) -> None:
    result = memservice("plugins", "check", "hashed")
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith("embedder hashed, of plugin hashed from memservice ")
    assert re.search(
        r"Is it local and fast enough to run inside a write\? +yes +\(inline\)", result.stdout
    )
    assert re.search(r"Do paraphrases have similar vectors\? +no +\(semantic\)", result.stdout)
    assert re.search(r"Does it wait on a network\? +no", result.stdout)
    assert "may cost" not in result.stdout
    assert "TestEmbedder declares inline, of shared, transactional" in result.stdout
    assert re.search(
        r"not run: test_paraphrases_are_near_each_other.* lacks the capability SEMANTIC",
        result.stdout,
    )
    assert re.search(r"\d+ passed", result.stdout)


def test_a_provider_that_violates_its_contract_fails(memservice: Run, install: Install) -> None:
    result = memservice("plugins", "check", "same", PYTHONPATH=install("same", BROKEN))
    assert result.returncode == 1
    assert "FAILED" in result.stdout
    assert "test_different_texts_have_different_vectors" in result.stdout


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_a_storing_provider_is_checked_in_a_location_for_test_data(
    memservice: Run, tmp_path: Path
) -> None:
    untried = memservice("plugins", "check", "memory")
    assert (untried.returncode, "with --scratch" in untried.stdout) == (0, True)
    tried = memservice("plugins", "check", "memory", "--scratch", "memory://")
    assert tried.returncode == 0, tried.stdout
    assert "lacks the capability SHARED" in tried.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(300)
def test_an_index_in_memory_is_checked_except_for_persistence(
    memservice: Run, tmp_path: Path
) -> None:
    untried = memservice("plugins", "check", "qdrant")
    assert (untried.returncode, "with --scratch" in untried.stdout) == (0, True)
    tried = memservice("plugins", "check", "qdrant", "--scratch", ":memory:")
    assert tried.returncode == 0, tried.stdout
    assert re.search(
        r"not run: test_stored_vectors_are_there_after_reopening, .*lacks the capability SHARED",
        tried.stdout,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_an_index_on_a_server_is_checked_in_temporary_namespaces(
    memservice: Run,
) -> None:
    url = redis_vectors.url()
    ours = index_at(Redis.from_url(url), "memservice")
    before = ours.keys(None, OURS)
    tried = memservice("plugins", "check", "redis", "--scratch", url)
    assert tried.returncode == 0, tried.stdout
    assert ours.keys(None, OURS) == before
    with Redis.from_url(url) as client:
        assert list(client.scan_iter("*check_*")) == []


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_a_storage_on_a_server_is_checked_in_temporary_schemas(tmp_path: Path) -> None:
    uri = new_database()
    try:
        command = [str(MEMSERVICE), "plugins", "check", "postgres", "--scratch", uri]
        tried = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        assert tried.returncode == 0, tried.stdout
        with connect(uri) as connection:
            left = (
                "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' AND nspname "
                "NOT IN ('public', 'information_schema')"
            )
            assert connection.execute(left).fetchall() == []
            assert (
                connection.execute(
                    "SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace"
                ).fetchall()
                == []
            )
    finally:
        drop_database(uri)


def test_a_location_shared_by_all_tests_is_refused(memservice: Run, tmp_path: Path) -> None:
    result = memservice(
        "plugins", "check", "sqlite", "--scratch", f"sqlite:///{tmp_path}/memory.db"
    )
    assert (result.returncode, "write {path} or {unique} into --scratch" in result.stdout) == (
        1,
        True,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "uri", "reason"),
    [
        (
            "postgres",
            "postgresql+psycopg://me:hunter2@127.0.0.1:9/db",
            "the database db on 127.0.0.1:9 cannot be reached",
        ),
        pytest.param(
            "redis",
            "redis://me:hunter2@127.0.0.1:9/0",
            "the vector index at redis://127.0.0.1:9/0 failed",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            "qdrant",
            "http://127.0.0.1:9",
            "the vector index at http://127.0.0.1:9 cannot be reached",
            marks=pytest.mark.heavy,
        ),
    ],
)
def test_an_unreachable_server_is_reported_in_one_line(
    memservice: Run, name: str, uri: str, reason: str
) -> None:
    result = memservice("plugins", "check", name, "--scratch", uri)
    assert result.returncode == 1
    assert [line for line in result.stdout.splitlines() if "suite" in line] == [
        result.stdout.splitlines()[-1]
    ]
    assert result.stdout.splitlines()[-1].startswith(f"  suite: not run: {reason}")
    assert result.stderr == ""
    assert "hunter2" not in result.stdout


# By default, test_mistakes.py reports one.
@pytest.mark.heavy
def test_a_missing_driver_is_reported_with_the_install_command(
    memservice: Run, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n\nsys.modules['psycopg'] = None\n", encoding="utf-8"
    )
    result = memservice(
        "plugins",
        "check",
        "postgres",
        "--scratch",
        "postgresql+psycopg://localhost/db",
        PYTHONPATH=str(tmp_path),
    )
    assert result.returncode == 1
    last = result.stdout.splitlines()[-1]
    assert last.startswith(
        "  suite: not run: storage 'postgres' needs psycopg, which is not installed: /"
    )
    assert last.endswith(" -m pip install 'memservice[postgres]'")


@pytest.mark.parametrize("name", [pytest.param("http", marks=pytest.mark.heavy), "jsonl"])
def test_a_transport_is_checked_on_this_machine(memservice: Run, tmp_path: Path, name: str) -> None:
    result = memservice("plugins", "check", name)
    assert result.returncode == 0, result.stdout
    assert "A webhook transport has no optional capabilities" in result.stdout
    assert re.search(r"1[0-9] passed", result.stdout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", [pytest.param("openai", marks=pytest.mark.heavy), "anthropic", "gemini"]
)
def test_checking_an_unconfigured_provider_shows_what_to_set(memservice: Run, name: str) -> None:
    result = memservice("plugins", "check", name)
    assert result.returncode == 0, result.stdout
    assert f"LLM_{name.upper()}_API_KEY" in result.stdout
    assert f"DERIVER_MODEL_CONFIG__TRANSPORT={name}" in result.stdout
    assert "A language-model protocol has no optional capabilities" in result.stdout
    assert result.stdout.count(f"of plugin {name}") == (1 if name == "anthropic" else 2), (
        "the protocol of that name, and the embedder if there is one"
    )
    assert memservice("plugins", "check", name, "--costly").returncode == 1


def test_a_costly_provider_is_checked_on_request_only(memservice: Run) -> None:
    with scripted() as server:
        result = memservice("plugins", "check", "openai", LLM_OPENAI_BASE_URL=f"{server.url}/v1")
        assert (result.returncode, result.stdout.count("--costly runs the tests")) == (0, 2)
        assert server.requests == []


# By default, the built-in embedder is checked without --costly, which needs no model either.
@pytest.mark.heavy
def test_a_model_on_this_machine_costs_nothing(memservice: Run) -> None:
    result = memservice("plugins", "check", "minilm")
    assert re.search(r"Does it wait on a network\? +no", result.stdout)
    assert "may cost" not in result.stdout


def model_answers(handler: Handler, request: Request) -> None:
    time.sleep(0.05)
    if "tools" in request.body:
        reply = Say((), (ToolCall("call-1", "clock", {}),), "tool_calls")
    else:
        reply = Say(('{"answer": ', '"yes"}'))
    if OpenAiWire().is_stream(request):
        handler.whole(b"".join(OpenAiWire().events(reply)), "text/event-stream")
    else:
        handler.json(OpenAiWire().whole(reply))


def test_a_configured_model_is_checked_by_the_live_contract(memservice: Run) -> None:
    with scripted() as server:
        server.then(model_answers)
        kind = ("--kind", "language-model protocol", "--costly")
        result = memservice(
            "plugins", "check", "openai", *kind, LLM_OPENAI_BASE_URL=f"{server.url}/v1"
        )
        assert result.returncode == 0, result.stdout
        assert "7 passed" in result.stdout
        server.then(
            lambda handler, request: handler.json(OpenAiWire().error(401, "no such key"), 401)
        )
        result = memservice(
            "plugins", "check", "openai", *kind, LLM_OPENAI_BASE_URL=f"{server.url}/v1"
        )
        assert result.returncode == 1
        assert re.search(r"suite: not run: .*401", result.stdout.splitlines()[-1])


def test_a_configured_embedder_is_called_on_request(memservice: Run) -> None:
    with scripted() as server:
        server.then(openai_vectors)
        settings = {
            "LLM_OPENAI_BASE_URL": f"{server.url}/v1",
            "EMBEDDING_MODEL_CONFIG__MODEL": "local",
        }
        result = memservice(
            "plugins", "check", "openai", "--kind", "embedder", "--costly", **settings
        )
    failed = set(re.findall(r"FAILED \S+::(\w+)", result.stdout))
    assert failed <= {
        "test_paraphrases_are_near_each_other",
        "test_a_restatement_is_a_duplicate",
    }, "the server hashes"
    assert re.search(r"1[0-9] passed", result.stdout)


def test_an_unknown_provider_is_an_error(memservice: Run) -> None:
    result = memservice("plugins", "check", "hashd")
    assert result.returncode == 1
    assert "known: anthropic, " in result.stderr
    assert "did you mean hashed?" in result.stderr
