"""Capabilities of providers beyond the mandatory operations."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    SHARED = "shared"
    """Storage, or vector index outside it: several processes may open the same one at once. Without
    it everything runs in one process."""

    TRANSACTIONAL = "transactional"
    """Text or vector index: it is part of the storage and commits with it. Without it, tasks write
    to the index after commit."""

    SEMANTIC = "semantic"
    """Embedder: vectors of paraphrases are near each other. Without it, searches find only
    restatements, and semantic deduplication is off."""

    INLINE = "inline"
    """Embedder: it is local and fast enough (well below a millisecond a text) to run inside a
    write."""

    REMOTE = "remote"
    """Embedder, reasoner: it waits for a network. A worker then runs several units of a reasoner at
    once."""

    TIMED = "timed"
    """Embedder: a call for a query returns or fails within `SEARCH_EMBED_TIMEOUT_SECONDS`. The
    thread of the request then makes it. Without this, another thread does, and the request waits
    for it that long at most."""

    COMPUTES = "computes"
    """Reasoner: it only computes, from its request alone. Background work then calls it in a
    separate process, which is ended when it takes too long. Without this, it is called in the
    worker's process, where slow calls delay other work."""

    COSTLY = "costly"
    """Reasoner: each call costs money or seconds. Messages are then batched by tokens before
    deriving."""
