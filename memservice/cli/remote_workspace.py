"""A workspace of another server of this API, read over `/v3` and converted to the lines of an
export."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from memservice.domain import tokens
from memservice.domain.errors import ConfigurationError, InvalidInput, MemserviceError
from memservice.domain.ids import derived_uid, fingerprint
from memservice.domain.records import ACTIVE, EXPLICIT, LIVE, PEER
from memservice.domain.text.analysis import name_tokens
from memservice.domain.values import loads, name_problem, shown, strip_nul
from memservice.services.transfer.lines import (
    FORMAT,
    HEADER,
    VERSION,
    Line,
    Sum,
    format_line,
    format_time,
    parse_time,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

PAGE_SIZE = 100
MAX_ITEMS = 10_000_000
"""Maximum items of one listing."""
MAX_BYTES = 128 * 2**20
"""Maximum size of one response."""
TIMEOUT = 60
MAX_ATTEMPTS = 4
PAUSE_SECONDS = 1.0
RETRYABLE_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
DETAILS = ("kind", "when", "certainty")
"""Of a conclusion, as the API shows them and as a record keeps them."""


class RemoteFailed(MemserviceError):
    """A request to the other server failed. The message never contains the key."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def client(url: str, token: str | None) -> httpx.Client:
    """A client for the server at a URL. Follows no redirects: they could send the key to any other
    server.

    Raises ConfigurationError, which never quotes the key, for an invalid URL or key.
    """
    import httpx

    if token is not None and not (
        token.isascii() and token.isprintable() and token == token.strip()
    ):
        raise ConfigurationError(
            "the key must be plain ASCII, without surrounding spaces and without line breaks"
        )
    try:
        base = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        base = httpx.URL("")
    if base.scheme not in ("http", "https") or not base.host:
        raise ConfigurationError("give the server's URL, for instance https://memory.example.org")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=base, headers=headers, timeout=TIMEOUT, follow_redirects=False)


