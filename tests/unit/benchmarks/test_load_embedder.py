"""The stand-in for a remote embedding model in the load benchmark."""

from __future__ import annotations

import pytest

from benchmarks.load.embedder import vectors


def test_vectors_are_dense_and_near_for_texts_that_share_words() -> None:
    same, near, far = vectors(
        ["the cat sat on the mat", "the cat sat on a mat", "quarterly tax report"], 1536
    )
    assert (same != 0).all()
    assert float(same @ same) == pytest.approx(1, abs=1e-5)
    assert float(same @ near) > float(same @ far) + 0.2
