"""The language-model provider that the documentation shows does every task."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from integration.models.test_behaviours import TASKS, USUAL, reasoner
from memservice.plugins import load_plugins
from memservice.spi.llm import ModelFailure
from memservice.testing.badmodel import bad_model
from support.docs.blocks import blocks


@pytest.fixture(scope="module")
def shown(root: Path) -> ModuleType:
    page = root / "docs" / "plugins" / "language-model.md"
    (text,) = [block.text for block in blocks(page) if block.title == "memservice_tiny/__init__.py"]
    module = ModuleType("memservice_tiny")
    exec(compile(text, page.name, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize(
    "behaviour", ["ok", "think", "single quotes", "call written as text, Hermes"]
)
@pytest.mark.parametrize("task", TASKS)
def test_the_example_does_every_task(shown: ModuleType, task: str, behaviour: str) -> None:
    plugins = load_plugins(extra=[shown])
    with bad_model(behaviour) as model:
        llm = reasoner(model, plugins, "tiny", **tiny(model.url))
        assert f"{TASKS[task](llm)}, {len(model.requests)}" == USUAL[task]


@pytest.mark.parametrize("behaviour", ["401", "500", "cut connection"])
def test_failures_of_the_example_are_faults_of_the_provider(
    shown: ModuleType, behaviour: str
) -> None:
    plugins = load_plugins(extra=[shown])
    with bad_model(behaviour) as model, pytest.raises(ModelFailure) as caught:
        TASKS["derive"](reasoner(model, plugins, "tiny", **tiny(model.url)))
    assert caught.value.fault == "provider"


def tiny(url: str) -> dict[str, str]:
    return {"LLM_TINY_API_KEY": "sk-test", "LLM_TINY_BASE_URL": f"{url}/v1"}
