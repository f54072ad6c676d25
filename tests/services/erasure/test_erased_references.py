"""Which lines of a file are left out because of rows that are."""

from __future__ import annotations

import pytest

from memservice.domain import records as r
from memservice.services.transfer import record_formats
from memservice.services.transfer.erased_references import LeftOut


@pytest.mark.parametrize(("field", "record"), [("peer", r.Peer), ("session", r.Session)])
def test_keys_of_peers_and_sessions_that_are_left_out(field: str, record: type) -> None:
    (record_format,) = [one for one in record_formats.ROWS if one.record is record]
    left_out = LeftOut()
    left_out.add(record_format, {"uid": "u-1", "slug": "gone"})
    key = {"peer": "stays", "session": "stays"}
    assert not left_out.refers(record_formats.KEY, key)
    assert left_out.refers(record_formats.KEY, key | {field: "gone"})
