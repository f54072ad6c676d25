"""A stand-in for a remote embedding model: `python -m benchmarks.load.embedder PORT`.

It answers the OpenAI protocol on loopback with dense vectors: those of the hashed embedder, turned
by a fixed random matrix into the wanted dimension, so that texts that share words are near.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice_hashed.embedder import HashedEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_HASHED = HashedEmbedder()


@cache
def _turn(rows: int, dimension: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((rows, dimension), np.float32)


def vectors(texts: Sequence[str], dimension: int) -> NDArray[np.float32]:
    """One unit vector for each text."""
    hashed = np.array(_HASHED.embed(texts), np.float32)
    turned = hashed @ _turn(hashed.shape[1], dimension)
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    return np.asarray(turned / np.maximum(lengths, 1e-9), np.float32)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = (
        2**20
    )  # one `send` for an answer: the end of a second one waits for an acknowledgement

    def do_GET(self) -> None:
        self._send({})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        packs = body.get("encoding_format") == "base64"
        rows = [
            {
                "object": "embedding",
                "index": index,
                "embedding": b64encode(row.astype("<f4").tobytes()).decode()
                if packs
                else row.tolist(),
            }
            for index, row in enumerate(vectors(body["input"], body["dimensions"]))
        ]
        usage = {"prompt_tokens": 5, "total_tokens": 5}
        self._send({"object": "list", "data": rows, "usage": usage})

    def _send(self, answer: Any) -> None:
        encoded = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
