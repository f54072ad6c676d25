"""The language-model provider that the documentation shows does every task."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from integration.models.test_behaviours import TASKS, USUAL, reasoner
from memservice.plugins import load_plugins
from memservice.spi.llm import ModelFailure
from memservice.testing.badmodel import bad_model
from support.docs.blocks import blocks

MAX_LINES = 65
"""Of the class that a provider consists of, formatted."""


@pytest.fixture(scope="module")
def shown(root: Path) -> SimpleNamespace:
    (text,) = [
        block.text
        for block in blocks(root / "docs" / "plugins.md", "python")
        if "class TinyModel" in block.text
    ]
    names: dict[str, Any] = {}
    exec(compile(text, "plugins.md", "exec"), names)
    return SimpleNamespace(plugin=names["TinyPlugin"](), text=text)


@pytest.mark.parametrize(
    "behaviour", ["ok", "think", "single quotes", "call written as text, Hermes"]
)
@pytest.mark.parametrize("task", TASKS)
def test_the_example_does_every_task(shown: SimpleNamespace, task: str, behaviour: str) -> None:
    plugins = load_plugins(extra=[shown.plugin])
    with bad_model(behaviour) as model:
        llm = reasoner(model, plugins, "tiny", **tiny(model.url))
        assert f"{TASKS[task](llm)}, {len(model.requests)}" == USUAL[task]


@pytest.mark.parametrize("behaviour", ["401", "500", "cut connection"])
def test_failures_of_the_example_are_faults_of_the_provider(
    shown: SimpleNamespace, behaviour: str
) -> None:
    plugins = load_plugins(extra=[shown.plugin])
    with bad_model(behaviour) as model, pytest.raises(ModelFailure) as caught:
        TASKS["derive"](reasoner(model, plugins, "tiny", **tiny(model.url)))
    assert caught.value.fault == "provider"


def tiny(url: str) -> dict[str, str]:
    return {"LLM_TINY_API_KEY": "sk-test", "LLM_TINY_BASE_URL": f"{url}/v1"}


def test_the_example_is_short(shown: SimpleNamespace) -> None:
    code = shown.text[shown.text.index("class TinyModel") : shown.text.index("class TinyPlugin")]
    assert len([line for line in code.splitlines() if line.strip()]) <= MAX_LINES
