"""Plugins that have a word in what is stored, and those that are told of events."""

from __future__ import annotations

import logging
from typing import Any

from memservice.domain.records import Conclusion, Message
from memservice.plugins import Plugins

log = logging.getLogger("memservice.plugins")


def heard_message(plugins: Plugins, message: Message) -> Message:
    """The message as it is to be stored: each listener may change what the one before it returned, or raise to refuse it."""
    for listener in reversed(plugins.hook.memservice_message_storing.get_hookimpls()):
        answer = listener.function(*([message] if listener.argnames else []))
        message = answer if isinstance(answer, Message) else message
    return message


def may_store(plugins: Plugins, conclusion: Conclusion) -> bool:
    """False if a listener refuses the conclusion."""
    return all(answer is not False for answer in plugins.hook.memservice_conclusion_storing(conclusion=conclusion))


def hear_events(plugins: Plugins) -> bool:
    """Whether any plugin wants to be told of events."""
    return bool(plugins.hook.memservice_event_emitted.get_hookimpls())


def event_emitted(plugins: Plugins, kind: str, data: dict[str, Any]) -> None:
    """Tell them of one that was committed. What a listener does cannot undo it, so its failure is only logged."""
    try:
        plugins.hook.memservice_event_emitted(type=kind, data=data)
    except Exception as error:  # a plugin may fail in any way
        log.error("a plugin failed when told of %s: %s", kind, type(error).__name__, exc_info=error)
