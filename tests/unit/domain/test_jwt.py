"""Tokens: what is signed comes back, and nothing else does."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.auth.jwt_claims import Claims, claims_for, read_claims, write_claims
from memservice.domain.auth.jwt_signing import Signer, digest
from memservice.domain.errors import ConfigurationError, Unauthorised

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECRET = "Grüße, ein Geheimnis für Tests, und lang genug"
OLDER = "the secret before, of good length as well"
SIGNER = Signer(SECRET)

names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30
)


ends = st.none() | st.integers(1, 10**9).map(lambda seconds: NOW + timedelta(seconds=seconds))


@given(
    st.builds(claims_for, names, st.just(NOW), ends, names, st.none() | names, st.none() | names)
)
def test_signed_claims_are_read(claims: Claims) -> None:
    assert SIGNER.read(SIGNER.sign(claims), NOW) == claims


def test_keys_have_the_documented_payload() -> None:
    """What other servers of this API read, in their claims and in whole seconds."""
    end = datetime(2026, 8, 1, tzinfo=UTC)
    assert write_claims(claims_for("K", NOW, end, "acme", "alice", None)) == {
        "t": "2026-05-01T12:00:00Z",
        "exp": 1785542400,
        "w": "acme",
        "p": "alice",
        "jti": "K",
    }
    assert write_claims(claims_for("K", NOW, None, None, None, None)) == {
        "t": "2026-05-01T12:00:00Z",
        "ad": True,
        "jti": "K",
    }
    token = SIGNER.sign(claims_for("K", NOW, end, "acme", None, "room"))
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    assert (
        jwt.decode(token, SECRET.encode(), ["HS256"], options={"verify_exp": False})["s"] == "room"
    )


@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.booleans(),
)
def test_other_tokens_are_refused(raw: bytes, dressed: bool) -> None:
    token = raw.decode("latin-1")
    if dressed:
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()
        payload = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        signature = base64.urlsafe_b64encode(raw[:32]).rstrip(b"=").decode()
        token = f"{head}.{payload}.{signature}"
    with pytest.raises(Unauthorised):
        SIGNER.read(token, NOW)


@pytest.mark.parametrize(
    "payload",
    [
        b"[]",
        b"null",
        b'"text"',
        b"1",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"exp":' + b"9" * 5_000 + b"}",
    ],
)
def test_invalid_payloads_are_refused(payload: bytes) -> None:
    """Rightly signed, all the same."""
    token = jwt.PyJWS(algorithms=["HS256"]).encode(payload, SECRET.encode(), "HS256")
    with pytest.raises(Unauthorised, match="Invalid JWT"):
        SIGNER.read(token, NOW)


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())


@given(
    st.dictionaries(
        st.sampled_from(["ad", "w", "p", "s", "exp", "nbf", "iat", "aud", "jti", "t"]), anything
    )
)
def test_claims_of_any_kind_are_read_or_refused(payload: dict[str, Any]) -> None:
    try:
        claims = read_claims(payload, NOW)
    except Unauthorised:
        return
    assert claims.admin == (payload.get("ad") is True)
    assert claims.workspace == (payload.get("w") or None)
    assert claims.workspace is not None or (claims.peer is None and claims.session is None)
    assert claims.expires_at is None or claims.expires_at > NOW


@pytest.mark.parametrize(
    ("exp", "over"),
    [
        (NOW.timestamp(), True),
        (NOW.timestamp() + 1, False),
        (NOW.timestamp() - 0.5, True),
        (-(10**30), True),
        (10**30, False),
        (1e300, False),
        ("2026-05-01T12:00:00Z", True),
        ("2026-05-01T12:00:01Z", False),
        ("2026-05-01T14:00:00+02:00", True),
        ("2026-05-01 12:00:01", False),
        ("2026-05-02", False),
    ],
)
def test_a_key_expires_at_its_time(exp: object, over: bool) -> None:
    if over:
        with pytest.raises(Unauthorised, match="JWT expired"):
            read_claims({"ad": True, "exp": exp}, NOW)
    else:
        assert read_claims({"ad": True, "exp": exp}, NOW).admin


def test_claims_of_the_first_generation_are_separate() -> None:
    claims = read_claims({"ap": "A", "us": "U", "se": "S", "co": "C"}, NOW)
    assert (claims.app_uid, claims.user_uid, claims.owned_session_uid, claims.collection_uid) == (
        "A",
        "U",
        "S",
        "C",
    )
    assert (claims.admin, claims.workspace, claims.peer, claims.session) == (
        False,
        None,
        None,
        None,
    )


def test_a_previous_secret_verifies_and_does_not_sign() -> None:
    old, new = Signer(OLDER), Signer(SECRET, OLDER)
    claims = claims_for("K", NOW, None, "acme", None, None)
    assert new.read(old.sign(claims), NOW) == claims
    assert new.read(new.sign(claims), NOW) == claims
    assert Signer(SECRET).read(new.sign(claims), NOW) == claims
    for signer, token in (
        (old, new.sign(claims)),
        (Signer(SECRET), old.sign(claims)),
        (new, Signer(OLDER + "!").sign(claims)),
    ):
        with pytest.raises(Unauthorised, match="Invalid JWT"):
            signer.read(token, NOW)


@pytest.mark.parametrize("claims", [{"exp": 1}, {"ad": "yes"}, {"p": "alice"}, {"aud": "x"}])
def test_a_previous_secret_accepts_no_invalid_claims(claims: dict[str, Any]) -> None:
    with pytest.raises(Unauthorised):
        Signer(SECRET, OLDER).read(jwt.encode(claims, OLDER, "HS256"), NOW)
    unsigned = jwt.encode({"ad": True}, "", algorithm="none")
    for token in (unsigned, unsigned + "x", "a.b.c", ""):
        with pytest.raises(Unauthorised):
            Signer(SECRET, OLDER).read(token, NOW)


def test_an_unusable_secret_is_named() -> None:
    public = "ssh-rsa AAAAB3NzaC1yc2E"
    with pytest.raises(ConfigurationError, match=r"^AUTH_JWT_SECRET cannot be used"):
        Signer(public)
    with pytest.raises(ConfigurationError, match=r"^AUTH_JWT_SECRET_PREVIOUS cannot be used"):
        Signer(SECRET, public)


def test_the_digest_is_the_same_however_the_signature_is_written() -> None:
    """32 bytes leave two bits of the last of 43 characters unused, and some releases of the library
    do not look at them."""
    token = jwt.encode({"ad": True}, SECRET, "HS256")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    spellings = [token[:-1] + alphabet[alphabet.index(token[-1]) ^ bits] for bits in range(4)]
    assert {digest(spelling) for spelling in [*spellings, token + "=", token + "\n"]} == {
        digest(token)
    }
    assert digest(jwt.encode({"ad": True, "t": "x"}, SECRET, "HS256")) != digest(token)


def test_the_secret_is_used_as_utf8_bytes() -> None:
    token = jwt.encode({"ad": True}, SECRET.encode("utf-8"), "HS256")
    assert SIGNER.read(token, NOW).admin
    assert json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "==")) == {
        "alg": "HS256",
        "typ": "JWT",
    }
    with pytest.raises(Unauthorised):
        Signer(SECRET + "!").read(token, NOW)
