"""One workspace through each generation, with the same operations: after a write by one generation,
all three are read.

A session is named by its uid, and a peer by its name, which equals its id until it is renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pytest
from flask import Flask

from api.conftest import Api, _numbers
from memservice.runtime import Runtime
from memservice.worker.polling import Worker
from support.api.v1_client import V1Client, uid
from support.api.v2_client import V2Client
from support.stores.stores import undone

GENERATIONS = ("v1", "v2", "v3")
ALICE = "alice"

Metadata = dict[str, Any]


class MessageView(NamedTuple):
    """A message in the perspective of the peer that reads the session."""

    id: str
    content: str
    mine: bool
    """Written by the reading peer."""
    metadata: Metadata


class GenerationClient(Protocol):
    """The operations that every generation has, in its own form. Lists are complete, and their
    totals are checked."""

    def make_workspace(self, metadata: Metadata) -> None: ...
    def set_workspace(self, metadata: Metadata) -> None: ...
    def workspace(self) -> Metadata: ...
    def make_peer(self, name: str, metadata: Metadata) -> None: ...
    def set_peer(self, name: str, metadata: Metadata) -> None: ...
    def peers(self) -> dict[str, Metadata]: ...
    def make_session(self, of: str, metadata: Metadata) -> str: ...
    def set_session(self, session: str, of: str, metadata: Metadata) -> None: ...
    def sessions(self, of: str) -> list[tuple[str, Metadata]]: ...
    def delete_session(self, session: str, of: str) -> None: ...
    def clone(self, session: str, of: str, upto: str | None) -> str: ...
    def say(self, session: str, by: str, *contents: str) -> list[str]: ...
    def messages(self, session: str, of: str) -> list[MessageView]: ...
    def message(self, session: str, of: str, id: str) -> MessageView: ...
    def set_message(self, session: str, of: str, id: str, metadata: Metadata) -> None: ...
    def conclude(self, about: str, content: str) -> str: ...
    def conclusions(self, about: str) -> list[tuple[str, str]]: ...
    def nearest(self, about: str, query: str) -> str: ...
    def chat(self, about: str, session: str, question: str) -> str: ...


class AllGenerations:
    """A workspace of one test, with a client for each generation. It does not exist yet."""

    def __init__(self, app: Flask, runtime: Runtime, workspace: str) -> None:
        self.newest = Api(app, runtime, workspace)
        self.v2 = V2Client(app, runtime, workspace)
        self.v1 = V1Client(self.newest)
        self.runtime = runtime
        self.clients: dict[str, GenerationClient] = {
            "v1": ByUid(self),
            "v2": ByName(self, self.v2),
            "v3": ByName(self, self.newest),
        }

    @property
    def workspace(self) -> str:
        return self.newest.workspace

    def all(self) -> Sequence[GenerationClient]:
        return list(self.clients.values())

    def settle(self) -> None:
        Worker(self.runtime).run_until_idle()

    def app(self) -> str:
        """The path of the workspace in the first generation."""
        return f"/apps/{self.v1.get(f'/apps/name/{self.workspace}')['id']}"

    def user(self, name: str = ALICE) -> str:
        return f"{self.app()}/users/{self.v1.get(f'{self.app()}/users/name/{name}')['id']}"

    def slug(self, session: str) -> str:
        """The session's id in the later generations."""
        named = {item["uid"]: item["id"] for item in whole(self.newest, "/sessions/list")}
        return str(named.get(session, session))

    def uid_of(self, slug: str) -> str:
        return str(self.newest.ok(self.newest.post("/sessions", {"id": slug}))["uid"])


def whole(api: Api, path: str, body: Any = ..., **query: Any) -> list[Any]:
    """All items of a listing, page by page. The totals must agree."""
    return _collected(
        lambda number: api.ok(
            api.call("POST", path, body, query_string={"page": number, "size": 2, **query})
        )
    )


