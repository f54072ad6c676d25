"""Sign-in, sign-out, and browser sessions.

Each sign-in creates a new session id, so an id planted in a browser before the sign-in is
worthless.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.auth.jwt_claims import Claims, write_claims
from memservice.domain.errors import NotFound, Unauthorised
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, AuditEntry, BrowserSession, ConsoleMember
from memservice.runtime import Runtime
from memservice.services.auth import api_keys
from memservice.services.members import audit, links, names, passwords, pauses, tokens
from memservice.services.members.pauses import Subject
from memservice.services.members.visitors import Browser, Visitor
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.console")

LIFETIME = timedelta(hours=12)
MAX_CLIENT = 300
"""Maximum number of characters of a `User-Agent`; the rest is cut off."""
WRONG = "The name or the password is wrong"
NOT_A_KEY = "This is not a valid API key"
NARROW = "The console needs an admin key, or a key of a whole workspace"


class SignedIn(Struct, frozen=True):
    session_id: str
    """The value of the session cookie."""
    expires_at: datetime
    browser_id: str | None = None
    """The value of the cookie that identifies this browser at the next sign-in; None: unchanged."""


def with_password(
    rt: Runtime,
    browser: Browser,
    name: str,
    password: str,
    browser_id: str | None = None,
    previous: str | None = None,
) -> SignedIn:
    """Sign a member in. `browser_id` is the value of the browser's cookie, `previous` the value of
    its session cookie: that session ends. Raises `Unauthorised`, with one message for every reason,
    and `Paused`."""
    links.require_enabled(rt.settings)
    spelling = names.normal(name[: 4 * names.MAX_LENGTH])
    with rt.storage.read() as tx:
        member = tx.console_members.by_name(spelling) if names.can_exist(spelling) else None
    subjects = _subjects(rt, browser, spelling, member, browser_id)
    pauses.begin(rt, subjects)
    matches = passwords.verify(None if member is None else member.password_hash, password)
    if member is None or not matches or member.state != ACTIVE:
        _log_refusal(browser)
        # Add an entry in both cases: otherwise the response time reveals which names exist.
        actor, actor_uid = names.UNKNOWN, None
        if member is not None:
            actor, actor_uid = member.name, member.uid
        _record_refusal(rt, browser, actor, actor_uid)
        raise Unauthorised(WRONG)
    outdated = passwords.is_outdated(member.password_hash)
    new_hash = passwords.hash_password(password) if outdated else None
    return _open_for_member(rt, browser, member, previous, subjects, new_hash)


def after_link(
    rt: Runtime, browser: Browser, member: ConsoleMember, previous: str | None = None
) -> SignedIn:
    """Sign in the member that has just used a one-time link."""
    return _open_for_member(rt, browser, member, previous, (), None)


def with_key(rt: Runtime, browser: Browser, key: str, previous: str | None = None) -> SignedIn:
    """Sign in with an API key: the session has the access of the key, until the key is revoked or
    expires. Keys are too long to guess, so only attempts with a formerly valid key, or one that is
    too narrow, are paused. Raises `Unauthorised` and `Paused`."""
    links.require_enabled(rt.settings)
    token = key.strip()
    now = rt.clock()
    try:
        claims = api_keys.signer_of(rt.settings).read(token, now)
    except Unauthorised:
        _log_refusal(browser)
        raise Unauthorised(NOT_A_KEY) from None
    key_uid = api_keys.uid_of(claims, token)
    if (problem := _key_problem(rt, claims, token)) is not None:
        pauses.begin(rt, (pauses.of_key(key_uid),))
        _log_refusal(browser)
        _record_refusal(rt, browser, f"key {key_uid}", key_uid, {"with": "key"})
        raise Unauthorised(problem)
    expires_at = min(now + LIFETIME, claims.expires_at or now + LIFETIME)
    secret = api_keys.secret_of(rt.settings, token, now)

    def store(tx: Transaction, session: BrowserSession) -> None:
        tx.sign_ins.add(replace(session, claims=write_claims(claims), key_uid=key_uid))
        tx.audit_log.add(
            _entry(rt, browser, "session.sign-in", f"key {key_uid}", key_uid, {"with": "key"})
        )

    return _open(rt, browser, secret, expires_at, previous, store)


def sign_out(rt: Runtime, visitor: Visitor, browser: Browser) -> None:
    """End the visitor's session."""
    uid = visitor.session_uid
    if uid is None:
        return

    def erase(tx: Transaction) -> None:
        tx.sign_ins.erase(uid)
        tx.audit_log.add(audit.entry_of(rt, visitor, browser, "session.sign-out"))

    rt.storage.write(erase)


def sessions(rt: Runtime, visitor: Visitor) -> list[BrowserSession]:
    """The visitor's own sessions as a member, newest first; empty for a sign-in with a key."""
    if not visitor.is_member or visitor.actor_uid is None:
        return []
    with rt.storage.read() as tx:
        return tx.sign_ins.of_member(visitor.actor_uid, rt.clock())


def end(rt: Runtime, visitor: Visitor, browser: Browser, session_uid: str) -> None:
    """End one of the visitor's own sessions. Raises `NotFound`, also for another member's."""
    member_uid = _member_uid(visitor)

    def erase(tx: Transaction) -> None:
        if not (names.can_exist(session_uid) and tx.sign_ins.erase(session_uid, member_uid)):
            raise NotFound("There is no such session: it has ended")
        tx.audit_log.add(audit.entry_of(rt, visitor, browser, "session.end"))

    rt.storage.write(erase)


