"""One workspace's keys and names against another's rows, on every route of every generation.

Nothing here says which answer is right: whatever is asked with any key of the workspace `mine`, and
whatever of `theirs` a request names, nothing of `theirs` is in any answer, and `theirs` is the same
afterwards, to the byte of its export.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from inspect import isfunction
from itertools import chain
from pkgutil import iter_modules
from typing import Any
from urllib.parse import quote

import pytest

from api import test_auth_matrix, test_v1_auth_matrix, test_v2_auth_matrix
from memservice.api import v2
from memservice.api.routing import walk
from memservice.app import create_app
from memservice.services.transfer import export
from memservice.services.transfer.export import ExportOptions
from memservice.settings import load_settings
from support.api.auth_client import AuthClient, signed
from support.api.prepared_request import PreparedRequest, signatures_verified_once

EVERYTHING = ExportOptions(secrets=True)
WIDE = (0, 1, 8)
"""The keys, by their positions, with which all bodies are tried: the workspace's, a peer's, and the
mixed one."""
SAID = "The vault opens with heliotrope"
"""What only `theirs` knows."""


class PopulatedWorkspace:
    """One workspace: what stands in paths for each of their parameters, by slug and by uid."""

    def __init__(
        self, auth_client: AuthClient, workspace: str, peer_id: str, session_id: str, content: str
    ) -> None:
        self.workspace, self.peer_id, self.session_id = workspace, peer_id, session_id
        at = f"/v3/workspaces/{workspace}"
        created = auth_client.do(
            "POST", "/v3/workspaces", {"id": workspace, "metadata": {"plan": content}}
        )
        session = auth_client.do(
            "POST",
            f"{at}/sessions",
            {
                "id": session_id,
                "peers": {peer_id: {}, f"{peer_id}-2": {}},
                "metadata": {"topic": content},
            },
        )
        peer = auth_client.do("POST", f"{at}/peers", {"id": peer_id, "metadata": {"name": content}})
        messages = f"{at}/sessions/{session_id}/messages"
        batch = {"messages": [{"peer_id": peer_id, "content": content}] * 2}
        message, surplus = (row["id"] for row in auth_client.do("POST", messages, batch))
        erasure = auth_client.do("DELETE", f"{messages}/{surplus}")["id"]
        pair = {
            "observer_id": peer_id,
            "observed_id": peer_id,
            "content": content,
            "session_id": session_id,
        }
        conclusion = auth_client.do("POST", f"{at}/conclusions", {"conclusions": [pair]})[0]["id"]
        auth_client.do("POST", f"{at}/schedule_dream", {"observer": peer_id, "dream_type": "omni"})
        dream = auth_client.do("GET", f"{at}/dreams")["items"][0]["id"]
        auth_client.do("PUT", f"{at}/peers/{peer_id}/card", {"peer_card": [content]})
        hook = auth_client.do(
            "POST", f"{at}/webhooks", {"url": f"https://93.184.215.14/{workspace}"}
        )
        auth_client.do("POST", f"{at}/scopes", {"id": f"team-{workspace}"})
        auth_client.do(
            "POST", f"{at}/scopes/team-{workspace}/sessions", {"session_ids": [session_id]}
        )
        app = next(
            item["id"]
            for item in auth_client.do("POST", "/v1/apps/list")["items"]
            if item["name"] == workspace
        )
        user = next(
            item["id"]
            for item in auth_client.do("POST", f"/v1/apps/{app}/users/list")["items"]
            if item["name"] == peer_id
        )
        by_uid = f"/v1/apps/{app}/users/{user}"
        first = auth_client.do("POST", f"{by_uid}/sessions", {"metadata": {"topic": content}})["id"]
        auth_client.do(
            "POST", f"{by_uid}/sessions/{first}/messages", {"content": content, "is_user": True}
        )
        collection = auth_client.do(
            "POST",
            f"{by_uid}/collections",
            {"name": f"shelf-{workspace}", "metadata": {"note": content}},
        )["id"]
        document = auth_client.do(
            "POST", f"{by_uid}/collections/{collection}/documents", {"content": content}
        )["id"]
        note = auth_client.do(
            "POST",
            f"{by_uid}/metamessages",
            {"label": "x", "content": content, "session_id": first},
        )["id"]
        key = auth_client.mint(workspace).key.uid
        self.slugs = {
            "workspace_id": workspace,
            "peer_id": peer_id,
            "session_id": session_id,
            "scope_id": f"team-{workspace}",
            "message_id": message,
        }
        self.slugs |= {
            "conclusion_id": conclusion,
            "observation_id": conclusion,
            "endpoint_id": hook["id"],
            "key_id": key,
            "name": peer_id,
        }
        self.slugs |= {"delivery_id": hook["id"], "dream_id": dream, "erasure_id": erasure}
        self.uids = {
            "app_id": app,
            "user_id": user,
            "session_id": first,
            "collection_id": collection,
            "document_id": document,
        }
        self.uids |= {"metamessage_id": note, "message_id": message, "name": peer_id}
        # The names of peers, sessions and scopes are nobody's: what a request names may come to be,
        # in its own workspace.
        named = {peer_id, session_id, self.slugs["scope_id"]}
        own = {
            content,
            workspace,
            hook["url"],
            hook["secret"],
            created["uid"],
            session["uid"],
            peer["uid"],
        }
        self.secrets = (own | {*self.slugs.values(), *self.uids.values()}) - named

    def of(self, rule: str) -> dict[str, str]:
        return self.uids if rule.startswith("/v1/apps") else self.slugs

    def keys(self) -> list[dict[str, Any]]:
        """Claims of every kind of key, of both families, and some that mix them."""
        w, uids = self.workspace, self.uids
        return [
            {"w": w}, {"w": w, "p": self.peer_id}, {"w": w, "s": self.session_id},
            {"w": w, "p": self.peer_id, "s": self.session_id},
            {"ap": uids["app_id"]}, {"us": uids["user_id"]}, {"se": uids["session_id"]},
            {"co": uids["collection_id"]},
        ]  # fmt: skip


class TwoWorkspaces:
    def __init__(self) -> None:
        self.auth_client = AuthClient.open()
        self.mine = PopulatedWorkspace(self.auth_client, "mine", "alice", "room", "I live in Ulm")
        self.theirs = PopulatedWorkspace(self.auth_client, "theirs", "zacharias", "chamber", SAID)
        mixed = {
            "w": "mine",
            "ap": self.theirs.uids["app_id"],
            "us": self.theirs.uids["user_id"],
            "se": self.theirs.uids["session_id"],
        }
        self.tokens = [signed(claims) for claims in (*self.mine.keys(), mixed)]
        self.theirs_as_populated = self.of_theirs()

    def of_theirs(self) -> list[bytes]:
        return list(export.lines(self.auth_client.runtime, "theirs", EVERYTHING))[1:]


@pytest.fixture(scope="module")
def populated() -> Iterator[TwoWorkspaces]:
    opened = TwoWorkspaces()
    with signatures_verified_once():
        yield opened
    opened.auth_client.close()


@pytest.fixture
def workspaces(populated: TwoWorkspaces) -> Iterator[TwoWorkspaces]:
    """What a test writes is undone after it."""
    with populated.auth_client.undone():
        yield populated


@cache
def routes() -> tuple[tuple[str, str], ...]:
    """Method and rule of everything that names something, or may. HEAD is answered as GET is, and
    the headers of those answers are read."""
    app = create_app(load_settings(environ={}))
    return tuple(
        sorted(
            (method, rule.rule)
            for rule in app.url_map.iter_rules()
            for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}
            if rule.rule.startswith(("/v1/", "/v2/", "/v3/"))
            and not rule.rule.endswith("openapi.json")
        )
    )


@cache
def bodies() -> dict[str, Any]:
    """A valid body for each rule, by its last part, from the tables of the access matrices."""
    by_name: dict[str, Any] = {}
    tables: Sequence[Any] = (
        test_v1_auth_matrix.TABLE,
        test_auth_matrix.TABLE,
        test_v2_auth_matrix.TABLE,
    )
    for name, row in chain.from_iterable(table.items() for table in tables):
        by_name.setdefault(f"{name.split(' ')[0]} {name.rpartition('/')[2]}", row.body)
    return by_name


def filled(rule: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        for kind in ("", "string:", "path:"):
            rule = rule.replace(f"<{kind}{name}>", quote(value))
    assert "<" not in rule, rule
    return rule


def named(workspaces: TwoWorkspaces, method: str, rule: str) -> Iterator[tuple[str, bool]]:
    """Paths, and whether they name anything of theirs: all of it, or each thing by itself, in a
    workspace of ours."""
    ours, others = workspaces.mine.of(rule), workspaces.theirs.of(rule)
    params = [name for name in ours if f"{name}>" in rule]
    yield filled(rule, others), bool(params)
    for name in params:
        yield filled(rule, {**ours, name: others[name]}), True
    if method != "DELETE":
        yield filled(rule, ours), not params


def sent(workspaces: TwoWorkspaces, method: str, rule: str) -> Iterator[dict[str, Any]]:
    """Bodies and queries: a good one, and some in which everything that may be named is theirs."""
    others = {**workspaces.theirs.slugs, **workspaces.theirs.uids}
    query = {name: value for name, value in others.items() if name.endswith("_id")} | {
        "peer_target": workspaces.theirs.peer_id
    }
    if method in ("GET", "DELETE") and not rule.endswith("/sessions/<session_id>/peers"):
        yield {}
        yield {
            "query_string": {
                **query,
                "workspace_id": "theirs",
                "target": workspaces.theirs.peer_id,
                "tokens": "500",
            }
        }
        return
    if rule.endswith("upload"):
        yield {
            "data": {
                "file": (io.BytesIO(SAID[:5].encode()), "a.txt", "text/plain"),
                "peer_id": workspaces.theirs.peer_id,
            }
        }
        return
    good = bodies().get(f"{method} {rule.rpartition('/')[2]}")
    yield {"json": {} if good is None or good == "a file" else good}
    swapped = (
        json.dumps(good or {})
        .replace("alice", workspaces.theirs.peer_id)
        .replace("room", workspaces.theirs.session_id)
        .replace("acme", "mine")
    )
    yield {"json": json.loads(swapped)}
    if isinstance(good, dict | None):
        conditions: list[dict[str, Any]] = [
            {"workspace_id": "theirs"},
            {"session_id": workspaces.theirs.session_id},
            {"peer_id": workspaces.theirs.peer_id},
        ]
        for filters in (
            *conditions,
            {"OR": [*conditions, {"id": "*"}]},
            {"NOT": [{"workspace_id": "mine"}]},
        ):
            yield {"json": {**(good or {}), "filters": filters, "filter": filters}}
        everything = {
            "session_id": workspaces.theirs.session_id,
            "target": workspaces.theirs.peer_id,
            "scope": workspaces.theirs.slugs["scope_id"],
        }
        everything |= {
            "message_id": others["message_id"],
            "peer_perspective": workspaces.theirs.peer_id,
            "sessions": [workspaces.theirs.session_id],
        }
        yield {"json": {**(good or {}), **everything}, "query_string": query}
        yield {
            "json": {
                **(good or {}),
                "session_id": workspaces.theirs.uids["session_id"],
                "message_id": others["message_id"],
            }
        }


def named_in(workspaces: TwoWorkspaces, path: str, options: dict[str, Any]) -> str:
    """What a request names: to see it in the answer reveals nothing."""
    text = path + json.dumps(
        {name: value for name, value in options.items() if name != "data"}, ensure_ascii=False
    )
    return text + (workspaces.theirs.peer_id if "data" in options else "")


def leaked(workspaces: TwoWorkspaces, names: str, text: str) -> list[str]:
    """Texts of the other workspace that an answer contains and its request did not."""
    return [
        secret for secret in workspaces.theirs.secrets if secret in text and secret not in names
    ]


def own_handlers_of_v2() -> set[tuple[str, str]]:
    """The routes of generation 2 with a handler of their own. The others have that of a route of
    generation 3."""
    modules = [import_module(f"{v2.__name__}.{each.name}") for each in iter_modules(v2.__path__)]
    names = {
        name
        for module in modules
        for name, member in vars(module).items()
        if isfunction(member) and member.__module__ == module.__name__
    }
    return {
        (operation.method, operation.rule) for operation, name in walk(v2.GROUPS) if name in names
    }


def cases() -> list[Any]:
    """All routes. Those of generation 2 that have the handler of a route of generation 3, and its
    early paths under `/v1/workspaces`, are left to the profile `full`."""
    own = own_handlers_of_v2()
    return [
        pytest.param(method, rule, marks=[] if is_default else [pytest.mark.heavy])
        for method, rule in routes()
        for is_default in [rule.startswith(("/v3/", "/v1/apps")) or (method, rule) in own]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "rule"), cases())
def test_keys_of_one_workspace_reveal_nothing_of_another(
    workspaces: TwoWorkspaces, method: str, rule: str
) -> None:
    sent_count = 0
    for path, is_theirs in named(workspaces, method, rule):
        if method == "DELETE" and not is_theirs:
            continue
        for body_number, options in enumerate(sent(workspaces, method, rule)):
            # Where the path itself is ours, what it is sent says what is asked for; else one body
            # is as good as another.
            keys = range(len(workspaces.tokens)) if body_number == 0 else WIDE
            if body_number > 0 and is_theirs and "<" in rule:
                break
            names = named_in(workspaces, path, options)
            request = PreparedRequest(workspaces.auth_client.app, method, path, **options)
            for number in keys:
                answer = request.send(workspaces.tokens[number])
                assert answer.status_code < 500, (path, options, answer.text)
                text = answer.text + json.dumps(answer.headers)
                assert not leaked(workspaces, names, text), (
                    path,
                    options,
                    answer.status_code,
                    text[:500],
                )
                sent_count += 1
    assert sent_count >= len(workspaces.tokens)
    assert workspaces.of_theirs() == workspaces.theirs_as_populated


@pytest.mark.slow
def test_the_check_detects_leaks_and_changes(workspaces: TwoWorkspaces) -> None:
    """The same with a key that has access: everything is shown, and changes are visible."""
    answer = workspaces.auth_client.call(
        "POST", "/v3/workspaces/theirs/sessions/chamber/messages/list", workspaces.auth_client.admin
    )
    assert {SAID, workspaces.theirs.slugs["message_id"]} <= set(leaked(workspaces, "", answer.text))
    workspaces.auth_client.do(
        "PUT", "/v3/workspaces/theirs/peers/zacharias", {"metadata": {"changed": True}}
    )
    assert workspaces.of_theirs() != workspaces.theirs_as_populated
