"""Sentence embeddings by MiniLM on this machine, without network, key or torch. The files of the
model are installed separately."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from marshmallow import EXCLUDE, Schema, fields

from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, EmbedderProvider, Settings

if TYPE_CHECKING:
    import click

    from memservice.spi.embedding import Embedder


# Figures of benchmarks/recall/README.md, "Reach".
SUGGESTION = (
    "memservice models add minilm: search also finds paraphrases. In talks with an assistant, 84 % "
    "instead of 77 % of the messages that answer a question are among the first ten results, and "
    "between people 87 % instead of 79 %"
)


class MiniLmSettings(Schema):
    """`model`: the directory of a BERT sentence model (`config.json`, `tokenizer.json`,
    `model.safetensors`); None: the installed package."""

    class Meta:
        unknown = EXCLUDE

    model = fields.String(load_default=None, allow_none=True, metadata={"secrecy": "public"})


def _open(settings: Settings, context: Context) -> Embedder:
    from memservice_minilm.embedder import MiniLmEmbedder
    from memservice_minilm.files import find

    return MiniLmEmbedder(*find(settings["model"]))


@hookimpl
def memservice_embedders() -> Iterable[EmbedderProvider]:
    """`EMBEDDER=minilm`."""
    yield EmbedderProvider(
        name="minilm",
        open=_open,
        settings=MiniLmSettings,
        capabilities=frozenset({Capability.SEMANTIC}),
        suggestion=SUGGESTION,
    )


@hookimpl
def memservice_cli_commands() -> Iterable[click.Command]:
    """`memservice models add minilm`."""
    from memservice_minilm.command import models

    yield models
