"""Keys, which all clients but the last can make."""

from __future__ import annotations

import honcho_core  # type: ignore[import-not-found]  # installed in the clients' own environments only

from support.clients.core_client.harness import Caller, scenario


@scenario
async def keys_open_what_they_name(c: Caller) -> None:
    await c.workspaces.get_or_create(id=c.workspace)
    key = await c.api.keys.create(workspace_id=c.workspace, expires_at="2999-01-01T00:00:00Z")
    narrow = c.with_key(key["key"])
    assert (await narrow.workspaces.get_or_create(id=c.workspace)).id == c.workspace
    assert (await narrow.workspaces.peers.get_or_create(**c.own, id="alice")).id == "alice"
    await c.raises(honcho_core.AuthenticationError, narrow.workspaces.list())
    await c.raises(
        honcho_core.AuthenticationError, narrow.workspaces.get_or_create(id=f"{c.workspace}-other")
    )
    of_peer = c.with_key(
        (await c.api.keys.create(workspace_id=c.workspace, peer_id="alice"))["key"]
    )
    assert (
        await of_peer.workspaces.peers.update("alice", **c.own, metadata={"a": 1})
    ).metadata == {"a": 1}
    await c.raises(
        honcho_core.AuthenticationError,
        of_peer.workspaces.peers.update("bob", **c.own, metadata={}),
    )
    await c.raises(honcho_core.UnprocessableEntityError, c.api.keys.create(peer_id="alice"))
