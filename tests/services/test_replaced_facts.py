"""Without a model, a newer value of a property with one value at a time supersedes the earlier one
when it is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memservice.domain.records import Conclusion
from memservice.services import conclusions, history, sessions
from memservice.services.conclusions import Shown
from memservice.services.paging import Paging
from memservice.services.sessions import MemberConfig
from memservice.worker.polling import Worker
from services.conftest import OpenServices
from support.services.services import ME, WORKSPACE, Services

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def derive(services: Services, *texts: str, session: str = "s", at: datetime | None = None) -> None:
    """One batch."""
    services.say(session, *(("ann", text) for text in texts), at=at)
    Worker(services.rt).run_until_idle(30)
    services.clock.advance(hours=1)


def rows(services: Services, observer: str = "ann", **shown: object) -> list[Conclusion]:
    pair = {"observer": observer, "observed": "ann"}
    page = conclusions.page(
        services.rt,
        ME,
        WORKSPACE,
        pair,
        Paging(1, 50),
        Shown(**shown),  # type: ignore[arg-type]
    )
    return list(page.items)


def live(services: Services, observer: str = "ann", **shown: object) -> set[str]:
    return {row.content for row in rows(services, observer, **shown)}


@pytest.fixture
def extractive(open_services: OpenServices) -> Services:
    return open_services(REASONER="extractive")


def test_a_newer_home_supersedes_the_earlier_one_and_history_keeps_it(
    extractive: Services,
) -> None:
    derive(extractive, "I live in Porto.", "I like green tea.")
    before = extractive.clock.now - timedelta(minutes=1)
    derive(extractive, "I moved to Braga.")
    assert live(extractive) == {"I like green tea.", "I moved to Braga."}
    assert "Porto" not in extractive.represent("ann")
    assert "I live in Porto." not in extractive.ask("Where does ann live? Porto?", "ann", "ann")
    (new,) = [row for row in rows(extractive) if "Braga" in row.content]
    versions = history.of_conclusion(extractive.rt, ME, WORKSPACE, new.uid).versions
    assert [version.content for version in versions] == ["I live in Porto.", "I moved to Braga."]
    assert versions[0].reason == "updated: residence"
    assert live(extractive, as_of=before.isoformat()) == {"I live in Porto.", "I like green tea."}


def test_of_several_values_in_one_batch_the_last_one_stays(extractive: Services) -> None:
    derive(extractive, "I live in Porto.", "I like green tea.", "I moved to Braga.")
    derive(extractive, "I am 29 years old.", "I moved to Faro.", "I moved to Lagos.")
    assert live(extractive) == {"I like green tea.", "I am 29 years old.", "I moved to Lagos."}
    # Superseded rows are in no index.
    assert set(extractive.ask("Porto Braga Faro", "ann", "ann", top_k=50)) <= live(extractive)
    assert len(live(extractive, superseded=True)) == 6


def test_a_value_that_is_true_again_replaces_the_one_between(extractive: Services) -> None:
    for text in ("I live in Porto.", "I moved to Braga.", "I live in Porto."):
        derive(extractive, text)
    assert live(extractive) == {"I live in Porto."}


def test_an_older_message_that_is_imported_later_replaces_nothing(extractive: Services) -> None:
    derive(extractive, "I live in Porto.", at=BEGIN)
    derive(extractive, "I moved to Braga.", at=BEGIN - timedelta(days=9))
    assert live(extractive) == {"I live in Porto.", "I moved to Braga."}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "My sister lives in Rome.",
        "I used to live in Rome.",
        "If I could choose, I would live in Rome.",
        "Maybe I'll move to Rome next year.",
        "I live in Rome and in Paris.",
        "I live in Portugal.",
    ],
)
def test_what_is_no_newer_value_of_the_speaker_replaces_nothing(
    extractive: Services, text: str
) -> None:
    derive(extractive, "I live in Porto.")
    derive(extractive, text)
    assert "I live in Porto." in live(extractive)


def test_other_observers_know_the_newer_value_too(extractive: Services) -> None:
    extractive.peer("ann", "bob")
    sessions.add_peers(
        extractive.rt, ME, WORKSPACE, "s", {"bob": MemberConfig(observe_others=True)}
    )
    derive(extractive, "I live in Porto.")
    assert live(extractive, "bob") == {"I live in Porto."}
    derive(extractive, "I moved to Braga.")
    assert live(extractive, "bob") == {"I moved to Braga."}


@pytest.mark.parametrize("crosses", [True, False])
def test_a_fact_of_another_session_is_replaced_if_the_setting_allows_it(
    open_services: OpenServices, crosses: bool
) -> None:
    setting = str(crosses).lower()
    services = open_services(REASONER="extractive", DERIVER_CONTEXT_ACROSS_SESSIONS=setting)
    derive(services, "I live in Porto.", session="one")
    derive(services, "I moved to Braga.", session="two")
    assert ("I live in Porto." in live(services)) == (not crosses)
