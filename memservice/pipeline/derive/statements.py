"""The statements of a batch: the reasoner derives them, and those that the observed peer did not
make itself are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from memservice.domain.ids import fingerprint
from memservice.pipeline.derive.attribution import attributed
from memservice.pipeline.derive.context import Confinement
from memservice.pipeline.derive.echo import EchoGuard
from memservice.pipeline.derive.inputs import DeriveInput
from memservice.runtime import Runtime
from memservice.spi.reasoner import DeriveContext, Derived, DeriveRequest, Reasoner, Statement
from memservice.spi.storage import Transaction


def derive(
    reasoner: Reasoner, request: DeriveRequest, session: str, counts: Counter[str]
) -> Derived:
    """The derived statements. If a statement contains information that only the card or another
    session has, its messages are derived again without that context. Counts the results."""
    derived = reasoner.derive(request)
    confinement = Confinement(request, session)
    if keys := confinement.broken_by(derived.statements):
        again = reasoner.derive(confinement.request_for(request, keys))
        derived = _merged(derived, again, keys)
        counts["derived_again"] = len(keys)
    counts.update(statements=len(derived.statements), stored=0, reinforced=0)
    if not derived.statements:
        counts["derived_nothing"] = 1
    if derived.refused:
        counts["refused"] = len(derived.refused)
    if derived.unfinished:
        counts["unfinished"] = len(derived.unfinished)
    return derived


def _merged(derived: Derived, again: Derived, keys: set[int]) -> Derived:
    """`again` replaces the statements from the messages with these keys."""
    unaffected = [item for item in derived.statements if not keys.intersection(item.message_keys)]
    return replace(
        derived,
        statements=[*unaffected, *again.statements],
        spent=derived.spent + again.spent,
        scaffold_tokens=derived.scaffold_tokens + again.scaffold_tokens,
        refused=(*derived.refused, *again.refused),
        unfinished=(*derived.unfinished, *again.unfinished),
    )


def of_observed(
    derive_input: DeriveInput,
    request: DeriveRequest,
    statements: Sequence[Statement],
    counts: Counter[str],
) -> list[Statement]:
    """The statements that the observed peer made in its messages."""
    own, counts["misattributed"] = attributed(
        statements,
        derive_input.messages,
        derive_input.window,
        derive_input.names_of_observed,
        _texts(request.context),
    )
    return own


def without_echoes(
    rt: Runtime,
    tx: Transaction,
    derive_input: DeriveInput,
    statements: Sequence[Statement],
    counts: Counter[str],
) -> list[Statement]:
    echoes = EchoGuard(rt, tx, derive_input.session, derive_input.observed)
    new = echoes.new(statements, derive_input.messages)
    counts["echo"] = len(statements) - len(new)
    return new


def times(statements: Sequence[Statement]) -> Counter[str]:
    """Fingerprint → number of messages, or groups of messages, with that statement. The size of a
    batch does not change it."""
    occurrences = {
        (fingerprint(statement.content.strip()), statement.message_keys) for statement in statements
    }
    return Counter(mark for mark, _ in occurrences)


def distinct(statements: Sequence[Statement], counts: Counter[str]) -> list[Statement]:
    """Each statement once, in its first wording, with all its messages."""
    unique: dict[str, Statement] = {}
    for statement in statements:
        content = statement.content.strip()
        if not content:
            continue
        first = unique.setdefault(
            fingerprint(content), replace(statement, content=content, message_keys=())
        )
        sources = dict.fromkeys((*first.message_keys, *statement.message_keys))
        replaced = dict.fromkeys((*first.replaces, *statement.replaces))
        outdated = dict.fromkeys((*first.outdates, *statement.outdates))
        unique[fingerprint(content)] = replace(
            first,
            message_keys=tuple(sources),
            replaces=tuple(replaced),
            outdates=tuple(outdated),
        )
    counts["repeated"] = len(statements) - len(unique)
    return list(unique.values())


def _texts(context: DeriveContext) -> list[str]:
    """All stored texts of a context."""
    summary = [] if context.summary is None else [context.summary]
    return [*summary, *context.card, *(item.content for item in context.held)]
