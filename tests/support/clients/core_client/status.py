"""Background work, which all clients but the first can ask after."""

from __future__ import annotations

from support.clients.core_client.harness import EARLY, Caller, scenario


@scenario
async def background_work_is_counted(c: Caller) -> None:
    await c.say("talk", ("alice", "I live in Ulm."), ("bob", "I keep bees."))
    status = await c.settled()
    assert status.total_work_units == status.completed_work_units == 2
    assert [entry.total_work_units for entry in (status.sessions or {}).values()] == [2]
    assert (await c.status(session_id="talk")).total_work_units == 2
    of_one = {"peer_id": "alice"} if EARLY else {"observer_id": "alice"}
    assert (await c.status(**of_one)).total_work_units == 1
    more = (
        {"peer_id": "alice", "include_sender": True}
        if EARLY
        else {"observer_id": "alice", "sender_id": "bob"}
    )
    assert (await c.status(**more)).total_work_units == (1 if EARLY else 2)
    assert (await c.status(session_id="none")).total_work_units == 0
