"""Each kind of task is declared once, and has one handler."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from memservice.domain.records import Task
from memservice.pipeline.handler import Handler
from memservice.pipeline.registry import HANDLERS, handler_of
from memservice.services.tasks import kinds
from memservice.services.tasks.kinds import KINDS
from memservice.services.transfer import tasks

NOW = datetime(2024, 3, 1, tzinfo=UTC)
TASK = Task(
    uid="t",
    unit="",
    kind=kinds.INDEX,
    workspace_key=7,
    session_key=1,
    observer_key=2,
    observed_key=3,
    payload={"kind": "message", "endpoint": 4},
    not_before=NOW,
    created_at=NOW,
)


def test_every_declared_kind_has_one_handler() -> None:
    assert set(HANDLERS) == set(KINDS)
    assert all(isinstance(handler, Handler) for handler in HANDLERS.values())
    assert {name: handler.kind for name, handler in HANDLERS.items()} == {n: n for n in KINDS}


def test_every_kind_has_a_unit_of_a_kind_with_the_same_lane() -> None:
    for kind in KINDS.values():
        unit = kinds.unit_of(replace(TASK, kind=kind.name))
        owner = kinds.kind_of(unit)
        assert owner is not None
        assert owner.name == (kind.unit_of or kind.name)
        assert owner.lane == kind.lane == kinds.lane_of(unit)
        assert kinds.workspace_of(unit) == ("" if kind.of_store else "7")


def test_work_that_calls_a_model_never_shares_a_lane_with_other_work() -> None:
    model_lanes = {kind.lane for kind in KINDS.values() if kind.reasoning is not None}
    assert model_lanes == {kinds.MODEL, kinds.DREAMS}
    others = {kind.lane for kind in KINDS.values() if kind.reasoning is None}
    assert not model_lanes & others


def test_only_what_belongs_to_the_workspace_and_stays_valid_is_exported() -> None:
    assert set(KINDS) - set(tasks.MOVABLE) == {
        kinds.ERASE,
        kinds.REINDEX,
        kinds.REPAIR,
        kinds.REPACK,
    }


def test_a_unit_of_an_unknown_kind_is_maintenance() -> None:
    assert kinds.kind_of("levitate:7:1") is None
    assert kinds.lane_of("levitate:7:1") == kinds.LOCAL
    assert kinds.workspace_of("levitate:7:1") == "7"


def test_a_kind_without_a_handler_is_named_in_the_error() -> None:
    with pytest.raises(LookupError, match="no handler for tasks of kind 'levitate'"):
        handler_of("levitate")
