"""The kinds of providers, and what is recorded about a plugin."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from memservice.spi import providers as p


class Kind(Struct, frozen=True):
    """One kind of provider: its registration hook, and its name in messages."""

    hook: str
    record: type[Any]
    words: str
    setting: str
    """The setting that names a provider of this kind."""
    section: str
    """The section of its settings, for messages."""


KINDS = (
    Kind("memservice_storages", p.StorageProvider, "storage", "DB_CONNECTION_URI", "db"),
    Kind(
        "memservice_vector_indexes",
        p.VectorIndexProvider,
        "vector index",
        "VECTOR_STORE_TYPE",
        "vector_store",
    ),
    Kind(
        "memservice_llms",
        p.LanguageModelProvider,
        "language-model protocol",
        "…MODEL_CONFIG__TRANSPORT",
        "llm",
    ),
    Kind(
        "memservice_embedders", p.EmbedderProvider, "embedder", "EMBEDDER", "embedding.model_config"
    ),
    Kind("memservice_reasoners", p.ReasonerProvider, "reasoner", "REASONER", "reasoner"),
    Kind(
        "memservice_webhook_transports",
        p.WebhookTransportProvider,
        "webhook transport",
        "the endpoint's URL",
        "webhook",
    ),
)
KIND_OF: dict[type[Any], Kind] = {kind.record: kind for kind in KINDS}


class Origin(Struct, frozen=True):
    """The source of a plugin."""

    name: str
    """The name of the entry point; for a plugin passed in code, of the object."""
    target: str
    distribution: str
    """Name and version, such as `memservice 0.1.0`; `code` for a plugin passed in code."""


class Failure(Struct, frozen=True):
    """A plugin, or one of its providers, that cannot be used, and the reason."""

    origin: Origin
    reason: str
    kind: Kind | None = None
    """None: the whole plugin."""
    provider: str | None = None
    may_change_writes: bool = False
    """Whether the plugin has a hook that can change or reject what is stored, or may have one."""

    @property
    def sentence(self) -> str:
        """What a start says about it."""
        return f"plugin {self.origin.name} of {self.origin.distribution}: {self.reason}"


class Row(Struct, frozen=True):
    """One line of `memservice plugins`."""

    kind: str
    """`storage`, `vector index`, … , `hook` for a listener, `failed`."""
    name: str
    plugin: str
    distribution: str
    detail: str
    """Capabilities, or the reason for a failure."""


def described(error: BaseException) -> str:
    """The type and the text of an error, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
