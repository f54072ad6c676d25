"""Made-up data that shows every page of the console with content."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

WORKSPACE = "travel-agent"
SESSION = "autumn-trip"
PEER = "alice"
QUESTION = "Where does alice want to go in autumn?"
SUMMARY = (
    "Alice plans a week in Lisbon in October with her sister. They travel by train, want a quiet "
    "hotel near the river, and eat vegetarian. The assistant found a night train from Hendaye and "
    "two hotels in Alcântara."
)
DIALOGUE = (
    "I want to spend a week in Lisbon in October.|That sounds lovely! Do you travel alone?",
    "I travel with my sister.|Noted: two travellers. Do you prefer a flight or a train?",
    "I don't like flying, so I take the train.|There is a night train from Hendaye to Lisbon.",
    "I am vegetarian.|Lisbon has good vegetarian restaurants; I will list some.",
    "I work as a translator from Portuguese.|Then you will get around easily.",
    "I live in Ghent.|I will look for connections from Ghent, with one change in Paris.",
    "I like quiet hotels near the river.|Alcântara is quiet and near the river. Two hotels fit.",
    "My budget is 1,200 euros.|Both hotels and the train fit into that.",
    "I am learning to surf.|There are surf schools in Carcavelos, half an hour by train.",
    "My sister likes old trams.|Line 28 is the one to take, early in the morning.",
    "I have a museum card.|It is valid in Belém as well.",
)
OTHERS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "kitchen-helper": {
        "dinner-for-six": ("bob|I am allergic to nuts.", "assistant|No nuts then. Soup or salad?"),
        "sourdough": ("bob|I bake on Sundays.", "assistant|Feed the starter on Saturday evening."),
    },
    "support-desk": {
        "ticket-1042": ("carol|My router restarts every night.", "agent|Which model do you have?"),
        "ticket-1043": ("dave|I moved to Bruges.", "agent|I will update your address."),
    },
}
TIMEOUT = 60.0


class Demo:
    """Fills a server through its API."""

    def __init__(self, url: str, key: str) -> None:
        self._client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=TIMEOUT
        )

    def fill(self, receiver: str, broken_receiver: str) -> None:
        """`receiver`: a URL that accepts webhooks; `broken_receiver`: one that refuses them."""
        for name in (WORKSPACE, *OTHERS):
            self._post("/v3/workspaces", {"id": name, "metadata": {"team": "demo"}})
        self._post(f"/v3/workspaces/{WORKSPACE}/webhooks", {"url": receiver})
        self._post("/v3/workspaces/support-desk/webhooks", {"url": broken_receiver})
        pairs = (pair.split("|") for pair in DIALOGUE)
        self._say(
            WORKSPACE,
            SESSION,
            [
                message
                for question, answer in pairs
                for message in ((PEER, question), ("assistant", answer))
            ],
        )
        self._say(WORKSPACE, "visa-questions", [("erin", "I need a visa for Brazil.")])
        self._say(WORKSPACE, "weekend-in-antwerp", [("alice", "I bought a new bicycle.")])
        for workspace, sessions in OTHERS.items():
            for session, lines in sessions.items():
                pairs = (line.split("|") for line in lines)
                self._say(workspace, session, [(author, text) for author, text in pairs])
        card = ["Vegetarian", "Translator from Portuguese", "Lives in Ghent"]
        path = f"/v3/workspaces/{WORKSPACE}/peers/{PEER}/card"
        self._client.put(path, json={"peer_card": card}).raise_for_status()
        for name in (WORKSPACE, *OTHERS):
            self._wait(name)

    def _say(self, workspace: str, session: str, messages: Sequence[tuple[str, str]]) -> None:
        start = datetime.now(UTC) - timedelta(minutes=2 * len(messages))
        rows = [
            {
                "peer_id": author,
                "content": text,
                "created_at": (start + timedelta(minutes=2 * number)).isoformat(),
            }
            for number, (author, text) in enumerate(messages)
        ]
        self._post(f"/v3/workspaces/{workspace}/sessions/{session}/messages", {"messages": rows})

    def _wait(self, workspace: str) -> None:
        """Until the background work of the workspace is done."""
        deadline = time.monotonic() + TIMEOUT
        path = f"/v3/workspaces/{workspace}/queue/status"
        while True:
            status = self._client.get(path).raise_for_status().json()
            if not status["pending_work_units"] + status["in_progress_work_units"]:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{workspace}: {status}")
            time.sleep(0.2)

    def _post(self, path: str, body: Any) -> Any:
        return self._client.post(path, json=body).raise_for_status().json()

    def close(self) -> None:
        self._client.close()