class Remote:
    """A server with a `/v3` API."""

    def __init__(self, client: httpx.Client, pause: float = PAUSE_SECONDS) -> None:
        """`client` has the server's URL as its base URL, and the key in its headers."""
        self._client = client
        self._pause = pause

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The JSON of a response. Raises RemoteFailed."""
        import httpx

        failure, status = "", None
        for attempt in range(MAX_ATTEMPTS):
            if attempt:
                time.sleep(self._pause * 2 ** (attempt - 1))
            try:
                with self._client.stream(method, f"/v3{path}", json=body, params=query) as response:
                    status, content = response.status_code, _content(response)
            except (
                httpx.UnsupportedProtocol,
                httpx.LocalProtocolError,
                httpx.InvalidURL,
                UnicodeError,
            ) as error:
                # The message of these errors may contain the key.
                raise RemoteFailed(
                    f"{method} {path} could not be sent ({type(error).__name__}): check the "
                    "URL and the key"
                ) from None
            except (httpx.TransportError, httpx.DecodingError) as error:
                failure = f"{type(error).__name__}: {error}"
                continue
            if 200 <= status < 300:
                try:
                    return strip_nul(loads(content))
                except InvalidInput as error:
                    raise RemoteFailed(f"the response to {method} {path} is not JSON") from error
            failure = f"status {status}: {content[:300].decode(errors='replace')}"
            if 300 <= status < 400:
                failure = (
                    f"status {status}: redirects are not followed, to protect the key; "
                    "use the URL to which they lead"
                )
            if status not in RETRYABLE_STATUSES:
                break
        raise RemoteFailed(
            (
                f"{method} {self._client.base_url.copy_with(userinfo=b'').join('v3')}{path} "
                f"failed, {failure}"
            ),
            status,
        )

    def items(self, method: str, path: str, **query: Any) -> Iterator[Any]:
        """Every item of a listing, page by page. Raises RemoteFailed for a listing with an empty
        page before its end, or with more than `MAX_ITEMS` items."""
        page, count = 1, 0
        while True:
            response = self.ask(
                method, path, {} if method == "POST" else None, page=page, size=PAGE_SIZE, **query
            )
            items = response["items"]
            yield from items
            count += len(items)
            if page >= (response.get("pages") or 1):
                return
            if not items or count > MAX_ITEMS:
                raise RemoteFailed(
                    f"{method} {path} does not end: after {count} items there are still "
                    f"{shown(response['pages'])} pages"
                )
            page += 1


def lines(remote: Remote, workspace_id: str, now: datetime) -> Iterator[bytes]:
    """The workspace as an export without vectors. It lacks data that `/v3` does not return: peers
    that left a session, scopes, cards about peers without conclusions, pending work, webhooks,
    keys."""
    if problem := name_problem(workspace_id):
        raise RemoteFailed(f"{shown(workspace_id)!r} is not a valid workspace id: {problem}")
    total = Sum()
    yield format_line(_header(workspace_id, now))
    for line in _checked_responses(_Reader(remote, workspace_id).lines()):
        data = format_line(line)
        total.add(data)
        yield data
    yield format_line(total.end())


def names(remote: Remote) -> list[str]:
    """The ids of all workspaces of the server, oldest first. Needs a key that may list them."""
    return list(
        _checked_responses(str(item["id"]) for item in remote.items("POST", "/workspaces/list"))
    )


def _checked_responses(values: Iterator[T]) -> Iterator[T]:
    """Values that are read from responses. Raises RemoteFailed for a response that does not have
    the format of this API."""
    try:
        yield from values
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise RemoteFailed(
            f"the server's responses do not have the format of this API ({type(error).__name__}: "
            f"{shown(error)})"
        ) from error


def _content(response: httpx.Response) -> bytes:
    """The body of a response. Raises RemoteFailed if it is larger than `MAX_BYTES`."""
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_BYTES:
            raise RemoteFailed(f"a response is larger than {MAX_BYTES} bytes")
    return bytes(content)


def _header(workspace_id: str, now: datetime) -> Line:
    return {
        "type": HEADER,
        "format": FORMAT,
        "version": VERSION,
        "exported_at": format_time(now),
        "workspace": workspace_id,
        "token_counter": tokens.counter_id(),
        "vectors": False,
        "secrets": False,
    }


class _Reader:
    def __init__(self, remote: Remote, workspace_id: str) -> None:
        self._remote = remote
        self._slug = workspace_id
        self._path = f"/workspaces/{workspace_id}"
        self._peers: dict[str, str] = {}
        """Uids by id."""
        self._sessions: dict[str, str] = {}
        self._sources: set[str] = set()
        """Ids of the messages that were read and that conclusions name."""

    def lines(self) -> Iterator[Line]:
        """The lines in the order of an export: parents before children."""
        workspace = self._workspace()
        yield workspace
        peers = list(self._remote.items("POST", f"{self._path}/peers/list"))
        for peer in peers:
            self._peers[peer["id"]] = self._uid("peer", peer)
        yield from map(self._peer, peers)
        for peer in peers:
            display = peer["metadata"].get("name")
            names = name_tokens(peer["id"], display if isinstance(display, str) else None)
            yield from (
                {"type": "peer_names", "peer_uid": self._peers[peer["id"]], "token": name}
                for name in sorted(names)
            )
        sessions = list(self._remote.items("POST", f"{self._path}/sessions/list"))
        for session in sessions:
            self._sessions[session["id"]] = self._uid("session", session)
        yield from map(self._session, sessions)
        for session in sessions:
            yield from self._members(session)
        # Before the messages, so that only the ids of their sources are remembered.
        conclusions = self._conclusion_items()
        named = {uid for item in conclusions for uid in item.get("message_ids") or ()}
        for session in sessions:
            for message in self._messages(session["id"]):
                if message["uid"] in named:
                    self._sources.add(message["uid"])
                yield message
        for session in sessions:
            yield from self._summaries(session["id"])
        yield from self._conclusions(conclusions, workspace["created_at"])

    def _uid(self, kind: str, item: Any) -> str:
        """The item's uid, or one derived from its names if the server returns none; the same in
        each run."""
        if isinstance(item.get("uid"), str):
            return str(item["uid"])
        return derived_uid("v3", kind, self._slug, item["id"])

    def _workspace(self) -> Line:
        item = self._workspace_item()
        return {
            "type": "workspaces",
            "uid": self._uid("workspace", item),
            "slug": self._slug,
            "v1_name": self._slug,
            "state": ACTIVE,
            "metadata": item["metadata"],
            "configuration": item["configuration"],
            "created_at": _time(item["created_at"]),
        }

    def _workspace_item(self) -> Any:
        try:
            items = self._remote.ask("POST", "/workspaces/list", {"filters": {"id": self._slug}})[
                "items"
            ]
        except RemoteFailed as error:
            if error.status not in (401, 403):
                raise
            # A workspace key may not list workspaces, but may get its own one. This request does
            # not create it: a workspace with a key exists.
            return self._remote.ask("POST", "/workspaces", {"id": self._slug})
        if not items:
            raise RemoteFailed(f"the server has no workspace {self._slug!r}")
        return items[0]

    def _peer(self, item: Any) -> Line:
        return {
            "type": "peers",
            "uid": self._peers[item["id"]],
            "slug": item["id"],
            "v1_name": item["id"],
            "v1_role": None,
            "kind": PEER,
            "metadata": item["metadata"],
            "configuration": item["configuration"],
            "created_at": _time(item["created_at"]),
        }

    def _session(self, item: Any) -> Line:
        return {
            "type": "sessions",
            "uid": self._sessions[item["id"]],
            "slug": item["id"],
            "owner_uid": None,
            "state": ACTIVE,
            "metadata": item["metadata"],
            "configuration": item["configuration"],
            "created_at": _time(item["created_at"]),
        }

    def _members(self, session: Any) -> Iterator[Line]:
        path = f"{self._path}/sessions/{session['id']}/peers"
        for peer in self._remote.items("GET", path):
            config = self._remote.ask("GET", f"{path}/{peer['id']}/config")
            yield {
                "type": "members",
                "session_uid": self._sessions[session["id"]],
                "peer_uid": self._peers[peer["id"]],
                "session": session["id"],
                "peer": peer["id"],
                "kind": PEER,
                "observe_me": config.get("observe_me"),
                "observe_others": config.get("observe_others"),
                "joined_at": _time(session["created_at"]),
                "joined_seq": 0,
                "left_at": None,
                "left_seq": None,
            }

    def _messages(self, session_id: str) -> Iterator[Line]:
        through = 0
        for seq, item in enumerate(
            self._remote.items("POST", f"{self._path}/sessions/{session_id}/messages/list"), 1
        ):
            count = tokens.count(item["content"])
            through += count
            yield {
                "type": "messages",
                "uid": item["id"],
                "session_uid": self._sessions[session_id],
                "author_uid": self._peers[item["peer_id"]],
                "session": session_id,
                "author": item["peer_id"],
                "seq": seq,
                "content": item["content"],
                "metadata": item["metadata"],
                "internal": {},
                "tokens": count,
                "tokens_through": through,
                "created_at": _time(item["created_at"]),
            }

    def _summaries(self, session_id: str) -> Iterator[Line]:
        response = self._remote.ask("GET", f"{self._path}/sessions/{session_id}/summaries")
        for kind in ("short", "long"):
            item = response.get(f"{kind}_summary")
            if item:
                yield {
                    "type": "summaries",
                    "session_uid": self._sessions[session_id],
                    "kind": kind,
                    "content": item["content"],
                    "message_uid": item["message_id"],
                    "tokens": tokens.count(item["content"]),
                    "reasoner": "imported",
                    "model": None,
                    "created_at": _time(item["created_at"]),
                }

    def _conclusion_items(self) -> list[Any]:
        """The conclusions of the peers. They are listed newest first, so request them in reverse,
        to store them in the order of their creation. A server that does not know
        `include_messages` ignores it, or refuses it: then no conclusion names its messages."""
        path = f"{self._path}/conclusions/list"
        try:
            items = list(self._remote.items("POST", path, reverse="true", include_messages="true"))
        except RemoteFailed as error:
            if error.status not in (400, 422):
                raise
            items = list(self._remote.items("POST", path, reverse="true"))
        return [
            item
            for item in items
            if item["observer_id"] in self._peers and item["observed_id"] in self._peers
        ]

    def _conclusions(self, conclusions: Sequence[Any], since: str) -> Iterator[Line]:
        """Collections, cards and conclusions."""
        pairs = dict.fromkeys(
            [(peer_id, peer_id) for peer_id in self._peers]
            + [(item["observer_id"], item["observed_id"]) for item in conclusions]
        )
        stored_pairs = {(item["observer_id"], item["observed_id"]) for item in conclusions}
        yield from (
            self._collection(observer, observed, since)
            for observer, observed in pairs
            if (observer, observed) in stored_pairs
        )
        for observer, target in pairs:
            yield from self._card(observer, target, since)
        yield from map(self._conclusion, conclusions)

    def _collection(self, observer: str, observed: str, since: str) -> Line:
        return {
            "type": "collections",
            "observer_uid": self._peers[observer],
            "observed_uid": self._peers[observed],
            "observer": observer,
            "observed": observed,
            "explicit_at_last_dream": 0,
            "last_dream_at": None,
            "created_at": since,
        }

    def _card(self, observer: str, target: str, since: str) -> Iterator[Line]:
        about = {} if observer == target else {"target": target}
        response = self._remote.ask("GET", f"{self._path}/peers/{observer}/card", **about)
        card: Sequence[str] | None = response.get("peer_card")
        if card:
            # It is unknown which lines a person wrote, so the service must not replace any of them.
            yield {
                "type": "cards",
                "observer_uid": self._peers[observer],
                "target": target,
                "lines": list(card),
                "given": list(card),
                "updated_at": since,
            }

    def _conclusion(self, item: Any) -> Line:
        session = item.get("session_id")
        session = session if session in self._sessions else None
        return {
            "type": "conclusions",
            "uid": item["id"],
            "observer_uid": self._peers[item["observer_id"]],
            "observed_uid": self._peers[item["observed_id"]],
            "session_uid": None if session is None else self._sessions[session],
            "observer": item["observer_id"],
            "observed": item["observed_id"],
            "session": session,
            "content": item["content"],
            "fingerprint": fingerprint(item["content"]),
            "level": item.get("level") or EXPLICIT,
            "state": LIVE,
            "superseded_by": None,
            "deleted_at": None,
            "times_derived": item.get("times_derived") or 1,
            "source_ids": item.get("source_ids") or None,
            "message_uids": [uid for uid in item.get("message_ids") or () if uid in self._sources],
            "internal": {name: item[name] for name in DETAILS if item.get(name)},
            "metadata": {},
            "reasoner": "imported",
            "model": None,
            "said_at": _time(item.get("said_at") or item["created_at"]),
            "created_at": _time(item["created_at"]),
        }


def _time(text: str) -> str:
    return format_time(parse_time(text))
