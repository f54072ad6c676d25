"""`honcho-core` 1.8.0, a generated client of the second generation. Sessions go by name."""

from __future__ import annotations

from typing import Any

from honcho_core import Honcho  # type: ignore[import-not-found]  # installed in the client's own environment only


class Speaker:
    def __init__(self, url: str, key: str, workspace: str) -> None:
        self.api = Honcho(base_url=url, api_key=key, max_retries=0, timeout=30.0).workspaces
        self.workspace, self.own = workspace, {"workspace_id": workspace}

    def make_workspace(self, metadata: Any) -> None:
        self.api.get_or_create(id=self.workspace, metadata=metadata)

    def set_workspace(self, metadata: Any) -> None:
        self.api.update(self.workspace, metadata=metadata)

    def workspace_metadata(self) -> Any:
        (workspace,) = self.api.list(filters={"id": self.workspace})
        return workspace.metadata

    def make_peer(self, name: str, metadata: Any) -> None:
        self.api.peers.get_or_create(**self.own, id=name, metadata=metadata)

    def set_peer(self, name: str, metadata: Any) -> None:
        self.api.peers.update(name, **self.own, metadata=metadata)

    def peers(self) -> Any:
        return {peer.id: peer.metadata for peer in self.api.peers.list(**self.own, size=2)}

    def make_session(self, session: str, of: str, metadata: Any) -> None:
        self.api.sessions.get_or_create(**self.own, id=session, metadata=metadata, peers={of: {}})

    def set_session(self, session: str, of: str, metadata: Any) -> None:
        self.api.sessions.update(session, **self.own, metadata=metadata)

    def sessions_of(self, of: str) -> Any:
        return [
            (item.id, item.metadata)
            for item in self.api.peers.sessions.list(of, **self.own, size=2)
            if item.is_active
        ]

    def delete_session(self, session: str, of: str) -> None:
        self.api.sessions.delete(session, **self.own)

    def clone(self, session: str, of: str, upto: str | None) -> str:
        named = {} if upto is None else {"message_id": upto}
        return str(self.api.sessions.clone(session, **self.own, **named).id)

    def say(self, session: str, by: str, *contents: str) -> list[str]:
        bodies = [{"peer_id": by, "content": content} for content in contents]
        return [
            item.id
            for item in self.api.sessions.messages.create(session, **self.own, messages=bodies)
        ]

    def values_of(self, item: Any, of: str) -> Any:
        return (item.id, item.content, item.peer_id == of, item.metadata)

    def messages(self, session: str, of: str) -> Any:
        return [
            self.values_of(item, of)
            for item in self.api.sessions.messages.list(session, **self.own, size=2)
        ]

    def message(self, session: str, of: str, id: str) -> Any:
        return self.values_of(
            self.api.sessions.messages.retrieve(id, **self.own, session_id=session), of
        )

    def set_message(self, session: str, of: str, id: str, metadata: Any) -> None:
        self.api.sessions.messages.update(id, **self.own, session_id=session, metadata=metadata)

    def conclude(self, about: str, content: str) -> str:
        self.api.sessions.get_or_create(**self.own, id="remarks")
        pair = {
            "observer_id": about,
            "observed_id": about,
            "session_id": "remarks",
            "content": content,
        }
        return str(self.api.observations.create(self.workspace, observations=[pair])[0].id)

    def conclusions(self, about: str) -> Any:
        pair = {"observer_id": about, "observed_id": about}
        return [
            (item.id, item.content)
            for item in self.api.observations.list(
                self.workspace, filters=pair, reverse=True, size=2
            )
        ]

    def nearest(self, about: str, query: str) -> str:
        pair = {"observer": about, "observed": about}
        return str(
            self.api.observations.query(self.workspace, query=query, top_k=1, filters=pair)[0].id
        )

    def chat(self, about: str, session: str, question: str) -> str:
        return str(
            self.api.peers.chat(about, **self.own, query=question, session_id=session).content
        )
