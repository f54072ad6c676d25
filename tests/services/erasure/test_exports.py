"""An export while an erasure is not finished."""

from __future__ import annotations

import pytest

from memservice.domain.errors import Conflict
from memservice.services.erasure import messages, peers, positions
from memservice.services.transfer import export
from memservice.worker.polling import Worker
from support.services.services import ME, WORKSPACE, Services


def exported(services: Services) -> str:
    return b"".join(export.lines(services.rt, WORKSPACE)).decode()


def test_a_workspace_is_exported_when_a_peer_is_erased(services: Services) -> None:
    services.say("talk", ("alice", "I live in Oslo."), ("bob", "I am Bob."))
    Worker(services.rt).run_until_idle()
    peers.erase(services.rt, ME, WORKSPACE, "alice")
    with pytest.raises(Conflict, match="erasures list -w w"):
        exported(services)
    with pytest.raises(Conflict):
        export.download(services.rt, ME, WORKSPACE)
    Worker(services.rt).run_until_idle()
    assert "Oslo" not in exported(services)
    assert "I am Bob." in exported(services)


def test_a_workspace_is_exported_when_positions_are_closed(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_rows = services.say("talk", *[("alice", f"Number {number}.") for number in range(5)])
    monkeypatch.setattr(positions, "BATCH_SIZE", 2)
    messages.delete(services.rt, ME, WORKSPACE, "talk", message_rows[0].uid)
    with pytest.raises(Conflict):
        exported(services)
    Worker(services.rt).run_until_idle()
    assert "Number 4." in exported(services)
