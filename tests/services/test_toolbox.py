"""The look-ups of a reasoner: what each gives, within what it may see, and what is remembered of
it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import Conclusion, Message, Workspace
from memservice.services import cards, conclusions, deletion
from memservice.services.auth.bounds import bounds_for, sessions_of
from memservice.services.auth.principal import Principal
from memservice.services.chat.tools import Tools
from memservice.spi.index_filter import IndexFilter
from memservice.spi.toolbox import Evidence, Passage, ToolRefused
from support.services.services import ME, WORKSPACE, Services


def tools(
    services: Services,
    observer: str | None = "alice",
    sessions: Sequence[str] | None = None,
    has_cards: bool = False,
    key_of: str | None = None,
) -> Tools:
    """Those of a question to a peer about itself, or over the workspace; an allowlist of sessions
    where one is given."""
    with services.rt.storage.read() as tx:
        (workspace,) = tx.rows.page(Workspace, equals(slug=WORKSPACE))
        principal = ME if key_of is None else Principal(workspace_id=WORKSPACE, peer_id=key_of)
        bounds = bounds_for(tx, principal, workspace)
        if observer is not None:
            peer = tx.peers.by_slug(workspace.key, observer)
            assert peer is not None
            allowed = (
                None
                if sessions is None
                else [s.key for s in tx.sessions.by_slugs(workspace.key, sessions)]
            )
            own = bounds.with_conclusions(
                equals(observer_key=peer.key), IndexFilter(observers=(peer.key,))
            )
            bounds = own.in_sessions(sessions_of(tx, peer, allowed))
            if allowed is not None:
                bounds = bounds.stated_in(allowed)
    return Tools(services.rt, WORKSPACE, bounds, has_cards=has_cards)


def texts(passages: Sequence[Passage]) -> list[list[str]]:
    """What was found, a list a passage; a star before what was asked for."""
    return [
        [("*" if item.asked_for else "") + item.content for item in passage] for passage in passages
    ]


def contents(evidence: Sequence[Evidence]) -> list[str]:
    return [item.content for item in evidence]


class TestMessages:
    def test_hits_have_their_neighbours(self, services: Services) -> None:
        services.say(
            "s",
            *[
                ("alice", text)
                for text in ("One.", "Two.", "Three.", "A heron!", "Five.", "Six.", "Seven.")
            ],
        )
        assert texts(tools(services).messages("heron", 1)) == [
            ["Two.", "Three.", "*A heron!", "Five.", "Six."]
        ]

    def test_adjacent_passages_are_joined(self, services: Services) -> None:
        services.say(
            "s",
            *[
                ("alice", text)
                for text in (
                    "A heron.",
                    "Two.",
                    "Three.",
                    "Another heron.",
                    "Five.",
                    "Six.",
                    "Seven.",
                )
            ],
        )
        services.say("t", ("alice", "No bird."), ("alice", "A heron again."))
        joined = sorted(texts(tools(services).containing("heron", 10)), key=len)
        assert joined == [
            ["No bird.", "*A heron again."],
            ["*A heron.", "Two.", "Three.", "*Another heron.", "Five."],
        ]

    def test_a_message_stands_with_five_before_and_after_it(self, services: Services) -> None:
        rows = services.say("s", *[("alice", f"Number {n}.") for n in range(20)])
        other = services.say("t", ("alice", "Elsewhere."))
        (passage,) = texts(tools(services).around(rows[9].uid))
        assert passage == [f"{'*' if n == 9 else ''}Number {n}." for n in range(4, 15)]
        for uid in (other[0].uid, "nothing"):
            with pytest.raises(ToolRefused, match="no message"):
                tools(services, sessions=["s"]).around(uid)

    def test_within_a_period(self, services: Services) -> None:
        for day in (1, 2, 3):
            services.say(
                f"s{day}",
                ("alice", f"Heron number {day}."),
                at=datetime(2024, 5, day, 12, tzinfo=UTC),
            )
        noon = datetime(2024, 5, 2, 12, tzinfo=UTC)
        box = tools(services)
        assert sorted(texts(box.messages("heron", 10, since=noon))) == [
            ["*Heron number 2."],
            ["*Heron number 3."],
        ]
        assert sorted(texts(box.messages("heron", 10, until=noon))) == [
            ["*Heron number 1."],
            ["*Heron number 2."],
        ]
        assert texts(box.messages("heron", 10, noon, noon)) == [["*Heron number 2."]]

    def test_containing_a_text_newest_first(self, services: Services) -> None:
        services.say("s", ("alice", "The code is XK-42b."), at=datetime(2024, 5, 1, tzinfo=UTC))
        services.say("t", ("alice", "xk-42B, as I said."), at=datetime(2024, 5, 2, tzinfo=UTC))
        services.say(
            "u", ("alice", "XK 42b is another one; 100%_sure."), at=datetime(2024, 5, 3, tzinfo=UTC)
        )
        box = tools(services)
        assert texts(box.containing("XK-42b", 10)) == [
            ["*xk-42B, as I said."],
            ["*The code is XK-42b."],
        ]
        assert texts(box.containing("XK-42b", 1)) == [["*xk-42B, as I said."]]
        assert texts(box.containing("00%_su", 10)) == [["*XK 42b is another one; 100%_sure."]]
        assert box.containing("%", 10) != []
        assert box.containing("a_d", 10) == []

    def test_parts_of_words_are_searched_in_the_newest_messages(
        self, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        services.say("s", ("alice", "Kingfishers."), *[("alice", "Nothing.")] * 5)
        assert texts(tools(services).containing("ngfish", 10)) == [["*Kingfishers.", "Nothing."]]
        monkeypatch.setattr("memservice.services.chat.tools.MAX_SCANNED", 3)
        assert tools(services).containing("ngfish", 10) == []
        assert len(tools(services).containing("Kingfishers", 10)) == 1

    def test_by_date_from_both_ends(self, services: Services) -> None:
        for day in range(1, 6):
            services.say(
                "st"[day % 2], ("alice", f"Day {day}."), at=datetime(2024, 5, day, tzinfo=UTC)
            )
        box = tools(services)
        second = datetime(2024, 5, 2, tzinfo=UTC)
        assert texts(box.between(second, None, 2)) == [["*Day 5."], ["*Day 4."]]
        assert texts(box.between(second, None, 2, newest_first=False)) == [["*Day 2."], ["*Day 3."]]
        assert texts(box.between(None, second, 9)) == [["*Day 2."], ["*Day 1."]]

    def test_only_of_visible_sessions(self, services: Services) -> None:
        services.say("s", ("alice", "A heron at home."), ("bob", "Indeed a heron."))
        services.say("secret", ("bob", "My heron is secret."))
        everything = tools(services, None)
        for box, number in (
            (tools(services), 2),
            (tools(services, sessions=["secret"]), 0),
            (tools(services, "bob"), 3),
            (everything, 3),
        ):
            for evidence in (
                box.messages("heron", 10),
                box.containing("heron", 10),
                box.between(datetime(2000, 1, 1, tzinfo=UTC), None, 10),
            ):
                assert sum(len(passage) for passage in evidence) == number

    def test_a_session_that_is_open_in_part_shows_no_neighbours_from_the_rest(
        self, services: Services
    ) -> None:
        """As it is to the key of a peer that left it."""
        services.say("s", ("alice", "A heron."), ("bob", "Two."))
        services.leave("s", "alice")
        services.say("s", ("bob", "A heron, in secret."), ("bob", "Four."))
        shut, whole = tools(services, key_of="alice"), tools(services)
        everything = (None, datetime(2100, 1, 1, tzinfo=UTC), 10)
        for passages in (
            shut.messages("heron", 10),
            shut.containing("heron", 10),
            shut.between(*everything, newest_first=False),
        ):
            assert [text.lstrip("*") for passage in texts(passages) for text in passage] == [
                "A heron.",
                "Two.",
            ]
        assert ["Two.", "*A heron, in secret.", "Four."] in [
            passage[-3:] for passage in texts(whole.containing("in secret", 10))
        ]
        assert {message.content for message in shut.messages_read.values()} == {"A heron.", "Two."}

    def test_sessions_that_are_being_deleted_are_left_out(self, services: Services) -> None:
        services.say("s", ("alice", "A heron at home."))
        services.say("gone", ("alice", "A heron at work."))
        deletion.delete_session(services.rt, ME, WORKSPACE, "gone")
        box = tools(services, None)
        assert texts(box.between(None, datetime(2100, 1, 1, tzinfo=UTC), 10)) == [
            ["*A heron at home."]
        ]


class TestConclusions:
    def derived(
        self, services: Services, content: str, level: str, *sources: Conclusion
    ) -> Conclusion:
        """Stored as a dream does it."""
        (row,) = services.conclude("alice", "alice", content)
        ids = [source.uid for source in sources]
        with_sources = replace(row, level=level, source_ids=ids)
        services.rt.storage.write(lambda tx: tx.conclusions.put([with_sources]))
        return with_sources

    def test_visible_facts_once_each(self, services: Services) -> None:
        services.peer("alice", "bob")
        services.say("s", ("alice", "Hello."), ("bob", "Hello."))
        services.conclude("alice", "bob", "Bob has a heron.", session="s")
        services.conclude("bob", "bob", "Bob has a heron.")
        services.conclude("alice", "alice", "Alice fears a heron.")
        assert sorted(contents(tools(services).conclusions("heron", 10))) == [
            "Alice fears a heron.",
            "Bob has a heron.",
        ]
        assert sorted(contents(tools(services, None).conclusions("heron", 10))) == [
            "Alice fears a heron.",
            "Bob has a heron.",
        ]
        assert contents(tools(services, sessions=["s"]).conclusions("heron", 10)) == [
            "Bob has a heron."
        ]
        assert len(tools(services).conclusions("heron", 1)) == 1

    def test_a_chain_includes_superseded_sources(self, services: Services) -> None:
        services.peer("alice")
        (one,) = services.conclude("alice", "alice", "Alice moved to Ghent.")
        (two,) = services.conclude("alice", "alice", "Alice sold her car.")
        drawn = self.derived(services, "Alice cycles.", "deductive", one, two)
        top = self.derived(services, "Alice is fit.", "inductive", drawn)
        services.rt.storage.write(
            lambda tx: tx.rows.change(
                Conclusion, equals(key=two.key), state="superseded", superseded_by=drawn.key
            )
        )
        chain = tools(services).chain(drawn.uid)
        assert (chain.conclusion.content, chain.conclusion.source_ids) == (
            "Alice cycles.",
            (one.uid, two.uid),
        )
        assert contents(chain.sources) == ["Alice moved to Ghent.", "Alice sold her car."]
        assert contents(chain.consequences) == ["Alice is fit."]
        assert chain.consequences[0].uid == top.uid

    def test_what_a_conclusion_replaced_stands_with_it(self, services: Services) -> None:
        services.say("s", ("alice", "Hello."))
        services.say("t", ("alice", "Hello."))
        (ghent,) = services.conclude("alice", "alice", "Alice lives in Ghent.", session="s")
        (paris,) = services.conclude("alice", "alice", "Alice lives in Paris.", session="t")
        (porto,) = services.conclude("alice", "alice", "Alice lives in Porto.", session="s")
        keys = (ghent.key, paris.key)
        services.rt.storage.write(
            lambda tx: tx.rows.change(
                Conclusion, equals(key=keys), state="superseded", superseded_by=porto.key
            )
        )
        box = tools(services)
        (conclusion,) = box.conclusions("lives", 10)
        assert conclusion.content == "Alice lives in Porto."
        assert sorted(contents(conclusion.replaced)) == [
            "Alice lives in Ghent.",
            "Alice lives in Paris.",
        ]
        assert box.conclusions_read.keys() == {porto.key, *keys}, "all of it is evidence"
        # Within the same bounds as the conclusions themselves.
        (conclusion,) = tools(services, sessions=["s"]).conclusions("lives", 10)
        assert contents(conclusion.replaced) == ["Alice lives in Ghent."]

    def test_no_chains_under_an_allowlist(self, services: Services) -> None:
        services.say("s", ("alice", "Hello."))
        (one,) = services.conclude("alice", "alice", "Alice moved to Ghent.", session="s")
        box = tools(services, sessions=["s"])
        assert not box.has_chains
        with pytest.raises(ToolRefused, match="certain sessions"):
            box.chain(one.uid)

    def test_messages_behind_one(self, services: Services) -> None:
        messages = services.say(
            "s",
            *[("alice", text) for text in ("One.", "Two.", "I moved to Ghent.", "Four.", "Five.")],
        )
        (one,) = services.conclude("alice", "alice", "Alice moved to Ghent.", session="s")
        services.rt.storage.write(
            lambda tx: tx.conclusions.put([replace(one, message_keys=[messages[2].key])])
        )
        drawn = self.derived(services, "Alice lives in Belgium.", "deductive", one)
        around = [["Two.", "*I moved to Ghent.", "Four."]]
        assert texts(tools(services).behind(one.uid)) == around
        # A drawn one has no messages of its own: those behind its grounds are shown.
        assert texts(tools(services).behind(drawn.uid)) == around
        other = services.say("t", ("alice", "Hello."))
        assert other
        assert tools(services, sessions=["s"]).behind(one.uid) != []

    def test_invisible_conclusions_are_not_found(self, services: Services) -> None:
        services.peer("alice", "bob")
        (others,) = services.conclude("bob", "bob", "Bob robs banks.")
        (own,) = services.conclude("alice", "alice", "Alice paints.")
        conclusions.delete(services.rt, ME, WORKSPACE, own.uid)
        for uid in (others.uid, own.uid, "nobody", ""):
            for look in (tools(services).chain, tools(services).behind):
                with pytest.raises(ToolRefused, match="no conclusion"):
                    look(uid)


class TestCards:
    def test_a_peers_own_card(self, services: Services) -> None:
        services.peer("alice", "bob")
        cards.put(services.rt, ME, WORKSPACE, "alice", None, ["IDENTITY: Alice"])
        box = tools(services, None, has_cards=True)
        assert box.card("alice") == ["IDENTITY: Alice"]
        assert box.card("bob") == []
        with pytest.raises(ToolRefused, match="no peer 'nobody'"):
            box.card("nobody")
        with pytest.raises(ToolRefused, match="not available"):
            tools(services, None).card("alice")


def test_returned_evidence_is_recorded_once_in_order(services: Services) -> None:
    services.say("s", ("alice", "A heron."), ("alice", "Two."), ("alice", "A newt."))
    services.conclude("alice", "alice", "Alice saw a newt.")
    services.conclude("alice", "alice", "Alice saw a heron.")
    box = tools(services)
    box.containing("newt", 5)
    box.messages("heron", 5)
    box.conclusions("heron", 1)
    box.conclusions("newt heron", 5)
    assert [row.content for row in box.messages_read.values()] == ["Two.", "A newt.", "A heron."]
    assert [row.content for row in box.conclusions_read.values()] == [
        "Alice saw a heron.",
        "Alice saw a newt.",
    ]
    assert all(isinstance(row, Message) for row in box.messages_read.values())
