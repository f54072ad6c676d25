"""Chat in a user's session: the answer to one or several questions about the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memservice.domain.errors import Unauthorised
from memservice.domain.records import DELETING, Peer, Session
from memservice.domain.sizes import MAX_QUERY, MAX_QUESTIONS
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.chat import chat
from memservice.services.chat.chat import ChatOptions
from memservice.services.retrieval import representation
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.services.v1 import collections, metamessages, resolve
from memservice.services.v1.resolve import Path
from memservice.spi.reasoner import always
from memservice.spi.storage import Transaction

MAX_JOINED = MAX_QUESTIONS * (MAX_QUERY + 1)
"""Characters of all questions of a request, with the line breaks between them."""
NOTHING = "None"
"""The answer if there is no text."""


def ask(
    rt: Runtime,
    principal: Principal,
    path: Path,
    queries: Sequence[str],
    stream: bool = False,
    is_wanted: Callable[[], bool] = always,
) -> chat.Answer | None:
    """The answer, not generated yet; None for a question without text.

    An unknown session counts as none. The key of a session always asks in that session, and only
    the user that owns the session.
    """

    def begin(tx: Transaction) -> tuple[str, Peer, Session | None]:
        resolve.authorise(tx, principal, path)
        workspace, user = resolve.require_user(tx, path)
        collections.ensure_derived(rt, tx, user)
        session = resolve.find_session(rt, tx, principal, user, path.session)
        if session is None and principal.is_session:
            raise Unauthorised(policy.NOT_PERMISSIONED)
        return (
            workspace.slug,
            user,
            None if session is None or session.state == DELETING else session,
        )

    workspace_id, user, session = rt.storage.write(begin)
    question = "\n".join(queries).replace("\0", "").strip()
    if not question:
        return None
    slug = None if session is None else session.slug
    options = ChatOptions(question, max_length=MAX_JOINED, stream=stream, is_wanted=is_wanted)
    answer = chat.ask_in_session(rt, principal, workspace_id, user.slug, slug, options)
    # The note is about the user, and the user may read it. The key of a session reads only its
    # session, so it writes no note.
    if session is not None and not principal.is_session:
        _note_representation(rt, principal, workspace_id, user, session)
    return answer


def _note_representation(
    rt: Runtime, principal: Principal, workspace_id: str, user: Peer, session: Session
) -> None:
    text = representation.of_peer(rt, principal, workspace_id, user.slug, RepresentationOptions())

    def note(tx: Transaction) -> bool:
        locked = tx.sessions.by_key(session.key, lock=True)
        return (
            locked is not None
            and locked.state != DELETING
            and metamessages.note_representation(rt, tx, user, locked, text)
        )

    rt.storage.write(note)


def content(answer: chat.Answer | None) -> str:
    return (None if answer is None else answer.content()) or NOTHING


def pieces(answer: chat.Answer | None) -> Iterator[str]:
    """The answer in pieces."""
    has_text = False
    for piece in answer.pieces() if answer is not None else ():
        has_text = True
        yield piece
    if not has_text:
        yield NOTHING
