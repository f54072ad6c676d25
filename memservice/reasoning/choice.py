"""The reasoner of each task: `REASONER` selects it, and for `auto` whether the task's own model is
configured."""

from __future__ import annotations

from collections.abc import Mapping

from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins
from memservice.reasoning.models import is_configured
from memservice.settings import Settings
from memservice.settings.families import transport_key
from memservice.settings.models import ModelConfig
from memservice.spi.capabilities import Capability

LLM_CAPABILITIES = frozenset({Capability.REMOTE, Capability.COSTLY})
"""Of the reasoner `llm`, known without opening it."""

AUTO, LLM, WITHOUT_MODEL = "auto", "llm", "extractive"

DERIVE, SUMMARIZE, CONSOLIDATE = "derive", "summarize", "consolidate"
BACKGROUND = (DERIVE, SUMMARIZE, CONSOLIDATE)
"""Tasks of workers."""
ANSWER_LEVELS = ("minimal", "low", "medium", "high", "max")


def answer(level: str) -> str:
    """The name of the task of answering at one level of reasoning."""
    return f"answer.{level}"


def models_of(settings: Settings) -> dict[str, ModelConfig]:
    """The model of each task, by the task's name."""
    levels = settings.dialectic.levels
    return {
        DERIVE: settings.deriver.model_config,
        SUMMARIZE: settings.summary.model_config,
        CONSOLIDATE: settings.dream.deduction_model_config,
        **{answer(level): getattr(levels, level).model_config for level in ANSWER_LEVELS},
    }


def all_models_of(settings: Settings) -> dict[str, ModelConfig]:
    """As `models_of`, with the second model of dreams."""
    return {**models_of(settings), "consolidate.induction": settings.dream.induction_model_config}


def choose(settings: Settings, plugins: Plugins) -> Mapping[str, str]:
    """The name of the reasoner for each task. Raises `ConfigurationError` if `REASONER=llm` and a
    task's model cannot be reached."""
    reasoner = settings.app.reasoner
    models = models_of(settings)
    if reasoner not in (AUTO, LLM):
        return dict.fromkeys(models, reasoner)
    configured = {
        task: is_configured(settings.llm, model, plugins) for task, model in models.items()
    }
    missing = [task for task, has_model in configured.items() if not has_model]
    if reasoner == LLM and missing:
        location = f"LLM_{transport_key(models[missing[0]].transport).upper()}"
        raise ConfigurationError(
            f"REASONER = llm needs a model for {', '.join(missing)}: set "
            f"{location}_API_KEY or {location}_BASE_URL, "
            "or set REASONER = auto, which works without a model where none is configured"
        )
    return {task: LLM if has_model else WITHOUT_MODEL for task, has_model in configured.items()}


def shown(chosen: Mapping[str, str]) -> str:
    """The choice in a few words: one name if it is the same for every task, else each task's."""
    names = set(chosen.values())
    return (
        names.pop()
        if len(names) == 1
        else ", ".join(f"{task} {name}" for task, name in chosen.items())
    )
