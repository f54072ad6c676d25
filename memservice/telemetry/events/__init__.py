"""Events for operators: one frozen record per type. Its fields are exactly those sent as `data`.

Emit an event with `rt.emit(event)`, after the commit of the change that it reports. None stands for
a value that is unknown or does not apply; a field without a default is never None.
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
    ErasureCompleted,
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
    "ErasureCompleted",
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
    ErasureCompleted,
    SyncVectorsCompleted,
    CleanupStaleItemsCompleted,
    LlmCallCompleted,
    EmbeddingCallCompleted,
    LlmCallTraced,
    EmbeddingCallTraced,
    TraceContent,
)
"""All types of events."""
