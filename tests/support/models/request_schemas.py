"""JSON Schemas of the request bodies of four public APIs, as far as memservice uses them: names and
types of fields, closed against any other field.

Read on 2026-11-22 from the parameter types that the providers generate from their own OpenAPI
documents, and from the reference of the Gemini API:

- OpenAI: `openai/openai-python`, `types/chat/completion_create_params.py` and
  `types/responses/response_create_params.py`, with the types that they name
- Anthropic: `anthropics/anthropic-sdk-python`, `types/message_create_params.py`, with the types
  that it names
- Gemini: https://ai.google.dev/api/generate-content and https://ai.google.dev/api/caching

A field that a provider adds is added here when memservice begins to send it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 1}
FLAG: Schema = {"type": "boolean"}
DOCUMENT: Schema = {"type": "object"}
"""A JSON Schema, or arguments: anything goes."""


def one(*values: str) -> Schema:
    return {"enum": list(values)}


def record(required: Schema, optional: Schema | None = None) -> Schema:
    """A closed object."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def several(items: Schema, minimum: int = 1) -> Schema:
    return {"type": "array", "items": items, "minItems": minimum}


def either(*schemas: Schema) -> Schema:
    """One alternative must fit; they exclude each other by a constant field or by type."""
    return {"oneOf": list(schemas)}


EFFORT = one("none", "minimal", "low", "medium", "high", "xhigh")
PENALTIES: Schema = dict.fromkeys(("frequency_penalty", "presence_penalty"), NUMBER)
PROMPT_CACHE: Schema = {"prompt_cache_key": TEXT, "prompt_cache_retention": one("in_memory", "24h")}

OPENAI_CALL = record(
    {
        "id": TEXT,
        "type": one("function"),
        "function": record({"name": NAME, "arguments": TEXT}),
    }
)
OPENAI_MESSAGE = either(
    record({"role": one("system", "developer", "user"), "content": TEXT}),
    record(
        {"role": one("assistant"), "content": {"type": ["string", "null"]}},
        {"tool_calls": several(OPENAI_CALL)},
    ),
    record({"role": one("tool"), "content": TEXT, "tool_call_id": TEXT}),
)
OPENAI_FORMAT = either(
    record({"type": one("json_object")}),
    record(
        {
            "type": one("json_schema"),
            "json_schema": record({"name": NAME}, {"schema": DOCUMENT, "strict": FLAG}),
        }
    ),
)
CHAT_COMPLETIONS = record(
    {"model": TEXT, "messages": several(OPENAI_MESSAGE)},
    {
        "max_tokens": COUNT,
        "max_completion_tokens": COUNT,
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": NUMBER,
        "seed": {"type": "integer"},
        "stop": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 4},
        "reasoning_effort": EFFORT,
        "response_format": OPENAI_FORMAT,
        "stream": FLAG,
        "stream_options": record({}, {"include_usage": FLAG}),
        "tools": several(
            record(
                {
                    "type": one("function"),
                    "function": record(
                        {"name": NAME}, {"description": TEXT, "parameters": DOCUMENT}
                    ),
                }
            )
        ),
        "tool_choice": either(
            one("none", "auto", "required"),
            record({"type": one("function"), "function": record({"name": NAME})}),
        ),
        **PENALTIES,
        **PROMPT_CACHE,
    },
) | {
    # Options of a stream, and the choice of a tool, only with what they belong to.
    "dependentRequired": {"stream_options": ["stream"], "tool_choice": ["tools"]},
    "not": {"required": ["max_tokens", "max_completion_tokens"]},
}

RESPONSES_ITEM = either(
    record(
        {
            "type": one("message"),
            "role": one("system", "developer", "user", "assistant"),
            "content": TEXT,
        }
    ),
    record(
        {"type": one("function_call"), "call_id": TEXT, "name": NAME, "arguments": TEXT},
        {"id": TEXT, "status": one("in_progress", "completed", "incomplete")},
    ),
    record({"type": one("function_call_output"), "call_id": TEXT, "output": TEXT}),
    record(
        {"type": one("reasoning"), "id": TEXT, "summary": several(DOCUMENT, 0)},
        {"encrypted_content": {"type": ["string", "null"]}, "content": several(DOCUMENT, 0)},
    ),
)
RESPONSES = record(
    {"model": TEXT, "input": several(RESPONSES_ITEM)},
    {
        "instructions": TEXT,
        "include": several(one("reasoning.encrypted_content")),
        "max_output_tokens": {"type": "integer", "minimum": 16},
        "reasoning": record({}, {"effort": EFFORT}),
        "store": FLAG,
        "stream": FLAG,
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": NUMBER,
        "text": record(
            {
                "format": either(
                    record({"type": one("json_object")}),
                    record(
                        {"type": one("json_schema"), "name": NAME, "schema": DOCUMENT},
                        {"strict": FLAG},
                    ),
                )
            }
        ),
        "tools": several(
            record(
                {"type": one("function"), "name": NAME, "parameters": DOCUMENT},
                {"description": TEXT, "strict": FLAG},
            )
        ),
        "tool_choice": either(
            one("none", "auto", "required"), record({"type": one("function"), "name": NAME})
        ),
        **PROMPT_CACHE,
    },
) | {"dependentRequired": {"tool_choice": ["tools"]}}

