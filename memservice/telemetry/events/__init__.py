"""Events for operators: one frozen record per type, its fields exactly those that go out as `data`.

Emit one with `rt.emit(event)`, after the commit of what it tells of. None is a value that is not
known or does not apply; a field with no default is always known.
"""

from memservice.telemetry.events.agent import (
    AgentIteration,
    AgentToolCallCompleted,
    ConclusionsCreated,
    ConclusionsDeleted,
    PeerCardUpdated,
    SummaryCreated,
)
from memservice.telemetry.events.api import ContextRetrieved, FileUploaded, MessageCreated
from memservice.telemetry.events.base import Event
from memservice.telemetry.events.calls import (
    EmbeddingCallCompleted,
    EmbeddingCallTraced,
    LlmCallCompleted,
    LlmCallTraced,
    TraceContent,
)
from memservice.telemetry.events.work import (
    CleanupStaleItemsCompleted,
    DeletionCompleted,
    DialecticCompleted,
    DreamRun,
    DreamSpecialist,
    RepresentationCompleted,
    SyncVectorsCompleted,
)

__all__ = [
    "TYPES",
    "AgentIteration",
    "AgentToolCallCompleted",
    "CleanupStaleItemsCompleted",
    "ConclusionsCreated",
    "ConclusionsDeleted",
    "ContextRetrieved",
    "DeletionCompleted",
    "DialecticCompleted",
    "DreamRun",
    "DreamSpecialist",
    "EmbeddingCallCompleted",
    "EmbeddingCallTraced",
    "Event",
    "FileUploaded",
    "LlmCallCompleted",
    "LlmCallTraced",
    "MessageCreated",
    "PeerCardUpdated",
    "RepresentationCompleted",
    "SummaryCreated",
    "SyncVectorsCompleted",
    "TraceContent",
]

TYPES: tuple[type[Event], ...] = (
    MessageCreated,
    FileUploaded,
    ContextRetrieved,
    RepresentationCompleted,
    DialecticCompleted,
    DreamRun,
    DreamSpecialist,
    AgentIteration,
    AgentToolCallCompleted,
    ConclusionsCreated,
    ConclusionsDeleted,
    PeerCardUpdated,
    SummaryCreated,
    DeletionCompleted,
    SyncVectorsCompleted,
    CleanupStaleItemsCompleted,
    LlmCallCompleted,
    EmbeddingCallCompleted,
    LlmCallTraced,
    EmbeddingCallTraced,
    TraceContent,
)
"""Every kind of event there is."""
