"""What a model is asked in order to see whether it answers, and what it is capable of."""

from __future__ import annotations

from memservice.spi.llm import Tool

QUESTION = "Answer with the word yes."
AS_JSON = 'Answer with the JSON document {"answer": "yes"}.'
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
CALL = "Call the tool note with the text yes. Write nothing else."
TOOL = Tool(
    "note",
    "Note a text.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
