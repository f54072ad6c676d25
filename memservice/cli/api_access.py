"""The `/v3` API for commands that read: of the store of the settings, or of a server.

Both are the same routes. On the store they run in this process, as the operator of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from memservice.cli.options import State
from memservice.cli.remote_workspace import client
from memservice.cli.stores import checked_store
from memservice.domain.errors import InvalidInput, MemserviceError
from memservice.domain.values import loads, shown
from memservice.settings import Settings

if TYPE_CHECKING:
    import httpx

PAGE_SIZE = 100
ANSWER_SECONDS = 300
"""An answer of a language model can take minutes."""
CAUSES = {
    401: "the API key is missing, not valid, or does not allow this: set MEMSERVICE_API_KEY",
    421: "the server does not know itself by this name: see ALLOWED_HOSTS",
}

NO_ROUTE = 404, "Not Found"
"""Status and detail of a response to a path that the server does not have."""


class RequestFailed(MemserviceError):
    """A request was not answered, or with an error. The message never contains the key."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """Requests to one server, or to the store."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def ask(self, method: str, *path: str, body: Any = None, **query: Any) -> Any:
        """The JSON of a response. `path` are the parts after `/v3`. Raises RequestFailed."""
        import httpx

        url = "/v3/" + "/".join(quote(part, safe="") for part in path)
        params = {name: value for name, value in query.items() if value is not None}
        try:
            response = self._http.request(method, url, json=body, params=params)
        except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:
            raise RequestFailed(
                f"{self._address} does not answer ({type(error).__name__}): is the URL right, and "
                "is the server running?"
            ) from None
        try:
            content = loads(response.content)
        except InvalidInput:
            content = None
        if response.is_success and content is not None:
            return content
        raise RequestFailed(self._failure(response.status_code, content), response.status_code)

    def items(
        self, *path: str, limit: int, body: Mapping[str, Any] | None = None, **query: Any
    ) -> tuple[list[Any], int]:
        """The first items of a listing, and how many there are."""
        items: list[Any] = []
        page, total = 1, 0
        while len(items) < limit:
            size = min(limit, PAGE_SIZE)
            answer = self.ask("POST", *path, body=dict(body or {}), page=page, size=size, **query)
            items += answer["items"]
            total = answer["total"]
            if page >= (answer.get("pages") or 1) or not answer["items"]:
                break
            page += 1
        return items[:limit], total

    @property
    def _address(self) -> str:
        return str(self._http.base_url.copy_with(userinfo=b""))

    def _failure(self, status: int, content: Any) -> str:
        detail = content.get("detail") if isinstance(content, dict) else None
        if status == NO_ROUTE[0] and detail in (None, NO_ROUTE[1]):
            return f"{self._address} has no /v3 API: is the URL right?"
        if isinstance(detail, list):
            detail = "; ".join(_problem(problem) for problem in detail)
        cause = CAUSES.get(status)
        texts = [shown(detail, 500) if detail else f"status {status}"]
        if cause:
            texts.append(cause)
        return ": ".join(texts)


def _problem(problem: Any) -> str:
    if not isinstance(problem, dict):
        return str(problem)
    words = [str(part) for part in problem.get("loc", []) if isinstance(part, str)]
    return f"{words[-1] if words else ''}: {problem.get('msg')}"


@contextmanager
def api(state: State, url: str | None, key: str | None) -> Iterator[Api]:
    """The API of the server at `url`, or of the store of the settings, which must exist."""
    if url is not None:
        with client(url, key) as http:
            http.timeout = ANSWER_SECONDS
            yield Api(http)
        return
    with checked_store(state, "batch") as runtime:
        import httpx

        from memservice.app import create_app

        app = create_app(_of_operator(runtime.settings), runtime)
        with httpx.Client(
            transport=httpx.WSGITransport(app=app), base_url="http://127.0.0.1"
        ) as http:
            yield Api(http)


def _of_operator(settings: Settings) -> Settings:
    """Without keys: the operator can read the store anyway, and nothing listens."""
    return replace(
        settings,
        auth=replace(settings.auth, use_auth=False),
        server=replace(settings.server, host="127.0.0.1"),
    )
