"""Mistakes of operators, one row each: what is typed, and what the answer says to do."""

from __future__ import annotations

from typing import NamedTuple

SECRET = "a-secret-of-thirty-two-bytes-or-so"  # for tests alone
AUTH = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": SECRET}
OTHER = {**AUTH, "AUTH_JWT_SECRET": "another-secret-of-thirty-two-bytes"}
WARNED, REFUSED, MISUSED = 0, 1, 2
"""Exit statuses: the command works and warns; it refuses; its arguments are wrong."""


class Mistake(NamedTuple):
    """`command` in an empty directory, with this environment and these files. `answer`: parts of
    what is printed, in order; `{here}` is the directory."""

    name: str
    command: str
    status: int
    answer: tuple[str, ...]
    environ: dict[str, str] = {}  # noqa: RUF012  # never changed
    toml: str = ""
    dotenv: str = ""
    has_store: bool = False


NAMES = [
    Mistake(
        "variable misspelt",
        "config show",
        WARNED,
        ("WARNING", "DB_CONECTION_URI", "did you mean DB_CONNECTION_URI?"),
        {"DB_CONECTION_URI": "sqlite:///x.db"},
    ),
    Mistake(
        "variable misspelt, and a command that reads",
        "jobs list",
        REFUSED,
        ("did you mean DB_CONNECTION_URI?", "There is no file {here}/memservice.db"),
        {"DB_CONECTION_URI": "sqlite:///x.db"},
    ),
    Mistake(
        "line of .env misspelt",
        "config show",
        WARNED,
        ("DERIVER_ENABLE ({here}/.env): ignored", "did you mean DERIVER_ENABLED"),
        dotenv="DERIVER_ENABLE=false",
    ),
    Mistake(
        "variable of other programs",
        "config show",
        WARNED,
        ("DATABASE_URL", "the setting is DB_CONNECTION_URI"),
        {"DATABASE_URL": "postgres://db/x"},
    ),
    Mistake(
        "variable without prefix misspelt",
        "config show",
        WARNED,
        ("REDIS_URI", "did you mean REDIS_URL?"),
        {"REDIS_URI": "redis://x"},
    ),
    Mistake(
        "lower case in .env",
        "config show",
        WARNED,
        ("port", "write PORT"),
        dotenv="port=9000",
    ),
    Mistake(
        "key of a provider misspelt",
        "config show",
        WARNED,
        ("LLM_OPENAI_API_KYE", "did you mean LLM_OPENAI_API_KEY"),
        {"LLM_OPENAI_API_KYE": "k"},
    ),
    Mistake(
        "unknown variable of memservice",
        "config show",
        REFUSED,
        ("there is no setting MEMSERVICE_COLOUR (environment)", "did you mean MEMSERVICE_"),
        {"MEMSERVICE_COLOUR": "red"},
    ),
    Mistake(
        "setting in TOML misspelt",
        "serve",
        REFUSED,
        ("there is no setting [db] pool_sise", "did you mean pool_size"),
        toml="[db]\npool_sise = 3",
    ),
    Mistake(
        "section in TOML misspelt",
        "serve",
        REFUSED,
        ("has no section or setting called sever", "did you mean server"),
        toml="[sever]\nport = 1",
    ),
    Mistake(
        "setting outside its section",
        "serve",
        REFUSED,
        ("pool_timeout", "write it as [db] pool_timeout"),
        toml="pool_timeout = 3",
    ),
    Mistake(
        "TOML that is none",
        "serve",
        REFUSED,
        ("cannot read the settings in {here}/memservice.toml", "Put strings in quotes"),
        toml="[server",
    ),
    Mistake(
        "name twice in TOML",
        "doctor",
        REFUSED,
        ("{here}/memservice.toml", "line 3", "each name and each [section] once"),
        toml="[db]\npool_size = 1\npool_size = 2\n",
    ),
    Mistake(
        "TOML in another encoding",
        "serve",
        REFUSED,
        ("{here}/memservice.toml: byte 3 is not UTF-8: save it as a text in UTF-8",),
        toml="# \udce9",
    ),
    Mistake(
        ".env in another encoding",
        "config show",
        REFUSED,
        ("{here}/.env: byte 14 is not UTF-8: save it as a text in UTF-8",),
        dotenv="LOG_LEVEL=caf\udce9",
    ),
    Mistake(
        "list for a number in TOML",
        "serve",
        REFUSED,
        ("PORT = [8000]", "as [server] port", "must be a whole number from 0 to 65535"),
        toml="[server]\nport = [8000]",
    ),
    Mistake(
        "configuration named by --config absent",
        "--config absent.toml serve",
        REFUSED,
        ("there is no file {here}/absent.toml, which --config names",),
    ),
    Mistake(
        "configuration named by a variable absent",
        "serve",
        REFUSED,
        ("there is no file {here}/absent.toml, which MEMSERVICE_CONFIG names",),
        {"MEMSERVICE_CONFIG": "absent.toml"},
    ),
    Mistake(
        "settings of a plugin that is not there",
        "db upgrade",
        REFUSED,
        ("[plugins.jsnol]", "jsonl"),
        toml="[plugins.jsnol]\ndirectory = 'x'",
    ),
]
VALUES = [
    Mistake(
        "no number",
        "serve",
        REFUSED,
        ("PORT = eight (environment)", "must be a whole number from 0 to 65535"),
        {"PORT": "eight"},
    ),
    Mistake(
        "number out of bounds",
        "serve",
        REFUSED,
        ("DB_POOL_SIZE = 0", "must be a whole number from 1 to 10000"),
        {"DB_POOL_SIZE": "0"},
    ),
    Mistake(
        "no switch",
        "serve",
        REFUSED,
        ("AUTH_USE_AUTH = perhaps ({here}/.env)", "must be true or false"),
        dotenv="AUTH_USE_AUTH=perhaps",
    ),
    Mistake(
        "two names of one setting",
        "serve",
        REFUSED,
        ("POOL_TIMEOUT and DB_POOL_TIMEOUT are one setting", "keep one of them"),
        {"POOL_TIMEOUT": "3", "DB_POOL_TIMEOUT": "4"},
    ),
    Mistake(
        "settings that contradict each other",
        "serve",
        REFUSED,
        ("SUMMARY_MESSAGES_PER_SHORT_SUMMARY = 60", "must be less than"),
        {"SUMMARY_MESSAGES_PER_SHORT_SUMMARY": "60"},
    ),
    Mistake(
        "authentication without a secret",
        "serve",
        REFUSED,
        ("AUTH_USE_AUTH = true needs AUTH_JWT_SECRET", "python -c"),
        {"AUTH_USE_AUTH": "true"},
    ),
    Mistake(
        "short secret",
        "serve",
        REFUSED,
        ("AUTH_JWT_SECRET is only 5 bytes long", "python -c"),
        {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "short"},
    ),
    Mistake(
        "open server on every address",
        "serve --host 0.0.0.0",
        REFUSED,
        ("authentication is off", "Set AUTH_USE_AUTH=true and AUTH_JWT_SECRET, or HOST=127.0.0.1"),
    ),
    Mistake(
        "events without a collector",
        "serve",
        REFUSED,
        ("TELEMETRY_ENABLED = true needs TELEMETRY_ENDPOINT",),
        {"TELEMETRY_ENABLED": "true"},
    ),
    Mistake(
        "unknown time zone",
        "serve",
        REFUSED,
        ("DERIVER_TIMEZONE = Berlin", "write a name such as Europe/Berlin"),
        {"DERIVER_TIMEZONE": "Berlin"},
    ),
    Mistake(
        "URL for a host name",
        "serve",
        REFUSED,
        ("'https://memory.example' is no host name", "write it as memory.example.com"),
        {"ALLOWED_HOSTS": "https://memory.example"},
    ),
    Mistake(
        "network that is none",
        "serve",
        REFUSED,
        ("'10.0.0.0/33' is no network", "write it as 10.0.0.0/8"),
        {"WEBHOOK_ALLOW_NETWORKS": "10.0.0.0/33"},
    ),
    Mistake(
        "prices in another form",
        "serve",
        REFUSED,
        ("write the prices of 'm' as",),
        {"LLM_PRICES": '{"m": 5}'},
    ),
    Mistake(
        "variable of a key that is not set",
        "serve",
        REFUSED,
        ("MY_KEY: that variable is not set, neither in the environment nor in .env",),
        {"DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY_ENV": "MY_KEY"},
    ),
    Mistake(
        "unknown reasoner",
        "serve",
        REFUSED,
        ("extractiv", "did you mean extractive?"),
        {"REASONER": "extractiv"},
    ),
    Mistake(
        "unknown embedder",
        "serve",
        REFUSED,
        ("hushed", "did you mean hashed?"),
        {"EMBEDDER": "hushed"},
    ),
    Mistake(
        "vector index of another server",
        "serve",
        REFUSED,
        ("'lancedb' (VECTOR_STORE_TYPE)", "unset VECTOR_STORE_TYPE to keep vectors in the storage"),
        {"VECTOR_STORE_TYPE": "lancedb"},
    ),
    Mistake(
        "vectors of PostgreSQL on SQLite",
        "db upgrade",
        REFUSED,
        ("needs the storage 'postgres', but 'sqlite' is open", "or unset it"),
        {"VECTOR_STORE_TYPE": "pgvector"},
    ),
    Mistake(
        "Redis without its scheme",
        "worker",
        REFUSED,
        ("REDIS_URL is not a Redis URL", "redis://127.0.0.1:6379/0"),
        {"REDIS_URL": "localhost:6379"},
    ),
]
STORES = [
    Mistake(
        "another directory than the server's",
        "jobs list",
        REFUSED,
        (
            "There is no directory {here}/home/.local/share/memservice",
            "{here} holds neither a store nor memservice.toml or .env",
            "--config or its store with DB_CONNECTION_URI",
        ),
        {"HOME": "{here}/home"},
    ),
    Mistake(
        "the same, with the settings of another program",
        "doctor",
        REFUSED,
        ("There is no directory {here}/home/.local/share/memservice", "Run the command in"),
        {"HOME": "{here}/home"},
        dotenv="OTHER=1",
    ),
    Mistake(
        "file misspelt",
        "export -w w -",
        REFUSED,
        ("There is no file {here}/mistyped.db: check DB_CONNECTION_URI",),
        {"DB_CONNECTION_URI": "sqlite:///mistyped.db"},
    ),
    Mistake(
        "directory that does not exist",
        "db upgrade",
        REFUSED,
        ("The directory of the database {here}/absent/x.db does not exist", "mkdir -p"),
        {"DB_CONNECTION_URI": "sqlite:///absent/x.db"},
    ),
    Mistake(
        "directory for a file",
        "db upgrade",
        REFUSED,
        ("{here} is a directory; name a file in it",),
        {"DB_CONNECTION_URI": "sqlite:///{here}"},
    ),
    Mistake(
        "directory without rights",
        "db upgrade",
        REFUSED,
        ("/proc/x.db could not be opened", "the user", "must be able to write", "/proc"),
        {"DB_CONNECTION_URI": "sqlite:////proc/x.db"},
    ),
    Mistake(
        "file of another program",
        "db upgrade",
        REFUSED,
        ("is not a SQLite database",),
        {"DB_CONNECTION_URI": "sqlite:///.env"},
        dotenv="OTHER=1\n" * 200,
    ),
    Mistake(
        "path for a URI",
        "serve",
        REFUSED,
        ("'/tmp/x.db' (DB_CONNECTION_URI)", "write a URI", "sqlite:///memservice.db"),
        {"DB_CONNECTION_URI": "/tmp/x.db"},  # a mistake
    ),
    Mistake(
        "slashes missing in the URI of a file",
        "db upgrade",
        REFUSED,
        ("names no file", "write sqlite:///memory.db"),
        {"DB_CONNECTION_URI": "sqlite://x.db"},
    ),
    Mistake(
        "options in the URI of a file",
        "db upgrade",
        REFUSED,
        ("has options (mode)", "use the DB_ settings"),
        {"DB_CONNECTION_URI": "sqlite:///x.db?mode=ro"},
    ),
    Mistake(
        "scheme misspelt",
        "serve",
        REFUSED,
        ("sqlte", "did you mean sqlite?"),
        {"DB_CONNECTION_URI": "sqlte:///m.db"},
    ),
    Mistake(
        "server on a storage of one process",
        "serve",
        REFUSED,
        ("'memory' exists in one process only", "Set DB_CONNECTION_URI"),
        {"DB_CONNECTION_URI": "memory://"},
    ),
    Mistake(
        "database server away",
        "db upgrade",
        REFUSED,
        ("the database x on 127.0.0.1:1 cannot be reached",),
        {"DB_CONNECTION_URI": "postgresql+psycopg://u:hunter2@127.0.0.1:1/x"},
    ),
]
COMMANDS = [
    Mistake("unknown command", "dream", MISUSED, ("No such command 'dream'",)),
    Mistake("port out of bounds", "serve --port 70000", MISUSED, ("not in the range",)),
    Mistake(
        "backup into a directory that does not exist",
        "backup absent/b.db",
        REFUSED,
        ("there is no folder {here}/absent",),
        has_store=True,
    ),
    Mistake(
        "restore of a file that is no backup",
        "restore .env --force",
        REFUSED,
        (".env is not a backup of this storage",),
        dotenv="OTHER=1",
        has_store=True,
    ),
    Mistake(
        "history in another format than the file's",
        "import-history letta .env -w w",
        REFUSED,
        (".env", "nothing was stored"),
        dotenv="{}",
        has_store=True,
    ),
    Mistake(
        "URL without its scheme",
        "workspaces --url 127.0.0.1:1",
        REFUSED,
        ("give the server's URL, for instance https://",),
    ),
    Mistake(
        "no server at the URL",
        "workspaces --url http://127.0.0.1:1",
        REFUSED,
        ("http://127.0.0.1:1 does not answer", "is the server running?"),
    ),
    Mistake(
        "two names of a workspace",
        "show workspace one -w other",
        MISUSED,
        ("Name one workspace: one, or --workspace other.",),
        has_store=True,
    ),
    Mistake(
        "plugin in a directory with files",
        "plugins new reasoner plain --directory .",
        REFUSED,
        ("is not an empty directory: name another with --directory",),
        dotenv="OTHER=1",
    ),
    Mistake(
        "required plugin that is not installed",
        "db upgrade",
        REFUSED,
        ("PLUGINS_REQUIRED names redact, which is not installed; known:",),
        {"PLUGINS_REQUIRED": "redact"},
    ),
    Mistake(
        "queues without Redis",
        "worker --queues ingest",
        MISUSED,
        ("--queues needs RQ: set REDIS_URL",),
    ),
    Mistake(
        "unknown queue",
        "worker --queues ingst",
        MISUSED,
        ("there is no queue 'ingst'", "the queues are ingest, summary"),
        {"REDIS_URL": "redis://127.0.0.1:1/0"},
    ),
    Mistake(
        "retry of nothing",
        "jobs retry",
        MISUSED,
        ("Select tasks by ID, by options, or with --all.",),
        has_store=True,
    ),
    Mistake(
        "unknown kind of task",
        "jobs list --kind thinking",
        MISUSED,
        ("'thinking' is not one of 'representation'",),
        has_store=True,
    ),
    Mistake(
        "unknown workspace of tasks",
        "jobs list --workspace nowhere",
        REFUSED,
        ("Workspace nowhere not found",),
        has_store=True,
    ),
    Mistake(
        "unknown task",
        "jobs show nothing",
        REFUSED,
        ("Task nothing not found",),
        has_store=True,
    ),
    Mistake(
        "no duration",
        "jobs purge --older-than soon",
        MISUSED,
        ("'soon' is not a duration",),
        has_store=True,
    ),
    Mistake(
        "key without a secret",
        "keys create --admin",
        REFUSED,
        ("AUTH_JWT_SECRET", "python -c"),
        has_store=True,
    ),
    Mistake(
        "key for nothing",
        "keys create",
        MISUSED,
        ("--admin",),
        AUTH,
        has_store=True,
    ),
    Mistake(
        "unknown key",
        "keys revoke nothing",
        REFUSED,
        ("nothing",),
        AUTH,
        has_store=True,
    ),
    Mistake(
        "export of an unknown workspace",
        "export -w nowhere -",
        REFUSED,
        ("Workspace nowhere not found",),
        has_store=True,
    ),
    Mistake(
        "import of a file that is no export",
        "import .env",
        REFUSED,
        ("line 1 is not JSON", "nothing was stored"),
        dotenv="OTHER=1",
        has_store=True,
    ),
    Mistake(
        "import of a file that does not exist",
        "import absent.jsonl",
        REFUSED,
        ("there is no file absent.jsonl",),
        has_store=True,
    ),
    Mistake(
        "embedder that is not there",
        "reembed --to minilmm",
        REFUSED,
        ("minilmm", "did you mean minilm"),
        has_store=True,
    ),
]
