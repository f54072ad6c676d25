"""A client of the first generation, beside the third."""

from __future__ import annotations

from typing import Any

from werkzeug.test import TestResponse

from api.conftest import Api


class V1Client:
    """The first generation's routes. `api` calls the third generation in the workspace of the same
    name."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def call(self, method: str, path: str, body: Any = ..., **query: Any) -> TestResponse:
        options: dict[str, Any] = {} if body is ... else {"json": body}
        return self.api.client.open(f"/v1{path}", method=method, query_string=query, **options)

    def do(self, method: str, path: str, body: Any = ..., **query: Any) -> Any:
        """The answer's JSON: every success of this generation is a 200."""
        answer = self.call(method, path, body, **query)
        assert answer.status_code == 200, (
            f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        )
        return answer.get_json()

    def get(self, path: str, **query: Any) -> Any:
        return self.do("GET", path, **query)

    def post(self, path: str, body: Any = ..., **query: Any) -> Any:
        return self.do("POST", path, body, **query)

    def put(self, path: str, body: Any = ...) -> Any:
        return self.do("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self.do("DELETE", path)

    def refused(self, status: int, method: str, path: str, body: Any = ..., **query: Any) -> Any:
        """The answer's `detail`, after looking at its status."""
        answer = self.call(method, path, body, **query)
        assert answer.status_code == status, (
            f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        )
        return answer.get_json()["detail"]

    def problem(
        self, method: str, path: str, body: Any = ..., **query: Any
    ) -> tuple[list[Any], str]:
        """Where the only problem of a 422 lies, and its text."""
        (problem,) = self.refused(422, method, path, body, **query)
        return problem["loc"], problem["msg"]

    def listed(self, path: str, body: Any = ..., **query: Any) -> list[str]:
        """The ids on a page."""
        return [item["id"] for item in self.post(f"{path}/list", body, **query)["items"]]

    def app(self, name: str | None = None) -> str:
        """The path of a new app, named as `api`'s workspace."""
        return f"/apps/{self.post('/apps', {'name': name or self.api.workspace})['id']}"

    def user(self, app: str, name: str = "alice") -> str:
        return f"{app}/users/{self.post(f'{app}/users', {'name': name})['id']}"

    def session(self, user: str, **fields: Any) -> str:
        return f"{user}/sessions/{self.post(f'{user}/sessions', fields)['id']}"

    def say(self, session: str, *turns: tuple[bool, str]) -> Any:
        """Store (is_user, content) pairs."""
        return self.post(
            f"{session}/messages/batch",
            {"messages": [{"is_user": by, "content": text} for by, text in turns]},
        )


def uid(path: str) -> str:
    """The id that a path ends with."""
    return path.rpartition("/")[2]
