"""The conclusions that a batch proposes to store, prepared with no transaction open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.derived_rules import HEDGED, HYPOTHETICAL, STATEMENT_KINDS
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import Conclusion, JsonObject, Peer
from memservice.pipeline.derive import deduplication, replacing
from memservice.pipeline.derive import statements as derive_statements
from memservice.pipeline.derive.deduplication import Duplicate
from memservice.pipeline.derive.inputs import DeriveInput, asks_model
from memservice.pipeline.derive.replacing import Replacement
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services import write_hooks
from memservice.spi.reasoner import Derived, Statement

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


class Candidates(Struct, frozen=True):
    """The conclusions that are stored, as far as this is known before the transaction."""

    drafts: Sequence[Conclusion]
    """For the observed peer as its own observer."""
    allowed: Mapping[int, set[str]]
    """Key of an observer → fingerprints of the drafts that plugins allow for it."""
    vectors: Sequence[Vector] | None
    duplicates: Mapping[tuple[int, str], Duplicate]
    """(Key of an observer, fingerprint of a draft) → the stored conclusion with the same meaning in
    other words."""
    replaced: Mapping[str, Sequence[Replacement]]
    """Fingerprint of a draft → the conclusions that it replaces according to the reasoner."""


def prepare(
    rt: Runtime,
    derive_input: DeriveInput,
    derived: Derived,
    observers: Sequence[Peer],
    context_rows: Mapping[str, Conclusion],
    counts: Counter[str],
) -> Candidates:
    """The candidates from the statements in `derived`. `observers`: of all of them. Counts the
    repeated and the refused ones."""
    statements = derive_statements.distinct(derived.statements, counts)
    times = derive_statements.times(derived.statements)
    drafts = _drafts(rt, derive_input, statements, derived, times)
    by_model = asks_model(rt.reasoner_for(choice.DERIVE))
    replaced = replacing.allowed(statements, drafts, context_rows, counts, by_model=by_model)
    allowed = {observer.key: _allowed(rt, drafts, observer, counts) for observer in observers}
    vectors = deduplication.vectors_of(
        rt,
        derive_input.session.workspace_key,
        derive_input.workspace,
        [draft.content for draft in drafts],
    )
    duplicates = deduplication.find(rt, drafts, vectors, observers)
    return Candidates(drafts, allowed, vectors, duplicates, replaced)


def _drafts(
    rt: Runtime,
    derive_input: DeriveInput,
    statements: Sequence[Statement],
    derived: Derived,
    times: Mapping[str, int],
) -> list[Conclusion]:
    """The conclusions for the observed peer as its own observer, without keys. `times`: fingerprint
    → number of occurrences."""
    sent = {message.key: message.created_at for message in derive_input.messages}
    newest = max(sent.values())
    uids = {message.key: message.uid for message in derive_input.messages}
    return [
        Conclusion(
            uid=new_uid(),
            workspace_key=derive_input.session.workspace_key,
            collection_key=0,
            observer_key=derive_input.observed.key,
            observed_key=derive_input.observed.key,
            session_key=derive_input.session.key,
            observer=derive_input.observed.slug,
            observed=derive_input.observed.slug,
            session=derive_input.session.slug,
            content=statement.content,
            fingerprint=fingerprint(statement.content),
            message_keys=list(statement.message_keys),
            times_derived=times[fingerprint(statement.content)],
            metadata=_metadata(statement, uids),
            internal=_internal(statement, derived),
            reasoner=rt.reasoner_for(choice.DERIVE).name,
            model=derived.spent.model,
            said_at=max(
                (sent[key] for key in statement.message_keys if key in sent), default=newest
            ),
            created_at=rt.clock(),
        )
        for statement in statements
    ]


def _metadata(statement: Statement, uids: Mapping[int, str]) -> JsonObject:
    """The source message of a fact, for generation 1. If there are several, the newest."""
    sources = [key for key in statement.message_keys if key in uids]
    return {"message_id": uids[max(sources)]} if sources else {}


def _internal(statement: Statement, derived: Derived) -> JsonObject:
    """The valid attributes of a statement. Filters call them `metadata`."""
    internal: JsonObject = {} if derived.prompt is None else {"prompt": derived.prompt}
    if statement.kind in STATEMENT_KINDS:
        internal["kind"] = statement.kind
    if statement.when is not None:
        internal["when"] = {"start": statement.when[0], "end": statement.when[1]}
    if statement.certainty in (HEDGED, HYPOTHETICAL):
        internal["certainty"] = statement.certainty
    if statement.basis == "confirmed":
        internal["basis"] = statement.basis
    return internal


def draft_for(draft: Conclusion, observer: Peer) -> Conclusion:
    """The draft of the observed peer, for another observer."""
    return (
        draft
        if draft.observer_key == observer.key
        else replace(draft, uid=new_uid(), observer_key=observer.key, observer=observer.slug)
    )


def _allowed(
    rt: Runtime, drafts: Sequence[Conclusion], observer: Peer, counts: Counter[str]
) -> set[str]:
    """Fingerprints of the drafts that the plugins allow for this observer."""
    allowed = {
        draft.fingerprint
        for draft in drafts
        if write_hooks.allows(rt.plugins, draft_for(draft, observer))
    }
    counts["refused"] += len(drafts) - len(allowed)
    return allowed
