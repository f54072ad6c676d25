"""Every route of every generation with every kind of key, over a store with a secret in each field:
no answer shows a key what is not for it. The readers of each secret are listed here, beside the
secret, and not taken from the code.

Nothing that is asked changes the world: each write is undone once it is answered. So the order is
free, and destructive routes are asked.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from api import test_auth_matrix, test_v1_auth_matrix, test_v2_auth_matrix
from api.test_attacks_across import filled, routes
from memservice.domain.records import SHORT, Message, Summary
from memservice.runtime import utc_now
from memservice.services.auth import api_keys as key_services
from memservice.services.auth.principal import Principal
from memservice.spi.storage import Transaction
from support.api.auth_client import AuthClient, signed
from support.api.prepared_request import Answer, PreparedRequest, signatures_verified_once

T = TypeVar("T")

ASKED = "What is known of the heliotrope vault?"
W = "/v3/workspaces/acme"

ALICE, BOB = {"alice", "alice by uid"}, {"bob", "bob by uid"}
CAROL, DAVE = {"carol", "carol by uid"}, {"dave"}
ROOM, HALL = {"room", "room by uid", "room and alice"}, {"hall"}
DEN, ATTIC = {"den", "den by uid"}, {"attic", "attic by uid"}
SHELF, HONCHO = {"shelf"}, {"honcho"}
SESSIONS = ROOM | HALL | DEN | ATTIC
NARROW = ALICE | BOB | CAROL | DAVE | SESSIONS
WIDE = {"admin", "workspace", "app"}
ELSEWHERE = {"elsewhere", "alice elsewhere"}
EVERYBODY = {"nobody", *WIDE, *NARROW, *SHELF, *HONCHO, *ELSEWHERE}
SOME = {
    "nobody",
    "workspace",
    "alice",
    "carol by uid",
    "room",
    "attic by uid",
    "shelf",
    "elsewhere",
}
"""One of each kind: the profile `full` asks with all of them."""

LEARN: dict[str, set[str]] = {
    # Whoever has a key of the workspace may get the workspace.
    "metadata of the workspace": NARROW,
    "instructions of the workspace": NARROW,
    # Peers are shown to those who are in a session with them now, and a session's key gets any peer
    # as it is.
    "metadata of alice": ALICE | BOB | SESSIONS,
    "metadata of bob": ALICE | BOB | SESSIONS,
    "metadata of carol": CAROL | DAVE | SESSIONS,
    "metadata of dave": CAROL | DAVE | SESSIONS,
    # A card is its holder's.
    "card of alice": ALICE,
    "card of alice about bob": ALICE,
    "card of bob about alice": BOB,
    "card of dave": DAVE,
    # The sessions that a peer is or was in are listed to it.
    "metadata of room": ALICE | BOB | CAROL | ROOM,
    "metadata of hall": CAROL | DAVE | HALL,
    "metadata of den": ALICE | DEN,
    "metadata of attic": ALICE | ATTIC,
    # What was said, until the peer left.
    "said in room": ALICE | BOB | CAROL | ROOM,
    "said in room after carol left": ALICE | BOB | ROOM,
    "metadata of what was said in room": ALICE | BOB | ROOM,
    "said in hall": CAROL | DAVE | HALL,
    "said in den": ALICE | DEN,
    "said in attic": ALICE | ATTIC,
    "said in attic after alice left": ATTIC,
    "summary of room": ALICE | BOB | ROOM,
    "summary of hall": CAROL | DAVE | HALL,
    # What is held is the holder's; what was stated in a session is for the session's key too.
    "alice holds, stated in room": ALICE | ROOM | HONCHO,
    "alice holds, derived in room": ALICE | HONCHO,
    "alice holds, of no session": ALICE | HONCHO,
    "alice holds, stated in den": ALICE | DEN | HONCHO,
    "alice holds of bob, stated in room": ALICE | ROOM,
    "bob holds, stated in room": BOB | ROOM,
    "bob holds of alice, of no session": BOB,
    "dave holds, stated in hall": DAVE | HALL,
    "dave holds, of no session": DAVE,
    "carol holds, of no session": CAROL,
    # Generation 1: collections are for its own keys, notes for the user's.
    "document on the shelf": {"alice by uid"} | SHELF,
    "metadata of the shelf": {"alice by uid"} | SHELF,
    "note about alice": ALICE,
    "note about alice in room": ALICE,
    "note about dave": DAVE,
    # The workspace's alone.
    "metadata of the scope": set(),
    "address of the webhook": set(),
}
"""Every secret of acme, by what it is, and which narrow keys may learn it. An admin's and the
workspace's keys may learn all of them."""

