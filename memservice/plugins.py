"""Loading plugins and finding their providers.

`load_plugins` runs once, at startup. A plugin that cannot be loaded is recorded with the reason and
does not affect others. The reason is reported when a provider of that plugin is needed.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    distribution,
    entry_points,
)
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pluggy

from memservice import hookspecs
from memservice.domain.errors import ConfigurationError
from memservice.domain.failures import redacted_traceback
from memservice.settings.families import transport_key
from memservice.spi import providers as p

if TYPE_CHECKING:
    from memservice.settings import Settings

log = logging.getLogger("memservice.plugins")

GROUP = "memservice"
"""The entry-point group of all plugins, built-in and third-party."""

P = TypeVar("P", bound=p.Provider)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of provider: its registration hook, and its name in messages."""

    hook: str
    record: type[Any]
    words: str
    setting: str
    """The setting that names a provider of this kind."""
    section: str
    """The section of its settings, for messages."""


KINDS = (
    Kind("memservice_storages", p.StorageProvider, "storage", "DB_CONNECTION_URI", "db"),
    Kind(
        "memservice_vector_indexes",
        p.VectorIndexProvider,
        "vector index",
        "VECTOR_STORE_TYPE",
        "vector_store",
    ),
    Kind(
        "memservice_llms",
        p.LanguageModelProvider,
        "language-model protocol",
        "…MODEL_CONFIG__TRANSPORT",
        "llm",
    ),
    Kind(
        "memservice_embedders", p.EmbedderProvider, "embedder", "EMBEDDER", "embedding.model_config"
    ),
    Kind("memservice_reasoners", p.ReasonerProvider, "reasoner", "REASONER", "reasoner"),
    Kind(
        "memservice_webhook_transports",
        p.WebhookTransportProvider,
        "webhook transport",
        "the endpoint's URL",
        "webhook",
    ),
)
_KIND_OF: dict[type[Any], Kind] = {kind.record: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a plugin."""

    name: str
    """The name of the entry point; for a plugin passed in code, of the object."""
    target: str
    distribution: str
    """Name and version, such as `memservice 0.1.0`; `code` for a plugin passed in code."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A plugin, or one of its providers, that cannot be used, and the reason."""

    origin: Origin
    reason: str
    kind: Kind | None = None
    """None: the whole plugin."""
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `memservice plugins`."""

    kind: str
    """`storage`, `vector index`, … , `hook` for a listener, `failed`."""
    name: str
    plugin: str
    distribution: str
    detail: str
    """Capabilities, or the reason for a failure."""


class Plugins:
    """The loaded plugins. Created by `load_plugins`; safe for threads."""

    def __init__(
        self,
        manager: pluggy.PluginManager,
        origins: Mapping[str, Origin],
        failures: list[Failure],
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """`options`: `PluginSwitches.options`."""
        self._options = options or {}
        self._manager = manager
        self._origins = origins
        self._failures = failures
        self._providers: dict[Kind, list[tuple[p.Provider, Origin]]] = {kind: [] for kind in KINDS}
        for kind in KINDS:
            for name, origin in origins.items():
                self._collect(kind, name, origin)
        for kind in KINDS:
            self._report_duplicates(kind)

    @property
    def hook(self) -> pluggy.HookRelay:
        """Calls event hooks: `plugins.hook.memservice_app_started(app=app)`."""
        return self._manager.hook

    @property
    def hears_events(self) -> bool:
        """Whether any plugin listens to events."""
        return bool(self.hook.memservice_event_emitted.get_hookimpls())

    def emit(self, kind: str, data: Callable[[], dict[str, Any]]) -> None:
        """Call plugins for a committed event. A listener cannot undo the commit, so its failure is
        only logged."""
        if not self.hears_events:
            return
        try:
            self.hook.memservice_event_emitted(type=kind, data=data())
        except Exception as error:  # a plugin may fail in any way
            log.error(
                "a plugin failed on the event %s: %s\n%s",
                kind,
                type(error).__name__,
                redacted_traceback(error),
            )

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(self._failures)

    def storage(self, name_or_uri: str) -> p.StorageProvider:
        """The storage with this name, or for the scheme of this URI. Like all look-ups, raises
        `ConfigurationError` if there is none."""
        scheme = name_or_uri.partition(":")[0].partition("+")[0]
        return self._find(p.StorageProvider, scheme)

    def vector_index(self, name: str) -> p.VectorIndexProvider:
        return self._find(p.VectorIndexProvider, name)

    def language_model(self, name: str) -> p.LanguageModelProvider:
        return self._find(p.LanguageModelProvider, name)

    def embedder(self, name: str) -> p.EmbedderProvider:
        return self._find(p.EmbedderProvider, name)

    def reasoner(self, name: str) -> p.ReasonerProvider:
        return self._find(p.ReasonerProvider, name)

    def webhook_transport(self, name_or_url: str) -> p.WebhookTransportProvider:
        return self._find(p.WebhookTransportProvider, name_or_url.partition(":")[0])

    def providers_of(self, record: type[P]) -> tuple[P, ...]:
        """Every usable provider of one kind, in no particular order."""
        return tuple(cast(P, provider) for provider, _ in self._providers[_KIND_OF[record]])

    def names(self, words: str) -> list[str]:
        """The names of all providers of one kind. `words` names the kind as in messages, for
        instance `vector index`."""
        return sorted(
            {
                name
                for kind in KINDS
                if kind.words == words
                for provider, _ in self._providers[kind]
                for name in _names(provider)
            }
        )

    def open_provider(
        self,
        provider: p.Provider,
        settings: Mapping[str, Any],
        context: p.Context,
        *,
        section: str = "",
    ) -> Any:
        """Check `settings` against the provider's schema, then open the provider.

        Names outside the schema are ignored, so that `settings` can be a whole section. Under
        `options`, which belongs to this provider only, every name must be in the schema. `section`
        is the start of setting paths in messages. Raises `ConfigurationError` with all invalid
        settings, for a missing driver, and for a storage that the provider does not support.
        """
        kind = _KIND_OF[type(provider)]
        needed = getattr(provider, "needs_storage", None)
        if needed is not None and (context.storage is None or context.storage.name != needed):
            chosen = f"{context.storage.name!r} is open" if context.storage else "none is open"
            raise ConfigurationError(
                f"{kind.words} {provider.name!r} needs the storage {needed!r}, but "
                f"{chosen}: change {kind.setting}"
            )
        loaded = _validated(provider, settings, section or kind.section, self._own(provider))
        try:
            return provider.open(loaded, context)
        except ImportError as error:
            raise ConfigurationError(self._missing(kind, provider, error)) from error

    def erase(
        self,
        provider: p.StorageProvider | p.VectorIndexProvider,
        settings: Mapping[str, Any],
        context: p.Context,
    ) -> None:
        """Delete everything in the store that `settings` name, if the provider supports it. Raises
        as `open_provider` does."""
        if provider.erase is not None:
            provider.erase(
                _validated(
                    provider, settings, _KIND_OF[type(provider)].section, self._own(provider)
                ),
                context,
            )

    def check_options(self) -> None:
        """Raises `ConfigurationError` for settings of a plugin that is not there, or that it does
        not have; the message names those that there are."""
        problems = []
        schemas = self._option_fields()
        for name, table in self._options.items():
            if name not in schemas:
                hint = _near(name, [known for known, fields in schemas.items() if fields])
                problems.append(f"[plugins.{name}]: no plugin offers anything of that name; {hint}")
                continue
            problems += [
                f"[plugins.{name}] {part}: there is no such setting; {_near(part, schemas[name])}"
                for part in table
                if part not in schemas[name]
            ]
        if problems:
            if self._failures:
                failed = ", ".join(sorted({failure.origin.name for failure in self._failures}))
                problems.append(f"failed to load: {failed} (see `memservice plugins`)")
            raise ConfigurationError("; ".join(problems))

    def _option_fields(self) -> dict[str, set[str]]:
        """By name, as variables spell it, the fields of all providers of that name."""
        fields: dict[str, set[str]] = {}
        for entries in self._providers.values():
            for provider, _ in entries:
                fields.setdefault(transport_key(provider.name), set()).update(_fields(provider))
        return fields

    def _own(self, provider: p.Provider) -> dict[str, Any]:
        """The settings of `[plugins.NAME]` that one provider has. A text from a variable stands for
        JSON where the provider wants a list or an object."""
        table = self._options.get(transport_key(provider.name), {})
        fields = _fields(provider)
        return {
            name: _decoded(value, fields[name]) for name, value in table.items() if name in fields
        }

    def listing(self) -> list[Row]:
        """All providers, hooks and failures, each with its plugin."""
        rows = [
            Row(
                kind.words,
                provider.name,
                origin.name,
                origin.distribution,
                ", ".join(sorted(provider.capabilities)),
            )
            for kind in KINDS
            for provider, origin in sorted(self._providers[kind], key=lambda item: item[0].name)
        ]
        registration = {kind.hook for kind in KINDS}
        for name, origin in self._origins.items():
            for caller in self._manager.get_hookcallers(self._manager.get_plugin(name)) or []:
                if caller.name not in registration:
                    rows.append(Row("hook", caller.name, origin.name, origin.distribution, ""))
        for failure in self._failures:
            name = failure.provider or failure.origin.name
            rows.append(
                Row(
                    "failed", name, failure.origin.name, failure.origin.distribution, failure.reason
                )
            )
        return rows

    def _collect(self, kind: Kind, plugin: str, origin: Origin) -> None:
        """Get the providers of one kind from one plugin."""
        others = [self._manager.get_plugin(name) for name in self._origins if name != plugin]
        try:
            caller = self._manager.subset_hook_caller(kind.hook, others)
            providers = [provider for answer in caller() for provider in answer]
        except Exception as error:  # a plugin may fail in any way; reported when it is needed
            self._failures.append(Failure(origin, f"{kind.hook} failed: {_reason(error)}", kind))
            return
        for provider in providers:
            name = getattr(provider, "name", None)
            if not isinstance(provider, kind.record):
                reason = (
                    f"{kind.hook} returns {type(provider).__name__}, not {kind.record.__name__}"
                )
            elif not name:
                reason = f"{kind.hook} returns {_a(kind.words)} without a name"
            elif provider.spi != p.SPI_VERSION:
                reason = (
                    f"{kind.words} {name!r} was written for version {provider.spi} of "
                    f"memservice.spi, this is version {p.SPI_VERSION}: "
                    f"install a compatible release of {origin.distribution}"
                )
            else:
                self._providers[kind].append((provider, origin))
                continue
            self._failures.append(Failure(origin, reason, kind, name))

    def _report_duplicates(self, kind: Kind) -> None:
        """Make providers with the same name or scheme unusable, and record their plugins as the
        reason."""
        owners: dict[str, list[tuple[p.Provider, Origin]]] = {}
        for entry in self._providers[kind]:
            for name in _names(entry[0]):
                owners.setdefault(name, []).append(entry)
        for name, duplicates in owners.items():
            if len(duplicates) < 2:
                continue
            owners_text = " and ".join(
                f"{origin.distribution} ({origin.name} = {origin.target})"
                for _, origin in duplicates
            )
            reason = (
                f"{kind.words} {name!r} is offered by {owners_text}: remove one, or name the "
                "plugins to load in MEMSERVICE_PLUGINS"
            )
            for duplicate in duplicates:
                self._failures.append(Failure(duplicate[1], reason, kind, name))
                if duplicate in self._providers[kind]:
                    self._providers[kind].remove(duplicate)

    def _find(self, record: type[P], requested: str) -> P:
        kind, name = _KIND_OF[record], requested.strip().lower()
        for provider, _ in self._providers[kind]:
            if name in _names(provider):
                return cast(P, provider)
        for failure in self._failures:
            is_cause = (
                failure.provider == name
                if failure.provider
                else failure.kind in (None, kind) and failure.origin.name == name
            )
            if is_cause:
                source = f"plugin {failure.origin.name!r} of {failure.origin.distribution}"
                raise ConfigurationError(
                    f"{kind.words} {name!r} cannot be used ({source}): {failure.reason}"
                )
        known = self.names(kind.words)
        near = get_close_matches(name, known, n=2)
        message = (
            f"no plugin offers {_a(kind.words)} called {name!r} ({kind.setting}); known: "
            f"{', '.join(known) or 'none'}"
        )
        if near:
            message += f"; did you mean {' or '.join(near)}?"
        if self._failures:
            message += (
                "; failed to load: "
                f"{', '.join(sorted({f.origin.name for f in self._failures}))} (see "
                "`memservice plugins`)"
            )
        raise ConfigurationError(message)

    def _missing(self, kind: Kind, provider: p.Provider, error: ImportError) -> str:
        """The message for a driver that cannot be imported."""
        origin = next(
            (origin for candidate, origin in self._providers[kind] if candidate is provider), None
        )
        subject = f"{kind.words} {provider.name!r}"
        module = (error.name or "").partition(".")[0]
        own = origin is not None and module == origin.target.partition(":")[0].partition(".")[0]
        if not isinstance(error, ModuleNotFoundError) or not module or own:
            return f"{subject} cannot be opened: {_reason(error)}"
        owner = _distribution(origin)
        extras = [] if owner is None else owner.metadata.get_all("Provides-Extra") or []
        for extra in (provider.name, origin.name if origin else ""):
            if owner is not None and extra in extras:
                return (
                    f"{subject} needs {module}, which is not installed: pip install "
                    f"'{owner.name}[{extra}]'"
                )
        return f"{subject} needs {module}, which is not installed: pip install {module}"


def load_plugins(settings: Settings | None = None, extra: Iterable[object] = ()) -> Plugins:
    """Load the plugins of every installed distribution, and those in `extra` (modules or objects
    with hooks).

    Never raises for a broken plugin: see `Plugins.failures`. Raises `ConfigurationError` if
    `MEMSERVICE_PLUGINS` names one that is not installed.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
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
            failures.append(Failure(origin, f"cannot be imported: {_reason(error)}"))
            continue
        _register(manager, plugin, origin, origins, failures)
    for plugin in extra:
        name = getattr(plugin, "__name__", None) or type(plugin).__name__
        _register(manager, plugin, Origin(name, name, "code"), origins, failures)
    options = settings.plugins.options if settings is not None else None
    return Plugins(manager, origins, failures, options)


def _chosen(settings: Settings | None) -> list[tuple[EntryPoint, str]]:
    """The entry points to load and the distribution of each, always in the same order."""
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
    selected = [
        (entry, owner)
        for *_, entry, owner in sorted(entries, key=lambda sort_entry: sort_entry[:2])
    ]
    only = settings.plugins.only if settings is not None else None
    if only is None:
        return selected
    known = {name for entry, _ in selected for name in (entry.name, entry.value)}
    if unknown := [name for name in only if name not in known]:
        installed = ", ".join(sorted(entry.name for entry, _ in selected))
        raise ConfigurationError(
            f"MEMSERVICE_PLUGINS names {', '.join(unknown)}, but the plugins installed are "
            f"{installed}"
        )
    return [
        (entry, owner) for entry, owner in selected if entry.name in only or entry.value in only
    ]


def _register(
    manager: pluggy.PluginManager,
    plugin: Any,
    origin: Origin,
    origins: dict[str, Origin],
    failures: list[Failure],
) -> None:
    """Register one plugin and check its hooks, or record why it cannot be registered."""
    name = f"{origin.distribution}: {origin.name}"
    try:
        manager.register(plugin, name)
    except (pluggy.PluginValidationError, ValueError) as error:
        if manager.has_plugin(name) and name not in origins:
            manager.unregister(name=name)
        failures.append(Failure(origin, _reason(error)))
        return
    try:
        manager.check_pending()
    except pluggy.PluginValidationError:
        specified = [spec for spec in vars(hookspecs) if spec.startswith(f"{hookspecs.PROJECT}_")]
        unknown = [
            caller.name for caller in manager.get_hookcallers(plugin) or [] if not caller.has_spec()
        ]
        near = get_close_matches(unknown[0], specified, n=1)
        suggestion = f"; did you mean {near[0]}?" if near else ""
        manager.unregister(name=name)
        failures.append(
            Failure(origin, f"implements hooks that do not exist: {', '.join(unknown)}{suggestion}")
        )
        return
    origins[name] = origin


def _fields(provider: p.Provider) -> dict[str, Any]:
    """The fields of a provider's schema, by the names that settings have."""
    if provider.settings is None:
        return {}
    fields = provider.settings().fields
    return {field.data_key or name: field for name, field in fields.items()}


def _decoded(value: Any, field: Any) -> Any:
    from marshmallow import fields as kinds

    if isinstance(value, str) and isinstance(field, kinds.List | kinds.Mapping | kinds.Nested):
        try:
            return json.loads(value)
        except ValueError:
            return value  # the schema says what is wrong with it
    return value


def _near(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(names) or 'none'}"


def _validated(
    provider: p.Provider, settings: Mapping[str, Any], section: str, own: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The settings loaded by the provider's schema; unchanged if it has none. `own`: the table
    `[plugins.NAME]`, which takes precedence."""
    options = dict(settings.get("options") or {})
    common = {name: value for name, value in settings.items() if name != "options"}
    if provider.settings is None:
        return common | options
    from marshmallow import EXCLUDE, ValidationError

    schema = provider.settings()
    known = _fields(provider)
    problems = [
        f"{section}.options.{name}: there is no such setting; {_near(name, known)}"
        for name in options.keys() - known
    ]
    loaded: Mapping[str, Any] = {}
    try:
        loaded = schema.load({**common, **options, **own}, unknown=EXCLUDE)
    except ValidationError as error:
        for path, message in _flat(error.messages, ()):
            if path[0] in own:
                setting_path: tuple[str, ...] = ("plugins", transport_key(provider.name), *path)
            else:
                setting_path = (section, *(("options", *path) if path[0] in options else path))
            problems.append(f"{'.'.join(setting_path)}: {message}")
    if problems:
        raise ConfigurationError(
            f"the settings of {provider.name!r} cannot be used: " + "; ".join(sorted(problems))
        )
    return loaded


def _flat(messages: Any, path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], str]]:
    if isinstance(messages, Mapping):
        for key, value in messages.items():
            yield from _flat(value, (*path, str(key)))
    elif isinstance(messages, list):
        for message in messages:
            yield from _flat(message, path)
    else:
        yield path or ("_schema",), str(messages)


def _a(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _names(provider: p.Provider) -> set[str]:
    """The provider's name and its schemes."""
    return {provider.name, *(scheme.lower() for scheme in getattr(provider, "schemes", ()))}


def _distribution(origin: Origin | None) -> Distribution | None:
    try:
        return distribution(origin.distribution.partition(" ")[0]) if origin else None
    except PackageNotFoundError:
        return None


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


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
        print(f"{hook_name} raised {_reason(outcome.exception)}", file=sys.stderr)
