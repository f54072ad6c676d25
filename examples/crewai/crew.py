"""A crew of one agent whose two tools keep its memory in memservice.

    python crew.py USER

Each line of the standard input is a task about the user; the result of each is printed.
"""

import os
import sys

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

import httpx
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

MEMORY_URL = os.environ.get("MEMSERVICE_URL", "http://127.0.0.1:8000")
MEMORY_KEY = os.environ.get("MEMSERVICE_API_KEY")  # only with authentication
WORKSPACE = os.environ.get("MEMSERVICE_WORKSPACE", "crew")
USER = sys.argv[1]

memory = httpx.Client(
    base_url=f"{MEMORY_URL}/v3/workspaces/{WORKSPACE}",
    headers={"Authorization": f"Bearer {MEMORY_KEY}"} if MEMORY_KEY else {},
    timeout=30,
)


def call(path, body):
    answer = memory.post(path, json=body)
    answer.raise_for_status()
    return answer.json()


@tool("remember")
def remember(text: str) -> str:
    """Store one fact about the user, as a sentence, for all later tasks."""
    conclusion = {"observer_id": USER, "observed_id": USER, "content": text}
    call("/conclusions", {"conclusions": [conclusion]})
    return "stored"


@tool("recall")
def recall(query: str) -> str:
    """Find facts about the user that were stored before."""
    pair = {"observer": USER, "observed": USER}
    hits = call("/conclusions/query", {"query": query, "top_k": 5, "filters": pair})
    return "\n".join(conclusion["content"] for conclusion in hits) or "nothing is stored"


def main():
    httpx.post(
        f"{MEMORY_URL}/v3/workspaces", json={"id": WORKSPACE}, headers=memory.headers
    ).raise_for_status()
    call("/peers", {"id": USER})
    model = LLM(
        model=f"openai/{os.environ.get('MODEL', 'llama3.2')}",
        base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1"),
        api_key=os.environ.get("OPENAI_API_KEY", "none"),
    )
    assistant = Agent(
        role="assistant",
        goal="Answer what the user asks from what the user said before",
        backstory="You recall before you answer, and remember what will matter later.",
        tools=[remember, recall],
        llm=model,
    )
    for line in sys.stdin:
        if line.strip():
            task = Task(description=line.strip(), expected_output="One sentence", agent=assistant)
            result = Crew(agents=[assistant], tasks=[task], tracing=False).kickoff()
            print(result.raw, flush=True)


if __name__ == "__main__":
    main()
