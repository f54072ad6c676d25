"""Fixtures of the contract tests: a scripted model server, models that talk to it, and a Redis. And
which tests of a kit are heavy."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.models.fixtures import calls as calls
from support.models.fixtures import context as context
from support.models.fixtures import open_embedder as open_embedder
from support.models.fixtures import open_model as open_model
from support.models.fixtures import plugins as plugins
from support.models.fixtures import server as server
from support.stores.redis_vectors import client as client
from support.stores.redis_vectors import name as name

FOLDER = Path(__file__).parent
OF_PROTOCOLS = ("test_embedder_contracts.py", "test_llm_contracts.py")
ONE_PROTOCOL = {
    "test_after_a_failure_the_next_call_succeeds",
    "test_an_answer_that_is_no_longer_wanted_ends",
    "test_an_endless_answer_is_cancelled",
    "test_the_timeout_bounds_the_whole_exchange",
    "test_threads_do_not_disturb_each_other",
}
"""Tests of language models and embedders that wait or send much, for what `memservice_http` does
for each protocol: by default, they run with that of OpenAI."""
ONE_WAY = {
    "test_an_answer_that_is_no_longer_wanted_ends": {"hang-complete", "drip-stream"},
    "test_the_timeout_bounds_the_whole_exchange": {"drip head-complete", "hang-stream"},
}
"""Their parameters by default: each fault and each way once or more."""


def is_heavy(item: pytest.Function) -> bool:
    """Whether another test of the default run covers this one of a kit."""
    name, parameters = item.originalname, item.callspec.id if hasattr(item, "callspec") else ""
    if item.cls is None or item.path.parent != FOLDER:
        return False
    if name == "test_leaf":
        # A storage in memory calls the evaluator that the others are compared with, and on these,
        # tests/integration/backends/test_sql_conditions.py compares keys.
        in_memory = item.cls.__name__ == "TestMemoryStorage"
        return parameters not in ("Equal", "KeyEqual") if in_memory else parameters == "KeyCompare"
    if name not in ONE_PROTOCOL or item.path.name not in OF_PROTOCOLS:
        return False
    return item.cls.__name__ != "TestOpenAi" or parameters not in ONE_WAY.get(name, {parameters})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and is_heavy(item):
            item.add_marker(pytest.mark.heavy)
