"""The sections of the settings that concern the running service. Times are in the unit that the
name ends with, else seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memservice.settings.declare import Group, open_mapping, setting


@dataclass(frozen=True, eq=False, repr=False)
class App(Group):
    """What concerns the whole service."""

    log_level: str = setting(
        "info",
        "minimum log level",
        choices=("debug", "info", "warning", "error", "critical"),
    )
    log_format: str = setting(
        "text", "`text`, or `json` for one JSON object per line", choices=("text", "json")
    )
    reasoning_traces_file: str | None = setting(
        None,
        "append every request to a model and its answer to this file; it contains what users wrote",
        secrecy="public",
    )
    reasoner: str = setting(
        "auto",
        (
            "`auto`: `llm` where a model is configured, else `extractive`; or the name of a "
            "reasoner plugin"
        ),
        secrecy="public",
    )
    embedder: str = setting(
        "hashed",
        "the name of an embedder plugin; never switched silently on a store that has vectors",
        secrecy="public",
    )
    redis_url: str | None = setting(
        None,
        "if set, RQ delivers background work; otherwise, workers poll the store",
        secrecy="uri",
    )
    namespace: str = setting(
        "memservice",
        "names this installation in telemetry, metrics and shared vector stores",
        secrecy="public",
    )
    session_observers_limit: int = setting(
        10, "maximum number of members of a session that observe others", low=0
    )
    max_file_size: int = setting(5_242_880, "maximum size of an upload, in bytes", low=1)
    get_context_max_tokens: int = setting(
        100_000, "maximum size of a context, in tokens", low=1, high=250_000
    )
    max_message_size: int = setting(25_000, "maximum length of a message, in characters", low=1)
    embed_messages: bool = setting(
        True, "store vectors of messages, if the embedder is a semantic one"
    )
    cors_origins: tuple[str, ...] = setting(
        ("http://localhost", "http://127.0.0.1:8000"),
        "origins whose pages may call this server from a browser; `*` for all",
        secrecy="public",
    )
    allowed_hosts: tuple[str, ...] = setting(
        (),
        (
            "host names that requests may be sent to, `.example.com` with all below it, `*` "
            "for any; IP addresses, localhost and HOST always "
            "are; unset: with authentication any name, without it no other"
        ),
        secrecy="public",
    )


@dataclass(frozen=True, eq=False, repr=False)
class Server(Group):
    """`memservice serve`."""

    host: str = setting(
        "127.0.0.1",
        "address to listen on; 0.0.0.0 for all addresses, which requires that AUTH_USE_AUTH is set",
        env="HOST",
        secrecy="public",
    )
    port: int = setting(
        8000, "port to listen on; 0 for any free one", low=0, high=65535, env="PORT"
    )
    workers: int = setting(2, "server processes", low=1, high=256, env="WORKERS")
    threads: int = setting(
        32, "threads of each process, one request each", low=2, high=1024, env="THREADS"
    )
    graceful_timeout_seconds: float = setting(
        30.0, "time for requests and tasks in progress to finish after SIGTERM", low=0
    )


@dataclass(frozen=True, eq=False, repr=False)
class Db(Group):
    """The storage."""

    connection_uri: str = setting(
        "sqlite:///memservice.db",
        (
            "where everything is stored; its scheme names a storage plugin (see `memservice "
            "plugins`); unset, and with neither a store nor configuration in the working "
            "directory: `memservice.db` in `~/.local/share/memservice`"
        ),
        secrecy="uri",
    )
    read_connection_uri: str | None = setting(
        None,
        "a replica of the database, for reads; it is not used for a read before which something "
        "was committed that it has not received; for storages that can have replicas",
        secrecy="uri",
    )
    schema: str = setting(
        "public", "schema of the tables, for storages that have schemas", secrecy="public"
    )
    pool_class: str = setting(
        "default", "`null` opens a connection for each use", choices=("default", "null")
    )
    pool_pre_ping: bool = setting(True, "check that a pooled connection works before it is used")
    pool_size: int = setting(
        10,
        "connections kept open by each process; a storage in a file keeps fewer",
        low=1,
        high=10_000,
    )
    max_overflow: int = setting(
        20,
        "further connections that a busy process may open; closed if unused for a minute",
        low=0,
        high=10_000,
    )
    pool_timeout: float = setting(
        5.0,
        "maximum wait for a connection or a lock; then requests return 503",
        low=0,
        aliases=["POOL_TIMEOUT"],
    )
    pool_recycle: float = setting(300.0, "age at which a pooled connection is replaced", low=1)
    pool_use_lifo: bool = setting(
        True, "use the most recent connection first, so that idle ones close"
    )
    connect_timeout_seconds: float = setting(
        2.0, "maximum wait for the database to accept a connection", low=0.1
    )
    sql_debug: bool = setting(
        False, "accepted for compatibility, without effect: statements are not logged"
    )
    synchronous: str = setting(
        "full",
        (
            "`full`: what was acknowledged survives a power cut; `normal`: the last moments "
            "may be lost, for storages that offer the choice"
        ),
        choices=("full", "normal"),
    )
    options: Mapping[str, Any] = setting(
        {}, "settings of that storage plugin alone (JSON object)", secrecy="secret"
    )


MIN_SECRET_BYTES = 16
"""Of a secret that signs keys. A shorter one can be found by trying, given one key."""

SIGNING_RECIPE = 'Make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'


@dataclass(frozen=True, eq=False, repr=False)
class Auth(Group):
    """Keys."""

    use_auth: bool = setting(False, "require a key for every request")
    jwt_secret: str | None = setting(
        None,
        f"signs the keys; required with authentication; at least {MIN_SECRET_BYTES} bytes, "
        "preferably 32 or more",
        secrecy="secret",
    )
    jwt_secret_previous: str | None = setting(
        None,
        "the previous secret, while you rotate secrets: keys signed with it are accepted too",
        secrecy="secret",
    )

    def short_secrets(self) -> Iterator[str]:
        """Secrets that must not be used, each as a sentence that says what to do."""
        for name, secret in (
            ("AUTH_JWT_SECRET", self.jwt_secret),
            ("AUTH_JWT_SECRET_PREVIOUS", self.jwt_secret_previous),
        ):
            length = len((secret or "").encode())
            if 0 < length < MIN_SECRET_BYTES:
                yield (
                    f"{name} is only {length} bytes long, and must be {MIN_SECRET_BYTES} or "
                    f"more: it could be guessed. {SIGNING_RECIPE}"
                )


@dataclass(frozen=True, eq=False, repr=False)
class Api(Group):
    """The generations of the API. All are served at once, over the same memory."""

    v1_enabled: bool = setting(True, "serve `/v1`")
    v2_enabled: bool = setting(True, "serve `/v2`")
    v3_enabled: bool = setting(True, "serve `/v3`")
    v1_shared_sessions: bool = setting(
        True, "`/v1` also shows a user the sessions of `/v2` and `/v3` that it is a member of"
    )
    v1_deprecated_since: str | None = setting(
        None,
        (
            "a date, for instance 2026-01-31: responses of `/v1` contain deprecation headers; "
            "unset: they do not"
        ),
        secrecy="public",
    )
    v2_deprecated_since: str | None = setting(None, "the same for `/v2`", secrecy="public")


@dataclass(frozen=True, eq=False, repr=False)
class Console(Group):
    """The console: pages for operators, at `/console`."""

    enabled: bool = setting(True, "serve the console, and `/`")
    url: str | None = setting(
        None,
        (
            "the address by which browsers reach this server, for instance "
            "https://memory.example.com: one-time links begin with it; with https, cookies are "
            "sent over TLS only; unset: HOST and PORT"
        ),
        secrecy="uri",
    )
    proxies: tuple[str, ...] = setting(
        ("127.0.0.1", "::1"),
        (
            "addresses of proxies in front of this server: the sender of their requests is the "
            "last one in the header X-Forwarded-For"
        ),
        secrecy="public",
    )
    release_feed: str | None = setting(
        None,
        (
            "where the page Instance looks for newer releases: an https URL, or the path of a "
            "file (docs/console.md#available-upgrades); unset: nowhere. Workers read it every six "
            "hours and install nothing"
        ),
        secrecy="uri",
    )


@dataclass(frozen=True, eq=False, repr=False)
class Mcp(Group):
    """MCP, the Model Context Protocol: memory as tools of assistants, at `/mcp` and by
    `memservice mcp`. Needs the extra `mcp`."""

    enabled: bool = setting(True, "serve `/mcp`")
    tools: str = setting(
        "default",
        "`default`: a small set of tools; `all`: also one for each operation of the API",
        choices=("default", "all"),
    )
    workspace: str = setting(
        "default",
        "the workspace of a client that names none, and neither does its key",
        secrecy="public",
    )
    peer: str = setting(
        "user",
        "the peer that tools are about, if neither their arguments nor the client nor its key name "
        "one",
        secrecy="public",
    )


@dataclass(frozen=True, eq=False, repr=False)
class Worker(Group):
    """Background work, wherever it runs."""

    remote_units: int = setting(
        4, "concurrent work units of a worker whose reasoner waits on a network", low=1, high=1000
    )
    sweep_interval_seconds: float = setting(
        5.0, "interval between sweeps for due work units that have no job", low=0.1
    )
    cpu_seconds: float = setting(
        10.0,
        (
            "CPU time of a reasoner without a model for one request, plus one second for each "
            "20,000 bytes of it, up to 120"
        ),
        low=1,
    )
    max_attempts: int = setting(5, "attempts before a task fails permanently", low=1, high=100)
    retry_backoff_seconds: float = setting(
        40.0, "pause after the first failure; doubles with each further one", low=0
    )
    model_retry_seconds: float = setting(
        30.0,
        "pause before the next attempt at an unavailable language model; doubles, up to seven "
        "times this value or a third of the outage",
        low=0.01,
    )
    model_retry_max_seconds: float = setting(
        900.0, "maximum pause between two attempts at an unavailable language model", low=0.01
    )


@dataclass(frozen=True, eq=False, repr=False)
class Budget(Group):
    """What may be spent on models. Reached, background work waits and chat answers without a model,
    until the day (UTC) is over."""

    daily_tokens: int | None = setting(
        None,
        "maximum number of tokens, input and output, of each workspace per day; unset: unlimited",
        low=0,
    )
    total_daily_tokens: int | None = setting(
        None,
        "maximum number of tokens, input and output, of all workspaces together per day; unset: "
        "unlimited",
        low=0,
    )
    workspaces: Mapping[str, Any] = setting(
        {},
        "other limits for some workspaces, by id; null for none (JSON object)",
        secrecy="public",
    )


@dataclass(frozen=True, eq=False, repr=False)
class Retention(Group):
    """How long what is over is kept. Failed tasks: `DERIVER_QUEUE_ERROR_RETENTION_SECONDS`."""

    done_tasks_hours: float = setting(12.0, "finished tasks", low=0)
    dreams_days: float = setting(
        30.0, "finished dreams, which can be undone until then, and held ones", low=0
    )
    idempotency_hours: float = setting(24.0, "idempotency keys", low=1)
    deliveries_days: float = setting(30.0, "records of webhook deliveries", low=0)
    usage_days: float = setting(400.0, "records of model usage", low=0)
    audit_days: float = setting(400.0, "entries of the console's audit log", low=1)
    deleted_conclusions_minutes: float = setting(
        5.0, "conclusions that a user deleted; superseded ones are always kept", low=5
    )


@dataclass(frozen=True, eq=False, repr=False)
class Webhook(Group):
    """Deliveries to endpoints."""

    secret: str | None = setting(
        None,
        "signs deliveries in the older format, in addition to each endpoint's own secret",
        secrecy="secret",
    )
    max_workspace_limit: int = setting(10, "maximum number of endpoints of a workspace", low=0)
    allow_networks: tuple[str, ...] = setting(
        (),
        "private networks (CIDR) in which endpoints are allowed",
        secrecy="public",
    )
    timeout_seconds: float = setting(30.0, "maximum wait for an endpoint's response", low=0.1)
    max_attempts: int = setting(
        8, "attempts before an event becomes a dead letter", low=1, high=100
    )
    first_pause_seconds: float = setting(
        30.0,
        "pause after the first failed attempt; three times as long after each further one",
        low=0,
    )
    pause_after: int = setting(5, "dead letters in a row after which an endpoint is paused", low=1)


@dataclass(frozen=True, eq=False, repr=False)
class Metrics(Group):
    """Prometheus."""

    enabled: bool = setting(
        False,
        "serve `/metrics`; it requires no key and contains workspace names, so do not expose it "
        "outside your network",
    )
    namespace: str | None = setting(
        None, "label of every metric (default: NAMESPACE)", secrecy="public"
    )
    host: str = setting("127.0.0.1", "address of the worker's own `/metrics`", secrecy="public")
    port: int = setting(9090, "port of the worker's own `/metrics`", low=1, high=65535)


@dataclass(frozen=True, eq=False, repr=False)
class Telemetry(Group):
    """CloudEvents for operators."""

    enabled: bool = setting(False, "send events to the endpoint")
    endpoint: str | None = setting(None, "URL that events are sent to", secrecy="uri")
    headers: Mapping[str, Any] = setting(
        {}, "HTTP headers sent with events (JSON object)", secrecy="secret"
    )
    batch_size: int = setting(100, "maximum number of events in one request", low=1)
    flush_interval_seconds: float = setting(1.0, "maximum time until an event is sent", low=0.01)
    flush_threshold: int = setting(
        50, "number of buffered events at which they are sent immediately", low=1
    )
    max_retries: int = setting(3, "attempts to send a batch before it returns to the buffer", low=0)
    max_buffer_size: int = setting(
        10_000, "maximum number of buffered events; the oldest are dropped first", low=1
    )
    namespace: str | None = setting(
        None, "part of the events' source (default: NAMESPACE)", secrecy="public"
    )
    high_volume_sample_rate: float = setting(
        1.0, "share of high-volume events that is sent", low=0, high=1
    )
    trace_payloads_enabled: bool = setting(
        False, "also send prompts and answers; they contain what users wrote"
    )
    trace_max_bytes: int = setting(262_144, "maximum size of a prompt or answer, in bytes", low=1)
    trace_purposes: tuple[str, ...] = setting(
        (), "only these purposes; empty for all", secrecy="public"
    )


@dataclass(frozen=True, eq=False, repr=False)
class PluginSwitches(Group):
    """Which plugins are loaded, and which must be. `[plugins.NAME]` holds the settings
    of the plugin NAME alone (`memservice plugins` lists the names); as a variable each is
    `PLUGIN_<NAME>__<FIELD>`."""

    only: tuple[str, ...] | None = setting(
        None,
        "load only these entry points (names, or the modules they point to)",
        env="MEMSERVICE_PLUGINS",
        secrecy="public",
    )
    required: tuple[str, ...] = setting(
        (),
        "entry points that must load; else nothing starts",
        env="PLUGINS_REQUIRED",
        aliases=("MEMSERVICE_PLUGINS_REQUIRED",),
        secrecy="public",
    )
    optional: tuple[str, ...] = setting(
        (),
        "start without these entry points if they fail to load, even though they can change or "
        "reject what is stored",
        env="PLUGINS_OPTIONAL",
        aliases=("MEMSERVICE_PLUGINS_OPTIONAL",),
        secrecy="public",
    )
    trace: bool = setting(False, "print every call of a hook", env="MEMSERVICE_PLUGINS_TRACE")
    options: Mapping[str, Mapping[str, Any]] = open_mapping()
    """By plugin, as variables spell it (`families.transport_key`), and field."""
