"""Attacks on the console that no role explains: other origins, proxies, addresses, erasures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from memservice.domain.errors import NotFound
from memservice.domain.filters import equals
from memservice.domain.records import PENDING, ConsoleMember, Task
from memservice.services import deletion
from memservice.services.members import links, sign_ins
from memservice.services.tasks import jobs, kinds
from memservice.services.tasks.jobs import JobFilter
from memservice_console.sign_in import ip_of
from memservice_console.visitors import PROXY_HEADERS
from support.api.console_site import ADMIN, KEYS, opened
from support.api.console_visit import COMMAND_LINE, Visit

ORIGIN = "http://localhost:3000"


def test_no_origin_reads_the_console_or_sends_its_forms(tmp_path: Path) -> None:
    """Cookies of a host go to all of its ports, so origins that may use the API may not do this."""
    with opened(tmp_path, CORS_ORIGINS=f'["{ORIGIN}"]') as site:
        answer = site.open("/console/workspaces", headers={"Origin": ORIGIN})
        assert answer.status_code == 200
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert "Access-Control-Allow-Credentials" not in answer.headers
        form = site.page("/console/workspaces").form("/workspaces")
        sent = {**form.fields, "id": "theirs"}
        posted = site.open("/console/workspaces", "POST", data=sent, headers={"Origin": ORIGIN})
        assert posted.status_code == 400
        preflight = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
        assert site.open("/console/workspaces", "OPTIONS", headers=preflight).status_code == 400
        api = site.open("/v3/workspaces/list", "POST", json={}, headers={"Origin": ORIGIN})
        assert api.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert api.json is not None
        assert api.json["items"] == []


@pytest.mark.slow
@pytest.mark.parametrize("header", PROXY_HEADERS)
def test_without_authentication_no_proxy_opens_the_console(tmp_path: Path, header: str) -> None:
    with opened(tmp_path) as site:
        assert site.open("/console", headers={header: "203.0.113.9"}).status_code == 400
        assert site.open("/console").status_code == 200


def test_erasures_cannot_be_called_off(tmp_path: Path) -> None:
    with opened(tmp_path, **KEYS) as site:
        rt = site.runtime
        site.as_bearer_of(site.key()).say("w", "s", ("alice", "forget this"))
        deletion.delete_session(rt, ADMIN, "w", "s")
        with rt.storage.read() as tx:
            (task,) = tx.rows.page(Task, equals(kind=kinds.ERASE))
        with pytest.raises(NotFound):
            jobs.cancel(rt, ADMIN, JobFilter(), [task.uid])
        jobs.cancel(rt, ADMIN, JobFilter())
        now = rt.clock()
        rt.storage.write(
            lambda tx: tx.rows.change(Task, equals(key=task.key), state="failed", finished_at=now)
        )
        assert jobs.purge(rt, ADMIN, JobFilter(kind=kinds.ERASE)) == 0
        assert jobs.retry(rt, ADMIN, JobFilter(), [task.uid]) == 1
        with rt.storage.read() as tx:
            (again,) = tx.rows.page(Task, equals(kind=kinds.ERASE))
        assert again.state == PENDING


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("unknown", None),
        ("203.0.113.9:a:b", None),
        ("", None),
    ],
)
def test_only_an_ip_address_counts_as_the_senders(entry: str, address: str | None) -> None:
    assert ip_of(entry) == address


@pytest.mark.slow
def test_a_new_password_makes_every_browser_unknown(tmp_path: Path) -> None:
    with opened(tmp_path, **KEYS) as site:
        member = ConsoleMember(
            uid="m",
            name="olga",
            password_hash="one",
            role="owner",
            created_at=datetime(2024, 3, 1, tzinfo=UTC),
        )
        browser_id = sign_ins._new_browser_id(site.runtime, member)
        assert sign_ins._is_known(site.runtime, browser_id, member)
        changed = replace(member, password_hash="two")
        assert not sign_ins._is_known(site.runtime, browser_id, changed)


@pytest.mark.slow
def test_a_continuation_of_thousands_of_characters_is_the_first_page(tmp_path: Path) -> None:
    with opened(tmp_path, **KEYS) as site:
        browser = Visit.of(site)
        browser.link(f"{links.PATH}?token={links.set_up(site.runtime, COMMAND_LINE).token}", "olga")
        for page in ("members", "audit"):
            for after in ("9" * 5_000, "%00", "x%27--"):
                assert "olga" in browser.page(f"/console/{page}?after={after}").text
