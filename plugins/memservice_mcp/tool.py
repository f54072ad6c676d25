"""What a tool is, and how it runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import mcp_types as types
from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, ValidationError

from memservice.domain import errors
from memservice.domain.failures import error_types, redacted_traceback
from memservice_mcp.context import ToolContext

log = logging.getLogger("memservice.mcp")

UNAVAILABLE = "The store cannot be used at the moment: try again"
"""The cause, with hosts, paths and users, is only logged."""
UNEXPECTED = "An unexpected error occurred"
FOR_CALLERS = (
    errors.NotFound,
    errors.Conflict,
    errors.Refused,
    errors.Unauthorised,
    errors.Disabled,
    errors.TooLarge,
    errors.UnsupportedMedia,
    errors.Busy,
    errors.AnswerFailed,
)
"""Errors that the caller can do something about."""


class Arguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")


class Result(BaseModel):
    """The structured result of a tool."""


class Effect(Enum):
    """What a tool does to the memory."""

    READS = "reads"
    ADDS = "adds"
    CHANGES = "changes"
    """Replaces or removes something."""


class Tool(Struct, frozen=True):
    """One tool. `run` raises the errors of the services that it calls."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[Result]
    run: Callable[[ToolContext, Any], Result]
    effect: Effect = Effect.READS
    is_idempotent: bool = False
    """Whether a repetition changes nothing more. Only for tools that do not just read."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Argument of a service → argument of the tool, for errors."""

    def listed(self) -> types.Tool:
        """The tool as clients see it."""
        reads = self.effect is Effect.READS
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            output_schema=self.result.model_json_schema(mode="serialization"),
            annotations=types.ToolAnnotations(
                title=self.title,
                read_only_hint=reads,
                destructive_hint=self.effect is Effect.CHANGES,
                idempotent_hint=reads or self.is_idempotent,
                open_world_hint=False,
            ),
        )

    def call(self, context: ToolContext, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """The result, or the error as a text that names the argument and says what to do."""
        try:
            result = self.run(context, self.arguments.model_validate(arguments))
        except ValidationError as error:
            return _failed(self._problems(error))
        except errors.InvalidInput as error:
            return _failed("; ".join(self._problem(problem) for problem in error.problems))
        except Exception as error:
            return _failed(text_of(error, self.name))
        content = result.model_dump(mode="json", by_alias=True)
        text = json.dumps(content, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=content
        )

    def _problems(self, error: ValidationError) -> str:
        texts = []
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            name = ".".join(str(part) for part in problem["loc"])
            text = problem["msg"]
            if problem["type"] == "extra_forbidden":
                names = ", ".join(self.arguments.model_fields) or "none"
                text = f"there is no such argument; there are: {names}"
            texts.append(f"{name}: {text}" if name else text)
        return "; ".join(texts)

    def _problem(self, problem: errors.Problem) -> str:
        words = [part for part in problem.loc if isinstance(part, str)]
        name = words[-1] if words else ""
        return f"{self.names.get(name, name)}: {problem.message}" if name else problem.message


def text_of(error: Exception, name: str) -> str:
    """What a caller is told about the error of `name`. Everything else is logged, without texts of
    users."""
    if isinstance(error, FOR_CALLERS):
        return str(error)
    if isinstance(error, (errors.Unavailable, errors.SchemaVersionError)):
        log.warning("%s: unavailable: %s: %s", name, " from ".join(error_types(error)), error)
        return UNAVAILABLE
    log.error(
        "%s failed: %s\n%s", name, " from ".join(error_types(error)), redacted_traceback(error)
    )
    if isinstance(error, errors.MemserviceError):
        log.error("%s", error)  # written for the operator, without secrets
    return UNEXPECTED


def _failed(text: str) -> types.CallToolResult:
    text = text.encode(errors="replace").decode()  # it can name an argument that is not Unicode
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
