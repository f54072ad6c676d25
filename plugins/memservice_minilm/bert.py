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
    """Immutable after construction, so safe to share between threads."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]) -> None:
        self._weights = {
            name.removeprefix("bert."): np.ascontiguousarray(array, np.float32)
            for name, array in weights.items()
            if array.dtype.kind == "f"
        }
        self._heads: int = config["num_attention_heads"]
        self._layers: int = config["num_hidden_layers"]
        self._epsilon = np.float32(config.get("layer_norm_eps", 1e-12))
        self.max_length: int = config["max_position_embeddings"]
        for layer in range(self._layers):
            # One multiplication for query, key and value.
            prefix = f"encoder.layer.{layer}.attention.self."
            names = ("query", "key", "value")
            self._weights[prefix + "qkv.weight"] = np.concatenate(
                [self._weights.pop(f"{prefix}{name}.weight") for name in names]
            )
            self._weights[prefix + "qkv.bias"] = np.concatenate(
                [self._weights.pop(f"{prefix}{name}.bias") for name in names]
            )

    def means(self, batch: Sequence[Sequence[int]]) -> Matrix:
        """One row per list of token ids: a unit vector, or zeros for an empty list."""
        length = max(len(ids) for ids in batch)
        ids = np.zeros((len(batch), length), np.intp)
        mask = np.zeros((len(batch), length), np.float32)
        for row, token_ids in enumerate(batch):
            ids[row, : len(token_ids)] = token_ids
            mask[row, : len(token_ids)] = 1.0
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
            prefix = f"encoder.layer.{layer}."
            attended = self._linear(
                self._attention(hidden, bias, prefix + "attention.self."),
                prefix + "attention.output.dense",
            )
            hidden = self._normal(hidden + attended, prefix + "attention.output.LayerNorm")
            inner = _gelu(self._linear(hidden, prefix + "intermediate.dense"))
            hidden = self._normal(
                hidden + self._linear(inner, prefix + "output.dense"), prefix + "output.LayerNorm"
            )
        return hidden

    def _attention(self, hidden: Matrix, bias: Matrix, prefix: str) -> Matrix:
        rows, length, width = hidden.shape
        parts = self._linear(hidden, prefix + "qkv").reshape(
            rows, length, 3, self._heads, width // self._heads
        )
        query, key, value = parts.transpose(2, 0, 3, 1, 4)
        scores = (
            query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // self._heads)) + bias
        )
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        context: Matrix = (scores @ value).transpose(0, 2, 1, 3).reshape(rows, length, width)
        return context

    def _linear(self, hidden: Matrix, name: str) -> Matrix:
        rows = hidden.reshape(-1, hidden.shape[-1])
        product: Matrix = rows @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]
        return product.reshape(*hidden.shape[:-1], -1)

    def _normal(self, hidden: Matrix, name: str) -> Matrix:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        normalised: Matrix = (
            centred / np.sqrt(variance + self._epsilon) * self._weights[name + ".weight"]
            + self._weights[name + ".bias"]
        )
        return normalised


def _gelu(x: Matrix) -> Matrix:
    """GELU with the error function, which numpy lacks: Abramowitz and Stegun 7.1.26, exact to
    1.5e-7."""
    a = np.abs(x) * np.float32(0.7071067811865476)
    t = 1.0 / (1.0 + np.float32(0.3275911) * a)
    series = (
        (((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592
    ) * t
    erf = np.copysign(1.0 - series * np.exp(-a * a), x)
    result: Matrix = np.float32(0.5) * x * (np.float32(1.0) + erf)
    return result
