"""Conclusions: statements of one peer (the observer) about another (the observed)."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Response
from msgspec.structs import astuple

from memservice.api.answers import json_answer
from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.explaining import (
    HEADERS,
    encode_conclusion,
    encode_explanation,
    respond_explained,
)
from memservice.api.v3.schemas import conclusions as schemas
from memservice.api.v3.schemas.explanations import ExplainedConclusion
from memservice.api.v3.schemas.queries import ConclusionGet, ConclusionsQuery
from memservice.domain.records import Conclusion
from memservice.services import conclusions, corrections, history, supersession
from memservice.services.conclusions import ConclusionDraft, QueryOptions, Shown
from memservice.services.history import History, Version
from memservice.services.paging import Page

routes = Routes("conclusions", "Statements about peers.")

_CONCLUSIONS = "/v3/workspaces/<workspace_id>/conclusions"
_CONCLUSION = _CONCLUSIONS + "/<conclusion_id>"
_OWN = RouteAccess(workspace="workspace_id")


@routes.operation(
    "POST",
    _CONCLUSIONS,
    access=_OWN,
    body=schemas.ConclusionBatchCreate,
    large=True,
    answer=schemas.Conclusion,
    many=True,
    status=(201,),
)
def create_conclusions(call: Call, workspace_id: str) -> Sequence[Conclusion]:
    """Store up to 100 conclusions, all or none

    The workspace, the peers and the session must exist.
    """
    drafts = [
        ConclusionDraft(
            content=draft["content"],
            observer=draft["observer_id"],
            observed=draft["observed_id"],
            session=draft["session_id"],
        )
        for draft in call.body["conclusions"]
    ]
    return conclusions.create(call.rt, call.principal, workspace_id, drafts)


@routes.operation(
    "POST",
    _CONCLUSIONS + "/list",
    reads=True,
    access=_OWN,
    query=ConclusionsQuery,
    body=ConclusionGet,
    body_optional=True,
    answer=page_of(schemas.SourcedConclusion),
)
def list_conclusions(call: Call, workspace_id: str) -> Page[Version]:
    """List a workspace's conclusions, newest first

    With `include=superseded`, also conclusions that a newer one, or a dream, has replaced. With
    `as_of`, the conclusions that were live at that time. With `include_messages`, each names the
    messages that it rests on.
    """
    selection = Shown(superseded=call.query["include"] == "superseded", as_of=call.query["as_of"])
    page = conclusions.page(
        call.rt, call.principal, workspace_id, call.body["filters"], paging(call.query), selection
    )
    items = history.versions(call.rt, page.items, include_messages=call.query["include_messages"])
    return Page(items, page.total, page.page, page.size)


@routes.operation(
    "POST",
    _CONCLUSIONS + "/query",
    reads=True,
    access=_OWN,
    body=schemas.ConclusionQuery,
    answer=ExplainedConclusion,
    many=True,
    answer_headers=HEADERS,
)
def query_conclusions(call: Call, workspace_id: str) -> Response:
    """Find the conclusions nearest to a text

    `filters` must name observer and observed. Nearest first. With `as_of`, among the conclusions
    that were live at that time. With `explain`, each has the parts of its score.
    """
    body, path = call.body, {"workspace_id": workspace_id}
    options = QueryOptions(
        body["query"], body["top_k"], body["distance"], body["filters"], body["as_of"]
    )
    if not body["explain"]:
        rows = conclusions.query(call.rt, call.principal, workspace_id, *astuple(options))
        return json_answer(
            [encode_conclusion(row, path) for row in history.versions(call.rt, rows)]
        )
    result = conclusions.explain(call.rt, call.principal, workspace_id, options)
    versions = history.versions(call.rt, result.rows)
    return respond_explained(result, versions, encode_conclusion, encode_explanation, path)


@routes.operation("GET", _CONCLUSION, access=_OWN, answer=schemas.Conclusion)
def get_conclusion(call: Call, workspace_id: str, conclusion_id: str) -> Conclusion:
    """Get a conclusion"""
    return conclusions.get(call.rt, call.principal, workspace_id, conclusion_id)


@routes.operation(
    "PUT",
    _CONCLUSION,
    access=_OWN,
    body=schemas.ConclusionCorrection,
    large=True,
    answer=schemas.Conclusion,
)
def correct_conclusion(call: Call, workspace_id: str, conclusion_id: str) -> Conclusion:
    """Correct the text of a conclusion

    A new conclusion, made by the caller, replaces it: the answer is the new one. The old one is
    superseded, and can be restored.
    """
    return corrections.correct(
        call.rt, call.principal, workspace_id, conclusion_id, call.body["content"]
    )


@routes.operation("GET", _CONCLUSION + "/history", access=_OWN, answer=schemas.ConclusionHistory)
def get_conclusion_history(call: Call, workspace_id: str, conclusion_id: str) -> History:
    """Get the versions of a conclusion, oldest first

    These are the newest version and all conclusions that it replaced, directly or not. The answer
    is the same for the id of each of them.
    """
    return history.of_conclusion(call.rt, call.principal, workspace_id, conclusion_id)


@routes.operation(
    "POST",
    _CONCLUSION + "/invalidate",
    access=_OWN,
    body=schemas.ConclusionInvalidation,
    body_optional=True,
    answer=schemas.ListedConclusion,
)
def invalidate_conclusion(call: Call, workspace_id: str, conclusion_id: str) -> Version:
    """Take a conclusion back without a successor

    It is superseded, and can be restored. One that is superseded already stays as it is.
    """
    row = corrections.invalidate(
        call.rt, call.principal, workspace_id, conclusion_id, call.body["reason"]
    )
    return history.versions(call.rt, [row])[0]


@routes.operation("POST", _CONCLUSION + "/restore", access=_OWN, answer=schemas.Conclusion)
def restore_conclusion(call: Call, workspace_id: str, conclusion_id: str) -> Conclusion:
    """Make a superseded conclusion live again

    If a live conclusion of the same observer, observed and level has the same text, the answer is
    that one, and the other one stays superseded by it.
    """
    return supersession.restore(call.rt, call.principal, workspace_id, conclusion_id)


@routes.operation("DELETE", _CONCLUSION, access=_OWN, status=(204,))
def delete_conclusion(call: Call, workspace_id: str, conclusion_id: str) -> None:
    """Delete a conclusion, live or superseded"""
    conclusions.delete(call.rt, call.principal, workspace_id, conclusion_id)