EPHEMERAL = record({"type": one("ephemeral")}, {"ttl": one("5m", "1h")})
CACHED: Schema = {"cache_control": EPHEMERAL}
ANTHROPIC_TEXT = record({"type": one("text"), "text": {"type": "string", "minLength": 1}}, CACHED)
ANTHROPIC_RESULT = record(
    {"type": one("tool_result"), "tool_use_id": TEXT}, {"content": TEXT, "is_error": FLAG} | CACHED
)
ANTHROPIC_OWN = either(
    ANTHROPIC_TEXT,
    record({"type": one("tool_use"), "id": TEXT, "name": NAME, "input": DOCUMENT}, CACHED),
    record({"type": one("thinking"), "thinking": TEXT, "signature": TEXT}),
    record({"type": one("redacted_thinking"), "data": TEXT}),
)
MESSAGES = record(
    {
        "model": TEXT,
        "max_tokens": COUNT,
        "messages": several(
            either(
                record(
                    {
                        "role": one("user"),
                        "content": several(either(ANTHROPIC_TEXT, ANTHROPIC_RESULT)),
                    }
                ),
                record({"role": one("assistant"), "content": several(ANTHROPIC_OWN)}),
            )
        ),
    },
    {
        "system": several(ANTHROPIC_TEXT),
        "temperature": {"type": "number", "minimum": 0, "maximum": 1},
        "top_k": {"type": "integer"},
        "top_p": NUMBER,
        "stop_sequences": several(TEXT),
        "stream": FLAG,
        "thinking": either(
            record({"type": one("enabled"), "budget_tokens": {"type": "integer", "minimum": 1024}}),
            record({"type": one("adaptive")}, {"display": one("summarized", "omitted")}),
            record({"type": one("disabled")}),
        ),
        "output_config": record(
            {},
            {
                "effort": one("low", "medium", "high", "xhigh", "max"),
                "format": record({"type": one("json_schema"), "schema": DOCUMENT}),
            },
        ),
        "tools": several(
            record({"name": NAME, "input_schema": DOCUMENT}, {"description": TEXT} | CACHED)
        ),
        "tool_choice": either(
            record({"type": one("auto", "any")}, {"disable_parallel_tool_use": FLAG}),
            record({"type": one("none")}),
            record({"type": one("tool"), "name": NAME}, {"disable_parallel_tool_use": FLAG}),
        ),
        **CACHED,
    },
) | {"dependentRequired": {"tool_choice": ["tools"]}}

GEMINI_SIGNED: Schema = {"thoughtSignature": TEXT, "thought": FLAG}
GEMINI_TEXT = record({"text": TEXT}, GEMINI_SIGNED)
GEMINI_CALL = record(
    {"functionCall": record({"name": NAME}, {"args": DOCUMENT, "id": TEXT})}, GEMINI_SIGNED
)
GEMINI_RESULT = record(
    {"functionResponse": record({"name": NAME, "response": DOCUMENT}, {"id": TEXT})}
)
GENERATE_CONTENT = record(
    {
        "contents": several(
            either(
                record({"role": one("user"), "parts": several(either(GEMINI_TEXT, GEMINI_RESULT))}),
                record({"role": one("model"), "parts": several(either(GEMINI_TEXT, GEMINI_CALL))}),
            )
        )
    },
    {
        "systemInstruction": record({"parts": several(GEMINI_TEXT)}, {"role": TEXT}),
        "tools": several(
            record(
                {
                    "functionDeclarations": several(
                        record(
                            {"name": NAME, "description": TEXT},
                            {"parameters": DOCUMENT, "parametersJsonSchema": DOCUMENT},
                        )
                        | {"not": {"required": ["parameters", "parametersJsonSchema"]}}
                    )
                }
            )
        ),
        "toolConfig": record(
            {
                "functionCallingConfig": either(
                    record({"mode": one("AUTO", "NONE")}),
                    record({"mode": one("ANY")}, {"allowedFunctionNames": several(NAME)}),
                )
            }
        ),
        "generationConfig": record(
            {},
            {
                "temperature": {"type": "number", "minimum": 0, "maximum": 2},
                "topP": NUMBER,
                "topK": {"type": "integer"},
                "seed": {"type": "integer"},
                "frequencyPenalty": NUMBER,
                "presencePenalty": NUMBER,
                "maxOutputTokens": COUNT,
                "stopSequences": {"type": "array", "items": TEXT, "maxItems": 5},
                "responseMimeType": one("text/plain", "application/json"),
                "responseJsonSchema": DOCUMENT,
                "thinkingConfig": record(
                    {},
                    {
                        "includeThoughts": FLAG,
                        "thinkingBudget": {"type": "integer", "minimum": -1},
                        "thinkingLevel": one("minimal", "low", "medium", "high"),
                    },
                )
                | {"not": {"required": ["thinkingBudget", "thinkingLevel"]}},
            },
        )
        | {"dependentRequired": {"responseJsonSchema": ["responseMimeType"]}},
    },
) | {"dependentRequired": {"toolConfig": ["tools"]}}

SCHEMAS = {
    "/chat/completions": CHAT_COMPLETIONS,
    "/responses": RESPONSES,
    "/messages": MESSAGES,
    "enerateContent": GENERATE_CONTENT,
}
"""By the end of a request's path."""


def violations(path: str, body: Any) -> Sequence[str]:
    """What is wrong with a request, by the schema of its API. Most tests send the same ones."""
    return _violations(path.partition("?")[0], json.dumps(body))


@cache
def _violations(path: str, body: str) -> Sequence[str]:
    (schema,) = [schema for end, schema in SCHEMAS.items() if path.endswith(end)]
    return [
        f"{path} {error.json_path}: {error.message[:300]}"
        for error in Draft202012Validator(schema).iter_errors(json.loads(body))
    ]
