"""The forward pass of a BERT encoder in numpy, and the mean of its last layer over the tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

_MASKED = np.float32(-1e9)


class Bert:
    """Safe to share between threads: nothing is changed after it was made."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]) -> None:
        self._weights = {
            name.removeprefix("bert."): np.ascontiguousarray(array, np.float32)
            for name, array in weights.items()
            if array.dtype.kind == "f"
        }
        self._heads: int = config["num_attention_heads"]
        self._layers: int = config["num_hidden_layers"]
        self._epsilon = np.float32(config.get("layer_norm_eps", 1e-12))
        self.longest: int = config["max_position_embeddings"]
        for layer in range(self._layers):
            # Query, key and value are one multiplication.
            at = f"encoder.layer.{layer}.attention.self."
            parts = ("query", "key", "value")
            self._weights[at + "qkv.weight"] = np.concatenate(
                [self._weights.pop(f"{at}{part}.weight") for part in parts]
            )
            self._weights[at + "qkv.bias"] = np.concatenate(
                [self._weights.pop(f"{at}{part}.bias") for part in parts]
            )

    def means(self, batch: Sequence[Sequence[int]]) -> Matrix:
        """One row per list of token ids: of length 1, or zeros."""
        longest = max(len(ids) for ids in batch)
        ids = np.zeros((len(batch), longest), np.intp)
        mask = np.zeros((len(batch), longest), np.float32)
        for row, given in enumerate(batch):
            ids[row, : len(given)] = given
            mask[row, : len(given)] = 1.0
        hidden = self._encode(ids, (1.0 - mask)[:, None, None, :] * _MASKED)
        sums = np.einsum("bsh,bs->bh", hidden, mask)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        rows: Matrix = np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0)
        return rows

    def _encode(self, ids: NDArray[np.intp], bias: Matrix) -> Matrix:
        w = self._weights
        hidden = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        )
        hidden = self._normal(
            hidden + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm"
        )
        for layer in range(self._layers):
            at = f"encoder.layer.{layer}."
            attended = self._linear(
                self._attention(hidden, bias, at + "attention.self."), at + "attention.output.dense"
            )
            hidden = self._normal(hidden + attended, at + "attention.output.LayerNorm")
            inner = _gelu(self._linear(hidden, at + "intermediate.dense"))
            hidden = self._normal(
                hidden + self._linear(inner, at + "output.dense"), at + "output.LayerNorm"
            )
        return hidden

    def _attention(self, hidden: Matrix, bias: Matrix, at: str) -> Matrix:
        rows, length, width = hidden.shape
        parts = self._linear(hidden, at + "qkv").reshape(
            rows, length, 3, self._heads, width // self._heads
        )
        query, key, value = parts.transpose(2, 0, 3, 1, 4)
        scores = (
            query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // self._heads)) + bias
        )
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Matrix = (scores @ value).transpose(0, 2, 1, 3).reshape(rows, length, width)
        return mixed

    def _linear(self, hidden: Matrix, name: str) -> Matrix:
        rows = hidden.reshape(-1, hidden.shape[-1])
        made: Matrix = rows @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]
        return made.reshape(*hidden.shape[:-1], -1)

    def _normal(self, hidden: Matrix, name: str) -> Matrix:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        made: Matrix = (
            centred / np.sqrt(variance + self._epsilon) * self._weights[name + ".weight"]
            + self._weights[name + ".bias"]
        )
        return made


def _gelu(x: Matrix) -> Matrix:
    """By the error function, which numpy lacks: Abramowitz and Stegun 7.1.26, right to 1.5e-7."""
    a = np.abs(x) * np.float32(0.7071067811865476)
    t = 1.0 / (1.0 + np.float32(0.3275911) * a)
    series = (
        (((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592
    ) * t
    erf = np.copysign(1.0 - series * np.exp(-a * a), x)
    made: Matrix = np.float32(0.5) * x * (np.float32(1.0) + erf)
    return made
