"""The console's pages take few statements, and no more for a large store than for a small one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import console
from memservice.api import shared_answer
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.settings import load_settings
from support.stores.stores import store_of

SMALL = console.Size(sessions=3, messages=6, rows=3)
MEDIUM = console.Size(sessions=7, messages=15, rows=9)
LARGE = console.Size(sessions=25, messages=60, rows=50)
FREQUENT = "word0 word1 word2"
"""Words that messages of a small store have, too."""
SEARCHES = 4
"""After so many, a process has the texts of the large store in memory, as those of the small one
after the first."""
MAX_FIRST = console.MAX_STATEMENTS + 1
"""Of a first request: a search of a large store then reads the positions of whole sessions, which
the process keeps."""
NOT_MEASURED = {
    "root",
    "asset",
    "sign_in",
    "one_time_link",
    "member",
    "correction",
    "session_deletion",
    "peer_erasure",
    "plugin_page",
    "export_audit_log_as_csv",
    "export_audit_log_as_json",
}
"""Routes whose pages show one row, or no stored data."""

Counts = dict[str, int]


def counted(uri: str, size: console.Size) -> Counts:
    """Statements of each page, by its path."""
    settings = load_settings(
        environ={"DB_CONNECTION_URI": uri, "LOG_LEVEL": "warning", **console.AUTH_ON},
        cwd=Path("/"),
    )
    rt = open_runtime(settings, "api")
    try:
        rt.storage.migrate()
        console.fill(rt, size)
        app = create_app(settings, rt)
        client = console.signed_in(app, rt)
        routed = app.url_map.bind("localhost")
        endpoints = {routed.match(path.partition("?")[0])[0] for path in console.PAGES.values()}
        pages = {
            rule.endpoint
            for rule in app.url_map.iter_rules()
            if rule.endpoint.startswith("console.") and "GET" in (rule.methods or ())
        }
        assert pages - endpoints == {f"console.{name}" for name in NOT_MEASURED}
        traced = console.trace(rt)
        paths = [path.replace(console.QUERY, FREQUENT) for path in console.PAGES.values()]
        for path in paths:  # with the statements that fill caches
            first = console.cost(client, path, traced, repetitions=0)
            assert len(first.statements) <= MAX_FIRST, path
        for path in paths * SEARCHES:
            client.get(path, headers={"Accept": "text/html"})
        return {
            path: len(console.cost(client, path, traced, repetitions=0).statements)
            for path in paths
        }
    finally:
        rt.close()


@pytest.fixture(
    scope="module", params=[MEDIUM, pytest.param(LARGE, marks=pytest.mark.heavy)], ids=["9", "50"]
)
def counts(
    request: pytest.FixtureRequest,
    shared_storage_name: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Counts, Counts]]:
    small, large = tmp_path_factory.mktemp("small"), tmp_path_factory.mktemp("large")
    with (
        store_of(shared_storage_name, small) as small_uri,
        store_of(shared_storage_name, large) as large_uri,
        pytest.MonkeyPatch.context() as patch,
    ):
        # The home page shows checks that requests share for two seconds. They could end between the
        # request that fills caches and the one whose statements are counted.
        patch.setattr(shared_answer, "FRESH_SECONDS", 3_600.0)
        yield counted(small_uri, SMALL), counted(large_uri, request.param)


@pytest.mark.slow(150)
def test_pages_take_few_statements_however_much_is_stored(counts: tuple[Counts, Counts]) -> None:
    small, large = counts
    assert all(small.values())
    assert {path: count for path, count in large.items() if count > console.MAX_STATEMENTS} == {}
    more = {path: (small[path], count) for path, count in large.items() if count > small[path]}
    assert more == {}
