"""Plugin hooks that may change or refuse a write."""

from __future__ import annotations

from memservice.domain.records import Conclusion, Message
from memservice.plugins import Plugins


def apply(plugins: Plugins, message: Message) -> Message:
    """The message after all listeners: each may change the result of the one before it, or raise to
    refuse it."""
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
