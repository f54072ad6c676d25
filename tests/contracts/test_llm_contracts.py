"""Every language model that is shipped keeps the contract, over a real connection to a server that
speaks its protocol."""

from __future__ import annotations

import pytest

from memservice.testing.llm import LanguageModelContract, Peer
from memservice.testing.model_protocols import AnthropicWire, GeminiWire, OpenAiWire, ResponsesWire
from memservice.testing.model_server import ScriptedPeer, Server
from support.models.fixtures import OpenModel


class TestOpenAi(LanguageModelContract):
    @pytest.fixture
    def peer(self, server: Server, open_model: OpenModel) -> Peer:
        return ScriptedPeer(server, OpenAiWire(), open_model("openai", "/v1"))


class TestOpenAiResponses(LanguageModelContract):
    @pytest.fixture
    def peer(self, server: Server, open_model: OpenModel) -> Peer:
        return ScriptedPeer(server, ResponsesWire(), open_model("openai-responses", "/v1"))


class TestAnthropic(LanguageModelContract):
    @pytest.fixture
    def peer(self, server: Server, open_model: OpenModel) -> Peer:
        return ScriptedPeer(server, AnthropicWire(), open_model("anthropic"))


class TestGemini(LanguageModelContract):
    @pytest.fixture
    def peer(self, server: Server, open_model: OpenModel) -> Peer:
        return ScriptedPeer(server, GeminiWire(), open_model("gemini"))
