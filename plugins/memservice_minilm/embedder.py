"""The embedder: the model's own tokenizer and its forward pass."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import ThreadpoolController
from tokenizers import Tokenizer

from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from memservice.spi.storage import Finding
from memservice_minilm.bert import Bert
from memservice_minilm.files import problem, tensors

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

MAX_TOKENS = 256
"""Maximum tokens of a text, as in the model's training. The rest of a longer text is ignored."""
BATCH_SIZE = 8
"""Texts per forward pass. More are not faster, and need memory."""


class MiniLmEmbedder:
    """Reads the weights at first use (about 0.1 s), in the process that uses them. Safe to share
    between threads."""

    capabilities: frozenset[Capability] = frozenset({Capability.SEMANTIC})
    duplicate_distance: float | None = 0.04
    """Restatements have distances of 0.01 to 0.07, another year 0.04, another number word 0.06, a
    negation 0.1. This limit excludes all changes of meaning."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        self.id = f"minilm:{name}"[:200].strip()
        self.dimension: int = self._config["hidden_size"]
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, Bert] | None = None

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        """One vector per text, in order; zeros for a blank text. `purpose` has no effect: the model
        has one space for both."""
        vectors: list[Vector] = [np.zeros(self.dimension, np.float32) for _ in texts]
        tokenizer, bert = self._load()
        # One by one: batch encoding starts threads of the tokenizer, which a process that forks
        # later must not have.
        ids = {
            index: tokenizer.encode(text).ids for index, text in enumerate(texts) if text.strip()
        }
        # Sorted by length, so that batches have little padding.
        order = sorted(ids, key=lambda index: len(ids[index]))
        for start in range(0, len(order), BATCH_SIZE):
            indexes = order[start : start + BATCH_SIZE]
            for index, vector in zip(
                indexes, bert.means([ids[index] for index in indexes]), strict=True
            ):
                vectors[index] = vector
        return vectors

    def examine(self) -> list[Finding]:
        """See `memservice.spi.embedding.Examinable`."""
        damage = problem(self._directory)
        if damage is None:
            return []
        advice = "install the files again: `memservice models add minilm`"
        return [Finding("failed", f"the files of the model are damaged: {damage}", advice)]

    def _load(self) -> tuple[Tokenizer, Bert]:
        with self._lock:
            if self._loaded is None:
                # One BLAS thread: these threads wait by spinning, so with several processes or
                # other load they wait for one another for seconds. The service has its own
                # processes and threads for parallel work.
                ThreadpoolController().limit(limits=1, user_api="blas")
                bert = Bert(self._config, tensors(self._directory / "model.safetensors"))
                tokenizer = Tokenizer.from_file(str(self._directory / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(min(MAX_TOKENS, bert.max_length))
                self._loaded = (tokenizer, bert)
            return self._loaded
