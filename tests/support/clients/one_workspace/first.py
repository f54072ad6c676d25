"""`honcho-ai` 0.2.0, the last client of the first generation. Sessions go by uid."""

from __future__ import annotations

from typing import Any

from honcho import Honcho  # type: ignore[import-not-found]  # installed in the client's own environment only

ALICE = "alice"
"""Whose sessions they are: her messages are the user's own."""


def every(listing: Any, *named: str, **options: Any) -> list[Any]:
    """All items. Page by page, for the client's own iteration ends after the second."""
    page = listing(*named, **options, size=2)
    pages = [
        page,
        *(listing(*named, **options, size=2, page=number) for number in range(2, page.pages + 1)),
    ]
    return [item for each in pages for item in each.items]


class Speaker:
    def __init__(self, url: str, key: str, workspace: str) -> None:
        self.workspace = workspace
        self.apps = Honcho(base_url=url, api_key=key, max_retries=0, timeout=30.0).apps
        self.users, self.sessions = self.apps.users, self.apps.users.sessions

    @property
    def app(self) -> str:
        return str(self.apps.get_by_name(self.workspace).id)

    def own(self, name: str) -> dict[str, str]:
        app = self.app
        return {"app_id": app, "user_id": self.users.get_by_name(name, app_id=app).id}

    def make_workspace(self, metadata: Any) -> None:
        self.apps.create(name=self.workspace, metadata=metadata)

    def set_workspace(self, metadata: Any) -> None:
        self.apps.update(self.app, metadata=metadata)

    def workspace_metadata(self) -> Any:
        assert self.apps.get(app_id=self.app) == self.apps.get_or_create(self.workspace)
        return self.apps.get(app_id=self.app).metadata

    def make_peer(self, name: str, metadata: Any) -> None:
        self.users.create(self.app, name=name, metadata=metadata)

    def set_peer(self, name: str, metadata: Any) -> None:
        own = self.own(name)
        self.users.update(own["user_id"], app_id=own["app_id"], metadata=metadata)

    def peers(self) -> Any:
        return {user.name: user.metadata for user in every(self.users.list, self.app)}

    def make_session(self, of: str, metadata: Any) -> str:
        return str(self.sessions.create(**self.own(of), metadata=metadata).id)

    def set_session(self, session: str, of: str, metadata: Any) -> None:
        self.sessions.update(session, **self.own(of), metadata=metadata)

    def sessions_of(self, of: str) -> Any:
        return [
            (item.id, item.metadata)
            for item in every(self.sessions.list, **self.own(of), is_active=True)
        ]

    def delete_session(self, session: str, of: str) -> None:
        self.sessions.delete(session, **self.own(of))

    def clone(self, session: str, of: str, upto: str | None) -> str:
        named = {} if upto is None else {"message_id": upto}
        return str(self.sessions.clone(session, **self.own(of), **named).id)

    def say(self, session: str, by: str, *contents: str) -> list[str]:
        bodies = [{"content": content, "is_user": by == ALICE} for content in contents]
        return [
            item.id
            for item in self.sessions.messages.batch(session, **self.own(ALICE), messages=bodies)
        ]

    def values_of(self, item: Any) -> Any:
        return (item.id, item.content, item.is_user, item.metadata)

    def messages(self, session: str, of: str) -> Any:
        return [
            self.values_of(item)
            for item in every(self.sessions.messages.list, session, **self.own(of))
        ]

    def message(self, session: str, of: str, id: str) -> Any:
        return self.values_of(self.sessions.messages.get(id, **self.own(of), session_id=session))

    def set_message(self, session: str, of: str, id: str, metadata: Any) -> None:
        self.sessions.messages.update(id, **self.own(of), session_id=session, metadata=metadata)

    def reserved(self, about: str) -> dict[str, str]:
        """The collection of what is known about a user, which asking makes appear."""
        own = self.own(about)
        self.sessions.chat("unknown", **own, queries="")
        return {**own, "collection_id": self.users.collections.get_by_name("honcho", **own).id}

    def conclude(self, about: str, content: str) -> str:
        return str(
            self.users.collections.documents.create(**self.reserved(about), content=content).id
        )

    def conclusions(self, about: str) -> Any:
        return [
            (item.id, item.content)
            for item in every(self.users.collections.documents.list, **self.reserved(about))
        ]

    def nearest(self, about: str, query: str) -> str:
        return str(
            self.users.collections.documents.query(**self.reserved(about), query=query, top_k=1)[
                0
            ].id
        )

    def chat(self, about: str, session: str, question: str) -> str:
        return str(self.sessions.chat(session, **self.own(about), queries=question).content)
