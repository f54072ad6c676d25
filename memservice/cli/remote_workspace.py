"""A workspace of another server of this API, read over `/v3` and put into the lines of an
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
    moment,
    read_moment,
    written,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

PAGE = 100
MAX_ITEMS = 10_000_000
"""Of one listing."""
MAX_BYTES = 128 * 2**20
"""Of one answer."""
SECONDS = 60
TRIES = 4
PAUSE_SECONDS = 1.0
TRIED_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


class RemoteFailed(MemserviceError):
    """The other server did not give what was asked of it. The message says what, never with which
    key."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def client(url: str, token: str | None) -> httpx.Client:
    """What asks the server at a URL. Follows no redirects: they would take the key along, and lead
    to wherever the server likes.

    Raises ConfigurationError, which never quotes the key, for a URL or a key that is none.
    """
    import httpx

    if token is not None and not (
        token.isascii() and token.isprintable() and token == token.strip()
    ):
        raise ConfigurationError(
            "the key must be plain ASCII, without blanks around it and without line breaks"
        )
    try:
        base = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        base = httpx.URL("")
    if base.scheme not in ("http", "https") or not base.host:
        raise ConfigurationError("give the server's URL, for instance https://memory.example.org")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=base, headers=headers, timeout=SECONDS, follow_redirects=False)


