"""Kinds of background tasks, each declared once. Every other list of kinds is derived from these
records; `memservice.pipeline.registry` names the handler of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from memservice.domain import records as r
from memservice.domain.records import Task
from memservice.reasoning import choice
from memservice.services.transfer.record_formats import SPACED

REPRESENTATION, SUMMARY, DREAM = "representation", "summary", "dream"
DREAM_TIMER = "dream_timer"
CARD = "card"
EMBED, DELETE_VECTORS, REPAIR = "embed", "forget", "mend"
INDEX, REINDEX = "index", "reindex"
SCOPE_BACKFILL, SCOPE_REMOVAL = "scope_backfill", "scope_removal"
WEBHOOK = "webhook"
REPACK = "repack"
ERASE = "erase"

MODEL, DREAMS, VECTORS, LOCAL, DELIVERIES = "model", "dreams", "vectors", "local", "deliveries"
LANES = (MODEL, DREAMS, VECTORS, LOCAL, DELIVERIES)
"""A worker has separate threads for work that waits on language models, on embedders and
vector indexes, on webhook endpoints, and on nothing outside. Dreams use threads of `model`."""

INGEST_QUEUE, SUMMARY_QUEUE, WEBHOOK_QUEUE, DREAM_QUEUE, MAINTENANCE_QUEUE = (
    "ingest",
    "summary",
    "webhook",
    "dream",
    "maintenance",
)
QUEUES = (INGEST_QUEUE, SUMMARY_QUEUE, WEBHOOK_QUEUE, DREAM_QUEUE, MAINTENANCE_QUEUE)
"""Queues of RQ workers, the most urgent first."""

Payload = Mapping[str, Any]


class TaskKind(Struct, frozen=True):
    """One kind of task."""

    name: str
    unit: Callable[[Task], tuple[object, ...]]
    """Tasks with the same value run one after the other. The first item is the key of the
    workspace, except where `of_store` is set."""
    unit_of: str | None = None
    """The kind whose units this one shares, because it reverses the effect of that kind."""
    lane: str = LOCAL
    queue: str = MAINTENANCE_QUEUE
    reasoning: str | None = None
    """The reasoner's task that it needs (`memservice.reasoning.choice`); a reasoner can be
    costly."""
    batches: bool = False
    """Whether its tasks wait for a batch (`services.tasks.batching`)."""
    in_queue_status: bool = False
    """Whether it counts in the queue status; other kinds are internal."""
    reports_empty: bool = False
    """A webhook event reports the end of its last pending task."""
    references: Callable[[Payload], Mapping[str, type[Any]]] | None = None
    """Payload → its entries with row keys (one, or a list), each with the record type. None: the
    task is not exported."""
    of_rows: bool = False
    """The payload's `kind` names the kind of its rows."""
    texts: tuple[str, ...] = ()
    """Text entries that the payload must have."""
    of_store: bool = False
    """It belongs to no workspace."""


def _of_session_peer(task: Task) -> tuple[object, ...]:
    return task.workspace_key, task.session_key, task.observed_key


def _of_pair(task: Task) -> tuple[object, ...]:
    return task.workspace_key, task.observer_key, task.observed_key


def _of_space(task: Task) -> tuple[object, ...]:
    return task.workspace_key, task.payload["kind"]


def _of_scope_session(task: Task) -> tuple[object, ...]:
    return task.workspace_key, task.observer_key, task.session_key


def _rows_of_space(payload: Payload) -> Mapping[str, type[Any]]:
    return dict.fromkeys(("keys", "like"), SPACED[payload["kind"]])