ABROAD: dict[str, set[str]] = {
    "there: metadata of the workspace": ELSEWHERE,
    "there: metadata of alice": ELSEWHERE,
    "there: said in room": ELSEWHERE,
    "there: alice holds": ELSEWHERE,
}
"""The same of the workspace `other`, in which names are the same."""

ADMINS: dict[str, set[str]] = {"label of a key": set()}


def may_learn(secret: str) -> set[str]:
    if secret in ADMINS:
        return {"admin"}
    return {"admin"} | ABROAD[secret] if secret in ABROAD else WIDE | LEARN[secret]


SECRETS = {name: f"zq{number:03}xj" for number, name in enumerate((*LEARN, *ABROAD, *ADMINS))}
"""A word for each that stands nowhere else."""


def secret(name: str) -> str:
    return f"heliotrope vault {SECRETS[name]}"


@dataclass
class PlantedSecrets:
    auth_client: AuthClient
    tokens: dict[str, str | None] = field(default_factory=dict)
    slugs: dict[str, list[str]] = field(default_factory=dict)
    """What may stand for each parameter in paths of generations 2 and 3."""
    uids: dict[str, list[str]] = field(default_factory=dict)
    """The same in paths of generation 1."""

    def prepared(self, method: str, path: str, options: dict[str, Any]) -> PreparedRequest:
        if "data" in options:
            file = (io.BytesIO(b"x"), "a.txt", "text/plain")
            options = {"data": {**options["data"], "file": file}}
        return PreparedRequest(self.auth_client.app, method, path, **options)


def secrets_in(answer: Answer) -> set[str]:
    """Which secrets stand anywhere in the answer: body, stream or headers."""
    text = answer.text + json.dumps(answer.headers)
    assert answer.status_code < 500, text[:500]
    return {name for name, word in SECRETS.items() if word in text}


