"""What the audit log of the console holds, with the uid of each actor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.domain.records import AuditEntry
from memservice.hookspecs import hookimpl
from memservice.services.auth import api_keys
from memservice.services.members import links
from memservice.spi import web
from support.api.console_site import ADMIN, KEYS, Site, opened
from support.api.console_visit import COMMAND_LINE, Visit
from support.receiver import Receiver


@pytest.fixture
def olga(tmp_path: Path) -> Iterator[Visit]:
    """The browser of the first owner."""
    with opened(tmp_path, WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8", **KEYS) as site:
        browser = Visit.of(site)
        browser.link(f"{links.PATH}?token={links.set_up(site.runtime, COMMAND_LINE).token}", "olga")
        yield browser


def entries(site: Site, action: str) -> list[AuditEntry]:
    """Newest first."""
    with site.runtime.storage.read() as tx:
        return [entry for entry in tx.audit_log.page() if entry.action == action]


@pytest.mark.slow
def test_webhook_tests_and_redeliveries_are_logged(olga: Visit, receiver: Receiver) -> None:
    olga.as_bearer_of(olga.key()).say("w", "s", ("alice", "hello"))
    url = "/console/workspaces/w/webhooks"
    olga.send(olga.page(url).form("/webhooks"), {"url": receiver.url()}, 200)
    (created,) = entries(olga, "webhook.create")
    endpoint = f"{url}/{created.target}"
    olga.send(olga.page(endpoint).form("/state"))
    olga.send(olga.page(url).form("/test"))
    (letter,) = [form for form in olga.page(endpoint).forms if "delivery" in form.fields]
    olga.send(letter)
    (tested,) = entries(olga, "webhook.test")
    assert (tested.actor, tested.workspace) == ("olga", "w")
    (redelivered,) = entries(olga, "webhook.redeliver")
    assert redelivered.target == created.target
    assert redelivered.detail == {"delivery": letter.fields["delivery"]}


@pytest.mark.slow
def test_actions_of_a_key_carry_its_uid(olga: Visit) -> None:
    minted = api_keys.mint(olga.runtime, ADMIN, api_keys.KeyRequest())
    bearer = olga.as_bearer_of(minted.token)
    bearer.send(bearer.page("/console/workspaces").form("/workspaces"), {"id": "w1"})
    browser = Visit.of(olga)
    browser.send(browser.page("/console/sign-in").form("/sign-in/key"), {"key": minted.token})
    browser.send(browser.page("/console/workspaces").form("/workspaces"), {"id": "w2"})
    for entry in entries(olga, "workspace.create"):
        assert (entry.actor, entry.actor_uid) == (f"key {minted.key.uid}", minted.key.uid)


@pytest.mark.slow
def test_refused_keys_are_logged_without_the_key(
    olga: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    minted = api_keys.mint(olga.runtime, ADMIN, api_keys.KeyRequest())
    api_keys.revoke(olga.runtime, ADMIN, minted.key.uid)
    narrow = olga.key(workspace_id="w", peer_id="alice")
    browser = Visit.of(olga)
    form = browser.page("/console/sign-in").form("/sign-in/key")
    for key in ("not a key", minted.token, narrow):
        caplog.clear()
        browser.send(form, {"key": key}, 403)
        assert "a sign-in to the console failed: address=127.0.0.1" in caplog.text
        assert key not in caplog.text
    narrow_entry, revoked_entry = entries(olga, "session.refuse")
    assert revoked_entry.actor_uid == minted.key.uid
    assert revoked_entry.detail == narrow_entry.detail == {"with": "key"}


@pytest.mark.slow
def test_a_refused_key_cannot_fill_the_log(olga: Visit) -> None:
    narrow = olga.key(workspace_id="w", peer_id="alice")
    browser = Visit.of(olga)
    form = browser.page("/console/sign-in").form("/sign-in/key")
    for _ in range(5):
        browser.send(form, {"key": narrow}, 403)
    assert "Try again in" in browser.send(form, {"key": narrow}, 429).text
    assert len(entries(olga, "session.refuse")) == 5


def test_an_export_takes_a_place_for_slow_answers_and_frees_it(
    olga: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    freed: list[str] = []

    def hold_slot() -> object:
        taken.append("slot")
        return lambda: freed.append("slot")

    monkeypatch.setattr("memservice.spi.web.hold_slot", hold_slot)
    for form in ("csv", "json"):
        with olga.open(f"/console/audit/export.{form}") as answer:
            assert answer.status_code == 200
    assert len(taken) == len(freed) == 2


@pytest.mark.slow
def test_a_page_of_a_plugin_works_for_the_signed_in_member(tmp_path: Path) -> None:
    template = tmp_path / "permissions.html"
    template.write_text("<p>{{ permissions | join(', ') }}</p>", encoding="utf-8")

    class Plugin:
        @hookimpl
        def memservice_console_pages(self) -> Iterator[web.ConsolePage]:
            def values() -> dict[str, object]:
                return {"permissions": sorted(web.principal().permissions)}

            yield web.ConsolePage("Permissions", "permissions", template, values, web.OPEN)

    with opened(tmp_path, Plugin(), **KEYS) as site:
        olga = Visit.of(site)
        olga.link(f"{links.PATH}?token={links.set_up(site.runtime, COMMAND_LINE).token}", "olga")
        rita = olga.join("reader", "rita")
        assert "manage members" in olga.page("/console/plugins/permissions").text
        page = rita.page("/console/plugins/permissions").text
        assert "view memory" in page
        assert "edit memory" not in page
