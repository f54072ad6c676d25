"""`memservice plugins`, commands of plugins, and plugins that are broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration.cli.conftest import Run
from support.clients.server import serving

Install = Callable[[str, str], str]

OFFERS_A_REASONER = """
    from memservice.hookspecs import hookimpl
    from memservice.spi.providers import ReasonerProvider

    def open_(settings, context):
        raise ModuleNotFoundError("No module named 'oracle'", name="oracle")

    @hookimpl
    def memservice_reasoners():
        yield ReasonerProvider(name="oracle", open=open_)
"""


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_installed_plugins_are_listed(memservice: Run) -> None:
    from memservice import __version__

    result = memservice("plugins")
    assert result.returncode == 0
    listed = rows(result.stdout)
    assert listed[0] == ["KIND", "NAME", "PLUGIN", "FROM", "DETAIL"]
    assert ["storage", "sqlite", "sqlite", "memservice", __version__, "shared"] in listed
    assert ["embedder", "hashed", "hashed", "memservice", __version__, "inline"] in listed
    assert ["reasoner", "extractive", "extractive", "memservice", __version__, "computes"] in listed


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "import nothing_of_this_name",
            "cannot be imported: ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("raise RuntimeError('no luck')", "cannot be imported: RuntimeError: no luck"),
        (
            "from memservice.hookspecs import hookimpl\n@hookimpl\ndef memservice_storage(): ...\n",
            (
                "implements hooks that do not exist: memservice_storage; did you mean "
                "memservice_storages?"
            ),
        ),
        (
            (
                "from memservice.hookspecs import hookimpl\n@hookimpl\ndef "
                "memservice_embedders():\n    yield 'words'\n"
            ),
            "memservice_embedders returns str, not EmbedderProvider",
        ),
    ],
)
def test_a_broken_plugin_is_listed_with_its_reason(
    memservice: Run, install: Install, source: str, reason: str
) -> None:
    path = install("brittle", source)
    result = memservice("plugins", PYTHONPATH=path)
    assert result.returncode == 1
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("failed")]
    assert line.split()[:5] == ["failed", "brittle", "brittle", "brittle", "1.0"]
    assert line.endswith(reason)
    assert ["sqlite"] in [row[1:2] for row in rows(result.stdout)], "the others are there"
    assert memservice("db", "upgrade", PYTHONPATH=path).returncode == 0, (
        "it stops nobody who does not need it"
    )
    silenced = memservice("plugins", PYTHONPATH=path, MEMSERVICE_PLUGINS="sqlite,hashed,extractive")
    assert (silenced.returncode, "brittle" in silenced.stdout) == (0, False)


def test_a_broken_plugin_that_is_needed_prevents_the_start(
    memservice: Run, install: Install
) -> None:
    path = install("brittle", "raise RuntimeError('no luck')")
    result = memservice("serve", "--port", "0", PYTHONPATH=path, REASONER="brittle")
    assert result.returncode == 1
    assert result.stderr.startswith(
        "memservice: reasoner 'brittle' cannot be used (plugin 'brittle' of brittle 1.0)"
    )
    assert "RuntimeError: no luck" in result.stderr


def test_a_missing_driver_is_named(memservice: Run, install: Install) -> None:
    path = install("delphi", OFFERS_A_REASONER)
    assert memservice("plugins", PYTHONPATH=path).returncode == 0, (
        "a driver is needed when it is opened, not before"
    )
    result = memservice("serve", "--port", "0", PYTHONPATH=path, REASONER="oracle")
    assert (result.returncode, result.stdout) == (1, "")
    assert "-m pip install oracle" in result.stderr


def test_an_unknown_transport_is_reported_before_the_start(memservice: Run) -> None:
    result = memservice(
        "serve",
        "--port",
        "0",
        REASONER="llm",
        LLM_OPENAI_API_KEY="k",
        SUMMARY_MODEL_CONFIG__TRANSPORT="opnai",
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert "no plugin offers a language-model protocol called 'opnai'" in result.stderr


def test_the_error_for_an_unknown_name_lists_the_known_ones(memservice: Run) -> None:
    result = memservice("serve", "--port", "0", EMBEDDER="hashd")
    assert result.returncode == 1
    assert "no plugin offers an embedder called 'hashd'" in result.stderr
    assert "known: gemini, hashed" in result.stderr
    assert "did you mean hashed?" in result.stderr
    storage = memservice("db", "current", DB_CONNECTION_URI="oracle://u:hunter2@h/x")
    assert (
        "no plugin offers a storage called 'oracle' (DB_CONNECTION_URI); known: memory, "
        "postgres, postgresql, sqlite"
    ) in storage.stderr
    assert "hunter2" not in storage.stderr


def test_plugins_can_add_commands(memservice: Run, install: Install) -> None:
    install(
        "greeter",
        """
        import click
        from memservice.hookspecs import hookimpl

        @click.command()
        @click.pass_obj
        def hello(state):
            "Say hello."
            click.echo(f"hello from {state.settings.server.port}")

        @click.command()
        def serve():
            "Not ours."

        @hookimpl
        def memservice_cli_commands():
            yield hello
            yield serve
        """,
    )
    path = install(
        "sullen",
        """
        from memservice.hookspecs import hookimpl

        @hookimpl
        def memservice_cli_commands():
            raise RuntimeError("I will not")
        """,
    )
    result = memservice("hello", PYTHONPATH=path, PORT="8123")
    assert (result.returncode, result.stdout) == (0, "hello from 8123\n")
    result = memservice("--help", PYTHONPATH=path)
    assert (result.returncode, "Say hello." in result.stdout, "Not ours." in result.stdout) == (
        0,
        True,
        False,
    )
    assert "the command 'serve' of plugin 'greeter 1.0: greeter' is ignored" in result.stderr
    assert "no commands from plugin 'sullen 1.0: sullen': RuntimeError: I will not" in result.stderr
    assert memservice("db", "upgrade", PYTHONPATH=path).returncode == 0
    assert memservice("db", "current", PYTHONPATH=path).stderr == "", (
        "our own commands ask no plugin for its"
    )


@pytest.mark.e2e
def test_a_server_with_a_model_for_every_task_starts_without_calling_it(tmp_path: Path) -> None:
    """No model is called before there is work for it."""
    with serving(tmp_path, REASONER="llm", LLM_OPENAI_BASE_URL="http://127.0.0.1:9/v1") as server:
        assert "reasoner    llm" in server.output
