"""Plugins that have a word in what is stored."""

from __future__ import annotations

from memservice.domain.records import Conclusion, Message
from memservice.plugins import Plugins


def apply(plugins: Plugins, message: Message) -> Message:
    """The message as it is to be stored: each listener may change what the one before it returned,
    or raise to refuse it."""
    for listener in reversed(plugins.hook.memservice_message_storing.get_hookimpls()):
        answer = listener.function(*([message] if listener.argnames else []))
        message = answer if isinstance(answer, Message) else message
    return message


def allows(plugins: Plugins, conclusion: Conclusion) -> bool:
    """False if a listener refuses the conclusion."""
    return all(
        answer is not False
        for answer in plugins.hook.memservice_conclusion_storing(conclusion=conclusion)
    )
