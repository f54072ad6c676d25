"""`memservice plugins check`: what a provider says that it can do, and whether it does what its kind has to."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Run

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
    yield EmbedderProvider(name="same", open=lambda settings, context: Same(), capabilities=Same.capabilities)
"""


def test_a_provider_that_keeps_its_contract(memservice: Run) -> None:
    done = memservice("plugins", "check", "hashed")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("embedder hashed, of plugin hashed from memservice ")
    assert re.search(r"Is it local and fast enough to run inside a write\? +yes +\(inline\)", done.stdout)
    assert re.search(r"Do vectors of paraphrases lie near each other\? +no +\(semantic\)", done.stdout)
    assert "TestEmbedder declares inline, of shared, transactional" in done.stdout
    assert re.search(r"not run: test_paraphrases_lie.* lacks the capability SEMANTIC", done.stdout)
    assert re.search(r"\d+ passed", done.stdout)


def test_one_that_does_not(memservice: Run, install: Install) -> None:
    done = memservice("plugins", "check", "same", PYTHONPATH=install("same", BROKEN))
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert "test_different_texts_are_told_apart" in done.stdout


@pytest.mark.timeout(300)
def test_what_keeps_something_is_tried_in_a_place_of_its_own(memservice: Run, tmp_path: Path) -> None:
    untried = memservice("plugins", "check", "memory")
    assert (untried.returncode, "with --scratch" in untried.stdout) == (0, True)
    tried = memservice("plugins", "check", "memory", "--scratch", "memory://")
    assert tried.returncode == 0, tried.stdout
    assert "lacks the capability SHARED" in tried.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_costs_something_is_not_asked_for_without_being_told(memservice: Run) -> None:
    done = memservice("plugins", "check", "openai")
    assert (done.returncode, "--costly asks all the same" in done.stdout) == (0, True)
    assert done.stdout.count("of plugin openai") == 2, "the protocol and the embedder"


def test_a_name_that_nobody_offers(memservice: Run) -> None:
    done = memservice("plugins", "check", "hashd")
    assert done.returncode == 1
    assert "known: anthropic, " in done.stderr
    assert "did you mean hashed?" in done.stderr
