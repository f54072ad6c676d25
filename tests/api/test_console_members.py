"""Members of the console, in a browser: the pages and forms, and attacks on them."""

from __future__ import annotations

import csv
import io
import json
import re
from urllib.parse import urlsplit

import pytest

from support.api.console_site import Sent
from support.api.console_visit import (
    PAGES_OF_OWNERS,
    PASSWORD,
    Visit,
    passwords,
    path_of,
    post,
)
from support.api.console_visit import olga as olga
from support.api.console_visit import owner as owner
from support.api.console_visit import site as site

# --- the pages


@pytest.mark.slow
def test_the_set_up_link_makes_the_owner_and_signs_in(olga: Visit) -> None:
    page = olga.page("/console/account")
    assert re.search(r"Signed in as\s*olga\s*Role\s*owner", page.text)
    assert {"/console/members", "/console/audit"} <= {urlsplit(link).path for link in page.links}


@pytest.mark.slow
def test_a_used_link_says_so(olga: Visit) -> None:
    path = olga.invite("reader")
    Visit.of(olga).link(path, "rita")
    page = Visit.of(olga).page(path, 404)
    assert "was used, has expired, or was withdrawn" in page.text


@pytest.mark.slow
def test_opening_a_link_does_not_use_it_up(olga: Visit) -> None:
    """Programs that check mail open the links in it."""
    path = olga.invite("reader")
    for _ in range(2):
        Visit.of(olga).page(path)
    assert "Signed in as" in Visit.of(olga).link(path, "rita").text or olga.uid("rita")


@pytest.mark.slow
def test_problems_stand_beside_their_fields_and_no_password_is_sent_back(olga: Visit) -> None:
    browser = Visit.of(olga)
    form = browser.page(olga.invite("reader")).form("/link")
    page = browser.send(form, {**passwords("short"), "name": "rita"}, 422)
    assert "12 to 200 characters" in page.text
    assert page.form("/link").fields["name"] == "rita"
    assert page.form("/link").fields["password"] == ""
    page = browser.send(form, {"password": PASSWORD, "repeated": "x", "name": "rita"}, 422)
    assert "differ" in page.text
    assert PASSWORD not in page.source


@pytest.mark.slow
def test_a_member_signs_in_and_out(olga: Visit) -> None:
    browser = Visit.of(olga)
    assert "wrong" in browser.sign_in("olga", "wrong password", 403).text
    assert browser.session is None
    browser.sign_in("OLGA")
    account = browser.page("/console/account")
    assert "signed out" in browser.send(account.form("/sign-out")).text
    browser.page("/console/account", 401)


@pytest.mark.slow
def test_every_page_asks_a_visitor_without_a_session_to_sign_in(olga: Visit) -> None:
    for path in ("/console", "/console/account", *PAGES_OF_OWNERS):
        page = Visit.of(olga).page(path, 401)
        assert page.form("/sign-in").fields.keys() == {"csrf_token", "name", "password"}


@pytest.mark.slow
def test_an_api_key_signs_in_and_shows_what_it_may_see(owner: Visit) -> None:
    browser = Visit.of(owner)
    form = browser.page("/console/sign-in").form("/sign-in/key")
    page = browser.page("/console/sign-in")
    assert "not a valid API key" in browser.send(form, {"key": "x"}, 403).text
    page = browser.send(form, {"key": owner.key(workspace_id="a")})
    assert "secret of a" in browser.page("/console/workspaces/a/sessions/s1").text
    browser.page("/console/workspaces/b", 403)
    for path in PAGES_OF_OWNERS:
        browser.page(path, 403)
    assert "/console/members" not in {urlsplit(link).path for link in page.links}


@pytest.mark.slow
def test_an_admin_key_manages_no_members(owner: Visit) -> None:
    browser = Visit.of(owner)
    form = browser.page("/console/sign-in").form("/sign-in/key")
    browser.send(form, {"key": owner.key()})
    browser.page("/console/workspaces/b")
    for path in PAGES_OF_OWNERS:
        browser.page(path, 403)


@pytest.mark.slow
def test_a_key_of_a_peer_is_refused_with_the_reason(owner: Visit) -> None:
    browser = Visit.of(owner)
    form = browser.page("/console/sign-in").form("/sign-in/key")
    key = owner.key(workspace_id="a", peer_id="alice")
    assert "whole workspace" in browser.send(form, {"key": key}, 403).text


@pytest.mark.slow
def test_a_reader_reads_its_workspaces_and_changes_nothing(owner: Visit) -> None:
    rita = owner.join("reader", "rita", "a")
    page = rita.page("/console/workspaces")
    assert "/console/workspaces/b" not in {urlsplit(link).path for link in page.links}
    assert "secret of a" in rita.page("/console/workspaces/a/sessions/s1").text
    rita.page("/console/workspaces/b/sessions/s1", 403)
    form = Sent("POST", "http://localhost/console/workspaces/a/delete", {"id": "a"})
    form.fields["csrf_token"] = rita.page("/console/account").form("/sign-out").fields["csrf_token"]
    assert post(rita.client, form).status_code == 403
    rita.page("/console/workspaces/a")
    for path in PAGES_OF_OWNERS:
        rita.page(path, 403)


@pytest.mark.slow
def test_an_owner_changes_deactivates_and_activates_a_member(owner: Visit) -> None:
    rita = owner.join("reader", "rita", "a")
    url = f"/console/members/{owner.uid('rita')}"
    form = owner.page(url).form("/change")
    assert form.fields["limit"] == "some"
    assert form.fields["workspaces"] == "a"
    owner.send(form, {"role": "operator", "limit": "all"})
    assert owner.role("rita") == ("operator", True)
    page = owner.send(owner.page(url).form("/deactivate"))
    assert "deactivated" in page.text
    rita.page("/console/account", 401)
    assert "wrong" in rita.sign_in("rita", PASSWORD, 403).text
    owner.send(owner.page(url).form("/activate"))
    rita.sign_in("rita")
    assert "Ended" in owner.send(owner.page(url).form("/end-sessions")).text
    rita.page("/console/account", 401)


