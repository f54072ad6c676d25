"""The published client, unmodified, against a service on PostgreSQL whose vectors are in Qdrant or
in Redis.

With Redis, and where the environment names a real Qdrant, the service is started as an operator
starts it. Else the index lives in one process, which is this one, and so is the service.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from werkzeug.serving import make_server

from e2e.test_published_client import LOCAL, PACKAGE, ungiven
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.clients.fixtures import Servers
from support.clients.runs import Runs, scenarios
from support.stores.stores import store_of
from support.stores.vector_stores import vector_store

pytestmark = [
    # By default, the client runs on SQLite, and tests/contracts check each index.
    pytest.mark.heavy,
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("client-indexes"),
]


@contextmanager
def serving_here(rt: Runtime) -> Iterator[str]:
    """The service in threads of this process, with a worker. Gives its address."""
    rt.storage.migrate()
    server = make_server("127.0.0.1", 0, create_app(runtime=rt), threaded=True)
    stop = threading.Event()
    threads = [
        threading.Thread(target=server.serve_forever),
        threading.Thread(target=Worker(rt).run, args=(stop,)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        stop.set()
        server.shutdown()
        for thread in threads:
            thread.join(30)
        server.server_close()
    assert not any(thread.is_alive() for thread in threads)


@pytest.fixture(params=["qdrant", "redis"])
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[str]:
    with vector_store(request.param) as settings:
        if settings["VECTOR_STORE_URL"] != ":memory:":
            yield servers.on("postgres", **settings).url
            return
        with store_of("postgres", tmp_path) as uri:
            loaded = load_settings(environ={"DB_CONNECTION_URI": uri, **settings}, cwd=tmp_path)
            with (
                closing(open_runtime(loaded, "api", plugins=load_plugins(loaded))) as rt,
                serving_here(rt) as here,
            ):
                yield here


@pytest.mark.parametrize("face", ["async", "sync"])
def test_every_scenario_works_on_each_index(published_client: Path, url: str, face: str) -> None:
    result = Runs(published_client, PACKAGE, url).result(face)
    assert sorted(result["scenarios"]) == scenarios(PACKAGE)
    assert set(result["uncalled"]) == LOCAL
    assert ungiven(result) == set()
    assert {
        name: each["failure"]
        for name, each in result["scenarios"].items()
        if each["failure"] is not None
    } == {}
