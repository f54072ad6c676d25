"""What is known of families of models by their names, whatever server runs them."""

from __future__ import annotations

import re

REASONS = re.compile(
    r"^(?:.*/)?(?:o[134](?:-|$)|gpt-[5-9]|gpt-oss|gemini-(?:2\.5|[3-9])|gemini-flash-latest|"
    r"gemini-pro-latest|deepseek-(?:r|reason)|qwq|qwen3(?!.*instruct)|magistral|grok-[4-9]|"
    r"kimi-k2-think|glm-(?:4\.[5-9]|[5-9])|minimax-m)|think|reasoner|deepseek-r1|-r1(?:-|:|$)",
    re.IGNORECASE,
)
"""Families whose reasoning counts as output."""
OPENS_REASONING = re.compile(r"deepseek-r1|qwq|-thinking(?:-|:|$)", re.IGNORECASE)
"""Families whose chat template contains the opening tag, so that an answer begins with reasoning
and has only the closing one."""
PREFERS_RESPONSES = re.compile(r"^(?:ft:)?gpt-(?:[5-9]|[1-9]\d)(?!.*search-api)", re.IGNORECASE)
"""Families of OpenAI that Chat Completions reaches only in part: with tools, they do not reason
there. The search models exist only there."""
TAKES_SCHEMA_WITH_TOOLS = re.compile(r"^(?:models/)?gemini-(?:[3-9]|\d\d)", re.IGNORECASE)
"""Families of Gemini that take a JSON Schema of the answer and tools in one request."""
