"""`memservice config` and what a wrong setting is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.cli.conftest import Run


def table(text: str) -> dict[str, str]:
    """Rows of a printed table by their first column."""
    return {line.split()[0]: line for line in text.splitlines() if line.strip()}


def test_help_and_version(memservice: Run) -> None:
    from memservice import __version__

    assert memservice("--version").stdout == f"memservice, version {__version__}\n"
    output = memservice("--help").stdout
    for command in ("serve", "worker", "db", "plugins", "config"):
        assert f"\n  {command} " in output
        assert memservice(command, "--help").returncode == 0
    unknown = memservice("dream")
    assert (unknown.returncode, "No such command 'dream'" in unknown.stderr) == (2, True)


def test_config_show_lists_sources_and_masks_secrets(memservice: Run, tmp_path: Path) -> None:
    (tmp_path / "memservice.toml").write_text(
        (
            '[db]\nconnection_uri = "sqlite:///mine.db"\npool_size = 3\n[auth]\njwt_secret = '
            '"toml-secret-text"\n'
        ),
        encoding="utf-8",
    )
    (tmp_path / ".env").write_text(
        "LLM_OPENAI_API_KEY=sk-dotenv-secret\nLOG_LEVEL=debug\n", encoding="utf-8"
    )
    result = memservice(
        "config",
        "show",
        REDIS_URL="redis://me:hunter2@example.org:6379/0",
        POOL_TIMEOUT="7",
        WEBHOOK_SECRET="whsec-environment",
    )
    assert result.returncode == 0
    for secret in ("toml-secret-text", "sk-dotenv-secret", "hunter2", "whsec-environment"):
        assert secret not in result.stdout + result.stderr
    rows = table(result.stdout)
    assert rows["SETTING"].split() == ["SETTING", "VALUE", "FROM", "ALSO"]
    toml, dotenv = str(tmp_path / "memservice.toml"), str(tmp_path / ".env")
    assert rows["DB_CONNECTION_URI"].split() == ["DB_CONNECTION_URI", "sqlite:///mine.db", toml]
    assert rows["DB_POOL_SIZE"].split() == ["DB_POOL_SIZE", "3", toml]
    assert rows["DB_POOL_TIMEOUT"].split() == [
        "DB_POOL_TIMEOUT",
        "7.0",
        "environment,",
        "as",
        "POOL_TIMEOUT",
        "POOL_TIMEOUT",
    ]
    assert rows["AUTH_JWT_SECRET"].split() == ["AUTH_JWT_SECRET", "********", toml]
    assert rows["LLM_OPENAI_API_KEY"].split() == ["LLM_OPENAI_API_KEY", "********", dotenv]
    assert rows["LOG_LEVEL"].split() == ["LOG_LEVEL", "debug", dotenv]
    assert rows["REDIS_URL"].split() == [
        "REDIS_URL",
        "redis://me:********@example.org:6379/0",
        "environment",
    ]
    assert "default" not in result.stdout, "only what is set"


def test_config_show_all_lists_every_setting(memservice: Run) -> None:
    unset = memservice("config", "show")
    assert unset.stdout == "nothing is set; --all shows the defaults\n"
    everything = table(memservice("config", "show", "--all").stdout)
    assert everything["PORT"].split() == ["PORT", "8000", "default"]
    assert "DERIVER_MODEL_CONFIG__TEMPERATURE" in everything


@pytest.mark.parametrize(
    ("toml", "settings", "sentence"),
    [
        ("[db]\npool_sise = 3\n", {}, "there is no setting [db] pool_sise"),
        ("[db]\npool_sise = 3\n", {}, "did you mean pool_size"),
        ("[data]\nx = 1\n", {}, "has no section or setting called data"),
        ("[server\n", {}, "cannot read the settings in"),
        (
            "",
            {"PORT": "eight"},
            "PORT = eight (environment): must be a whole number from 0 to 65535",
        ),
        ("", {"MEMSERVICE_COLOUR": "red"}, "there is no setting MEMSERVICE_COLOUR (environment)"),
        ("", {"MEMSERVICE_CONFIG": "absent.toml"}, "absent.toml, which MEMSERVICE_CONFIG names"),
        ("", {"AUTH_USE_AUTH": "true"}, "needs AUTH_JWT_SECRET"),
    ],
)
def test_a_wrong_setting_is_reported_in_one_sentence(
    memservice: Run, tmp_path: Path, toml: str, settings: dict[str, str], sentence: str
) -> None:
    (tmp_path / "memservice.toml").write_text(toml, encoding="utf-8")
    for command in (("config", "show"), ("serve", "--port", "0"), ("db", "upgrade")):
        result = memservice(*command, **settings)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("memservice: ")
        assert sentence in result.stderr
    assert not (tmp_path / "memservice.db").exists(), "nothing is opened by wrong settings"
    assert memservice("--help", **settings).returncode == 0


def test_a_wrong_secret_is_not_shown(memservice: Run) -> None:
    result = memservice(
        "config", "show", DB_CONNECTION_URI="postgres://me:hunter2@db/x", DB_POOL_SIZE="none"
    )
    assert result.returncode == 1
    assert "hunter2" not in result.stderr


def test_config_file_is_named_by_option(memservice: Run, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("[server]\nport = 8123\n", encoding="utf-8")
    rows = table(memservice("--config", "other.toml", "config", "show").stdout)
    assert rows["PORT"].split()[1] == "8123"
    assert "there is no file" in memservice("--config", "absent.toml", "config", "show").stderr


def test_doctor_warns_about_a_key_that_no_task_uses(memservice: Run) -> None:
    memservice("db", "upgrade")
    looked = memservice("doctor", LLM_ANTHROPIC_API_KEY="hunter2")
    assert looked.returncode == 0
    assert "degraded  models     LLM_ANTHROPIC_API_KEY is set, but no task uses it" in looked.stdout
    assert "hunter2" not in looked.stdout


def test_mistyped_variables_are_reported_where_they_matter(memservice: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SENTRY_DSN=x\n", encoding="utf-8")
    variables = {"DB_CONECTION_URI": "sqlite:///other.db", "DB_HOST": "h"}
    mistyped = (
        "there is no setting DB_CONECTION_URI (environment): ignored; did you mean "
        "DB_CONNECTION_URI?"
    )
    result = memservice("config", "show", **variables)
    assert result.stderr.splitlines() == [
        f"WARNING     without effect here: SENTRY_DSN ({tmp_path / '.env'})",
        f"WARNING     {mistyped}",
        "WARNING     no settings of memservice, ignored: DB_HOST (environment)",
    ]
    result = memservice("jobs", "list", **variables)
    assert result.returncode == 1
    assert result.stderr.startswith(f"WARNING     {mistyped}\nmemservice: There is no file ")
    looked = memservice("doctor", **variables).stdout
    assert f"degraded  settings   {mistyped}\n" in looked
    assert f"ok        settings   without effect here: SENTRY_DSN ({tmp_path / '.env'})" in looked
    assert mistyped in memservice("worker", "--burst", "--queues", "x", **variables).stderr
