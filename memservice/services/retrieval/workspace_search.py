"""Search all messages and conclusions of a workspace, with the parts of each score."""

from __future__ import annotations

from msgspec import Struct

from memservice.domain.records import Conclusion, Message
from memservice.runtime import Runtime
from memservice.services import visibility, workspaces
from memservice.services.auth import policy
from memservice.services.auth.bounds import bounds_for
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.retrieval.explain import (
    Explained,
    Narrowing,
    count_conclusions,
    count_messages,
    explained,
)
from memservice.services.retrieval.search import Search
from memservice.services.retrieval.trace import Trace


class WorkspaceSearch(Struct, frozen=True):
    messages: Explained[Message]
    conclusions: Explained[Conclusion]


def explain(
    rt: Runtime, principal: Principal, workspace_id: str, text: str, limit: int = 10
) -> WorkspaceSearch:
    """The best messages and conclusions of the workspace. Raises `NotFound`."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    lookup = Search.begin(rt, workspace_id, text)
    of_messages, of_conclusions = Trace(), Trace()
    k = rt.settings.search.fusion_k
    with rt.storage.read() as tx:
        workspace, is_erasing = workspaces.require_for_reading(tx, workspace_id)
        bounds = bounds_for(tx, principal, workspace, is_erasing=is_erasing)
        visible = bounds.with_messages(visibility.visible(tx, workspace.key))
        messages = lookup.messages(tx, visible, limit, of_messages)
        hits = lookup.conclusions(tx, bounds, limit, trace=of_conclusions)
        conclusions = [hit.conclusion for hit in hits]
        message_counts = count_messages(tx, Narrowing(visible, {}), of_messages, len(messages))
        conclusion_counts = count_conclusions(
            tx, Narrowing(bounds, {}), of_conclusions, len(conclusions), has_distance=False
        )
    return WorkspaceSearch(
        explained(messages, of_messages, k, message_counts),
        explained(conclusions, of_conclusions, k, conclusion_counts),
    )
