"""Budgets of workspaces that owners and operators set at the console."""

from __future__ import annotations

import pytest

from memservice.domain.errors import InvalidInput, NotFound
from memservice.domain.records import Fact, Usage
from memservice.runtime import Runtime
from memservice.services import deletion, workspaces
from memservice.services.auth.principal import Principal
from memservice.services.usage import budget, budget_overrides, report
from memservice.services.usage.budget_overrides import Override
from support.services.console import Open

ADMIN = Principal(admin=True)


def limit_of(rt: Runtime, workspace_id: str = "w") -> int | None:
    budget_row = report.of_workspace(rt, ADMIN, workspace_id, 1).budget
    return None if budget_row is None else budget_row.daily_tokens


@pytest.fixture
def rt(open_runtime: Open) -> Runtime:
    rt = open_runtime(BUDGET_DAILY_TOKENS="100", BUDGET_WORKSPACES='{"v": 7}')
    for slug in ("v", "w"):
        workspaces.get_or_create(rt, ADMIN, slug, None, None)
    return rt


def test_an_override_goes_before_the_settings(rt: Runtime) -> None:
    assert (limit_of(rt), limit_of(rt, "v")) == (100, 7)
    budget_overrides.set_override(rt, ADMIN, "w", Override(5))
    budget_overrides.set_override(rt, ADMIN, "v", Override(None))
    assert (limit_of(rt), limit_of(rt, "v")) == (5, None)
    budget_overrides.set_override(rt, ADMIN, "w", Override(0))
    assert limit_of(rt) == 0
    for slug in ("v", "w"):
        budget_overrides.set_override(rt, ADMIN, slug, None)
    assert (limit_of(rt), limit_of(rt, "v")) == (100, 7)


def test_an_override_pauses_work_without_any_setting(open_runtime: Open) -> None:
    rt = open_runtime()
    workspace, _ = workspaces.get_or_create(rt, ADMIN, "w", None, None)
    row = Usage(
        workspace_key=workspace.key,
        day=rt.clock().date().isoformat(),
        task="t",
        provider="p",
        model="m",
        input_tokens=10,
        outcome="success",
        created_at=rt.clock(),
    )
    rt.storage.write(lambda tx: tx.usage.add([row]))
    assert budget.paused_until(rt, workspace.key) is None
    budget_overrides.set_override(rt, ADMIN, "w", Override(10))
    assert budget.paused_until(rt, workspace.key) is not None
    budget_overrides.set_override(rt, ADMIN, "w", Override(11))
    assert budget.paused_until(rt, workspace.key) is None


@pytest.mark.every_storage("sqlite")
def test_other_processes_follow_within_seconds(
    open_runtime: Open, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rt.storage.name == "memory":
        pytest.skip("a store in memory belongs to one process")
    other = open_runtime(BUDGET_DAILY_TOKENS="100")
    assert limit_of(other) == 100
    budget_overrides.set_override(rt, ADMIN, "w", Override(5))
    monkeypatch.setattr(budget, "FRESH_SECONDS", -1.0)
    assert limit_of(other) == 5


def test_an_override_ends_with_its_workspace(rt: Runtime) -> None:
    budget_overrides.set_override(rt, ADMIN, "w", Override(5))
    deletion.delete_workspace(rt, ADMIN, "w")
    workspaces.get_or_create(rt, ADMIN, "w", None, None)
    assert limit_of(rt) == 100
    with rt.storage.read() as tx:
        facts = tx.rows.page(Fact)
    assert not [fact for fact in facts if fact.name.startswith(budget_overrides.PREFIX)]


@pytest.mark.parametrize("tokens", [-1, 2**63])
def test_a_number_out_of_range_changes_nothing(rt: Runtime, tokens: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        budget_overrides.set_override(rt, ADMIN, "w", Override(tokens))
    assert [problem.loc for problem in caught.value.problems] == [("daily_tokens",)]
    with pytest.raises(NotFound):
        budget_overrides.set_override(rt, ADMIN, "none", Override(1))
    assert limit_of(rt) == 100
