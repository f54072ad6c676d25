"""OpenAI's own service has two protocols: which of them a model is reached by."""

from __future__ import annotations

from collections.abc import Iterator

from memservice.spi.llm import Completion, CompletionRequest
from memservice_http.families import PREFERS_RESPONSES
from memservice_openai.chat import OpenAiModel
from memservice_openai.responses import ResponsesModel


class RoutedModel:
    """`LanguageModel` and `KnowsModels`: Responses for the families that prefer it, Chat
    Completions for the others."""

    def __init__(self, chat: OpenAiModel, responses: ResponsesModel) -> None:
        self._chat, self._responses = chat, responses

    def complete(self, request: CompletionRequest) -> Completion:
        return self._for(request.model).complete(request)

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        return self._for(request.model).stream(request)

    def lacks(self, model: str) -> frozenset[str]:
        return self._for(model).lacks(model)

    def reasons(self, model: str) -> bool:
        return self._for(model).reasons(model)

    def combines_schema_with_tools(self, model: str) -> bool:
        return self._for(model).combines_schema_with_tools(model)

    def opens_reasoning(self, model: str) -> bool:
        return self._for(model).opens_reasoning(model)

    def _for(self, model: str) -> OpenAiModel | ResponsesModel:
        return self._responses if PREFERS_RESPONSES.search(model) else self._chat