_DECLARED = (
    TaskKind(
        REPRESENTATION,
        _of_session_peer,
        lane=MODEL,
        queue=INGEST_QUEUE,
        reasoning=choice.DERIVE,
        batches=True,
        in_queue_status=True,
        reports_empty=True,
        references=lambda payload: {"observers": r.Peer},
    ),
    TaskKind(
        SUMMARY,
        lambda task: (task.workspace_key, task.session_key),
        lane=MODEL,
        queue=SUMMARY_QUEUE,
        reasoning=choice.SUMMARIZE,
        in_queue_status=True,
        reports_empty=True,
        references=lambda payload: {},
    ),
    # Clients that wait for the queue do not wait for cards.
    TaskKind(
        CARD,
        _of_pair,
        lane=MODEL,
        queue=INGEST_QUEUE,
        reasoning=choice.DERIVE,
        references=lambda payload: {},
    ),
    # Dreams of one pair, of any type, share a unit: two of them never run at the same time.
    TaskKind(
        DREAM,
        _of_pair,
        lane=DREAMS,
        queue=DREAM_QUEUE,
        reasoning=choice.CONSOLIDATE,
        in_queue_status=True,
        references=lambda payload: {"session": r.Session},
    ),
    # Waits until a pair of peers is quiet, then makes a dream due. A kind of its own, because
    # clients that wait for the queue must not wait for a timer.
    TaskKind(DREAM_TIMER, _of_pair, queue=DREAM_QUEUE, references=lambda payload: {}),
    TaskKind(
        EMBED,
        _of_space,
        lane=VECTORS,
        queue=INGEST_QUEUE,
        references=_rows_of_space,
        of_rows=True,
    ),
    TaskKind(
        INDEX,
        lambda task: (task.workspace_key,),
        queue=INGEST_QUEUE,
        references=lambda payload: {"keys": r.Message},
    ),
    # A unit of its own, so that new messages do not wait until all old ones are indexed again.
    TaskKind(REINDEX, lambda task: (task.workspace_key,)),
    TaskKind(
        DELETE_VECTORS,
        _of_space,
        unit_of=EMBED,
        lane=VECTORS,
        references=_rows_of_space,
        of_rows=True,
    ),
    TaskKind(REPAIR, _of_space, unit_of=EMBED, lane=VECTORS),
    TaskKind(
        SCOPE_BACKFILL,
        _of_scope_session,
        references=lambda payload: {"through": r.Conclusion, "touched": r.Peer},
    ),
    TaskKind(
        SCOPE_REMOVAL,
        _of_scope_session,
        unit_of=SCOPE_BACKFILL,
        references=lambda payload: {"touched": r.Peer},
    ),
    TaskKind(
        WEBHOOK,
        lambda task: (task.workspace_key, task.payload["endpoint"]),
        lane=DELIVERIES,
        queue=WEBHOOK_QUEUE,
        references=lambda payload: {"endpoint": r.WebhookEndpoint},
        texts=("endpoint", "event_uid", "event", "body"),
    ),
    TaskKind(REPACK, lambda task: (task.workspace_key, task.session_key)),
    TaskKind(ERASE, lambda task: next(iter(task.payload.items())), of_store=True),
)

KINDS: Mapping[str, TaskKind] = {kind.name: kind for kind in _DECLARED}
"""By name."""

IN_QUEUE_STATUS = tuple(kind.name for kind in _DECLARED if kind.in_queue_status)


def unit_of(task: Task) -> str:
    """The work unit of a task, from the resources that it works on."""
    kind = KINDS[task.kind]
    return ":".join(map(str, (kind.unit_of or kind.name, *kind.unit(task))))


def kind_of(unit: str) -> TaskKind | None:
    """The kind that names a unit; None for a unit of an unknown kind."""
    return KINDS.get(unit.partition(":")[0])


def workspace_of(unit: str) -> str:
    """The part of a unit that decides whose turn it is: the key of its workspace, or "" for work on
    the store itself."""
    name, *about = unit.split(":")
    kind = KINDS.get(name)
    return "" if not about or (kind is not None and kind.of_store) else about[0]


def lane_of(unit: str) -> str:
    kind = kind_of(unit)
    return LOCAL if kind is None else kind.lane
