"""Plugins without which nothing starts, and what a start says about those that failed."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins, load_plugins
from memservice.serving.banner import banner
from memservice.settings import Settings

REDACT = """
from memservice.hookspecs import hookimpl

@hookimpl
def memservice_message_storing(message):
    return None
"""
LISTENER = REDACT.replace("message_storing(message)", "event_emitted(type, data)")

Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a plugin `redact` with this source; an empty one has no source."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(source: str) -> None:
        if source:
            (tmp_path / "stranger_redact.py").write_text(source, encoding="utf-8")
        info = tmp_path / "stranger-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            "Metadata-Version: 2.4\nName: stranger\nVersion: 1.2\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(
            "[memservice]\nredact = stranger_redact\n", encoding="utf-8"
        )

    yield install
    sys.modules.pop("stranger_redact", None)


def settings_with(**switches: Any) -> Settings:
    settings = Settings()
    switches = {"only": ("redact", "memory", "hashed", "extractive"), **switches}
    return replace(
        settings,
        db=replace(settings.db, connection_uri="memory://"),
        plugins=replace(settings.plugins, **switches),
    )


def loaded(**switches: Any) -> Plugins:
    return load_plugins(settings_with(**switches))


BROKEN = {
    "an import that fails": "import a_module_that_is_not_there\n" + REDACT,
    "an argument that does not exist": REDACT.replace("(message)", "(text)"),
    "a misspelt hook": REDACT.replace("message_storing", "mesage_storing"),
    "a declaration that fails": REDACT
    + "\n@hookimpl\ndef memservice_plugin_settings():\n    return 1/0\n",
    "no source": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_a_failed_plugin_that_may_change_writes_prevents_the_start(
    install: Install, source: str
) -> None:
    install(source)
    with pytest.raises(
        ConfigurationError,
        match=(
            r"the plugin redact of stranger 1\.2 can change or reject what is stored, but failed "
            r"to load: .*PLUGINS_OPTIONAL=redact starts without it"
        ),
    ):
        open_runtime(settings_with())
    with pytest.raises(ConfigurationError, match="failed to load"):
        create_app(settings_with())
    loaded(optional=("redact",)).check()
    loaded(optional=("stranger_redact",)).check()


def test_a_failed_plugin_that_changes_no_writes_prevents_no_start(install: Install) -> None:
    install("import a_module_that_is_not_there\n" + LISTENER)
    plugins = loaded()
    assert [failure.origin.name for failure in plugins.failures] == ["redact"]
    plugins.check()


def test_a_working_plugin_passes_the_check(install: Install) -> None:
    install(REDACT)
    loaded(required=("redact",)).check()


@pytest.mark.parametrize(
    ("source", "switches", "message"),
    [
        ("1/0\n" + LISTENER, {"required": ("redact",)}, r"redact, which cannot be used \(stranger"),
        (LISTENER, {"required": ("redakt",), "only": None}, "not installed; did you mean redact?"),
        (LISTENER, {"required": ("redact",), "only": ("hashed",)}, "MEMSERVICE_PLUGINS leaves out"),
    ],
)
def test_a_required_plugin_that_is_not_loaded_prevents_the_start(
    install: Install, source: str, switches: dict[str, Any], message: str
) -> None:
    install(source)
    with pytest.raises(ConfigurationError, match=message):
        loaded(**switches).check()


def test_a_failed_plugin_is_in_the_banner_and_the_log(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install("import a_module_that_is_not_there\n" + LISTENER)
    with caplog.at_level(logging.WARNING, logger="memservice"):
        runtime = open_runtime(settings_with(), "api")
    try:
        runtime.storage.migrate()
        lines = banner(runtime, with_worker=True)
    finally:
        runtime.close()
    sentence = (
        "plugin redact of stranger 1.2: cannot be imported: ModuleNotFoundError: No module named "
        "'a_module_that_is_not_there'"
    )
    assert [line for line in lines if line.startswith("plugins")] == [
        f"plugins     FAILED: {sentence}"
    ]
    assert sentence in caplog.messages
