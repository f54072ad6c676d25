"""Mistakes in settings: wrong values, contradictions, files and mistyped names."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.project.settings_sources import load, refusal, row


@pytest.mark.parametrize(
    ("variable", "raw", "allowed"),
    [
        ("DB_POOL_SIZE", "many", "a whole number from 1 to 10000"),
        ("DB_POOL_SIZE", "0", "a whole number from 1 to 10000"),
        ("DB_POOL_SIZE", "1.5", "a whole number from 1 to 10000"),
        ("DB_POOL_TIMEOUT", "nan", "a number of 0 or more"),
        ("DB_POOL_TIMEOUT", "inf", "a number of 0 or more"),
        ("AUTH_USE_AUTH", "maybe", "true or false"),
        ("LOG_LEVEL", "loud", "one of debug, info, warning, error, critical"),
        ("GET_CONTEXT_MAX_TOKENS", "250001", "a whole number from 1 to 250000"),
        ("DREAM_ENABLED_TYPES", '["nightmare"]', "a list of any of omni, card_refresh"),
        ("CORS_ORIGINS", "[1]", "a list of texts"),
        ("TELEMETRY_HEADERS", "[]", "an object (as a variable: JSON)"),
    ],
)
def test_a_wrong_value_names_setting_source_and_what_is_allowed(
    tmp_path: Path, variable: str, raw: str, allowed: str
) -> None:
    message = refusal(tmp_path, **{variable: raw})
    assert f"{variable} = " in message
    assert "(environment): must be " + allowed in message


def test_every_mistake_is_reported_at_once_with_its_source(tmp_path: Path) -> None:
    toml = (
        '[db]\npool_size = "many"\nconnection_urn = "x"\n[sever]\nport = '
        "1\n[deriver]\nmodel_config = 3"
    )
    message = refusal(
        tmp_path, toml=toml, dotenv="AUTH_USE_AUTH=perhaps\nMEMSERVICE_PLUGIN=a", POOL_TIMEOUT="-1"
    )
    file, env = str(tmp_path / "memservice.toml"), str(tmp_path / ".env")
    assert f"DB_POOL_SIZE = many ({file}, as [db] pool_size): must be" in message
    assert (
        f"there is no setting [db] connection_urn ({file}); did you mean connection_uri" in message
    )
    assert f"{file} has no section or setting called sever; did you mean server" in message
    assert f"[deriver] model_config in {file} must be a table" in message
    assert f"AUTH_USE_AUTH = perhaps ({env})" in message
    assert (
        f"there is no setting MEMSERVICE_PLUGIN ({env}); did you mean MEMSERVICE_PLUGINS" in message
    )
    assert (
        "DB_POOL_TIMEOUT = -1 (environment, as POOL_TIMEOUT): must be a number of 0 or more"
        in message
    )


def test_the_error_for_a_setting_outside_its_section_names_the_section(tmp_path: Path) -> None:
    assert "write it as [db] pool_timeout" in refusal(tmp_path, toml="pool_timeout = 3")


def test_two_names_of_one_setting_must_agree(tmp_path: Path) -> None:
    assert load(tmp_path, POOL_TIMEOUT="3", DB_POOL_TIMEOUT="3").db.pool_timeout == 3
    assert "are one setting, but have different values in environment" in refusal(
        tmp_path, POOL_TIMEOUT="3", DB_POOL_TIMEOUT="4"
    )
    assert load(tmp_path, toml="[db]\npool_timeout = 1", POOL_TIMEOUT="3").db.pool_timeout == 3


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"AUTH_USE_AUTH": "true"}, "AUTH_USE_AUTH = true needs AUTH_JWT_SECRET"),
        (
            {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "x" * 15},
            "AUTH_JWT_SECRET is only 15 bytes long, and must be 16 or more",
        ),
        (
            {
                "AUTH_USE_AUTH": "true",
                "AUTH_JWT_SECRET": "x" * 16,
                "AUTH_JWT_SECRET_PREVIOUS": "ä" * 7,
            },
            "AUTH_JWT_SECRET_PREVIOUS is only 14 bytes long, and must be 16 or more",
        ),
        (
            {"SUMMARY_MESSAGES_PER_SHORT_SUMMARY": "60"},
            "must be less than SUMMARY_MESSAGES_PER_LONG_SUMMARY = 60",
        ),
        (
            {"DERIVER_POLLING_SLEEP_INTERVAL_SECONDS": "31"},
            "must not exceed DERIVER_POLLING_SLEEP_MAX_INTERVAL_SECONDS",
        ),
        ({"TELEMETRY_ENABLED": "1"}, "needs TELEMETRY_ENDPOINT"),
        ({"LLM_PRICES": '{"m": 5}'}, "LLM_PRICES: write the prices of 'm' as"),
        (
            {"LLM_PRICES": '{"m": {"inputs": 5}}'},
            "'inputs' of 'm' is 5; known prices are input, output, cache_read, cache_write",
        ),
        ({"LLM_PRICES": '{"m": {"input": -1}}'}, "each a number of 0 or more"),
        (
            {"WEBHOOK_ALLOW_NETWORKS": '["10.0.0.0/8", "10.0.0.0/33"]'},
            "WEBHOOK_ALLOW_NETWORKS: '10.0.0.0/33' is no network",
        ),
    ],
)
def test_contradicting_settings_are_an_error(
    tmp_path: Path, sources: dict[str, str], message: str
) -> None:
    assert message in refusal(tmp_path, **sources)


@pytest.mark.parametrize("text", ["[db", "a = ", "\x00"])
def test_an_unreadable_file_is_an_error(tmp_path: Path, text: str) -> None:
    assert f"cannot read the settings in {tmp_path / 'memservice.toml'}" in refusal(
        tmp_path, toml=text
    )


def test_a_dotenv_file_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"HOST=\xff\xfe")
    assert "cannot read the settings in" in refusal(tmp_path)


def test_dotenv_has_comments_quotes_and_export(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        dotenv=(
            "# a comment\nexport HOST='::1'\nPORT=9000 # not "
            'this\nLLM_OPENAI_API_KEY=\nNAMESPACE="a $b"\n'
        ),
    )
    assert (settings.server.host, settings.server.port, settings.app.namespace) == (
        "::1",
        9000,
        "a $b",
    )
    assert settings.llm.connections == {}
    assert not settings.is_set("LLM_OPENAI_API_KEY")


def test_obsolete_settings_are_noted_and_foreign_variables_ignored(tmp_path: Path) -> None:
    dotenv = "SENTRY_ENABLED=true\nDERIVER_WORKRES=3\nDB_PORT_MAPPING=5432:5432"
    settings = load(
        tmp_path,
        "[cache]\nenabled = true",
        dotenv,
        SENTRY_DSN="x",
        DB_HOST="y",
        DB_POOL_SIZES="3",
        MEMSERVICE_TEST_X="1",
    )
    toml_file, dotenv_file = tmp_path / "memservice.toml", tmp_path / ".env"
    assert settings.notes == (
        f"without effect here: [cache] ({toml_file})",
        (
            f"there is no setting DERIVER_WORKRES ({dotenv_file}): ignored; did you mean "
            "DERIVER_WORKERS?"
        ),
        f"no settings of memservice, ignored: DB_PORT_MAPPING ({dotenv_file})",
        f"without effect here: SENTRY_ENABLED ({dotenv_file})",
        "there is no setting DB_POOL_SIZES (environment): ignored; did you mean DB_POOL_SIZE?",
        "no settings of memservice, ignored: DB_HOST (environment)",
    )
    assert [note for note in settings.notes if note in settings.mistyped] == [
        note for note in settings.notes if "did you mean" in note
    ]


@pytest.mark.parametrize(
    ("variable", "rest"),
    [
        ("DB_CONECTION_URI", "; did you mean DB_CONNECTION_URI?"),
        ("DATABASE_URL", "; the setting is DB_CONNECTION_URI"),
        ("REDIS_URI", "; did you mean REDIS_URL?"),
        ("LOGLEVEL", "; did you mean LOG_LEVEL?"),
        ("CORS_ORIGIN", "; did you mean CORS_ORIGINS?"),
        ("DERIVER_MODEL_CONFIG__MODLE", "; did you mean DERIVER_MODEL_CONFIG__MODEL?"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_a_mistyped_variable_is_named_with_the_nearest_setting(
    tmp_path: Path, variable: str, rest: str, in_file: bool
) -> None:
    options = {"dotenv": f"{variable}=x"} if in_file else {variable: "x"}
    (sentence,) = load(tmp_path, **options).mistyped
    source = tmp_path / ".env" if in_file else "environment"
    assert sentence.startswith(f"there is no setting {variable} ({source}): ignored; ")
    assert rest.rstrip("?") in sentence


def test_a_variable_of_another_program_is_no_mistake_beside_the_setting(tmp_path: Path) -> None:
    both = load(tmp_path, DATABASE_URL="postgres://h/d", DB_CONNECTION_URI="sqlite:///x.db")
    assert both.notes == ()


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HOME": "/home/u"}, "/home/u/.local/share/memservice"),
        ({"HOME": "/home/u", "XDG_DATA_HOME": "/data"}, "/data/memservice"),
        ({"HOME": "/home/u", "XDG_DATA_HOME": "relative"}, "/home/u/.local/share/memservice"),
        ({"HOME": "/home/u", "AUTH_USE_AUTH": "false"}, "/home/u/.local/share/memservice"),
        ({}, None),
        ({"HOME": "/home/u", "DB_CONNECTION_URI": "sqlite:///memservice.db"}, None),
    ],
)
def test_without_a_store_or_configuration_here_the_data_directory_is_used(
    tmp_path: Path, variables: dict[str, str], folder: str | None
) -> None:
    settings = load(tmp_path, **variables)
    assert settings.data_directory == (None if folder is None else Path(folder))
    uri = f"sqlite:///{folder}/memservice.db" if folder else "sqlite:///memservice.db"
    assert settings.db.connection_uri == uri
    if folder:
        assert row(settings, "DB_CONNECTION_URI").source == "the data directory"


@pytest.mark.parametrize(
    ("name", "text", "is_used"),
    [
        ("memservice.db", "", False),
        ("memservice.toml", "", False),
        (".env", "LOG_LEVEL=info", False),
        (".env", "OTHER=1", True),
    ],
)
def test_a_store_or_configuration_here_keeps_the_store_here(
    tmp_path: Path, name: str, text: str, is_used: bool
) -> None:
    (tmp_path / name).write_text(text)
    settings = load(tmp_path, HOME="/home/u")
    assert (settings.data_directory is not None) == is_used


def test_names_in_lower_case_are_mistakes_in_the_dotenv_file_only(tmp_path: Path) -> None:
    (sentence,) = load(tmp_path, dotenv="db_connection_uri=sqlite:///x.db").notes
    assert sentence.endswith("ignored; write DB_CONNECTION_URI")
    (tmp_path / ".env").unlink()
    assert load(tmp_path, db_connection_uri="sqlite:///x.db").notes == ()


def test_variables_that_kubernetes_sets_for_each_service_are_not_reported(tmp_path: Path) -> None:
    links = {
        "DB_SERVICE_HOST": "10.0.0.1",
        "DB_SERVICE_PORT": "5432",
        "DB_SERVICE_PORT_SQL": "5432",
        "DB_PORT_5432_TCP": "tcp://10.0.0.1:5432",
        "DB_PORT_5432_TCP_ADDR": "10.0.0.1",
    }
    assert load(tmp_path, **links).notes == ()
