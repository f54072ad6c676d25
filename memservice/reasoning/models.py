"""The language model of a `MODEL_CONFIG`: its target, and whether it is configured; and the models
that a process has open."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from memservice.plugins import Plugins
from memservice.reasoning.limits import FIRST_SHARE, LimitedModel, Limits
from memservice.reasoning.traits import ModelTarget, ModelTraits
from memservice.settings import Settings
from memservice.settings.connections import connection
from memservice.settings.models import ModelChoice
from memservice.settings.sections import DialecticLevel, Llm
from memservice.spi.llm import LanguageModel
from memservice.spi.providers import Context, LanguageModelProvider
from memservice.spi.reasoner import AnswerRequest

QUICK_LEVELS = ("minimal", "low")
QUICK_ATTEMPTS = 2
"""Tries of one call at these levels: the second uses the fallback, if there is one."""

OPTIONS = (
    *(
        "top_p",
        "top_k",
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "thinking_effort",
        "thinking_budget_tokens",
    ),
    *("structured_output_mode", "stop_sequences"),
)
"""Settings of a model that go into `CompletionRequest.options` under their own names."""


def target(llm: Llm, choice: ModelChoice, plugins: Plugins) -> ModelTarget:
    """The target of a choice: with its own key and URL, else those of the `LLM_` section for its
    transport."""
    values = {name: getattr(choice, name) for name in OPTIONS}
    values["cache_policy"] = {
        name: value for name, value in choice.cache_policy.as_mapping().items() if value is not None
    }
    options = {
        name: value
        for name, value in values.items()
        if value is not None and value != () and value != {}
    }
    connection_settings = connection(
        llm, choice.transport, choice.overrides, connection_of(choice.transport, plugins)
    )
    return ModelTarget(
        choice.transport,
        choice.model,
        connection_settings,
        choice.temperature,
        choice.max_output_tokens,
        options,
    )


def is_configured(llm: Llm, choice: ModelChoice, plugins: Plugins) -> bool:
    """Whether a model has a key or a base URL, or is of a transport that needs neither."""
    where = target(llm, choice, plugins).connection
    return bool(where["api_key"] or where["base_url"]) or base_url(choice, plugins) is None


def base_url(choice: ModelChoice, plugins: Plugins) -> str | None:
    """The default base URL of a model's transport; None if it has none."""
    provider = _provider(choice.transport, plugins)
    return None if provider is None else provider.base_url


def connection_of(transport: str, plugins: Plugins) -> str | None:
    """The other transport whose key and base URL serve this one, if there is one."""
    provider = _provider(transport, plugins)
    return None if provider is None else provider.connection_of


def _provider(transport: str, plugins: Plugins) -> LanguageModelProvider | None:
    name = transport.strip().lower()
    providers = plugins.providers_of(LanguageModelProvider)
    return next((provider for provider in providers if provider.name == name), None)


class Models:
    """The language models of one process, each opened once, at first use. Safe to call from several
    threads."""

    def __init__(
        self,
        settings: Settings,
        plugins: Plugins,
        context: Context,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings = settings
        self.context = context
        self.sleep = sleep
        self.traits = ModelTraits()
        self._plugins = plugins
        self._lock = threading.Lock()
        self._opened: dict[str, LanguageModel] = {}
        self._limits: Limits | None = None
        self._last: ModelTarget | None = None
        """The fallback model, within limits."""

    def target(self, choice: ModelChoice) -> ModelTarget:
        return target(self.settings.llm, choice, self._plugins)

    def within(self, request: AnswerRequest) -> Models:
        """The same models, within the limits of one answer. At the levels for quick answers there
        are at most `QUICK_ATTEMPTS` tries."""
        limits = Limits.of(request)
        if limits is None:
            return self
        models = copy.copy(self)
        models._limits = limits
        models.sleep = partial(limits.sleep, sleep=self.sleep)
        level: DialecticLevel = getattr(self.settings.dialectic.levels, request.level)
        fallback = level.model_config.fallback
        models._last = None if fallback is None else self.target(fallback)
        if request.level in QUICK_LEVELS:
            llm = self.settings.llm
            quick = replace(llm, max_attempts=min(llm.max_attempts, QUICK_ATTEMPTS))
            models.settings = replace(self.settings, llm=quick)
        return models

    def answer_begun(self) -> None:
        """The first text of a streamed answer goes to the client: its time limit ends."""
        if self._limits is not None:
            self._limits.has_begun = True

    def opened(self, model_target: ModelTarget) -> LanguageModel:
        """The model behind a target. Raises `ConfigurationError` if no plugin offers its transport,
        or its settings are wrong."""
        opened = self.provided(model_target)
        if self._limits is None:
            return opened
        has_other = self._last not in (None, model_target)
        return LimitedModel(
            opened,
            self._limits,
            model_target.connection["timeout"],
            FIRST_SHARE if has_other else 1.0,
        )

    def provided(self, model_target: ModelTarget) -> LanguageModel:
        """As `opened`, without limits: the object of the plugin, which describes the model."""
        location = json.dumps([model_target.transport, model_target.connection], sort_keys=True)
        with self._lock:
            if location not in self._opened:
                provider = self._plugins.language_model(model_target.transport)
                self._opened[location] = self._plugins.open_provider(
                    provider, model_target.connection, self.context
                )
            return self._opened[location]
