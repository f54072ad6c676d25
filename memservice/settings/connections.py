"""Where a model is, and what its embedder is opened with: the settings of one model joined with
those of its transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memservice.settings.families import transport_key
from memservice.settings.models import Connection, Overrides
from memservice.settings.sections import Llm

if TYPE_CHECKING:
    from memservice.settings import Settings


def connection(
    llm: Llm, transport: str, overrides: Overrides, other: str | None = None
) -> dict[str, Any]:
    """What a provider of that transport is opened with: the model's own key and URL, else those of
    the `LLM_` section for its transport, else those for the transport `other`. A key never goes
    to the URL of another transport."""
    params = overrides.provider_params
    common = (
        llm.connections.get(transport_key(transport))
        or (llm.connections.get(transport_key(other)) if other else None)
        or Connection()
    )
    return {
        "api_key": overrides.api_key or common.api_key,
        "base_url": overrides.base_url or common.base_url,
        "timeout": params.timeout,
        "extra_body": dict(params.extra_body),
        "extra_headers": dict(params.extra_headers),
        "extra_query": dict(params.extra_query),
    }


def of_embedder(settings: Settings, name: str) -> dict[str, Any]:
    """What the embedder of that name is opened with: where it is, its `MODEL_CONFIG`, the bounds of
    the `EMBEDDING_` section, and `query_seconds`, after which nobody waits for the vector of a
    query any more."""
    section = settings.embedding
    config = section.model_config
    own = connection(settings.llm, name, config.overrides)
    return {
        **config.as_mapping(),
        **own,
        "timeout": config.timeout or own["timeout"],
        "vector_dimensions": section.vector_dimensions,
        "max_input_tokens": section.max_input_tokens,
        "max_tokens_per_request": section.max_tokens_per_request,
        "max_concurrent_embeddings": section.max_concurrent_embeddings,
        "query_seconds": settings.search.embed_timeout_seconds,
    }
