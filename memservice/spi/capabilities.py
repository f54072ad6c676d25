"""What a provider can do beyond the mandatory operations: each member is a question with an answer
in prose."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    SHARED = "shared"
    """Storage, or vector index outside it: may several processes open the same one at once? Without
    it everything runs in one process."""

    TRANSACTIONAL = "transactional"
    """Text or vector index: does it live in the storage and commit with it? Without it, it is
    written by tasks, after commit."""

    SEMANTIC = "semantic"
    """Embedder: do vectors of paraphrases lie near each other? Without it, only restatements are
    found and semantic dedup is off."""

    INLINE = "inline"
    """Embedder: is it local and fast enough (well below a millisecond a text) to run inside a
    write?"""

    REMOTE = "remote"
    """Embedder, reasoner: does it wait on a network? A worker then keeps several units of a
    reasoner in flight."""

    COMPUTES = "computes"
    """Reasoner: does it do nothing but compute, from its request alone? Background work then asks
    it in a process of its own, which is ended when it takes too long. Without it, it is asked in
    the worker's process, and whatever takes long there holds up other work."""

    COSTLY = "costly"
    """Reasoner: does each call cost money or seconds? Messages are then batched by tokens before
    they are derived from."""