def plant(auth_client: AuthClient) -> PlantedSecrets:
    do = auth_client.do
    planted_secrets = PlantedSecrets(auth_client)

    def peer(name: str, at: str = W, prefix: str = "") -> str:
        new_peer = do(
            "POST",
            f"{at}/peers",
            {"id": name, "metadata": {"about": secret(f"{prefix}metadata of {name}")}},
        )
        return str(new_peer["uid"])

    def session(name: str, *members: str) -> str:
        body = {
            "id": name,
            "peers": {member: {} for member in members},
            "metadata": {"topic": secret(f"metadata of {name}")},
        }
        return str(do("POST", f"{W}/sessions", body)["uid"])

    def say(name: str, author: str, what: str, at: str = W, **more: Any) -> str:
        body = {
            "messages": [{"peer_id": author, "content": f"The {secret(what)} is mine.", **more}]
        }
        return str(do("POST", f"{at}/sessions/{name}/messages", body)[0]["id"])

    def hold(observer: str, observed: str, what: str, session: str | None, at: str = W) -> str:
        body = {
            "observer_id": observer,
            "observed_id": observed,
            "content": f"Knows the {secret(what)}.",
            "session_id": session,
        }
        return str(do("POST", f"{at}/conclusions", {"conclusions": [body]})[0]["id"])

    instructions = {"reasoning": {"custom_instructions": secret("instructions of the workspace")}}
    body = {
        "id": "acme",
        "metadata": {"plan": secret("metadata of the workspace")},
        "configuration": instructions,
    }
    app = do("POST", "/v3/workspaces", body)["uid"]
    users = {name: peer(name) for name in ("alice", "bob", "carol", "dave")}
    by_uid = {name: f"/v1/apps/{app}/users/{uid}" for name, uid in users.items()}
    shared, hall = session("room", "alice", "bob", "carol"), session("hall", "carol", "dave")
    first = say("room", "alice", "said in room")
    do("DELETE", f"{W}/sessions/room/peers", ["carol"])
    later = say(
        "room",
        "bob",
        "said in room after carol left",
        metadata={"note": secret("metadata of what was said in room")},
    )
    say("hall", "dave", "said in hall")

    owned: dict[str, str] = {}
    for name in ("den", "attic"):
        owned[name] = do(
            "POST",
            f"{by_uid['alice']}/sessions",
            {"metadata": {"topic": secret(f"metadata of {name}")}},
        )["id"]
        message = {"content": f"The {secret(f'said in {name}')} is mine.", "is_user": True}
        do("POST", f"{by_uid['alice']}/sessions/{owned[name]}/messages", message)
    do("DELETE", f"{W}/sessions/{owned['attic']}/peers", ["alice"])
    late_message = {
        "content": f"The {secret('said in attic after alice left')} is here.",
        "is_user": False,
    }
    in_attic = do("POST", f"{by_uid['alice']}/sessions/{owned['attic']}/messages", late_message)[
        "id"
    ]

    for holder, target in (("alice", None), ("alice", "bob"), ("bob", "alice"), ("dave", None)):
        name = f"card of {holder}" + (f" about {target}" if target else "")
        do(
            "PUT",
            f"{W}/peers/{holder}/card" + (f"?target={target}" if target else ""),
            {"peer_card": [secret(name)]},
        )

    conclusions = [
        hold("alice", "alice", "alice holds, stated in room", "room"),
        hold("alice", "alice", "alice holds, of no session", None),
        hold("alice", "alice", "alice holds, stated in den", owned["den"]),
        hold("alice", "bob", "alice holds of bob, stated in room", "room"),
        hold("bob", "bob", "bob holds, stated in room", "room"),
        hold("bob", "alice", "bob holds of alice, of no session", None),
        hold("dave", "dave", "dave holds, stated in hall", "hall"),
        hold("dave", "dave", "dave holds, of no session", None),
        hold("carol", "carol", "carol holds, of no session", None),
    ]
    derived = hold("alice", "alice", "alice holds, derived in room", "room")

    def further(tx: Transaction) -> None:
        workspace = tx.workspaces.by_slug("acme")
        assert workspace is not None
        row = tx.conclusions.by_uid(workspace.key, derived)
        assert row is not None
        tx.conclusions.put([replace(row, level="deductive", source_ids=conclusions[:1])])
        for name in ("room", "hall"):
            session = tx.sessions.by_slug(workspace.key, name)
            assert session is not None
            (newest,) = tx.messages.run(session.key, session.message_count, session.message_count)
            tx.summaries.save(_summary(newest, f"A {secret(f'summary of {name}')}."))

    auth_client.runtime.storage.write(further)

    collections = f"{by_uid['alice']}/collections"
    shelf = do(
        "POST",
        collections,
        {"name": "shelf", "metadata": {"note": secret("metadata of the shelf")}},
    )["id"]
    document = do(
        "POST",
        f"{collections}/{shelf}/documents",
        {"content": f"The {secret('document on the shelf')}."},
    )["id"]
    honcho = do("GET", f"{collections}/name/honcho")["id"]
    notes = f"{by_uid['alice']}/metamessages"
    note = do("POST", notes, {"label": "x", "content": secret("note about alice")})["id"]
    do(
        "POST",
        notes,
        {"label": "x", "content": secret("note about alice in room"), "session_id": shared},
    )
    do(
        "POST",
        f"{by_uid['dave']}/metamessages",
        {"label": "x", "content": secret("note about dave")},
    )
    do("POST", f"{W}/scopes", {"id": "team", "metadata": {"note": secret("metadata of the scope")}})
    do("POST", f"{W}/scopes/team/sessions", {"session_ids": ["room", "hall"]})
    address = f"https://93.184.215.14/{SECRETS['address of the webhook']}"
    endpoint = do("POST", f"{W}/webhooks", {"url": address})["id"]

    there = "/v3/workspaces/other"
    other = {"id": "other", "metadata": {"plan": secret("there: metadata of the workspace")}}
    do("POST", "/v3/workspaces", other)
    peer("alice", there, "there: ")
    do("POST", f"{there}/sessions", {"id": "room", "peers": {"alice": {}}})
    say("room", "alice", "there: said in room", there)
    hold("alice", "alice", "there: alice holds", None, there)
    labelled = key_services.mint(
        auth_client.runtime,
        Principal(admin=True),
        key_services.KeyRequest(workspace_id="acme"),
        label=SECRETS["label of a key"],
    )

    claims: dict[str, dict[str, Any]] = {
        "workspace": {"w": "acme"},
        "app": {"ap": app},
        "alice": {"w": "acme", "p": "alice"},
        "bob": {"w": "acme", "p": "bob"},
        "carol": {"w": "acme", "p": "carol"},
        "dave": {"w": "acme", "p": "dave"},
        "alice by uid": {"us": users["alice"]},
        "bob by uid": {"ap": app, "us": users["bob"]},
        "carol by uid": {"us": users["carol"]},
        "room": {"w": "acme", "s": "room"},
        "room by uid": {"se": shared},
        "room and alice": {"w": "acme", "p": "alice", "s": "room"},
        "hall": {"w": "acme", "s": "hall"},
        "den": {"w": "acme", "s": owned["den"]},
        "den by uid": {"us": users["alice"], "se": owned["den"]},
        "attic": {"w": "acme", "s": owned["attic"]},
        "attic by uid": {"se": owned["attic"]},
        "shelf": {"co": shelf},
        "honcho": {"ap": app, "co": honcho},
        "elsewhere": {"w": "other"},
        "alice elsewhere": {"w": "other", "p": "alice"},
    }
    planted_secrets.tokens = {"nobody": None, "admin": auth_client.admin} | {
        name: signed({"t": "", **body}) for name, body in claims.items()
    }
    assert planted_secrets.tokens.keys() == EVERYBODY
    auth_client.do(
        "POST", "/v3/workspaces/acme/schedule_dream", {"observer": "alice", "dream_type": "omni"}
    )
    dream = auth_client.do("GET", "/v3/workspaces/acme/dreams")["items"][0]["id"]
    messages = "/v3/workspaces/acme/sessions/hall/messages"
    batch = {"messages": [{"peer_id": "carol", "content": "not for long"}]}
    (surplus,) = auth_client.do("POST", messages, batch)
    erasure = auth_client.do("DELETE", f"{messages}/{surplus['id']}")["id"]
    planted_secrets.slugs = {
        "workspace_id": ["acme"],
        "peer_id": ["alice", "bob", "carol", "dave"],
        "session_id": ["room", "hall", owned["attic"]],
        "message_id": [first, later, in_attic],
        "scope_id": ["team"],
        "conclusion_id": [conclusions[0], derived],
        "observation_id": [conclusions[0], conclusions[7]],
        "endpoint_id": [endpoint],
        "delivery_id": [endpoint],
        "dream_id": [dream],
        "erasure_id": [erasure],
        "key_id": [labelled.key.uid],
        "name": ["alice"],
    }
    planted_secrets.uids = {
        "app_id": [app],
        "user_id": [users[name] for name in ("alice", "carol", "dave")],
        "session_id": [shared, owned["den"], owned["attic"], hall],
        "message_id": [first, later, in_attic],
        "collection_id": [shelf, honcho],
        "document_id": [document, conclusions[0], derived],
        "metamessage_id": [note],
        "name": ["acme", "alice", "shelf", "honcho"],
    }
    return planted_secrets


