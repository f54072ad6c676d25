"""The loaded plugins: their providers, hooks, settings and failures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pluggy

from memservice.domain.errors import ConfigurationError
from memservice.domain.failures import redacted_traceback
from memservice.domain.installation import install_command
from memservice.plugins import requirements, schemas
from memservice.plugins.kinds import KIND_OF, KINDS, Failure, Kind, Origin, Row, described
from memservice.settings.families import transport_key
from memservice.spi import providers as p

if TYPE_CHECKING:
    from memservice.settings.service import PluginSwitches
    from memservice.spi.backups import Backups

log = logging.getLogger("memservice.plugins")

P = TypeVar("P", bound=p.Provider)


class Plugins:
    """The loaded plugins. Created by `load_plugins`; safe for threads."""

    def __init__(
        self,
        manager: pluggy.PluginManager,
        origins: Mapping[str, Origin],
        failures: list[Failure],
        switches: PluginSwitches | None = None,
        declared: list[tuple[p.PluginSettings, str]] | None = None,
    ) -> None:
        """`declared`: the settings of hooks, each with the registered name of its plugin."""
        self._switches = switches
        self._options: Mapping[str, Mapping[str, Any]] = switches.options if switches else {}
        self._declared = declared or []
        self._wrong_settings: list[str] = []
        """What is wrong with the settings of hooks."""
        self._manager = manager
        self._origins = dict(origins)
        self._failures = failures
        self._give_settings()
        self._providers: dict[Kind, list[tuple[p.Provider, Origin]]] = {kind: [] for kind in KINDS}
        for kind in KINDS:
            plugins = implementing(manager, kind.hook)
            for name, origin in self._origins.items():
                if name in plugins:
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
        return tuple(cast(P, provider) for provider, _ in self._providers[KIND_OF[record]])

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
        kind = KIND_OF[type(provider)]
        needed = getattr(provider, "needs_storage", None)
        if needed is not None and (context.storage is None or context.storage.name != needed):
            chosen = f"{context.storage.name!r} is open" if context.storage else "none is open"
            raise ConfigurationError(
                f"{kind.words} {provider.name!r} needs the storage {needed!r}, but "
                f"{chosen}: change {kind.setting}, or unset it to use the storage's own"
            )
        loaded = schemas.load_of_provider(
            provider, settings, section or kind.section, self._table(provider.name)
        )
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
            section = KIND_OF[type(provider)].section
            table = self._table(provider.name)
            provider.erase(schemas.load_of_provider(provider, settings, section, table), context)

    def _give_settings(self) -> None:
        """Call each plugin that declares settings for its hooks with what is set. Wrong settings
        are kept for `check`; a plugin that fails on right ones is not used."""
        for declared, name in self._declared:
            try:
                declared.use(schemas.load_own(declared, self._table(declared.name)))
            except ConfigurationError as error:
                self._wrong_settings.append(str(error))
            except Exception as error:  # a plugin may fail in any way
                if name not in self._origins:
                    continue  # failed on other settings already
                changes_writes = requirements.changes_writes(self._manager.get_plugin(name))
                text = f"cannot use its settings: {described(error)}"
                self._failures.append(
                    Failure(self._origins.pop(name), text, may_change_writes=changes_writes)
                )
                self._manager.unregister(name=name)

    def check(self) -> None:
        """Raises `ConfigurationError` for what must prevent a start: wrong settings of plugins, a
        plugin in PLUGINS_REQUIRED that is not loaded, and one that can change or reject what is
        stored and failed to load."""
        self.check_options()
        problems = requirements.problems(self._switches, self._origins.values(), self._failures)
        if problems:
            raise ConfigurationError("; ".join(problems))

    def backups(
        self, provider: p.StorageProvider, settings: Mapping[str, Any], context: p.Context
    ) -> Backups:
        """The backups of the store that `settings` name. Raises as `open_provider` does, and
        `ConfigurationError` for a storage without backups."""
        kind = KIND_OF[type(provider)]
        if provider.backups is None:
            raise ConfigurationError(
                f"{kind.words} {provider.name!r} has no backups; `memservice export` "
                "writes a workspace to a file"
            )
        table = self._table(provider.name)
        loaded = schemas.load_of_provider(provider, settings, kind.section, table)
        try:
            return provider.backups(loaded, context)
        except ImportError as error:
            raise ConfigurationError(self._missing(kind, provider, error)) from error

    def check_options(self) -> None:
        """Raises `ConfigurationError` for settings of a plugin that is not there, or that it does
        not have or refuses; the message names those that there are."""
        problems = list(self._wrong_settings)
        declared = self.declared_settings() if self._options else {}
        for name, table in self._options.items():
            if name not in declared:
                hint = schemas.nearest(name, [name for name, parts in declared.items() if parts])
                problems.append(f"[plugins.{name}]: no plugin offers anything of that name; {hint}")
                continue
            problems += [
                f"[plugins.{name}] {part}: there is no such setting; "
                f"{schemas.nearest(part, declared[name])}"
                for part in table
                if part not in declared[name]
            ]
        for provider in self._all_providers() if self._options else ():
            own = schemas.own_values(provider.settings, self._table(provider.name))
            problems += schemas.wrong_values(provider.name, provider.settings, own)
        if problems:
            if self._failures:
                failed = ", ".join(sorted({failure.origin.name for failure in self._failures}))
                problems.append(f"failed to load: {failed} (see `memservice plugins`)")
            raise ConfigurationError("; ".join(dict.fromkeys(problems)))

    def declared_settings(self) -> dict[str, dict[str, Any]]:
        """By name, as variables spell it, the fields that `[plugins.NAME]` may have: those of all
        providers and hooks of that name."""
        fields: dict[str, dict[str, Any]] = {}
        declared = [
            *((provider.name, provider.settings) for provider in self._all_providers()),
            *((record.name, record.settings) for record, _ in self._declared),
        ]
        for name, schema in declared:
            fields.setdefault(transport_key(name), {}).update(schemas.fields_of(schema))
        return fields

    @property
    def settings_of_hooks(self) -> frozenset[str]:
        """The names, as variables spell them, under which hooks declare settings."""
        return frozenset(transport_key(record.name) for record, _ in self._declared)

    def _all_providers(self) -> Iterator[p.Provider]:
        for entries in self._providers.values():
            yield from (provider for provider, _ in entries)

    def _table(self, name: str) -> Mapping[str, Any]:
        """`[plugins.NAME]`."""
        return self._options.get(transport_key(name), {})

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
            self._failures.append(Failure(origin, f"{kind.hook} failed: {described(error)}", kind))
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
        kind, name = KIND_OF[record], requested.strip().lower()
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
        names = self.names(kind.words)
        near = get_close_matches(name, names, n=2)
        message = (
            f"no plugin offers {_a(kind.words)} called {name!r} ({kind.setting}); known: "
            f"{', '.join(names) or 'none'}"
        )
        if near:
            message += f"; did you mean {' or '.join(near)}?"
        elif record is p.StorageProvider and ("/" in name or "." in name):
            message += f"; write a URI, which begins with one of them, such as {_default_uri()}"
        elif record is p.VectorIndexProvider:
            message += f"; unset {kind.setting} to keep vectors in the storage"
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
            return f"{subject} cannot be opened: {described(error)}"
        owner = _distribution(origin)
        extras = [] if owner is None else owner.metadata.get_all("Provides-Extra") or []
        for extra in (provider.name, origin.name if origin else ""):
            if owner is not None and extra in extras:
                return (
                    f"{subject} needs {module}, which is not installed: "
                    f"{install_command(f'{owner.name}[{extra}]')}"
                )
        return f"{subject} needs {module}, which is not installed: {install_command(module)}"


def implementing(manager: pluggy.PluginManager, hook: str) -> set[str]:
    """The registered names of the plugins that implement a hook."""
    return {
        implementation.plugin_name for implementation in getattr(manager.hook, hook).get_hookimpls()
    }


def _default_uri() -> str:
    from memservice.settings.service import Db

    return Db().connection_uri


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
