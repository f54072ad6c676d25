"""An embedder over HTTP: the common part of all protocols.

The dimension is that of the first vectors, never an assumption about a model: until then it is
unknown, and reading `dimension` sends a request to the endpoint. The start of the service sends no
request, so it also starts while the embedder is unavailable.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice.domain import tokens
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from memservice.spi.llm import ModelCall, ModelFailure
from memservice.spi.providers import Context
from memservice_http.client import Endpoint
from memservice_http.failures import REJECTIONS, Rejected

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memservice.spi.vectors import Vector

MAX_VECTORS = 64 * 1024 * 1024
"""Bytes of an answer."""
TRIES = 3
"""Tries of one call for documents. A query has one try, since a client is waiting."""
PAUSE = 0.5
MAX_PAUSE_SECONDS = 10.0
"""Seconds. If a provider requests a longer pause, the task is retried, not the call."""
MAX_ID = 200
_TOO_MUCH = REJECTIONS | {413}


class HttpEmbedder(ABC):
    """Safe to share between threads. `embed` raises ModelFailure."""

    capabilities: frozenset[Capability] = frozenset(
        {Capability.SEMANTIC, Capability.REMOTE, Capability.TIMED}
    )
    duplicate_distance: float | None = 0.05

    def __init__(
        self,
        endpoint: Endpoint,
        settings: Mapping[str, Any],
        context: Context,
        model: str,
        requested_dimension: int | None,
        batch: int,
    ) -> None:
        """`requested_dimension`: the dimension in requests; `batch`: texts in one call unless the
        settings limit them."""
        self.endpoint = endpoint
        self.model = model
        self.requested_dimension = requested_dimension
        suffix = f"@{requested_dimension}" if requested_dimension else ""
        self.id = f"{endpoint.provider}:{model}{suffix}"[:MAX_ID].strip()
        self._context = context
        self._batch: int = settings["max_batch_size"] or batch
        self._tokens: int = settings["max_tokens_per_request"]
        self._longest: int = settings["max_input_tokens"]
        self._query_seconds: float | None = settings["query_seconds"]
        self._at_once = threading.BoundedSemaphore(settings["max_concurrent_embeddings"])
        self._dimension: int | None = None

    @abstractmethod
    def ask(
        self, texts: Sequence[str], purpose: Purpose, timeout: float | None
    ) -> tuple[list[NDArray[Any]], int]:
        """One call: a vector per text, in order, and the tokens read (0 if the provider does not
        report them)."""

    @property
    def dimension(self) -> int:
        """Dimension of every vector. Before the first one, this requests one from the endpoint,
        which may take long or raise ModelFailure."""
        if self._dimension is None:
            self.embed(["dimension"])
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        """Texts are cut at `EMBEDDING_MAX_INPUT_TOKENS`. A text without content is not sent."""
        vectors: dict[int, Vector] = {}
        with_content = [index for index, text in enumerate(texts) if text.strip()]
        cut = {index: tokens.cut(texts[index], self._longest) for index in with_content}
        for indexes in self._batches(cut):
            vectors.update(
                zip(indexes, self._embed([cut[index] for index in indexes], purpose), strict=True)
            )
        return [
            vectors[index] if index in vectors else np.zeros(self.dimension, np.float32)
            for index in range(len(texts))
        ]

    def _batches(self, texts: Mapping[int, str]) -> Iterator[list[int]]:
        batch: list[int] = []
        total = 0
        for index, text in texts.items():
            size = tokens.count(text)
            if batch and (len(batch) >= self._batch or total + size > self._tokens):
                yield batch
                batch, total = [], 0
            batch.append(index)
            total += size
        if batch:
            yield batch

    def _embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """One call, or two with half the texts each if the server rejects their number."""
        try:
            return self._tried(texts, purpose)
        except ModelFailure as error:
            if len(texts) < 2 or error.status not in _TOO_MUCH:
                raise
        half = len(texts) // 2
        return self._embed(texts[:half], purpose) + self._embed(texts[half:], purpose)

    def _tried(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        tries = TRIES if purpose == "document" else 1
        for attempt in range(1, tries + 1):
            try:
                return self._noted(texts, purpose, attempt, tries)
            except ModelFailure as error:
                pause = max(error.retry_after or 0.0, PAUSE * 2 ** (attempt - 1))
                if attempt == tries or not error.retryable or pause > MAX_PAUSE_SECONDS:
                    raise
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _noted(
        self, texts: Sequence[str], purpose: Purpose, attempt: int, attempts: int
    ) -> list[Vector]:
        """One try, which is reported with its outcome."""
        began = time.monotonic()
        failure: ModelFailure | None = None
        used = 0
        vectors: list[Vector] = []
        try:
            if purpose == "query":
                arrays, used = self.ask(texts, purpose, self._query_seconds)
            else:
                with self._at_once:
                    arrays, used = self.ask(texts, purpose, None)
            vectors = self._checked(arrays, len(texts))
        except Rejected as error:
            failure = error.failure
        except ModelFailure as error:
            failure = error
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            failure = ModelFailure(
                (
                    f"the response of {self.endpoint.provider} does not follow its protocol "
                    f"({type(error).__name__})"
                ),
                retryable=True,
            )
        status = failure.status if failure else None
        self._context.called(
            ModelCall(
                purpose=purpose,
                transport=self.endpoint.provider,
                model=self.model,
                outcome="success" if failure is None else "error",
                duration_ms=round((time.monotonic() - began) * 1000),
                embedding=True,
                input_tokens=used or (0 if failure else sum(map(tokens.count, texts))),
                input_count=len(texts),
                error_class=None
                if failure is None
                else type(failure).__name__ + (f" {status}" if status else ""),
                attempt=attempt,
                attempts=attempts,
            )
        )
        if failure is not None:
            raise failure
        return vectors

    def _checked(self, arrays: Sequence[NDArray[Any]], texts: int) -> list[Vector]:
        if len(arrays) != texts:
            raise ModelFailure(
                f"{self.endpoint.provider} answered with {len(arrays)} vectors for {texts} texts",
                retryable=True,
            )
        rows = np.stack([np.asarray(vector, np.float64) for vector in arrays])
        if rows.ndim != 2 or rows.shape[1] == 0 or not np.isfinite(rows).all():
            raise ModelFailure(
                f"{self.endpoint.provider} returned values that are not vectors", retryable=True
            )
        self._check_dimension(rows.shape[1])
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return list(
            np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0).astype(np.float32)
        )

    def _check_dimension(self, dimension: int) -> None:
        if self.requested_dimension is not None and dimension != self.requested_dimension:
            raise ModelFailure(
                (
                    f"{self.endpoint.provider} returned vectors of dimension {dimension} "
                    f"instead of {self.requested_dimension}: set EMBEDDING_VECTOR_DIMENSIONS to "
                    "the dimension of the model, or EMBEDDING_MODEL_CONFIG__DIMENSIONS_MODE=never"
                ),
                retryable=False,
            )
        if self._dimension not in (None, dimension):
            raise ModelFailure(
                (
                    f"{self.endpoint.provider} returned vectors of dimension {dimension}, "
                    f"and before of dimension {self._dimension}: another model has the name "
                    f"{self.model!r}"
                ),
                retryable=False,
            )
        self._dimension = dimension