def _collected(ask: Any) -> list[Any]:
    items: list[Any] = []
    page = ask(1)
    for number in range(1, page["pages"] + 1):
        page = ask(number) if number > 1 else page
        assert len(page["items"]) == min(2, page["total"] - len(items)), page
        items += page["items"]
    assert (page["total"], page["pages"], ask(page["pages"] + 1)["items"]) == (
        len(items),
        -(-len(items) // 2),
        [],
    )
    return items


class ByName:
    """The second and the third generation, which differ in words and statuses."""

    def __init__(self, all_generations: AllGenerations, api: Api) -> None:
        self.three, self.api = all_generations, api
        self.root = "//v2/workspaces" if isinstance(api, V2Client) else "//v3/workspaces"
        self.memory = "observations" if isinstance(api, V2Client) else "conclusions"

    def done(self, method: str, path: str, body: Any = ...) -> Any:
        answer = self.api.call(method, path, body)
        assert answer.status_code // 100 == 2, (
            f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        )
        return answer.get_json() if answer.data else None

    def make_workspace(self, metadata: Metadata) -> None:
        self.done("POST", self.root, {"id": self.three.workspace, "metadata": metadata})

    def set_workspace(self, metadata: Metadata) -> None:
        self.done("PUT", "", {"metadata": metadata})

    def workspace(self) -> Metadata:
        (row,) = whole(self.api, f"{self.root}/list", {"filters": {"id": self.three.workspace}})
        assert row == self.done("POST", self.root, {"id": self.three.workspace})
        return dict(row["metadata"])

    def make_peer(self, name: str, metadata: Metadata) -> None:
        self.done("POST", "/peers", {"id": name, "metadata": metadata})

    def set_peer(self, name: str, metadata: Metadata) -> None:
        self.done("PUT", f"/peers/{name}", {"metadata": metadata})

    def peers(self) -> dict[str, Metadata]:
        return {item["id"]: item["metadata"] for item in whole(self.api, "/peers/list")}

    def make_session(self, of: str, metadata: Metadata) -> str:
        slug = f"session-{next(_numbers)}"
        self.done("POST", "/sessions", {"id": slug, "metadata": metadata, "peers": {of: {}}})
        return self.three.uid_of(slug)

    def _at(self, session: str) -> str:
        return f"/sessions/{self.three.slug(session)}"

    def set_session(self, session: str, of: str, metadata: Metadata) -> None:
        self.done("PUT", self._at(session), {"metadata": metadata})

    def sessions(self, of: str) -> list[tuple[str, Metadata]]:
        uids = {item["id"]: item["uid"] for item in whole(self.three.newest, "/sessions/list")}
        return [
            (uids[item["id"]], item["metadata"])
            for item in whole(self.api, f"/peers/{of}/sessions")
            if item["is_active"]
        ]

    def delete_session(self, session: str, of: str) -> None:
        self.done("DELETE", self._at(session))

    def clone(self, session: str, of: str, upto: str | None) -> str:
        query = "" if upto is None else f"?message_id={upto}"
        method = "GET" if isinstance(self.api, V2Client) else "POST"
        return self.three.uid_of(self.done(method, f"{self._at(session)}/clone{query}")["id"])

    def say(self, session: str, by: str, *contents: str) -> list[str]:
        body = {"messages": [{"peer_id": by, "content": content} for content in contents]}
        return [item["id"] for item in self.done("POST", f"{self._at(session)}/messages", body)]

    def _view(self, item: Any, of: str) -> MessageView:
        return MessageView(item["id"], item["content"], item["peer_id"] == of, item["metadata"])

    def messages(self, session: str, of: str) -> list[MessageView]:
        return [
            self._view(item, of) for item in whole(self.api, f"{self._at(session)}/messages/list")
        ]

    def message(self, session: str, of: str, id: str) -> MessageView:
        return self._view(self.done("GET", f"{self._at(session)}/messages/{id}"), of)

    def set_message(self, session: str, of: str, id: str, metadata: Metadata) -> None:
        self.done("PUT", f"{self._at(session)}/messages/{id}", {"metadata": metadata})

    def conclude(self, about: str, content: str) -> str:
        session = f"session-{next(_numbers)}"
        self.three.newest.session(session)
        pair = {
            "observer_id": about,
            "observed_id": about,
            "session_id": session,
            "content": content,
        }
        return str(self.done("POST", f"/{self.memory}", {self.memory: [pair]})[0]["id"])

    def conclusions(self, about: str) -> list[tuple[str, str]]:
        pair = {"observer_id": about, "observed_id": about}
        listed = whole(self.api, f"/{self.memory}/list", {"filters": pair}, reverse="true")
        return [(item["id"], item["content"]) for item in listed]

    def nearest(self, about: str, query: str) -> str:
        body = {"query": query, "top_k": 1, "filters": {"observer": about, "observed": about}}
        return str(self.done("POST", f"/{self.memory}/query", body)[0]["id"])

    def chat(self, about: str, session: str, question: str) -> str:
        body = {"query": question, "session_id": self.three.slug(session)}
        return str(self.done("POST", f"/peers/{about}/chat", body)["content"])


