"""Probable mistakes in the settings of language models. A server logs them at its start, and
`memservice doctor` shows them. Opens no connection and calls no model."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from memservice.plugins import Plugins
from memservice.reasoning.choice import LLM, all_models_of, choose, models_of
from memservice.reasoning.models import base_url, connection_of, is_configured, target
from memservice.settings import Settings
from memservice.settings.families import transport_key
from memservice.settings.models import DEFAULT_MODEL, ModelChoice


def warnings(settings: Settings, plugins: Plugins) -> list[str]:
    """One sentence for each mistake, with what to do."""
    return [*_unused(settings, plugins), *_unnamed(settings, plugins)]


def _unused(settings: Settings, plugins: Plugins) -> Iterator[str]:
    """Keys and base URLs of transports that no task and no embedder uses."""
    chosen = choose(settings, plugins)
    tasks = models_of(settings)
    used = {transport_key(settings.app.embedder)}
    if LLM in chosen.values():
        for model in _models_in_use(settings, plugins):
            used.add(transport_key(model.transport))
            if other := connection_of(model.transport, plugins):
                used.add(transport_key(other))
    for name, connection in settings.llm.connections.items():
        if name in used:
            continue
        part = "API_KEY" if connection.api_key else "BASE_URL"
        if LLM not in chosen.values() and settings.app.reasoner != "auto":
            reason = f"REASONER = {settings.app.reasoner} asks no language model"
        else:
            reason = (
                f"every task asks {', '.join(sorted({m.transport for m in tasks.values()}))}. "
                f"To use it, set LLM_MODEL to one of its models and LLM_TRANSPORT to its name"
            )
        yield f"LLM_{name.upper()}_{part} is set, but no task uses it: {reason}"


def _models_in_use(settings: Settings, plugins: Plugins) -> Iterator[ModelChoice]:
    for model in all_models_of(settings).values():
        if is_configured(settings.llm, model, plugins):
            yield model
            if model.fallback is not None:
                yield model.fallback


def _unnamed(settings: Settings, plugins: Plugins) -> Iterator[str]:
    """Tasks that request the default model from another server or transport."""
    if LLM not in choose(settings, plugins).values():
        return
    destinations: dict[str, list[str]] = {}
    for task, model in all_models_of(settings).items():
        if model.model != DEFAULT_MODEL or not is_configured(settings.llm, model, plugins):
            continue
        url = target(settings.llm, model, plugins).connection["base_url"]
        usual = base_url(model, plugins)
        default = ModelChoice().transport
        if default not in (model.transport, connection_of(model.transport, plugins)):
            destinations.setdefault(f"the transport {model.transport}", []).append(task)
        elif url and _host(url) != _host(usual):
            destinations.setdefault(_host(url), []).append(task)
    for destination, tasks in destinations.items():
        yield (
            f"{', '.join(tasks)}: {destination} is asked for {DEFAULT_MODEL}, "
            "because no model is named. "
            "Set LLM_MODEL to a model that it has"
        )


def _host(url: str | None) -> str:
    """Host and port, without credentials."""
    return urlsplit(url or "").netloc.rpartition("@")[2]
