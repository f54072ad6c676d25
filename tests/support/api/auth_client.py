"""An application that requires keys, a few workspaces behind it, and keys of every kind to it."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.auth.jwt_signing import Signer
from memservice.runtime import Runtime
from memservice.services.auth import api_keys
from memservice.services.auth.principal import Principal
from memservice.settings import Settings, load_settings
from support.stores.stores import undone

SECRET = "a secret for tests only, and a long one at that"
OTHER_SECRET = "the secret of somebody else's server, long as well"
ALL = Principal(admin=True)


def settings_with_auth(uri: str = "memory://", **more: str) -> Settings:
    """Settings with authentication on."""
    overrides = {
        "DB_CONNECTION_URI": uri,
        "AUTH_USE_AUTH": "true",
        "AUTH_JWT_SECRET": SECRET,
        "METRICS_ENABLED": "true",
        **more,
    }
    return load_settings(environ={}, overrides=overrides)


def signed(claims: Mapping[str, Any], secret: str = SECRET, algorithm: str = "HS256") -> str:
    """A token as another server of this API would sign it: by a library of its own, with any
    claims."""
    return jwt.encode(dict(claims), secret, algorithm=algorithm)


def by_hand(claims: Mapping[str, Any], algorithm: str) -> str:
    """A token signed with our secret by any HMAC; the library complains of a secret that is short
    for the longer ones."""
    parts = [json.dumps(part).encode() for part in ({"alg": algorithm, "typ": "JWT"}, dict(claims))]
    payload = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.digest(SECRET.encode(), payload, algorithm.replace("HS", "sha"))
    return b".".join((payload, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()


@dataclass
class AuthClient:
    """The application, and a short way to call it with a key."""

    runtime: Runtime
    app: Flask = field(init=False)
    client: FlaskClient = field(init=False)

    def __post_init__(self) -> None:
        self.app = create_app(runtime=self.runtime)
        self.client = self.app.test_client(use_cookies=False)
        self.admin = signed({"t": "", "ad": True})

    @classmethod
    def open(cls, uri: str = "memory://", clock: Any = None, **more: str) -> AuthClient:
        settings = settings_with_auth(uri, **more)
        runtime = (
            open_runtime(settings, "api")
            if clock is None
            else open_runtime(settings, "api", clock=clock)
        )
        runtime.storage.migrate()
        return cls(runtime)

    def close(self) -> None:
        self.app.extensions["memservice"].close()

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What is written within is undone afterwards."""
        assert self.runtime.storage.name == "memory"
        with undone(self.runtime.storage):
            yield

    def call(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> TestResponse:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return self.client.open(path, method=method, headers=headers, **options)

    def do(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """As the administrator; the answer's JSON, after looking that it is a success."""
        if body is not None:
            options["json"] = body
        answer = self.call(method, path, self.admin, **options)
        assert answer.status_code // 100 == 2, (
            f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        )
        return answer.get_json() if answer.data else None

    def mint(
        self, workspace: str | None = None, peer: str | None = None, session: str | None = None
    ) -> api_keys.Minted:
        return api_keys.mint(
            self.runtime,
            ALL,
            api_keys.KeyRequest(workspace_id=workspace, peer_id=peer, session_id=session),
        )


@dataclass(frozen=True)
class PopulatedIds:
    """Ids of the populated workspaces that a client cannot choose."""

    message: str
    conclusion: str
    endpoint: str
    key: str
    revoked: str
    """The token of an admin key that was revoked."""
    revoked_foreign: str
    """The same of one that another server made."""


def populate(auth_client: AuthClient) -> PopulatedIds:
    """Workspaces `acme` and `other` with the same names in them. In `acme`, alice and bob are in
    the session room, carol has left it, mallory never was in it; the session hall is mallory's."""
    for workspace in ("acme", "other"):
        at = f"/v3/workspaces/{workspace}"
        auth_client.do("POST", "/v3/workspaces", {"id": workspace})
        auth_client.do(
            "POST", f"{at}/sessions", {"id": "room", "peers": {"alice": {}, "bob": {}, "carol": {}}}
        )
        auth_client.do("POST", f"{at}/sessions", {"id": "hall", "peers": {"mallory": {}}})
        auth_client.do("DELETE", f"{at}/sessions/room/peers", ["carol"])
    at = "/v3/workspaces/acme"
    message = auth_client.do(
        "POST",
        f"{at}/sessions/room/messages",
        {"messages": [{"peer_id": "alice", "content": "I live in Ulm."}]},
    )[0]
    pair = {
        "observer_id": "alice",
        "observed_id": "alice",
        "content": "alice lives in Ulm",
        "session_id": "room",
    }
    conclusion = auth_client.do("POST", f"{at}/conclusions", {"conclusions": [pair]})[0]
    auth_client.do("PUT", f"{at}/peers/alice/card", {"peer_card": ["Lives in Ulm"]})
    endpoint = auth_client.do("POST", f"{at}/webhooks", {"url": "https://93.184.215.14/hook"})
    auth_client.do("POST", f"{at}/scopes", {"id": "team"})
    auth_client.do("POST", f"{at}/scopes/team/sessions", {"session_ids": ["room"]})
    revoked, revoked_foreign = auth_client.mint(), signed({"ad": True, "t": "once"})
    api_keys.revoke(auth_client.runtime, ALL, revoked.key.uid)
    api_keys.revoke_token(auth_client.runtime, ALL, revoked_foreign)
    return PopulatedIds(
        message["id"],
        conclusion["id"],
        endpoint["id"],
        auth_client.mint("acme").key.uid,
        revoked.token,
        revoked_foreign,
    )


def foreign(now: datetime) -> dict[str, str]:
    """Keys that no route may accept, by what is wrong with them."""
    admin = {"t": "", "ad": True}
    signer, past = Signer(SECRET), now - timedelta(hours=1)
    unsigned = jwt.encode(admin, "", algorithm="none")
    head, payload, signature = signed(admin).split(".")
    return {
        "garbage": "garbage",
        "three parts of garbage": "a.b.c",
        "without a signature": f"{head}.{payload}.",
        "alg none": unsigned,
        "alg none, with our signature": f"{unsigned.split('.')[0]}.{payload}.{signature}",
        "another HMAC, HS384": by_hand(admin, "HS384"),
        "another HMAC, HS512": by_hand(admin, "HS512"),
        "wrong signature": signed(admin, OTHER_SECRET),
        "expired, a number": signed(admin | {"exp": int(past.timestamp())}),
        "expired, ISO": signed(admin | {"exp": past.isoformat()}),
        "expired, minted here": signer.sign(Claims(admin=True, expires_at=past)),
        "exp is no time": signed(admin | {"exp": "soon"}),
        "exp is empty": signed(admin | {"exp": ""}),
        "exp is not a number": signed(admin | {"exp": float("nan")}),
        "exp is endless": signed(admin | {"exp": float("inf")}),
        "exp is true": signed(admin | {"exp": True}),
        "not yet valid": signed(admin | {"nbf": int(now.timestamp()) + 3600}),
        "for somebody else": signed(admin | {"aud": "another service"}),
        "of an unknown id": signed(admin | {"jti": "A" * 21}),
        "empty claims": signed({}),
        "empty names": signed({"t": "", "ad": False, "w": "", "p": "", "s": ""}),
        "null names": signed({"ad": None, "w": None}),
        "admin as text": signed({"ad": "true"}),
        "peer without workspace": signed({"p": "alice"}),
        "session without workspace": signed({"w": "", "s": "room"}),
        "names that are no text": signed({"w": ["acme"]}),
        "first generation only": signed({"ap": "acme", "us": "alice"}),
    }
