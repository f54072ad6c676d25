"""Two peers with the same display name are distinguished by their ids wherever a name is shown,
because a peer may choose any name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memservice.domain.records import Peer
from memservice.reasoning.derive_prompt import user_text
from memservice.reasoning.transcript import called
from memservice.services import peers
from memservice.services.chat.chat import ChatOptions, ask_peer
from memservice.services.peers import shown_names
from memservice.spi.reasoner import DeriveRequest, Utterance
from support.services.services import ME, Services

AT = datetime(2026, 1, 2, tzinfo=UTC)


def shown(services: Services, *slugs: str) -> dict[str, str]:
    with services.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug("w")
        assert workspace is not None
        peer_rows: dict[str, Peer] = tx.peers.by_slugs(workspace.key, slugs)
        return shown_names(tx, workspace.key, peer_rows.values())


@pytest.mark.parametrize("name", ["Bob", "bob", "BOB", "Bób", "\uff22ob"])
def test_a_shared_display_name_is_shown_with_the_id(services: Services, name: str) -> None:
    """Whether that peer has it as its id or as its display name, and whether it is shown as
    well."""
    services.peer("bob")
    services.peer("eve", metadata={"name": name})
    assert shown(services, "eve") == {"eve": f"{name} (eve)"}
    services.peer("u-1", metadata={"name": "Ann Lee"})
    services.peer("u-2", metadata={"name": "ann lee"})
    assert shown(services, "u-1", "u-2", "bob") == {"u-1": "Ann Lee (u-1)", "u-2": "ann lee (u-2)"}


def test_a_unique_display_name_is_shown_alone(services: Services) -> None:
    services.peer("u-1", metadata={"name": "Ann Lee"})
    services.peer("u-2", metadata={"name": "Ann Miller"})
    services.peer("ann", metadata={"name": "Ann"})
    assert shown(services, "u-1", "u-2", "ann") == {
        "u-1": "Ann Lee",
        "u-2": "Ann Miller",
        "ann": "Ann",
    }


def test_a_display_name_that_cannot_be_checked_is_shown_with_the_id(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.peer("u-1", metadata={"name": "7"})
    assert shown(services, "u-1") == {"u-1": "7 (u-1)"}
    monkeypatch.setattr(peers, "MAX_NAMESAKES", 3)
    for number in range(3):
        services.peer(f"m-{number}", metadata={"name": f"Miller the {number + 1}th"})
    services.peer("z", metadata={"name": "Zoe Miller"})
    assert shown(services, "z") == {"z": "Zoe Miller (z)"}, "more than are looked at"


def test_representations_and_answers_distinguish_peers(services: Services) -> None:
    services.peer("bob")
    services.peer("eve", metadata={"name": "Bob"})
    services.say("s", ("eve", "The lighthouse is red."), ("bob", "It is white."))
    assert "Bob (eve): The lighthouse is red." in services.represented(
        "eve", search_query="lighthouse"
    )
    answer = ask_peer(services.rt, ME, "w", "eve", ChatOptions(query="What about submarines?"))
    assert "Bob (eve)" in (answer.content() or "")


def test_prompts_distinguish_peers() -> None:
    utterances = [
        Utterance(n, f"u{n}", author, "Hello there.", AT)
        for n, author in enumerate(("eve", "bob"), start=1)
    ]
    request = DeriveRequest("eve", utterances, names={"eve": "Bob", "carol": "Bob"})
    assert "eve is called Bob, and is not bob\n" in user_text(request, utterances, request.context)
    assert called({"eve": "Bob", "u-1": "bob", "ann": "Ann"}) == [
        "eve is called Bob, and is not u-1",
        "u-1 is called bob, and is not eve",
        "ann is called Ann",
    ]