class Remote:
    """A server that speaks `/v3`."""

    def __init__(self, client: httpx.Client, pause: float = PAUSE_SECONDS) -> None:
        """`client` has the server's URL as its base, and the key in its headers."""
        self._client = client
        self._pause = pause

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The JSON of an answer. Raises RemoteFailed."""
        import httpx

        said, status = "", None
        for attempt in range(TRIES):
            if attempt:
                time.sleep(self._pause * 2 ** (attempt - 1))
            try:
                with self._client.stream(method, f"/v3{path}", json=body, params=query) as answer:
                    status, content = answer.status_code, _content(answer)
            except (
                httpx.UnsupportedProtocol,
                httpx.LocalProtocolError,
                httpx.InvalidURL,
                UnicodeError,
            ) as error:
                # The text of these may hold the key.
                raise RemoteFailed(
                    f"{method} {path} could not be sent ({type(error).__name__}): are the "
                    "URL and the key right?"
                ) from None
            except (httpx.TransportError, httpx.DecodingError) as error:
                said = f"{type(error).__name__}: {error}"
                continue
            if 200 <= status < 300:
                try:
                    return strip_nul(loads(content))
                except InvalidInput as error:
                    raise RemoteFailed(
                        f"{method} {path} was answered with something that is no JSON"
                    ) from error
            said = f"status {status}: {content[:300].decode(errors='replace')}"
            if 300 <= status < 400:
                said = (
                    f"status {status}: redirects are not followed, because the key would be; "
                    "give the URL to which they lead"
                )
            if status not in TRIED_AGAIN:
                break
        raise RemoteFailed(
            (
                f"{method} {self._client.base_url.copy_with(userinfo=b'').join('v3')}{path} "
                f"failed, {said}"
            ),
            status,
        )

    def items(self, method: str, path: str, **query: Any) -> Iterator[Any]:
        """Every item of a listing, page by page. Raises RemoteFailed for one that goes on after its
        own number of items."""
        page, given = 1, 0
        while True:
            answer = self.ask(
                method, path, {} if method == "POST" else None, page=page, size=PAGE, **query
            )
            items = answer["items"]
            yield from items
            given += len(items)
            if page >= (answer.get("pages") or 1):
                return
            if not items or given > MAX_ITEMS:
                raise RemoteFailed(
                    f"{method} {path} has no end: after {given} items there are still "
                    f"{shown(answer['pages'])} pages"
                )
            page += 1


def lines(remote: Remote, workspace_id: str, now: datetime) -> Iterator[bytes]:
    """The workspace as an export without vectors. What `/v3` does not show does not come along: who
    has left a session, scopes, cards that are kept about peers of whom nothing was concluded,
    waiting work, webhooks, keys."""
    if problem := name_problem(workspace_id):
        raise RemoteFailed(f"{shown(workspace_id)!r} cannot be the id of a workspace: {problem}")
    total = Sum()
    yield written(_header(workspace_id, now))
    for line in _of_shape(_Reader(remote, workspace_id).lines()):
        data = written(line)
        total.add(data)
        yield data
    yield written(total.end())


def names(remote: Remote) -> list[str]:
    """The ids of all workspaces there, oldest first. Asks for a key that may list them."""
    return list(_of_shape(str(item["id"]) for item in remote.items("POST", "/workspaces/list")))


def _of_shape(found: Iterator[T]) -> Iterator[T]:
    """What is made of answers. They are read as this API gives them; where one is of another shape,
    that is said."""
    try:
        yield from found
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise RemoteFailed(
            f"the server's answers are not those of this API ({type(error).__name__}: "
            f"{shown(error)})"
        ) from error


def _content(answer: httpx.Response) -> bytes:
    """The whole of an answer, if it is not larger than any of this API."""
    found = bytearray()
    for chunk in answer.iter_bytes():
        found += chunk
        if len(found) > MAX_BYTES:
            raise RemoteFailed(f"an answer is larger than {MAX_BYTES} bytes")
    return bytes(found)


def _header(workspace_id: str, now: datetime) -> Line:
    return {
        "type": HEADER,
        "format": FORMAT,
        "version": VERSION,
        "exported_at": moment(now),
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

    def lines(self) -> Iterator[Line]:
        """In the order of an export: parents before children."""
        place = self._workspace()
        yield place
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
        for session in sessions:
            yield from self._messages(session["id"])
        for session in sessions:
            yield from self._summaries(session["id"])
        yield from self._known(place["created_at"])

    def _uid(self, noun: str, item: Any) -> str:
        """As the server gives it; one that is made of the names where it gives none, the same at
        each run."""
        if isinstance(item.get("uid"), str):
            return str(item["uid"])
        return derived_uid("v3", noun, self._slug, item["id"])

    def _workspace(self) -> Line:
        item = self._described()
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

    def _described(self) -> Any:
        try:
            found = self._remote.ask("POST", "/workspaces/list", {"filters": {"id": self._slug}})[
                "items"
            ]
        except RemoteFailed as error:
            if error.status not in (401, 403):
                raise
            # The key of a workspace may not list them. It gets its own, which exists if it has a
            # key; listing would not create one.
            return self._remote.ask("POST", "/workspaces", {"id": self._slug})
        if not found:
            raise RemoteFailed(f"there is no workspace {self._slug!r} there")
        return found[0]

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
        found = self._remote.ask("GET", f"{self._path}/sessions/{session_id}/summaries")
        for kind in ("short", "long"):
            item = found.get(f"{kind}_summary")
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

    def _known(self, since: str) -> Iterator[Line]:
        """Collections, cards and conclusions. The newest come first in their listing; they are
        stored as they were made."""
        found = list(self._remote.items("POST", f"{self._path}/conclusions/list", reverse="true"))
        known = [
            item
            for item in found
            if item["observer_id"] in self._peers and item["observed_id"] in self._peers
        ]
        pairs = dict.fromkeys(
            [(peer_id, peer_id) for peer_id in self._peers]
            + [(item["observer_id"], item["observed_id"]) for item in known]
        )
        held = {(item["observer_id"], item["observed_id"]) for item in known}
        yield from (
            self._collection(observer, observed, since)
            for observer, observed in pairs
            if (observer, observed) in held
        )
        for observer, target in pairs:
            yield from self._card(observer, target, since)
        yield from map(self._conclusion, known)

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
        found = self._remote.ask("GET", f"{self._path}/peers/{observer}/card", **about)
        card: Sequence[str] | None = found.get("peer_card")
        if card:
            # Nobody can tell here which lines a person wrote, so none of them is the service's to
            # replace.
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
            "message_uids": [],
            "internal": {},
            "metadata": {},
            "reasoner": "imported",
            "model": None,
            "said_at": _time(item["created_at"]),
            "created_at": _time(item["created_at"]),
        }


def _time(text: str) -> str:
    return moment(read_moment(text))
