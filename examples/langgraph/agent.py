"""A LangGraph agent whose memory outlives its threads: recall, answer, store.

    python agent.py USER THREAD

Each line of the standard input is what the user says; the agent's answers are printed.
"""

import os
import sys
from typing import TypedDict

from honcho import Honcho
from honcho.session import SessionPeerConfig
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

MEMORY_URL = os.environ.get("MEMSERVICE_URL", "http://127.0.0.1:8000")
MEMORY_KEY = os.environ.get("MEMSERVICE_API_KEY")  # only with authentication
WORKSPACE = os.environ.get("MEMSERVICE_WORKSPACE", "langgraph")

memory = Honcho(base_url=MEMORY_URL, api_key=MEMORY_KEY, workspace_id=WORKSPACE)
model = ChatOpenAI(
    model=os.environ.get("MODEL", "llama3.2"),
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)


class State(TypedDict):
    user: str
    thread: str
    text: str
    known: str
    history: list
    reply: str


def recall(state: State):
    """What is known about the user, and the last messages of this thread."""
    thread = memory.session(state["thread"])
    thread.add_peers(
        [memory.peer(state["user"]), (memory.peer("agent"), SessionPeerConfig(observe_me=False))]
    )
    context = thread.context(tokens=2000, peer_target=state["user"], search_query=state["text"])
    history = [
        (AIMessage if message.peer_id == "agent" else HumanMessage)(message.content)
        for message in context.messages
    ]
    return {"known": context.peer_representation or "nothing yet", "history": history}


def answer(state: State):
    system = SystemMessage(f"You are a helpful agent. You know about the user:\n{state['known']}")
    reply = model.invoke([system, *state["history"], HumanMessage(state["text"])])
    return {"reply": reply.content}


def store(state: State):
    user, agent = memory.peer(state["user"]), memory.peer("agent")
    messages = [user.message(state["text"]), agent.message(state["reply"])]
    memory.session(state["thread"]).add_messages(messages)
    return {}


def built():
    graph = StateGraph(State)
    for node in (recall, answer, store):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "answer")
    graph.add_edge("answer", "store")
    graph.add_edge("store", END)
    return graph.compile()


if __name__ == "__main__":
    agent_graph = built()
    user_id, thread_id = sys.argv[1:]
    for line in sys.stdin:
        if line.strip():
            inputs = {"user": user_id, "thread": thread_id, "text": line.strip()}
            print(agent_graph.invoke(inputs)["reply"], flush=True)
