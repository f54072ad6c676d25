"""What test processes share is the same as what each store and plugin manager would compute."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pluggy
import pytest

from memservice import hookspecs
from memservice.hookspecs import hookimpl
from support.stores.sqlite_store import migrated


@pytest.mark.slow
def test_stores_share_statements(tmp_path: Path) -> None:
    first, second = (migrated(tmp_path / f"{number}.db") for number in range(2))
    assert second.statements is first.statements
    assert second._store is not first._store
    assert second._store.dialect is second._dialect
    first.close()
    second.close()


@pytest.mark.slow
def test_a_test_may_have_statements_of_its_own(tmp_path: Path, own_statements: None) -> None:
    first, second = (migrated(tmp_path / f"{number}.db") for number in range(2))
    assert second.statements is not first.statements
    first.close()
    second.close()


def test_a_hook_that_a_test_replaces_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    @hookimpl
    def memservice_reasoners() -> list[str]:
        return ["first"]

    @hookimpl
    def replacement() -> list[str]:
        return ["second"]

    module = ModuleType("of_this_test")
    vars(module)["memservice_reasoners"] = memservice_reasoners

    def reasoners() -> list[str]:
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        manager.register(module)
        return [name for names in manager.hook.memservice_reasoners() for name in names]

    assert reasoners() == ["first"]
    monkeypatch.setattr(module, "memservice_reasoners", replacement)
    assert reasoners() == ["second"]
    monkeypatch.setattr(module, "memservice_reasoners", lambda: ["none"])
    assert reasoners() == []
