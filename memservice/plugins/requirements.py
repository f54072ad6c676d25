"""Plugins without which a start must fail."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from memservice import hookspecs
from memservice.plugins.kinds import Failure, Origin
from memservice.plugins.schemas import nearest

if TYPE_CHECKING:
    from memservice.settings.service import PluginSwitches

WRITE_HOOKS = tuple(
    name for name in vars(hookspecs) if re.fullmatch(r"memservice_\w+_storing", name)
)
"""The hooks that can change or reject what is stored."""


def changes_writes(plugin: object) -> bool:
    """Whether a plugin has a hook that can change or reject what is stored."""
    return any(hasattr(plugin, hook) for hook in WRITE_HOOKS)


def problems(
    switches: PluginSwitches | None, loaded: Collection[Origin], failures: Iterable[Failure]
) -> list[str]:
    """A sentence for each plugin that is required and not usable."""
    required = switches.required if switches else ()
    optional = switches.optional if switches else ()
    failed = list(failures)
    missing = []
    for name in required:
        reasons = [failure for failure in failed if name in _names(failure.origin)]
        if reasons:
            missing.append(
                f"PLUGINS_REQUIRED names {name}, which cannot be used "
                f"({reasons[0].origin.distribution}): {reasons[0].reason}"
            )
        elif not any(name in _names(origin) for origin in loaded):
            missing.append(_absent(name, switches, loaded))
    missing += [
        f"the plugin {failure.origin.name} of {failure.origin.distribution} can change or reject "
        f"what is stored, but failed to load: {failure.reason}. Repair or uninstall it; "
        f"PLUGINS_OPTIONAL={failure.origin.name} starts without it"
        for failure in failed
        if failure.may_change_writes and not _names(failure.origin) & {*required, *optional}
    ]
    return missing


def _absent(name: str, switches: PluginSwitches | None, loaded: Collection[Origin]) -> str:
    if switches is not None and switches.only is not None:
        return f"PLUGINS_REQUIRED names {name}, which MEMSERVICE_PLUGINS leaves out"
    names = [origin.name for origin in loaded]
    return f"PLUGINS_REQUIRED names {name}, which is not installed; {nearest(name, names)}"


def _names(origin: Origin) -> set[str]:
    """How a setting may call a plugin."""
    return {origin.name, origin.target}
