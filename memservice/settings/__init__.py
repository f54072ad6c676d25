"""Settings: defaults in code < a TOML file < `.env` in the working directory < the environment.

`load_settings` reads them once, at start-up, and answers every mistake at once. The result is
frozen and safe to share.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memservice.domain.errors import ConfigurationError
from memservice.settings import data_directory, families, sources
from memservice.settings.declare import Leaf, hints, optional, section, tree
from memservice.settings.inheritance import Inheritance
from memservice.settings.models import DEFAULT_TRANSPORT, Connection
from memservice.settings.sections import (
    Deriver,
    Dialectic,
    Dream,
    Embedding,
    Llm,
    PeerCard,
    Representation,
    Search,
    Summary,
    VectorStore,
)
from memservice.settings.service import (
    SIGNING_RECIPE,
    Api,
    App,
    Auth,
    Budget,
    Console,
    Db,
    Mcp,
    Metrics,
    PluginSwitches,
    Retention,
    Server,
    Telemetry,
    Webhook,
    Worker,
)
from memservice.settings.sources import Given, Layer
from memservice.settings.values import MASK, mask_uri, read, show

__all__ = ["DEFAULT_FILE", "SIGNING_RECIPE", "SettingRow", "Settings", "load_settings", "mask_uri"]

DEFAULT_FILE = "memservice.toml"
PRICES = ("input", "output", "cache_read", "cache_write")
"""Per million tokens, of one model in LLM_PRICES."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as `memservice config show` prints it."""

    name: str
    value_text: str
    """Masked as far as it is secret; empty where nothing is set."""
    source: str
    """`default`, a file's path, `environment`, or what else gave the value."""
    secret: bool
    aliases: tuple[str, ...]
    help: str
    toml: str
    """Its place in the TOML file."""


@dataclass(frozen=True)
class Settings:
    """Everything that an operator can set. `Settings()` holds the defaults."""

    app: App = section(App(), "")
    server: Server = section(Server(), "")
    db: Db = section(Db(), "DB_")
    auth: Auth = section(Auth(), "AUTH_")
    api: Api = section(Api(), "API_")
    console: Console = section(Console(), "CONSOLE_")
    mcp: Mcp = section(Mcp(), "MCP_")
    llm: Llm = section(Llm(), "LLM_")
    embedding: Embedding = section(Embedding(), "EMBEDDING_")
    deriver: Deriver = section(Deriver(), "DERIVER_")
    peer_card: PeerCard = section(PeerCard(), "PEER_CARD_")
    dialectic: Dialectic = section(Dialectic(), "DIALECTIC_")
    summary: Summary = section(Summary(), "SUMMARY_")
    dream: Dream = section(Dream(), "DREAM_")
    search: Search = section(Search(), "SEARCH_")
    representation: Representation = section(Representation(), "REPRESENTATION_")
    vector_store: VectorStore = section(VectorStore(), "VECTOR_STORE_")
    worker: Worker = section(Worker(), "WORKER_")
    budget: Budget = section(Budget(), "BUDGET_")
    retention: Retention = section(Retention(), "RETENTION_")
    webhook: Webhook = section(Webhook(), "WEBHOOK_")
    metrics: Metrics = section(Metrics(), "METRICS_")
    telemetry: Telemetry = section(Telemetry(), "TELEMETRY_")
    plugins: PluginSwitches = section(PluginSwitches(), "MEMSERVICE_PLUGINS_")

    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Where each value that is not a default came from, by canonical name."""
    mistyped: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Sentences about variables that are ignored because they only resemble a setting."""
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """These, and sentences about all other names that have no effect."""
    file: Path | None = field(default=None, compare=False)
    """The TOML file that was read."""
    data_directory: Path | None = field(default=None, repr=False, compare=False)
    """Where the store is because no setting names it, and the working directory holds neither
    configuration nor a store. None in all other cases."""

    def is_set(self, name: str) -> bool:
        """Whether anything other than the default decided the setting of this canonical name."""
        return name in self.sources

    def rows(self, everything: bool = False) -> list[SettingRow]:
        """Every setting in order. The many of a model's that are empty are left out unless
        `everything` is wanted."""
        named = (families.of_variable(name) for name in self.sources)
        leaves = (*tree(Settings).leaves, *(leaf for leaf in named if leaf))
        return [
            row
            for leaf in leaves
            if (row := self._row(leaf)) and (everything or not _dull(leaf, row))
        ]

    def _row(self, leaf: Leaf) -> SettingRow | None:
        value: Any = self
        for attribute in leaf.path:
            is_mapping = isinstance(value, Mapping)
            value = value.get(attribute) if is_mapping else getattr(value, attribute)
            if value is None:
                break
        source = self.sources.get(leaf.name, "default")
        secrecy = leaf.meta.secrecy
        return SettingRow(
            leaf.name,
            show(value, secrecy),
            source,
            secrecy == "secret",
            leaf.aliases,
            leaf.meta.help,
            leaf.toml,
        )