def _summary(message: Message, content: str) -> Summary:
    return Summary(
        workspace_key=message.workspace_key,
        session_key=message.session_key,
        kind=SHORT,
        content=content,
        message_key=message.key,
        message_uid=message.uid,
        tokens=5,
        reasoner="none",
        created_at=utc_now(),
    )


class _Undo(Exception):
    pass


def undo_writes(auth_client: AuthClient) -> None:
    """From now on every write is answered as ever, and undone."""
    storage = auth_client.runtime.storage
    write = storage.write

    def undone(change: Callable[[Transaction], T]) -> T:
        results: list[T] = []

        def and_back(tx: Transaction) -> None:
            results.append(change(tx))
            raise _Undo

        with pytest.raises(_Undo):
            write(and_back)
        return results[-1]

    storage.write = undone  # type: ignore[assignment, method-assign]


@pytest.fixture(scope="module")
def planted_secrets() -> Iterator[PlantedSecrets]:
    auth_client = AuthClient.open()
    planted = plant(auth_client)
    undo_writes(auth_client)
    with signatures_verified_once():
        yield planted
    auth_client.close()


def paths(planted_secrets: PlantedSecrets, rule: str) -> Iterator[str]:
    """The rule with everything of acme in the places of its parameters, and once with the other
    workspace, where names are the same."""
    path_values = planted_secrets.uids if rule.startswith("/v1/apps") else planted_secrets.slugs
    names = [part.partition(">")[0].rpartition(":")[2] for part in rule.split("<")[1:]]
    for values in product(*(path_values[name] for name in names)):
        yield filled(rule, dict(zip(names, values, strict=True)))
    if "workspace_id" in names:
        yield filled(
            rule, {**{name: path_values[name][0] for name in names}, "workspace_id": "other"}
        )


