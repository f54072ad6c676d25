"""`honcho-ai` 2.7.0, a client of the third generation. Sessions go by name."""

from __future__ import annotations

from typing import Any

from honcho import Honcho  # type: ignore[import-not-found]  # installed in the client's own environment only


class Speaker:
    def __init__(self, url: str, key: str, workspace: str) -> None:
        self.honcho = Honcho(
            base_url=url, api_key=key, workspace_id=workspace, max_retries=0, timeout=30.0
        )

    def make_workspace(self, metadata: Any) -> None:
        self.honcho.set_metadata(metadata)

    def set_workspace(self, metadata: Any) -> None:
        self.honcho.set_metadata(metadata)

    def workspace_metadata(self) -> Any:
        assert self.honcho.workspace_id in list(self.honcho.workspaces())
        return self.honcho.get_metadata()

    def make_peer(self, name: str, metadata: Any) -> None:
        self.honcho.peer(name, metadata=metadata)

    def set_peer(self, name: str, metadata: Any) -> None:
        self.honcho.peer(name).set_metadata(metadata)

    def peers(self) -> Any:
        return {peer.id: peer.get_metadata() for peer in self.honcho.peers(size=2)}

    def make_session(self, session: str, of: str, metadata: Any) -> None:
        self.honcho.session(session, metadata=metadata).add_peers(of)

    def set_session(self, session: str, of: str, metadata: Any) -> None:
        self.honcho.session(session).set_metadata(metadata)

    def sessions_of(self, of: str) -> Any:
        return [
            (session.id, session.get_metadata())
            for session in self.honcho.peer(of).sessions(size=2)
            if session.is_active
        ]

    def delete_session(self, session: str, of: str) -> None:
        self.honcho.session(session).delete()

    def clone(self, session: str, of: str, upto: str | None) -> str:
        return str(self.honcho.session(session).clone(message_id=upto).id)

    def say(self, session: str, by: str, *contents: str) -> list[str]:
        peer = self.honcho.peer(by)
        return [
            item.id
            for item in self.honcho.session(session).add_messages(
                [peer.message(content) for content in contents]
            )
        ]

    def values_of(self, item: Any, of: str) -> Any:
        return (item.id, item.content, item.peer_id == of, item.metadata)

    def messages(self, session: str, of: str) -> Any:
        return [self.values_of(item, of) for item in self.honcho.session(session).messages(size=2)]

    def message(self, session: str, of: str, id: str) -> Any:
        return self.values_of(self.honcho.session(session).get_message(id), of)

    def set_message(self, session: str, of: str, id: str, metadata: Any) -> None:
        self.honcho.session(session).update_message(id, metadata)

    def conclude(self, about: str, content: str) -> str:
        return str(
            self.honcho.peer(about).conclusions_of(about).create([{"content": content}])[0].id
        )

    def conclusions(self, about: str) -> Any:
        return [
            (item.id, item.content)
            for item in self.honcho.peer(about).conclusions_of(about).list(size=2, reverse=True)
        ]

    def nearest(self, about: str, query: str) -> str:
        return str(self.honcho.peer(about).conclusions_of(about).query(query, top_k=1)[0].id)

    def chat(self, about: str, session: str, question: str) -> str:
        return str(self.honcho.peer(about).chat(question, session=session))
