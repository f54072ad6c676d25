"""An agent of the OpenAI Agents SDK that remembers and recalls by the tools of memservice (MCP).

    python agent.py USER

Each line of the standard input is what the user says; the agent's answers are printed. The lines
share no conversation: what the agent remembers is in memservice.
"""

import asyncio
import os
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp, create_static_tool_filter
from openai import AsyncOpenAI

MEMORY_URL = os.environ.get("MEMSERVICE_URL", "http://127.0.0.1:8000")
MEMORY_KEY = os.environ.get("MEMSERVICE_API_KEY")  # only with authentication
WORKSPACE = os.environ.get("MEMSERVICE_WORKSPACE", "agents")

INSTRUCTIONS = (
    "You are a helpful agent. Before you answer a question about the user, call `recall`. When the "
    "user says something that will matter in later conversations, call `remember`."
)


async def main(user_id):
    set_tracing_disabled(True)
    client = AsyncOpenAI(
        base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1"),
        api_key=os.environ.get("OPENAI_API_KEY", "none"),
    )
    headers = {"Authorization": f"Bearer {MEMORY_KEY}"} if MEMORY_KEY else {}
    async with MCPServerStreamableHttp(
        params={"url": f"{MEMORY_URL}/mcp/{WORKSPACE}/{user_id}", "headers": headers},
        cache_tools_list=True,
        tool_filter=create_static_tool_filter(allowed_tool_names=["remember", "recall"]),
    ) as memory:
        agent = Agent(
            name="agent",
            instructions=INSTRUCTIONS,
            model=OpenAIChatCompletionsModel(os.environ.get("MODEL", "llama3.2"), client),
            mcp_servers=[memory],
        )
        for line in sys.stdin:
            if line.strip():
                result = await Runner.run(agent, line.strip())
                print(result.final_output, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