@pytest.mark.slow
def test_an_empty_list_of_workspaces_is_not_all_of_them(owner: Visit) -> None:
    form = owner.page("/console/members").form("/invite")
    for limit in ("some", "", "everything"):
        page = owner.send(form, {"role": "reader", "limit": limit, "workspaces": " \n"}, 422)
        assert "Name 1 to 100 workspaces" in page.text


@pytest.mark.slow
def test_the_last_owner_is_told_why_it_stays(olga: Visit) -> None:
    url = f"/console/members/{olga.uid('olga')}"
    form = olga.page(url).form("/deactivate")
    assert "last active owner" in olga.send(form, {}, 409).text
    olga.page("/console/account")


@pytest.mark.slow
def test_an_owner_gives_a_link_for_a_new_password(olga: Visit) -> None:
    rita = olga.join("reader", "rita")
    form = olga.page(f"/console/members/{olga.uid('rita')}").form("/new-password")
    path = path_of(olga.send(form, {}, 200))
    new = "another long password"
    page = Visit.of(olga).page(path)
    assert "rita" in page.text
    other = Visit.of(olga)
    other.send(other.page(path).form("/link"), passwords(new))
    rita.page("/console/account", 401)
    rita.sign_in("rita", new)


@pytest.mark.slow
def test_a_pending_invitation_is_withdrawn(olga: Visit) -> None:
    path = olga.invite("owner")
    olga.send(olga.page("/console/members").form("/withdraw"))
    Visit.of(olga).page(path, 404)


@pytest.mark.slow
def test_a_member_changes_its_password_and_ends_its_sessions(olga: Visit) -> None:
    other = Visit.of(olga)
    other.sign_in("olga")
    new = {"new_password": "another long password", "repeated": "another long password"}
    form = olga.page("/console/account").form("/password")
    assert "not your current" in olga.send(form, {"password": "x", **new}, 422).text
    assert "differ" in olga.send(form, {**new, "password": PASSWORD, "repeated": "x"}, 422).text
    assert "was changed" in olga.send(form, {"password": PASSWORD, **new}).text
    other.page("/console/account", 401)
    other.sign_in("olga", "another long password")
    olga.send(olga.page("/console/account").form("/end"))
    other.page("/console/account", 401)
    other.sign_in("olga", "another long password")
    olga.send(olga.page("/console/account").form("/sign-out-everywhere"))
    for browser in (olga, other):
        browser.page("/console/account", 401)


@pytest.mark.slow
def test_too_many_attempts_are_answered_429_with_the_seconds(olga: Visit) -> None:
    browser = Visit.of(olga)
    for _ in range(5):
        browser.sign_in("olga", "wrong password", 403)
    form = browser.page("/console/sign-in").form("/sign-in")
    form.fields |= {"name": "olga", "password": PASSWORD}
    answer = post(browser.client, form)
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "1"
    assert "Try again in 1 second" in answer.text
    assert PASSWORD not in answer.text
    olga.send(olga.page("/console/account").form("/sign-out"))
    olga.sign_in("olga")  # its browser is known


# --- the audit log


@pytest.mark.slow
def test_the_log_is_shown_filtered_and_exported(olga: Visit) -> None:
    rita = olga.join("reader", "rita")
    rita.page("/console/account")
    assert "set-up.accept" in olga.page("/console/audit").text
    assert "set-up.accept" not in olga.page("/console/audit?actor=rita").text
    assert "invitation.accept" in olga.page("/console/audit?actor=rita").text
    as_csv = olga.open("/console/audit/export.csv")
    rows = list(csv.DictReader(io.StringIO(as_csv.text)))
    as_json = olga.open("/console/audit/export.json")
    entries = json.loads(as_json.text)
    assert [entry["action"] for entry in entries[1:]] == [row["action"] for row in rows]
    assert [row["action"] for row in reversed(rows)] == [
        "link.create",
        "set-up.accept",
        "session.sign-in",
        "member.invite",
        "invitation.accept",
        "session.sign-in",
        "audit-log.export",
    ]
    assert rows[0]["address"] == "127.0.0.1"
    assert as_csv.headers["Content-Disposition"] == 'attachment; filename="audit-log.csv"'
    assert as_csv.headers["Cache-Control"] == "no-store"


@pytest.mark.slow
def test_an_export_holds_no_formula(olga: Visit) -> None:
    Visit.of(olga).link(olga.invite("reader"), "=cmd|' /c calc'!a0")
    rows = list(csv.DictReader(io.StringIO(olga.open("/console/audit/export.csv").text)))
    assert {row["actor"] for row in rows if "calc" in row["actor"]} == {"'=cmd|' /c calc'!a0"}


@pytest.mark.slow
def test_no_page_and_no_log_holds_a_secret(olga: Visit, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    path = olga.invite("reader")
    token = path.partition("token=")[2]
    rita = Visit.of(olga)
    rita.link(path, "rita")
    rita.sign_in("rita", "a wrong password", 403)
    pages = "".join(
        olga.open(url).text
        for url in ("/console/members", "/console/audit", "/console/audit/export.json")
    )
    session = olga.session
    assert session is not None
    for secret in (token, session, PASSWORD, "a wrong password", "argon2"):
        assert secret not in pages
        assert secret not in caplog.text


# --- attacks


# --- without authentication
