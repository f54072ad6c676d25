"""The page on models: its files are settings that can be used, its table and numbers are the
code's."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from memservice.plugins import load_plugins
from memservice.reasoning import choice
from memservice.reasoning.models import Models, is_configured
from memservice.reasoning.warnings import warnings
from memservice.runtime import utc_now
from memservice.settings import Settings, connections, families, load_settings
from memservice.settings.declare import tree
from memservice.spi.providers import Context
from support.docs.blocks import Block, blocks, table

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
FILES = blocks(PAGE, "toml")
OF_OTHERS = {"HTTPS_PROXY", "SSL_CERT_FILE"}


@pytest.mark.parametrize("block", FILES, ids=[str(block.title) for block in FILES])
def test_every_configuration_file_can_be_opened(block: Block, tmp_path: Path) -> None:
    """Its models, and its embedder, can be opened; nothing is asked of them."""
    config = tmp_path / str(block.title)
    config.write_text(block.text, encoding="utf-8")
    settings = load_settings(config=config, environ={}, cwd=tmp_path)
    plugins = load_plugins(settings)
    context = Context(utc_now, logging.getLogger("test"))
    models = Models(settings, plugins, context)
    if "[llm]" in block.text or "[deriver" in block.text:
        configured = [
            model
            for model in choice.all_models_of(settings).values()
            if is_configured(settings.llm, model, plugins)
        ]
        assert len(configured) == (1 if "[deriver" in block.text else 9)
        for model in configured:
            models.opened(models.target(model))
            if model.fallback is not None:
                models.opened(models.target(model.fallback))
        assert warnings(settings, plugins) == []
    if "[embedding" in block.text:
        assert settings.app.embedder == "openai"
        provider = plugins.embedder(settings.app.embedder)
        plugins.open_provider(provider, connections.of_embedder(settings, provider.name), context)


def test_the_listed_protocols_exist() -> None:
    from memservice_anthropic import BASE_URL as ANTHROPIC
    from memservice_gemini import BASE_URL as GEMINI
    from memservice_openai import BASE_URL as OPENAI

    rows = table(PAGE, "protocols")
    assert {row[0] for row in rows} == set(load_plugins().names("language-model protocol"))
    assert {row[0]: row[3] for row in rows} == {
        "openai": OPENAI,
        "openai-responses": OPENAI,
        "anthropic": ANTHROPIC,
        "gemini": GEMINI,
    }


def test_settings_and_bounds_equal_those_of_the_code() -> None:
    from memservice_http.client import MAX_ANSWER, SECONDS
    from memservice_minilm.embedder import MAX_TOKENS

    text = PAGE.read_text(encoding="utf-8")
    variables = tree(Settings).by_variable
    for name in set(re.findall(r"`([A-Z]+_[A-Z_]+)(?:=[^`]*)?`", text)) - OF_OTHERS:
        assert name in variables or families.of_variable(name), name
    assert f"at most {SECONDS:g} seconds" in text
    assert f"at most {MAX_ANSWER // 2**20} MiB" in text
    assert f"first {MAX_TOKENS} tokens" in text
    assert (
        f"`SEARCH_EMBED_TIMEOUT_SECONDS` ({variables['SEARCH_EMBED_TIMEOUT_SECONDS'].default:g})"
        in text
    )
