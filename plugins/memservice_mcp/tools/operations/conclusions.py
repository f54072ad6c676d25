"""Tools for conclusions and for background work."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memservice.domain.sizes import MAX_CONCLUSION, MAX_QUERY
from memservice.services import conclusions, dreams
from memservice.services.conclusions import ConclusionDraft
from memservice.services.dreams import DreamRequest
from memservice.services.paging import Paging
from memservice.services.tasks import queue_status
from memservice_mcp.context import ToolContext
from memservice_mcp.tool import Arguments, Effect, Result, Tool
from memservice_mcp.tools.listings import ListArguments, ListResult, counts_of
from memservice_mcp.tools.operations.shared import (
    MAX_ITEMS,
    Done,
    InWorkspace,
    Name,
    OptionalName,
)
from memservice_mcp.tools.shared import ConclusionItem, conclusions_of


class ListConclusionsArguments(InWorkspace, ListArguments):
    observer_id: OptionalName = None
    observed_id: OptionalName = None
    session_id: OptionalName = None


class ConclusionsResult(ListResult):
    conclusions: list[ConclusionItem]


def list_conclusions(
    context: ToolContext, arguments: ListConclusionsArguments
) -> ConclusionsResult:
    named = {
        "observer_id": arguments.observer_id,
        "observed_id": arguments.observed_id,
        "session_id": arguments.session_id,
    }
    filters = {name: value for name, value in named.items() if value is not None}
    page = conclusions.page(
        context.rt,
        context.principal,
        arguments.workspace(context),
        filters or None,
        Paging(arguments.page, arguments.size),
    )
    return ConclusionsResult(conclusions=conclusions_of(page.items), **counts_of(page))


class QueryArguments(InWorkspace):
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY)]
    observer_id: OptionalName = None
    observed_id: OptionalName = None
    top_k: Annotated[int, Field(ge=1, le=100)] = 10


class QueryResult(Result):
    conclusions: list[ConclusionItem] = Field(description="Best first.")


def query_conclusions(context: ToolContext, arguments: QueryArguments) -> QueryResult:
    observer = arguments.observer_id or context.peer
    hits = conclusions.query(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.query,
        arguments.top_k,
        filters={"observer": observer, "observed": arguments.observed_id or observer},
    )
    return QueryResult(conclusions=conclusions_of(hits))


class ConclusionArguments(Arguments):
    content: Annotated[str, Field(min_length=1, max_length=MAX_CONCLUSION)]
    observer_id: Annotated[str, Field(min_length=1, description="The peer that knows it.")]
    observed_id: Annotated[str, Field(min_length=1, description="The peer that it is about.")]
    session_id: OptionalName = None


class CreateConclusionsArguments(InWorkspace):
    conclusions: Annotated[list[ConclusionArguments], Field(min_length=1, max_length=MAX_ITEMS)]


class CreateConclusionsResult(Result):
    ids: list[str]


def create_conclusions(
    context: ToolContext, arguments: CreateConclusionsArguments
) -> CreateConclusionsResult:
    rows = conclusions.create(
        context.rt,
        context.principal,
        arguments.workspace(context),
        [
            ConclusionDraft(item.content, item.observer_id, item.observed_id, item.session_id)
            for item in arguments.conclusions
        ],
    )
    return CreateConclusionsResult(ids=[row.uid for row in rows])


class DeleteConclusionArguments(InWorkspace):
    conclusion_id: Name


def delete_conclusion(context: ToolContext, arguments: DeleteConclusionArguments) -> Done:
    conclusions.delete(
        context.rt, context.principal, arguments.workspace(context), arguments.conclusion_id
    )
    return Done()


class DreamArguments(InWorkspace):
    observer_id: OptionalName = None
    observed_id: OptionalName = None
    session_id: OptionalName = None
    dream_type: Literal["omni", "card_refresh"] = dreams.OMNI


class DreamResult(Result):
    scheduled: bool = Field(
        description="False: the same dream waits already, or there is nothing to consolidate."
    )


def schedule_dream(context: ToolContext, arguments: DreamArguments) -> DreamResult:
    request = DreamRequest(
        arguments.observer_id or context.peer,
        arguments.dream_type,
        arguments.observed_id,
        arguments.session_id,
    )
    scheduled = dreams.schedule(
        context.rt, context.principal, arguments.workspace(context), request
    )
    return DreamResult(scheduled=scheduled)


class QueueArguments(InWorkspace):
    observer_id: OptionalName = None
    sender_id: OptionalName = None
    session_id: OptionalName = None


class QueueResult(Result):
    """Numbers of tasks."""

    total: int
    completed: int
    in_progress: int
    pending: int


def get_queue_status(context: ToolContext, arguments: QueueArguments) -> QueueResult:
    counts = queue_status.status(
        context.rt,
        context.principal,
        arguments.workspace(context),
        arguments.observer_id,
        arguments.sender_id,
        arguments.session_id,
    )
    return QueueResult(
        total=counts.total,
        completed=counts.completed,
        in_progress=counts.in_progress,
        pending=counts.pending,
    )


TOOLS = (
    Tool(
        "list_conclusions",
        "List conclusions",
        "List stored statements about peers, newest first.",
        ListConclusionsArguments,
        ConclusionsResult,
        list_conclusions,
    ),
    Tool(
        "query_conclusions",
        "Query conclusions",
        "Find the conclusions of one peer about another, or about itself, that fit a text best.",
        QueryArguments,
        QueryResult,
        query_conclusions,
    ),
    Tool(
        "create_conclusions",
        "Create conclusions",
        "Store up to 100 conclusions, all or none. The peers and sessions must exist.",
        CreateConclusionsArguments,
        CreateConclusionsResult,
        create_conclusions,
        Effect.ADDS,
    ),
    Tool(
        "delete_conclusion",
        "Delete a conclusion",
        "Delete a conclusion for good. `forget` can be undone, this cannot.",
        DeleteConclusionArguments,
        Done,
        delete_conclusion,
        Effect.CHANGES,
        is_idempotent=True,
    ),
    Tool(
        "schedule_dream",
        "Schedule a dream",
        "Consolidate the conclusions about a peer in the background.",
        DreamArguments,
        DreamResult,
        schedule_dream,
        Effect.CHANGES,
    ),
    Tool(
        "get_queue_status",
        "Get the queue status",
        "Count the background work of a workspace.",
        QueueArguments,
        QueueResult,
        get_queue_status,
    ),
)
