"""A support bot that remembers its customers over conversations.

    python bot.py CUSTOMER CONVERSATION

Each line of the standard input is what the customer says; the bot's answers are printed.
"""

import os
import sys

import httpx
from honcho import Honcho
from honcho.session import SessionPeerConfig

MEMORY_URL = os.environ.get("MEMSERVICE_URL", "http://127.0.0.1:8000")
MEMORY_KEY = os.environ.get("MEMSERVICE_API_KEY")  # only with authentication
WORKSPACE = os.environ.get("MEMSERVICE_WORKSPACE", "support")
MODEL_URL = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")
MODEL_KEY = os.environ.get("OPENAI_API_KEY", "none")
MODEL = os.environ.get("MODEL", "llama3.2")

INSTRUCTIONS = (
    "You answer the customers of a shop, briefly. Use what is known about the customer. "
    "Do not ask for what the customer has said before."
)


def ask_model(messages):
    answer = httpx.post(
        f"{MODEL_URL}/chat/completions",
        json={"model": MODEL, "messages": messages},
        headers={"Authorization": f"Bearer {MODEL_KEY}"},
        timeout=60,
    )
    answer.raise_for_status()
    return answer.json()["choices"][0]["message"]["content"]


def main(customer_id, conversation_id):
    memory = Honcho(base_url=MEMORY_URL, api_key=MEMORY_KEY, workspace_id=WORKSPACE)
    customer, bot = memory.peer(customer_id), memory.peer("bot")
    conversation = memory.session(conversation_id)
    # Nothing is concluded about the bot itself.
    conversation.add_peers([customer, (bot, SessionPeerConfig(observe_me=False))])
    for line in sys.stdin:
        text = line.strip()
        if not text:
            continue
        conversation.add_messages([customer.message(text)])
        # This conversation, and what all conversations say about the customer.
        context = conversation.context(tokens=2000, peer_target=customer_id, search_query=text)
        prompt = [{"role": "system", "content": INSTRUCTIONS}, *context.to_openai(assistant=bot)]
        reply = ask_model(prompt)
        conversation.add_messages([bot.message(reply)])
        print(reply, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