def good(method: str, rule: str) -> tuple[Any, str]:
    """A body and a query, from the tables of who may call what, which have every route (or
    fail)."""
    if rule.startswith("/v1/") and not rule.startswith("/v1/workspaces"):
        short = next(
            name + rule[len(prefix) :]
            for prefix, name in test_v1_auth_matrix.SHORT.items()
            if rule.startswith(prefix)
        )
        first = test_v1_auth_matrix.TABLE[f"{method} {short}"]
        return first.body, "" if "{" in first.query else first.query
    later = rule.replace("/v1/", "/v2/", 1)
    table = test_auth_matrix.TABLE if later.startswith("/v3/") else test_v2_auth_matrix.TABLE
    prefix = later[:3] + "/workspaces/<workspace_id>"
    row: Any = table[f"{method} {later.replace(prefix, '…', 1)}"]
    return row.body, row.query


def sent(
    planted_secrets: PlantedSecrets, method: str, rule: str, every: bool
) -> Iterator[dict[str, Any]]:
    """Bodies and queries. The good ones come from the tables of who may call what, which have every
    route. Of those that name a peer or session and ask for it in several ways, `every` pair, or
    each name and each way once."""
    names = planted_secrets.uids if rule.startswith("/v1/apps") else planted_secrets.slugs
    if method in ("GET", "DELETE") and not rule.endswith("/sessions/<session_id>/peers"):
        yield {}
        if method == "DELETE":
            return
        query = {
            "tokens": "9000",
            "deep_copy": "true",
            "search_query": ASKED,
            "workspace_id": "acme",
        }
        if rule.endswith(("/context", "/card")):
            for target in ("alice", "bob", "dave"):
                yield {"query_string": {**query, "peer_target": target, "target": target}}
                yield {
                    "query_string": {
                        **query,
                        "peer_target": target,
                        "peer_perspective": "alice",
                        "include_most_frequent": "true",
                    }
                }
            yield {
                "query_string": {
                    **query,
                    "peer_target": "alice",
                    "sessions": "room",
                    "search_query": "",
                }
            }
        elif rule.startswith("/v1/apps") and decides_by_what_is_sent(rule):
            for number in range(4):
                yield {
                    "query_string": {
                        name: values[min(number, len(values) - 1)]
                        for name, values in names.items()
                        if name not in rule
                    }
                }
        else:
            yield {"query_string": {**query, "peer_target": "dave", "target": "dave"}}
        return
    body, text = good(method, rule)
    if body == "a file":
        yield {"data": {"peer_id": "alice"}}
        return
    if not isinstance(body, dict | None):
        yield {"json": body}
        return
    options = {**(body or {})} | {
        name: ASKED for name in ("query", "queries") if name in (body or {})
    }
    yield {"json": options, "query_string": text}
    if rule.endswith("/chat"):
        if every:
            yield {"json": {**options, "include_evidence": True}}
        yield {
            "json": {
                **options,
                "queries": "Tell me everything.",
                "query": "Tell me everything.",
                "include_evidence": True,
            }
        }
        yield {"json": {**options, "stream": True, "include_evidence": True}}
    if rule.endswith(("/chat", "/representation", "/search", "/query")) and not rule.startswith(
        "/v1"
    ):
        for number, target in enumerate(("alice", "bob", "dave")):
            ways: list[dict[str, Any]] = [
                {"target": target, "search_query": ASKED, "include_evidence": True},
                {"filters": {"observer": target, "observed": target}},
                {"filters": {"peer_perspective": target}},
            ]
            for way in ways if every else ways[number:][:1]:
                yield {"json": {**options, **way}}
        for number, session in enumerate(("room", "hall")):
            ways = [{"session_id": session}, {"filters": {"session_id": [session]}}]
            for way in ways if every else ways[number:][:1]:
                yield {"json": {**options, **way, "include_evidence": True}}
        yield {"json": {**options, "scope": "team"}}
    if body is not None and set(body) == {"id"}:
        for name in named_by(planted_secrets, rule):
            yield {"json": {"id": name}}


def named_by(planted_secrets: PlantedSecrets, rule: str) -> list[str]:
    """What the id in the body of a route that makes a row may name: such rows, and others."""
    slugs = planted_secrets.slugs
    such: dict[str, list[str]] = {
        "workspaces": ["acme", "other"],
        "peers": slugs["peer_id"],
        "sessions": slugs["session_id"],
        "scopes": slugs["scope_id"],
    }
    others = [names[0] for names in such.values()]
    return list(dict.fromkeys([*such[rule.rpartition("/")[2]], *others]))


