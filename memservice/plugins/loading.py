"""Loading plugins from entry points."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from memservice import hookspecs
from memservice.domain.errors import ConfigurationError
from memservice.plugins.kinds import Failure, Origin, described
from memservice.plugins.registry import Plugins, implementing
from memservice.plugins.requirements import WRITE_HOOKS, changes_writes
from memservice.spi import providers as p

if TYPE_CHECKING:
    from memservice.settings import Settings

GROUP = "memservice"
"""The entry-point group of all plugins, built-in and third-party."""

SETTINGS_HOOK = "memservice_plugin_settings"
MAX_FILES = 2_000
MAX_BYTES = 1_000_000


_HOOKABLE = (FunctionType, MethodType, staticmethod, classmethod)


class HookManager(pluggy.PluginManager):
    """Looks for hooks among the functions of a module only. For each of its other names, pluggy
    searches the classes of modules first: two thirds of the time that loading takes."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        if not _may_be_hook(plugin, name):
            return None
        return super().parse_hookimpl_opts(plugin, name)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        if not _may_be_hook(module_or_class, name):
            return None
        return super().parse_hookspec_opts(module_or_class, name)


def _may_be_hook(owner: object, name: str) -> bool:
    """Asks for the type of what a module has under this name, and runs none of its code."""
    if type(owner) is not ModuleType:
        return True
    return issubclass(type(vars(owner).get(name)), _HOOKABLE)


def load_plugins(settings: Settings | None = None, extra: Iterable[object] = ()) -> Plugins:
    """Load the plugins of every installed distribution, and those in `extra` (modules or objects
    with hooks), and give their hooks their settings.

    Never raises for a broken plugin: see `Plugins.failures` and `Plugins.check`. Raises
    `ConfigurationError` if `MEMSERVICE_PLUGINS` names one that is not installed.
    """
    manager = HookManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    if settings is not None and settings.plugins.trace:
        manager.add_hookcall_monitoring(_trace_call, _trace_result)
    origins: dict[str, Origin] = {}
    failures: list[Failure] = []
    for entry, owner in _chosen(settings):
        origin = Origin(entry.name, entry.value, owner)
        try:
            plugin = entry.load()
        except Exception as error:  # a plugin may fail in any way; reported when it is needed
            text = f"cannot be imported: {described(error)}"
            failures.append(Failure(origin, text, may_change_writes=_mentions_write_hook(entry)))
            continue
        _register(manager, plugin, origin, origins, failures)
    for plugin in extra:
        name = getattr(plugin, "__name__", None) or type(plugin).__name__
        _register(manager, plugin, Origin(name, name, "code"), origins, failures)
    declared = _declared(manager, origins, failures)
    return Plugins(manager, origins, failures, settings.plugins if settings else None, declared)


@lru_cache(256)
def _has_distributions(folder: str, changed_ns: int) -> bool:
    return any(Path(folder).glob("*.*-info"))


def _folders() -> tuple[tuple[str, int], ...]:
    """The folders of the search path with distributions, each with the time of its last change.
    Others, such as the working directory, make no difference to what is installed."""
    folders = []
    for folder in sys.path:
        with suppress(OSError):
            changed_ns = Path(folder).stat().st_mtime_ns
            if _has_distributions(folder, changed_ns):
                folders.append((folder, changed_ns))
    return tuple(folders)


@lru_cache(8)
def _installed(folders: tuple[tuple[str, int], ...]) -> Sequence[tuple[EntryPoint, str]]:
    """The entry points of all distributions in these folders, and the distribution of each, always
    in the same order. A server and its forks load the plugins several times, and each search reads
    a file of every distribution."""
    # Once per distribution: each access to an attribute parses its metadata file.
    names: dict[int, tuple[str, str]] = {}
    entries = []
    for entry in entry_points(group=GROUP):
        name, version = "", ""
        if entry.dist is not None:
            if id(entry.dist) not in names:
                names[id(entry.dist)] = entry.dist.name, entry.dist.version
            name, version = names[id(entry.dist)]
        entries.append(
            (name, entry.name, entry, f"{name} {version}" if name else "an unknown distribution")
        )
    return [
        (entry, owner)
        for *_, entry, owner in sorted(entries, key=lambda sort_entry: sort_entry[:2])
    ]


