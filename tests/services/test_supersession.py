"""A conclusion is superseded only as it was read."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import LIVE, SUPERSEDED, Conclusion
from memservice.services import supersession
from memservice.services.supersession import Supersession
from services.conftest import OpenServices


@pytest.mark.parametrize(
    "change",
    [{}, {"fingerprint": "of another text"}, {"restored_at": "now"}, {"state": SUPERSEDED}],
    ids=["unchanged", "corrected", "restored", "superseded"],
)
def test_a_conclusion_that_changed_since_it_was_read_stays(
    open_services: OpenServices, change: dict[str, Any]
) -> None:
    services = open_services()
    services.peer("ann")
    (old,) = services.conclude("ann", "ann", "likes tea")
    if "restored_at" in change:
        change = {"restored_at": services.rt.clock()}
    step = Supersession(old, None, "outdated")

    def supersede(tx: Any) -> list[Supersession]:
        if change:
            tx.rows.change(Conclusion, equals(key=old.key), **change)
        return supersession.supersede(services.rt, tx, old.workspace_key, [step])

    steps = services.rt.storage.write(supersede)
    with services.rt.storage.read() as tx:
        row = tx.rows.get(Conclusion, equals(key=old.key))
    assert steps == ([] if change else [step])
    assert row is not None
    assert row.superseded_at == (None if change else services.rt.clock())
    assert row.state == change.get("state", LIVE if change else SUPERSEDED)
