"""The summary of the configuration that a start prints."""

from __future__ import annotations

import memservice
from memservice.reasoning.choice import shown
from memservice.runtime import Runtime
from memservice.services.tasks import model_breaker
from memservice.services.tasks.model_breaker import Outage
from memservice.spi.capabilities import Capability


def banner(runtime: Runtime, with_worker: bool) -> list[str]:
    settings = runtime.settings
    rows = {row.name: row.value_text for row in settings.rows(everything=True)}
    vectors = settings.vector_store.type or f"in the storage ({runtime.storage.name})"
    return [
        f"memservice  {memservice.__version__}",
        (
            f"storage     {runtime.storage.name}   {rows['DB_CONNECTION_URI']}   schema "
            f"{runtime.storage.schema_version()}"
        ),
        f"vectors     {vectors}   embedder {runtime.embedder.id}",
        *_suggestions(runtime),
        f"reasoner    {shown(runtime.reasoners)}",
        (
            "runner      "
            f"{_runner(rows['REDIS_URL'] if settings.app.redis_url else None, with_worker)}"
        ),
        f"auth        {'on' if settings.auth.use_auth else 'off'}",
        *(f"models      {outage.shown()}" for outage in _outages(runtime)),
        *(f"plugins     FAILED: {failure.sentence}" for failure in runtime.plugins.failures),
    ]


def _suggestions(runtime: Runtime) -> list[str]:
    """Embedders that find more than the configured one."""
    if Capability.SEMANTIC in runtime.embedder.capabilities:
        return []
    plugins = runtime.plugins
    providers = [plugins.embedder(name) for name in plugins.names("embedder")]
    return [f"  better    {provider.suggestion}" for provider in providers if provider.suggestion]


def _outages(runtime: Runtime) -> list[Outage]:
    with runtime.storage.read() as tx:
        return model_breaker.current(tx)


def _runner(redis: str | None, with_worker: bool) -> str:
    where = "a worker beside the server" if with_worker else "none here: start `memservice worker`"
    return where if redis is None else f"RQ on {redis}, {where}"