def load_settings(
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Read all layers and check every value.

    `config` names the TOML file; else `MEMSERVICE_CONFIG` does; else `memservice.toml` in `cwd` is
    read if it is there. `overrides` (a command line's options, by canonical name) are strongest.
    Raises `ConfigurationError` that lists every mistake with the setting, its source, its value
    (masked if secret) and what is allowed.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    file = _file(config, environ, cwd)
    declared = tree(Settings)
    layers: list[Layer] = []
    if file is not None:
        layers.append(sources.from_toml(file, declared))
    dotenv = cwd / ".env"
    if dotenv.is_file():
        layers.append(sources.from_dotenv(dotenv, declared))
    is_configured_here = any(layer.values for layer in layers) or file is not None
    layers.append(sources.from_variables(environ, declared, "environment", ours=False))
    layers.append(sources.from_overrides(overrides or {}, declared, "command line"))

    problems = [problem for layer in layers for problem in layer.problems]
    raw_values = {leaf: value for layer in layers for leaf, value in layer.values.items()}
    values: dict[tuple[str, ...], Any] = {}
    for leaf, value in raw_values.items():
        try:
            values[leaf.path] = read(leaf, value.raw)
        except ValueError as error:
            problems.append(sources.refusal(leaf, value, str(error)))
    origin = {leaf.name: _source(leaf, value) for leaf, value in raw_values.items()}
    problems.extend(
        _read_named_keys(values, origin, {**sources.dotenv_variables(dotenv), **environ})
    )
    data = None if is_configured_here else _choose_store(values, origin, environ, cwd)
    Inheritance(declared, values, origin, _is_plugin).apply()
    _choose_embedder(values, origin)
    _collapse(values)
    settings: Settings = _build(Settings, (), values, Settings())
    if not problems:
        problems.extend(_contradictions(settings))
    if problems:
        raise ConfigurationError(
            "\n".join(["the settings cannot be used:", *(f"  {problem}" for problem in problems)])
        )
    for layer in layers:
        layer.forget_replaced(origin)
    return replace(
        settings,
        sources=origin,
        mistyped=tuple(note for layer in layers for note in layer.mistyped.values()),
        notes=tuple(note for layer in layers for note in layer.notes()),
        file=file,
        data_directory=data,
    )


def _file(config: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    named = config or environ.get("MEMSERVICE_CONFIG", "").strip() or None
    if named is None:
        default = cwd / DEFAULT_FILE
        return default if default.is_file() else None
    path = cwd / Path(named).expanduser()
    if not path.is_file():
        by = "--config" if config else "MEMSERVICE_CONFIG"
        raise ConfigurationError(f"there is no file {path}, which {by} names")
    return path


def _source(leaf: Leaf, raw_value: Given) -> str:
    plain = raw_value.name == leaf.name or raw_value.name.startswith("[")
    return raw_value.source if plain else f"{raw_value.source}, as {raw_value.name}"


def _build(
    kind: Any, path: tuple[str, ...], values: Mapping[tuple[str, ...], Any], default: Any
) -> Any:
    """An instance of `kind` with the values given below `path`; everything else as in `default`.
    None if there is neither."""
    changed: dict[str, Any] = {}
    for part in dataclasses.fields(kind):
        here = (*path, part.name)
        if here in values:
            changed[part.name] = values[here]
        elif any(configured[: len(here)] == here for configured in values):
            inner, _ = optional(hints(kind)[part.name])
            changed[part.name] = _build(inner, here, values, getattr(default, part.name, None))
    return replace(default, **changed) if default is not None else kind(**changed)


def _read_named_keys(
    values: dict[tuple[str, ...], Any], origin: dict[str, str], variables: Mapping[str, str]
) -> Iterator[str]:
    """`API_KEY_ENV = NAME` means the key that the variable NAME holds, unless the key itself is
    set."""
    by_path = tree(Settings).by_path
    for path in [path for path in values if path[-1] == "api_key_env"]:
        key, name = (*path[:-1], "api_key"), values[path]
        if not name or values.get(key):
            continue
        key_value = variables.get(name, "").strip()
        if not key_value:
            # The key itself, written here by mistake, must not be shown.
            name_or_mask = name if _VARIABLE.fullmatch(name) else MASK
            yield (
                f"{by_path[path].name} = {name_or_mask}: that variable is not set, neither in the "
                "environment nor in .env"
            )
            continue
        values[key] = key_value
        origin[by_path[key].name] = f"the variable {name}"


def _is_plugin(name: str) -> bool:
    """Whether a plugin of that name is installed."""
    from importlib.metadata import entry_points

    return name in entry_points(group="memservice").names


def _collapse(values: dict[tuple[str, ...], Any]) -> None:
    """Put what has free names into the mappings of `Llm.connections` and
    `PluginSwitches.options`."""
    connections = families.collapse(values, families.CONNECTIONS)
    if connections:
        values[families.CONNECTIONS.path] = {
            name: Connection(**parts) for name, parts in connections.items()
        }
    options = families.collapse(values, families.OPTIONS)
    if options:
        values[families.OPTIONS.path] = options


def _choose_store(
    values: dict[tuple[str, ...], Any],
    origin: dict[str, str],
    environ: Mapping[str, str],
    cwd: Path,
) -> Path | None:
    """Without a store in the working directory, the default one is in the user's data directory,
    which is returned."""
    path, usual = ("db", "connection_uri"), Db().connection_uri
    folder = data_directory.directory(environ)
    if path in values or folder is None or (cwd / data_directory.file_name(usual)).exists():
        return None
    values[path] = data_directory.uri_in(folder, usual)
    origin["DB_CONNECTION_URI"] = "the data directory"
    return folder


def _choose_embedder(values: dict[tuple[str, ...], Any], origin: dict[str, str]) -> None:
    """Saying how an embedding model is reached chooses it, unless `EMBEDDER` is set."""
    config = ("embedding", "model_config")
    if ("app", "embedder") in values:
        return
    for path, name in (
        ((*config, "transport"), "TRANSPORT"),
        ((*config, "overrides", "base_url"), "OVERRIDES__BASE_URL"),
    ):
        if values.get(path):
            values["app", "embedder"] = values.get((*config, "transport"), DEFAULT_TRANSPORT)
            origin["EMBEDDER"] = f"follows EMBEDDING_MODEL_CONFIG__{name}"
            return


def _contradictions(settings: Settings) -> Iterator[str]:
    summary, deriver = settings.summary, settings.deriver
    if summary.messages_per_short_summary >= summary.messages_per_long_summary:
        yield (
            f"SUMMARY_MESSAGES_PER_SHORT_SUMMARY = {summary.messages_per_short_summary} "
            "must be less than "
            f"SUMMARY_MESSAGES_PER_LONG_SUMMARY = {summary.messages_per_long_summary}"
        )
    if deriver.polling_sleep_interval_seconds > deriver.polling_sleep_max_interval_seconds:
        yield (
            "DERIVER_POLLING_SLEEP_INTERVAL_SECONDS = "
            f"{deriver.polling_sleep_interval_seconds} must not exceed "
            "DERIVER_POLLING_SLEEP_MAX_INTERVAL_SECONDS = "
            f"{deriver.polling_sleep_max_interval_seconds}"
        )
    if deriver.timezone is not None:
        yield from _unknown_time_zone(deriver.timezone)
    if settings.auth.use_auth and not settings.auth.jwt_secret:
        yield f"AUTH_USE_AUTH = true needs AUTH_JWT_SECRET. {SIGNING_RECIPE}"
    if settings.auth.use_auth:
        yield from settings.auth.short_secrets()
    if settings.app.allowed_hosts:
        yield from _bad_hosts(settings.app.allowed_hosts)
    if settings.webhook.allow_networks:
        yield from _bad_networks(settings.webhook.allow_networks)
    yield from (
        (
            f"BUDGET_WORKSPACES: the bound of {name!r} is {bound!r}; write a number of tokens, "
            "or null for none"
        )
        for name, bound in settings.budget.workspaces.items()
        if bound is not None and (type(bound) is not int or bound < 0)
    )
    yield from _bad_prices(settings.llm.prices)
    if settings.telemetry.enabled and not settings.telemetry.endpoint:
        yield "TELEMETRY_ENABLED = true needs TELEMETRY_ENDPOINT"


def _unknown_time_zone(name: str) -> Iterator[str]:
    from memservice.domain.time_zones import time_zone

    if time_zone(name) is None:
        yield (
            f"DERIVER_TIMEZONE = {name}: an unknown time zone; write a name such as "
            "Europe/Berlin, or an offset such as +02:00"
        )


def _bad_prices(prices: Mapping[str, Any]) -> Iterator[str]:
    for model, price in prices.items():
        if not isinstance(price, Mapping) or not price:
            yield f'LLM_PRICES: write the prices of {model!r} as {{"input": 0.25, "output": 2}}'
            continue
        for name, value in price.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if name not in PRICES or not is_number or not 0 <= value < float("inf"):
                yield (
                    f"LLM_PRICES: {name!r} of {model!r} is {value!r}; known prices are "
                    f"{', '.join(PRICES)}, each a number of 0 or more per million tokens"
                )


def _bad_hosts(hosts: Sequence[str]) -> Iterator[str]:
    for host in hosts:
        if host != "*" and (
            not host.strip(". ") or any(mark in host for mark in "/*@ ") or host.count(":") == 1
        ):
            yield (
                f"ALLOWED_HOSTS: {host!r} is no host name; write it as memory.example.com, or "
                ".example.com for all below it"
            )


def _bad_networks(networks: Sequence[str]) -> Iterator[str]:
    from ipaddress import ip_network

    for network in networks:
        try:
            ip_network(network.strip(), strict=False)
        except ValueError:
            yield (
                f"WEBHOOK_ALLOW_NETWORKS: {network!r} is no network; write it as 10.0.0.0/8 or "
                "fd00::/8"
            )


def _dull(leaf: Leaf, row: SettingRow) -> bool:
    in_model = any(part.endswith(("model_config", "fallback")) for part in leaf.path[:-1])
    unset = not row.value_text or "fallback" in leaf.path or row.value_text in ("[]", "{}")
    return in_model and unset and row.source == "default"
