"""The hashed embedder: a pure function of the text, the same in every process, and which texts it
distinguishes."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memservice_hashed
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context
from memservice_hashed.embedder import HashedEmbedder

EMBEDDER = HashedEmbedder()
ROOT = Path(__file__).resolve().parents[3]


def cosine(first: str, second: str) -> float:
    a, b = EMBEDDER.embed([first, second])
    return float(a @ b)


def test_it_is_offered_as_inline_and_not_as_semantic() -> None:
    (provider,) = memservice_hashed.memservice_embedders()
    embedder = provider.open(
        {}, Context(clock=lambda: datetime.now(UTC), logger=logging.getLogger("test"))
    )
    assert provider.name == "hashed"
    assert provider.capabilities == embedder.capabilities == frozenset({Capability.INLINE})
    assert (embedder.id, embedder.dimension, embedder.duplicate_distance) == (
        "hashed-v1-384",
        384,
        None,
    )


@given(st.text(max_size=120))
def test_vectors_have_length_one_or_are_zero(text: str) -> None:
    (vector,) = EMBEDDER.embed([text])
    assert vector.shape == (384,)
    assert vector.dtype == np.float32
    length = float(np.linalg.norm(vector))
    assert length == pytest.approx(1.0, abs=1e-5) or not vector.any()
    # As analysis reads it: U+3200 is a letter in parentheses.
    assert not vector.any() or any(map(str.isalnum, normalize("NFKC", text)))


@given(st.lists(st.text(max_size=40), max_size=5))
def test_a_text_has_the_same_vector_alone_and_in_a_batch(texts: list[str]) -> None:
    together = EMBEDDER.embed(texts)
    assert len(together) == len(texts)
    for text, vector in zip(texts, together, strict=True):
        assert np.array_equal(EMBEDDER.embed([text], "query")[0], vector)


def test_empty_texts_are_all_zeros() -> None:
    assert not any(vector.any() for vector in EMBEDDER.embed(["", "  ", "?!…", "🎉"]))


@pytest.mark.slow
def test_another_process_with_another_hash_seed_agrees() -> None:
    text = "Caroline moved to Köln; 猫が好き"
    code = (
        "from memservice_hashed.embedder import HashedEmbedder as H; "
        f"print(H().embed([{text!r}])[0].tobytes().hex())"
    )
    paths = f"{ROOT}:{ROOT / 'plugins'}"
    env = {"PYTHONHASHSEED": "1", "PYTHONPATH": paths, "PATH": "", "PYTHONIOENCODING": "utf-8"}
    out = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert bytes.fromhex(out.strip()) == EMBEDDER.embed([text])[0].tobytes()


def test_vectors_change_only_with_the_id() -> None:
    (vector,) = EMBEDDER.embed(["User likes green tea"])
    positions = np.flatnonzero(vector)
    assert (
        EMBEDDER.id,
        positions[:6].tolist(),
        [round(float(value), 3) for value in vector[positions[:6]]],
    ) == (
        "hashed-v1-384",
        [5, 11, 19, 22, 41, 42],
        [-0.134, -0.1, -0.374, 0.1, 0.1, -0.1],
    )


@pytest.mark.parametrize(
    ("same", "other"),
    [
        (
            ("User likes green tea", "The user likes green teas!"),
            "The user drives to work every morning",
        ),
        (
            ("Caroline moved to Berlin in 2021", "In 2021, Caroline moved to Berlin"),
            "Melanie painted a sunset at the lake",
        ),
        (("私は猫がとても好きです", "猫がとても好き"), "昨日東京に行きました"),
        (("我喜欢喝绿茶", "我很喜欢喝绿茶"), "他昨天去了北京"),
        (("Ich wohne jetzt in München", "ich wohne in Munchen"), "Der Zug kam gestern zu spät"),
    ],
)
def test_restatements_are_nearer_than_other_sentences(same: tuple[str, str], other: str) -> None:
    assert cosine(*same) > 0.5
    assert cosine(*same) > cosine(same[0], other) + 0.3


def test_word_order_changes_the_vector() -> None:
    assert cosine("dog bites man today", "dog bites man today") == pytest.approx(1.0, abs=1e-6)
    assert cosine("dog bites man today", "man bites dog today") < 0.99


def test_threads_agree() -> None:
    texts = [f"message {n} about the {n % 7} lakes" for n in range(200)]
    alone = [EMBEDDER.embed([text])[0].tobytes() for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: EMBEDDER.embed([text])[0].tobytes(), texts)) == alone


@pytest.mark.slow
def test_embedding_is_fast_enough_for_a_write() -> None:
    texts = [" ".join(f"word{(n * k) % 997}" for k in range(20)) for n in range(300)]
    EMBEDDER.embed(texts)
    began = time.process_time()
    EMBEDDER.embed(texts)
    assert (time.process_time() - began) / len(texts) < 0.001