class ByUid:
    """The first generation, where `by` names the author: the peer itself, or another one."""

    def __init__(self, all_generations: AllGenerations) -> None:
        self.three, self.v1 = all_generations, all_generations.v1

    def _whole(self, path: str) -> list[Any]:
        return _collected(lambda number: self.v1.post(f"{path}/list", page=number, size=2))

    def make_workspace(self, metadata: Metadata) -> None:
        self.v1.post("/apps", {"name": self.three.workspace, "metadata": metadata})

    def set_workspace(self, metadata: Metadata) -> None:
        self.v1.put(self.three.app(), {"metadata": metadata})

    def workspace(self) -> Metadata:
        row = self.v1.get("/apps", app_id=uid(self.three.app()))
        assert row == self.v1.get(f"/apps/get_or_create/{self.three.workspace}")
        return dict(row["metadata"])

    def make_peer(self, name: str, metadata: Metadata) -> None:
        self.v1.post(f"{self.three.app()}/users", {"name": name, "metadata": metadata})

    def set_peer(self, name: str, metadata: Metadata) -> None:
        self.v1.put(self.three.user(name), {"metadata": metadata})

    def peers(self) -> dict[str, Metadata]:
        return {item["name"]: item["metadata"] for item in self._whole(f"{self.three.app()}/users")}

    def make_session(self, of: str, metadata: Metadata) -> str:
        return str(self.v1.post(f"{self.three.user(of)}/sessions", {"metadata": metadata})["id"])

    def _at(self, session: str, of: str) -> str:
        return f"{self.three.user(of)}/sessions/{session}"

    def set_session(self, session: str, of: str, metadata: Metadata) -> None:
        self.v1.put(self._at(session, of), {"metadata": metadata})

    def sessions(self, of: str) -> list[tuple[str, Metadata]]:
        return [
            (item["id"], item["metadata"])
            for item in self._whole(f"{self.three.user(of)}/sessions")
            if item["is_active"]
        ]

    def delete_session(self, session: str, of: str) -> None:
        self.v1.delete(self._at(session, of))

    def clone(self, session: str, of: str, upto: str | None) -> str:
        query = {} if upto is None else {"message_id": upto}
        return str(self.v1.get(f"{self._at(session, of)}/clone", **query)["id"])

    def say(self, session: str, by: str, *contents: str) -> list[str]:
        messages = self.v1.say(
            self._at(session, ALICE), *((by == ALICE, content) for content in contents)
        )
        return [item["id"] for item in messages]

    def _view(self, item: Any) -> MessageView:
        return MessageView(item["id"], item["content"], item["is_user"], item["metadata"])

    def messages(self, session: str, of: str) -> list[MessageView]:
        return [self._view(item) for item in self._whole(f"{self._at(session, of)}/messages")]

    def message(self, session: str, of: str, id: str) -> MessageView:
        return self._view(self.v1.get(f"{self._at(session, of)}/messages/{id}"))

    def set_message(self, session: str, of: str, id: str, metadata: Metadata) -> None:
        self.v1.put(f"{self._at(session, of)}/messages/{id}", {"metadata": metadata})

    def reserved(self, about: str) -> str:
        """The path of the documents in the collection of what is known about the user, which asking
        makes appear."""
        user = self.three.user(about)
        self.v1.post(f"{user}/sessions/unknown/chat", {"queries": ""})
        collection = self.v1.get(f"{user}/collections/name/honcho")
        return f"{user}/collections/{collection['id']}/documents"

    def conclude(self, about: str, content: str) -> str:
        return str(self.v1.post(self.reserved(about), {"content": content})["id"])

    def conclusions(self, about: str) -> list[tuple[str, str]]:
        return [(item["id"], item["content"]) for item in self._whole(self.reserved(about))]

    def nearest(self, about: str, query: str) -> str:
        return str(
            self.v1.post(f"{self.reserved(about)}/query", {"query": query, "top_k": 1})[0]["id"]
        )

    def chat(self, about: str, session: str, question: str) -> str:
        return str(
            self.v1.post(f"{self._at(session, about)}/chat", {"queries": question})["content"]
        )


@pytest.fixture
def all_generations(app: Flask, runtime: Runtime) -> Iterator[AllGenerations]:
    with undone(runtime.storage):
        opened = AllGenerations(app, runtime, f"w{next(_numbers)}")
        yield opened
        runtime.storage.write(opened.newest.leave_no_work)


@pytest.fixture(params=GENERATIONS)
def writer(request: pytest.FixtureRequest, all_generations: AllGenerations) -> GenerationClient:
    """Each generation in turn."""
    return all_generations.clients[request.param]