def _chosen(settings: Settings | None) -> Sequence[tuple[EntryPoint, str]]:
    """The entry points to load and the distribution of each, always in the same order."""
    selected = _installed(_folders())
    only = settings.plugins.only if settings is not None else None
    if only is None:
        return selected
    selected_names = {name for entry, _ in selected for name in (entry.name, entry.value)}
    if unknown := [name for name in only if name not in selected_names]:
        installed = ", ".join(sorted(entry.name for entry, _ in selected))
        raise ConfigurationError(
            f"MEMSERVICE_PLUGINS names {', '.join(unknown)}, but the plugins installed are "
            f"{installed}"
        )
    return [
        (entry, owner) for entry, owner in selected if entry.name in only or entry.value in only
    ]


def _mentions_write_hook(entry: EntryPoint) -> bool:
    """Whether the source of a plugin that cannot be imported names a hook that can change or reject
    what is stored. True if there is no source to look into."""
    module = entry.value.partition(":")[0].strip().partition(".")[0]
    try:
        spec = importlib.util.find_spec(module)  # of a top-level name: imports nothing
    except (ImportError, ValueError):
        return True
    if spec is None:
        return True
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [file for folder in folders for file in islice(folder.rglob("*.py"), MAX_FILES)]
    if not folders and spec.origin and spec.origin.endswith(".py"):
        files = [Path(spec.origin)]
    if not files:
        return True
    names = [name.encode() for name in WRITE_HOOKS]
    for file in files:
        try:
            with file.open("rb") as source:
                text = source.read(MAX_BYTES)
        except OSError:
            return True
        if any(name in text for name in names):
            return True
    return False


def _register(
    manager: pluggy.PluginManager,
    plugin: Any,
    origin: Origin,
    origins: dict[str, Origin],
    failures: list[Failure],
) -> None:
    """Register one plugin and check its hooks, or record why it cannot be registered."""
    name = f"{origin.distribution}: {origin.name}"
    may_change_writes = changes_writes(plugin)
    try:
        manager.register(plugin, name)
    except (pluggy.PluginValidationError, ValueError) as error:
        if manager.has_plugin(name) and name not in origins:
            manager.unregister(name=name)
        failures.append(Failure(origin, described(error), may_change_writes=may_change_writes))
        return
    try:
        manager.check_pending()
    except pluggy.PluginValidationError:
        specified = [spec for spec in vars(hookspecs) if spec.startswith(f"{hookspecs.PROJECT}_")]
        unknown = [
            caller.name for caller in manager.get_hookcallers(plugin) or [] if not caller.has_spec()
        ]
        near = [match for hook in unknown for match in get_close_matches(hook, specified, n=1)]
        suggestion = f"; did you mean {near[0]}?" if near else ""
        manager.unregister(name=name)
        failures.append(
            Failure(
                origin,
                f"implements hooks that do not exist: {', '.join(unknown)}{suggestion}",
                may_change_writes=may_change_writes or any(hook in WRITE_HOOKS for hook in near),
            )
        )
        return
    origins[name] = origin


def _declared(
    manager: pluggy.PluginManager, origins: dict[str, Origin], failures: list[Failure]
) -> list[tuple[p.PluginSettings, str]]:
    """The settings that the hooks of each plugin declare, each with the plugin's registered name. A
    plugin whose declaration fails is not used."""
    settings = []
    plugins = implementing(manager, SETTINGS_HOOK)
    for name, origin in [item for item in origins.items() if item[0] in plugins]:
        others = [manager.get_plugin(other) for other in origins if other != name]
        try:
            caller = manager.subset_hook_caller(SETTINGS_HOOK, others)
            declared = [record for answer in caller() for record in answer]
            for record in declared:
                if not isinstance(record, p.PluginSettings):
                    raise TypeError(f"returns {type(record).__name__}, not PluginSettings")
        except Exception as error:  # a plugin may fail in any way
            plugin = manager.get_plugin(name)
            may_change_writes = changes_writes(plugin)
            manager.unregister(name=name)
            del origins[name]
            text = f"{SETTINGS_HOOK} failed: {described(error)}"
            failures.append(Failure(origin, text, may_change_writes=may_change_writes))
            continue
        settings += [(record, name) for record in declared]
    return settings


def _trace_call(
    hook_name: str, hook_impls: Iterable[pluggy.HookImpl], kwargs: Mapping[str, Any]
) -> None:
    names = ", ".join(impl.plugin_name for impl in hook_impls) or "no plugin"
    print(f"{hook_name}({', '.join(kwargs)}) -> {names}", file=sys.stderr)


def _trace_result(
    outcome: pluggy.Result[Any],
    hook_name: str,
    hook_impls: Iterable[pluggy.HookImpl],
    kwargs: Mapping[str, Any],
) -> None:
    if outcome.exception is not None:
        print(f"{hook_name} raised {described(outcome.exception)}", file=sys.stderr)
