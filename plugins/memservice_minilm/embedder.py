"""The embedder: tokens by the model's own tokenizer, vectors by the forward pass."""

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
from memservice_minilm.bert import Bert
from memservice_minilm.files import tensors

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

MAX_TOKENS = 256
"""Tokens of a text that are read, which is what the model was trained for; the rest of a longer
text changes nothing."""
BATCH = 8
"""Texts at once. More are no faster, and take memory."""


class MiniLmEmbedder:
    """The weights are read at first use (about 0.1 s), in the process that uses them. Safe to share
    between threads."""

    capabilities: frozenset[Capability] = frozenset({Capability.SEMANTIC})
    duplicate_distance: float | None = 0.04
    """Restatements lie at 0.01 to 0.07, another year at 0.04, another number word at 0.06, a
    negation at 0.1: this side of all of those."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        self.id = f"minilm:{name}"[:200].strip()
        self.dimension: int = self._config["hidden_size"]
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, Bert] | None = None

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        """`purpose` changes nothing: the model has one space for both."""
        made: list[Vector] = [np.zeros(self.dimension, np.float32) for _ in texts]
        tokenizer, bert = self._load()
        # One by one: many at once would start threads of the tokenizer's, which a process that
        # forks later must not have.
        ids = {
            index: tokenizer.encode(text).ids for index, text in enumerate(texts) if text.strip()
        }
        # Texts of like length together, so that little of a batch is padding.
        order = sorted(ids, key=lambda index: len(ids[index]))
        for start in range(0, len(order), BATCH):
            indexes = order[start : start + BATCH]
            for index, vector in zip(
                indexes, bert.means([ids[index] for index in indexes]), strict=True
            ):
                made[index] = vector
        return made

    def _load(self) -> tuple[Tokenizer, Bert]:
        with self._lock:
            if self._loaded is None:
                # Threads of the linear algebra wait by spinning: with several of these processes,
                # or anything else to do, they wait for one another for seconds. This service has
                # processes and threads of its own to work side by side.
                ThreadpoolController().limit(limits=1, user_api="blas")
                bert = Bert(self._config, tensors(self._directory / "model.safetensors"))
                tokenizer = Tokenizer.from_file(str(self._directory / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(min(MAX_TOKENS, bert.longest))
                self._loaded = (tokenizer, bert)
            return self._loaded