def sign_out_everywhere(
    rt: Runtime, visitor: Visitor, browser: Browser, *, but_here: bool = False
) -> int:
    """End all of the visitor's sessions, or all others (`but_here`); returns how many."""
    member_uid = _member_uid(visitor)

    def erase(tx: Transaction) -> int:
        number = tx.sign_ins.erase_of_member(
            member_uid, but=visitor.session_uid if but_here else None
        )
        tx.audit_log.add(
            audit.entry_of(
                rt, visitor, browser, "session.sign-out-everywhere", detail={"sessions": number}
            )
        )
        return number

    return rt.storage.write(erase)


def _member_uid(visitor: Visitor) -> str:
    if not visitor.is_member or visitor.actor_uid is None:
        raise NotFound("Only members have sessions that can be listed and ended")
    return visitor.actor_uid


def _subjects(
    rt: Runtime,
    browser: Browser,
    name: str,
    member: ConsoleMember | None,
    browser_id: str | None,
) -> tuple[Subject, ...]:
    if member is not None and browser_id is not None and _is_known(rt, browser_id, member):
        nonce = browser_id.partition(".")[0]
        secret = tokens.secrets_of(rt.settings)[0]
        return (pauses.of_browser(tokens.digest(secret, tokens.BROWSER, nonce)),)
    return pauses.of_account(name), pauses.of_address(browser.address)


def _is_known(rt: Runtime, browser_id: str, member: ConsoleMember) -> bool:
    """Whether the browser has signed in to this account before: its cookie consists of a random
    part and the keyed hash of that part and the account."""
    nonce, _, mac = browser_id.partition(".")
    expected = tokens.digests(rt.settings, tokens.BROWSER, _browser_text(nonce, member))
    return any(tokens.is_same(digest, mac) for digest in expected)


def _new_browser_id(rt: Runtime, member: ConsoleMember) -> str:
    nonce = tokens.new_token()
    secret = tokens.secrets_of(rt.settings)[0]
    mac = tokens.digest(secret, tokens.BROWSER, _browser_text(nonce, member))
    return f"{nonce}.{mac}"


def _browser_text(nonce: str, member: ConsoleMember) -> str:
    """The signed text of a known browser's cookie. A new password makes all browsers unknown."""
    return f"{nonce}\0{member.uid}\0{member.password_hash}"


def _open_for_member(
    rt: Runtime,
    browser: Browser,
    member: ConsoleMember,
    previous: str | None,
    subjects: tuple[Subject, ...],
    new_hash: str | None,
) -> SignedIn:
    def store(tx: Transaction, session: BrowserSession) -> None:
        current = tx.console_members.by_uid(member.uid, lock=True)
        if (
            current is None
            or current.state != ACTIVE
            or current.password_hash != member.password_hash
        ):
            raise Unauthorised(WRONG)  # it changed during the verification
        if new_hash is not None:
            tx.console_members.save(replace(current, password_hash=new_hash))
        pauses.succeed(tx, subjects, rt.clock())
        tx.sign_ins.add(replace(session, member_uid=member.uid))
        tx.audit_log.add(_entry(rt, browser, "session.sign-in", member.name, member.uid))

    secret = tokens.secrets_of(rt.settings)[0]
    signed_in = _open(rt, browser, secret, rt.clock() + LIFETIME, previous, store)
    return replace(signed_in, browser_id=_new_browser_id(rt, member))


def _open(
    rt: Runtime,
    browser: Browser,
    secret: str,
    expires_at: datetime,
    previous: str | None,
    store: Callable[[Transaction, BrowserSession], None],
) -> SignedIn:
    """Store a session, hashed under this secret, and end the browser's previous one."""
    session_id = tokens.new_token()
    now = rt.clock()
    session = BrowserSession(
        uid=new_uid(),
        digest=tokens.digest(secret, tokens.SESSION, session_id),
        address=browser.address,
        client=browser.name[:MAX_CLIENT],
        expires_at=expires_at,
        created_at=now,
    )

    def write(tx: Transaction) -> None:
        tx.sign_ins.erase_expired(now)
        if previous:
            replaced = tx.sign_ins.by_digest(tokens.digests(rt.settings, tokens.SESSION, previous))
            if replaced is not None:
                tx.sign_ins.erase(replaced.uid)
        store(tx, session)

    rt.storage.write(write)
    return SignedIn(session_id, expires_at)


def _key_problem(rt: Runtime, claims: Claims, token: str) -> str | None:
    """Why a key with a valid signature opens no session; None: it opens one."""
    try:
        with rt.storage.read() as tx:
            api_keys.recognise(tx, claims, token)
    except Unauthorised:
        return NOT_A_KEY
    return None if _is_wide(claims) else NARROW


def _is_wide(claims: Claims) -> bool:
    """Whether the key is an admin key, or one of a whole workspace."""
    narrower = (
        claims.peer,
        claims.session,
        claims.user_uid,
        claims.owned_session_uid,
        claims.collection_uid,
    )
    return claims.admin or (bool(claims.workspace or claims.app_uid) and not any(narrower))


def _log_refusal(browser: Browser) -> None:
    log.warning("a sign-in to the console failed: address=%s", browser.address)


def _record_refusal(
    rt: Runtime,
    browser: Browser,
    actor: str,
    actor_uid: str | None,
    detail: dict[str, str] | None = None,
) -> None:
    entry = _entry(rt, browser, "session.refuse", actor, actor_uid, detail)
    rt.storage.write(lambda tx: tx.audit_log.add(entry))


def _entry(
    rt: Runtime,
    browser: Browser,
    action: str,
    actor: str,
    actor_uid: str | None,
    detail: dict[str, str] | None = None,
) -> AuditEntry:
    return AuditEntry(
        uid=new_uid(),
        actor=actor,
        actor_uid=actor_uid,
        action=action,
        address=browser.address,
        detail=dict(detail or {}),
        created_at=rt.clock(),
    )