UNANSWERED = {
    # There are sessions in it.
    "DELETE /v3/workspaces/<workspace_id>",
    # Nothing was delivered.
    "POST /v3/workspaces/<workspace_id>/deliveries/<delivery_id>/redeliver",
    # The dream is pending: there is nothing to review yet.
    "POST /v3/workspaces/<workspace_id>/dreams/<dream_id>/apply",
    "POST /v3/workspaces/<workspace_id>/dreams/<dream_id>/discard",
    "POST /v3/workspaces/<workspace_id>/dreams/<dream_id>/undo",
}
"""Routes that have nothing to say to anybody here."""


def decides_by_what_is_sent(rule: str) -> bool:
    """Keys are let in before a body is read, so a path that is shut stays shut whatever is sent;
    but for these routes."""
    return rule.count("<") < 2 or rule.endswith(("/sessions", "/users", "/collections"))


def is_early(rule: str) -> bool:
    """Whether it is an early path of generation 2, which leads to the handler of a later one:
    which keys these let in is asked, not all that may be sent to every row."""
    return rule.startswith("/v1/workspaces")


@dataclass
class Answers:
    """What each of these keys was told, on all routes."""

    keys: set[str]
    every_body: bool
    learnt: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    wrong: list[str] = field(default_factory=list)

    def ask(
        self, planted_secrets: PlantedSecrets, method: str, rule: str, number: int, path: str
    ) -> bool:
        """Ask the path with every key and with all that may be sent. Returns whether the admin's
        key got an answer.

        Few keys and bodies are left out: a path that names no row, for instance a session of
        another user, is asked with a quarter of the keys, others for each path, unless it is the
        first of its rule. A key that names a user or session by its uid becomes the key that names
        it by its id, so in generation 2 it is asked with one body; generation 3 gets all of them.
        """
        keys = sorted(self.keys - {"admin"})
        answered = False
        bodies = sent(planted_secrets, method, rule, self.every_body)
        for options in islice(bodies, 1 if is_early(rule) else None):
            request = planted_secrets.prepared(method, path, options)
            question = f"{method} {path} {options}"
            status = self._ask(planted_secrets, request, question, "admin")
            answered = answered or status < 400
            names_no_row = status == 404 and number > 0
            for key in keys[number % 4 :: 4] if names_no_row else list(keys):
                status = self._ask(planted_secrets, request, question, key)
                if status == 401 and not decides_by_what_is_sent(rule):
                    keys.remove(key)
            if rule.startswith("/v2/"):
                keys = [key for key in keys if not key.endswith(" by uid")]
        return answered

    def _ask(
        self, planted_secrets: PlantedSecrets, request: PreparedRequest, question: str, key: str
    ) -> int:
        answer = request.send(planted_secrets.tokens[key])
        names = secrets_in(answer)
        self.learnt[key] |= names
        self.wrong += [
            f"{key} learns {name!r}: {question}" for name in names if key not in may_learn(name)
        ]
        return answer.status_code


@pytest.mark.slow(500)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("keys", "generations"),
    [
        (SOME, ("/v1/apps", "/v3/")),
        # By default, test_attacks_across asks the routes of generation 2 that have handlers of
        # their own, and test_bounds_of_keys its chat.
        pytest.param(EVERYBODY, ("/v1/", "/v2/", "/v3/"), marks=pytest.mark.heavy),
    ],
    ids=["some keys", "all keys"],
)
def test_no_answer_reveals_secrets_to_a_key_without_access(
    planted_secrets: PlantedSecrets, keys: set[str], generations: tuple[str, ...]
) -> None:
    answers, unanswered = Answers(keys, every_body=keys == EVERYBODY), set()
    for method, rule in routes():
        if not rule.startswith(generations):
            continue
        every = list(paths(planted_secrets, rule))
        if is_early(rule):
            every = [every[0], *every[1:][-1:]]
        answered = [
            answers.ask(planted_secrets, method, rule, number, path)
            for number, path in enumerate(every)
        ]
        if not any(answered):
            unanswered.add(f"{method} {rule}")
    assert not answers.wrong, "\n".join(
        [f"{len(answers.wrong)} answers, of them", *answers.wrong[:20]]
    )
    # None of this would be worth anything if nothing were told to anybody.
    assert unanswered == UNANSWERED
    for key in keys:
        missed = {name for name in SECRETS if key in may_learn(name)} - answers.learnt[key]
        assert not missed, f"{key} is not told {sorted(missed)}, which it may learn"
