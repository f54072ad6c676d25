"""Members of the console, in a browser: the pages and forms, and attacks on them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from memservice.services.auth import api_keys
from memservice.services.auth.permissions import ALL
from memservice.services.auth.principal import Principal
from memservice.services.members import links
from memservice.spi.schema import TABLES
from support.api.console_site import KEYS, Page, Sent, Site, opened
from support.stores.stores import store_of

COMMAND_LINE = Principal(admin=True, permissions=ALL)
PASSWORD = "correct horse battery"
PAGES_OF_OWNERS = ("/console/members", "/console/audit", "/console/audit/export.csv")


class Visit(Site):
    """One browser."""

    @classmethod
    def of(cls, site: Site) -> Visit:
        return cls(site.app, site.runtime)

    def page(self, url: str, status: int = 200) -> Page:
        """Follows the redirect of Home, which visitors of some workspaces do not see."""
        if url == "/console" and self.open(url).status_code == 303:
            url = "/console/workspaces"
        return super().page(url, status)

    def link(self, path: str, name: str) -> Page:
        """Open a one-time link and use it up."""
        return self.send(self.page(path).form("/link"), {**passwords(PASSWORD), "name": name})

    def sign_in(self, name: str, password: str = PASSWORD, status: int = 303) -> Page:
        form = self.page("/console/sign-in").form("/sign-in")
        return self.send(form, {"name": name, "password": password}, status)

    def invite(self, role: str, *workspaces: str) -> str:
        """The path of the link."""
        form = self.page("/console/members").form("/invite")
        limit = {"limit": "some" if workspaces else "all", "workspaces": "\n".join(workspaces)}
        return path_of(self.send(form, {"role": role, **limit}, 200))

    def join(self, role: str, name: str, *workspaces: str) -> Visit:
        """Another browser, of a new member."""
        other = Visit.of(self)
        other.link(self.invite(role, *workspaces), name)
        return other

    @property
    def session(self) -> str | None:
        cookie = self.client.get_cookie("memservice_session")
        return None if cookie is None else cookie.value

    def uid(self, name: str) -> str:
        with self.runtime.storage.read() as tx:
            member = tx.console_members.by_name(name)
        assert member is not None
        return member.uid

    def role(self, name: str) -> tuple[str, bool]:
        with self.runtime.storage.read() as tx:
            member = tx.console_members.by_name(name)
        assert member is not None
        return member.role, member.workspaces is None

    def actions(self) -> list[str]:
        with self.runtime.storage.read() as tx:
            return [entry.action for entry in reversed(tx.audit_log.page())]


def passwords(password: str) -> dict[str, str]:
    return {"password": password, "repeated": password}


def path_of(page: Page) -> str:
    """The one-time link on a page."""
    (url,) = set(re.findall(r"https?://[^\s<\"]+/console/link\?token=[\w-]+", page.source))
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


def set_cookies(answer: TestResponse) -> dict[str, str]:
    """Attributes of the cookies that an answer sets, in lower case, by name."""
    rows = (header.partition("=") for header in answer.headers.getlist("Set-Cookie"))
    return {name: rest.partition(";")[2].lower() for name, _, rest in rows}


def post(client: FlaskClient, form: Sent, **headers: str) -> TestResponse:
    url = urlsplit(form.action).path
    return client.post(url, data=form.fields, headers={"Accept": "text/html", **headers})


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with opened(tmp_path, **KEYS) as made:
        yield made


@pytest.fixture
def olga(site: Site) -> Visit:
    """The browser of the first owner."""
    made = links.set_up(site.runtime, COMMAND_LINE)
    browser = Visit.of(site)
    browser.link(f"{links.PATH}?token={made.token}", "olga")
    return browser


@pytest.fixture
def owner(olga: Visit) -> Visit:
    admin = olga.as_bearer_of(olga.key())
    for name in ("a", "b"):
        admin.say(name, "s1", ("alice", f"secret of {name}"))
    return olga


# --- the pages


def test_the_set_up_link_makes_the_owner_and_signs_in(olga: Visit) -> None:
    page = olga.page("/console/account")
    assert re.search(r"Signed in as\s*olga\s*Role\s*owner", page.text)
    assert {"/console/members", "/console/audit"} <= {urlsplit(link).path for link in page.links}


def test_a_used_link_says_so(olga: Visit) -> None:
    path = olga.invite("reader")
    Visit.of(olga).link(path, "rita")
    page = Visit.of(olga).page(path, 404)
    assert "was used, has expired, or was withdrawn" in page.text


def test_opening_a_link_does_not_use_it_up(olga: Visit) -> None:
    """Programs that check mail open the links in it."""
    path = olga.invite("reader")
    for _ in range(2):
        Visit.of(olga).page(path)
    assert "Signed in as" in Visit.of(olga).link(path, "rita").text or olga.uid("rita")


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


def test_a_member_signs_in_and_out(olga: Visit) -> None:
    browser = Visit.of(olga)
    assert "wrong" in browser.sign_in("olga", "wrong password", 403).text
    assert browser.session is None
    browser.sign_in("OLGA")
    account = browser.page("/console/account")
    assert "signed out" in browser.send(account.form("/sign-out")).text
    browser.page("/console/account", 401)


def test_every_page_asks_a_visitor_without_a_session_to_sign_in(olga: Visit) -> None:
    for path in ("/console", "/console/account", *PAGES_OF_OWNERS):
        page = Visit.of(olga).page(path, 401)
        assert page.form("/sign-in").fields.keys() == {"csrf_token", "name", "password"}


def test_an_api_key_signs_in_and_shows_what_it_may_see(owner: Visit) -> None:
    browser = Visit.of(owner)
    form = browser.page("/console/sign-in").form("/sign-in/key")
    listed = browser.page("/console/sign-in")
    assert "not a valid API key" in browser.send(form, {"key": "x"}, 403).text
    listed = browser.send(form, {"key": owner.key(workspace_id="a")})
    assert "secret of a" in browser.page("/console/workspaces/a/sessions/s1").text
    browser.page("/console/workspaces/b", 403)
    for path in PAGES_OF_OWNERS:
        browser.page(path, 403)
    assert "/console/members" not in {urlsplit(link).path for link in listed.links}


def test_an_admin_key_manages_no_members(owner: Visit) -> None:
    browser = Visit.of(owner)
    form = browser.page("/console/sign-in").form("/sign-in/key")
    browser.send(form, {"key": owner.key()})
    browser.page("/console/workspaces/b")
    for path in PAGES_OF_OWNERS:
        browser.page(path, 403)


def test_a_key_of_a_peer_is_refused_with_the_reason(owner: Visit) -> None:
    browser = Visit.of(owner)
    form = browser.page("/console/sign-in").form("/sign-in/key")
    key = owner.key(workspace_id="a", peer_id="alice")
    assert "whole workspace" in browser.send(form, {"key": key}, 403).text


def test_a_reader_reads_its_workspaces_and_changes_nothing(owner: Visit) -> None:
    rita = owner.join("reader", "rita", "a")
    listed = rita.page("/console/workspaces")
    assert "/console/workspaces/b" not in {urlsplit(link).path for link in listed.links}
    assert "secret of a" in rita.page("/console/workspaces/a/sessions/s1").text
    rita.page("/console/workspaces/b/sessions/s1", 403)
    form = Sent("POST", "http://localhost/console/workspaces/a/delete", {"id": "a"})
    form.fields["csrf_token"] = rita.page("/console/account").form("/sign-out").fields["csrf_token"]
    assert post(rita.client, form).status_code == 403
    rita.page("/console/workspaces/a")
    for path in PAGES_OF_OWNERS:
        rita.page(path, 403)


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


def test_an_empty_list_of_workspaces_is_not_all_of_them(owner: Visit) -> None:
    form = owner.page("/console/members").form("/invite")
    for limit in ("some", "", "everything"):
        page = owner.send(form, {"role": "reader", "limit": limit, "workspaces": " \n"}, 422)
        assert "Name 1 to 100 workspaces" in page.text


def test_the_last_owner_is_told_why_it_stays(olga: Visit) -> None:
    url = f"/console/members/{olga.uid('olga')}"
    form = olga.page(url).form("/deactivate")
    assert "last active owner" in olga.send(form, {}, 409).text
    olga.page("/console/account")


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


def test_a_pending_invitation_is_withdrawn(olga: Visit) -> None:
    path = olga.invite("owner")
    olga.send(olga.page("/console/members").form("/withdraw"))
    Visit.of(olga).page(path, 404)


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


def test_cookies_of_a_session_are_for_no_script_and_no_other_site(olga: Visit) -> None:
    form = Visit.of(olga).page("/console/sign-in").form("/sign-in")
    browser = Visit.of(olga)
    form = browser.page("/console/sign-in").form("/sign-in")
    form.fields |= {"name": "olga", "password": PASSWORD}
    cookies = set_cookies(post(browser.client, form))
    assert cookies.keys() == {"memservice_session", "memservice_browser"}
    for attributes in cookies.values():
        assert "httponly" in attributes
        assert "samesite=strict" in attributes
        assert "path=/" in attributes
        assert "domain" not in attributes
        assert "secure" not in attributes


@pytest.mark.parametrize("how", ["scheme", "setting"])
def test_over_tls_cookies_are_secure_and_of_this_host_only(tmp_path: Path, how: str) -> None:
    given = {"CONSOLE_URL": "https://memory.example.com/"} if how == "setting" else {}
    with opened(tmp_path, **KEYS, **given) as site:
        made = links.set_up(site.runtime, COMMAND_LINE)
        base = "https://localhost" if how == "scheme" else "http://localhost"
        client = site.app.test_client()
        page = client.get(f"/console/link?token={made.token}", base_url=base)
        found = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
        assert found is not None
        cookie = re.match(r"([^=]+)=([^;]+)", page.headers["Set-Cookie"])
        assert cookie is not None
        answer = client.post(
            "/console/link",
            data={"csrf_token": found[1], "token": made.token, "name": "o", **passwords(PASSWORD)},
            base_url=base,
            headers={"Cookie": cookie[0]},
        )
        assert answer.status_code == 303, answer.text
        cookies = set_cookies(answer)
        assert cookies.keys() == {"__Host-memservice_session", "__Host-memservice_browser"}
        assert all("secure" in attributes for attributes in cookies.values())
        if how == "setting":
            assert made.url(site.runtime.settings).startswith(
                "https://memory.example.com/console/link?token="
            )


def test_a_planted_session_is_not_the_one_after_the_sign_in(owner: Visit) -> None:
    """Session fixation: with an id of the attacker's choice, and with an id that is valid."""
    mallory = owner.join("reader", "mallory")
    for planted in ("x" * 43, mallory.session or ""):
        browser = Visit.of(owner)
        browser.client.set_cookie("memservice_session", planted)
        browser.sign_in("olga")
        assert browser.session not in (planted, None)
        attacker = Visit.of(owner)
        attacker.client.set_cookie("memservice_session", planted)
        attacker.page("/console/account", 401)


def test_a_stolen_session_is_worth_nothing_after_the_sign_out(olga: Visit) -> None:
    thief = Visit.of(olga)
    thief.client.set_cookie("memservice_session", olga.session or "")
    thief.page("/console/account")
    olga.send(olga.page("/console/account").form("/sign-out"))
    thief.page("/console/account", 401)


def test_a_session_ends_with_its_key(owner: Visit) -> None:
    minted = api_keys.mint(owner.runtime, COMMAND_LINE, api_keys.KeyRequest(workspace_id="a"))
    browser = Visit.of(owner)
    browser.send(browser.page("/console/sign-in").form("/sign-in/key"), {"key": minted.token})
    browser.page("/console/workspaces/a")
    api_keys.revoke(owner.runtime, COMMAND_LINE, minted.key.uid)
    browser.page("/console/workspaces/a", 401)


def forms_of(visit: Visit) -> list[Sent]:
    urls = (
        "/console/account",
        "/console/members",
        f"/console/members/{visit.uid('olga')}",
        "/console/workspaces",
        "/console/workspaces/a",
    )
    return [form for url in urls for form in visit.page(url).forms if form.method == "POST"]


def test_every_form_carries_the_token_and_none_works_without(owner: Visit) -> None:
    """A page of another origin that gets past SameSite cannot send a form."""
    owner.invite("reader")
    rita = owner.join("reader", "rita")
    foreign = rita.page("/console/account").form("/sign-out").fields["csrf_token"]
    forms = forms_of(owner)
    assert len(forms) >= 10
    before = owner.actions()
    for form in forms:
        own = form.fields["csrf_token"]
        for token in (None, "", "x", own[:-1], own.swapcase(), foreign):
            fields = {name: value for name, value in form.fields.items() if name != "csrf_token"}
            if token is not None:
                fields["csrf_token"] = token
            answer = post(owner.client, Sent(form.method, form.action, fields))
            assert answer.status_code == 403, form.action
            assert "reload the page" in answer.text
    assert owner.actions() == before


def test_a_page_of_another_origin_cannot_post(owner: Visit) -> None:
    for form in forms_of(owner):
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
            assert post(owner.client, form, **headers).status_code in (400, 403), form.action
        assert post(owner.client, form, **{"Sec-Fetch-Site": "cross-site"}).status_code in (
            400,
            403,
        )


def test_another_page_cannot_sign_a_browser_in(olga: Visit) -> None:
    """Else it could make the visitor work in an account of the attacker's."""
    attacker = Visit.of(olga)
    form = attacker.page("/console/sign-in").form("/sign-in")
    form.fields |= {"name": "olga", "password": PASSWORD}
    victim = Visit.of(olga)
    assert post(victim.client, form).status_code == 403
    assert victim.session is None
    link = attacker.page(olga.invite("reader")).form("/link")
    link.fields |= {"name": "mallory", **passwords(PASSWORD)}
    assert post(victim.client, link).status_code == 403
    assert victim.session is None


def test_get_requests_change_nothing(owner: Visit) -> None:
    for form in forms_of(owner):
        path = urlsplit(form.action).path
        if path in ("/console/workspaces",):
            continue
        assert owner.open(path).status_code in (404, 405), path


def test_form_fields_give_no_role(owner: Visit) -> None:
    """Fields that the form does not have are not read."""
    path = owner.invite("reader", "a")
    browser = Visit.of(owner)
    form = browser.page(path).form("/link")
    more = {"role": "owner", "workspaces": "", "limit": "all", "kind": "set-up", "state": "active"}
    browser.send(form, {**passwords(PASSWORD), "name": "rita", **more})
    assert owner.role("rita") == ("reader", False)
    account = browser.page("/console/account").form("/password")
    browser.send(
        account,
        {
            "password": PASSWORD,
            "new_password": "another long password",
            "repeated": "another long password",
            "uid": owner.uid("olga"),
            "name": "olga",
            **more,
        },
    )
    assert owner.role("rita") == ("reader", False)
    owner.sign_in("olga")


OF_EVERY_VISITOR = {
    "console.change_password",
    "console.end_session",
    "console.sign_out",
    "console.sign_out_everywhere",
    "console.sign_in_with_password",
    "console.sign_in_with_key",
    "console.use_link",
}
"""What each member may change: its own account, and the session of its browser."""


def test_a_reader_changes_nothing_by_any_form(owner: Visit) -> None:
    rita = owner.join("reader", "rita", "a")
    token = rita.page("/console/account").form("/sign-out").fields["csrf_token"]
    rules = [
        rule
        for rule in owner.app.url_map.iter_rules()
        if rule.rule.startswith("/console") and "POST" in (rule.methods or ())
    ]
    assert {rule.endpoint for rule in rules} >= OF_EVERY_VISITOR
    before = contents(owner)
    for rule in rules:
        if rule.endpoint in OF_EVERY_VISITOR:
            continue
        path = rule.build(dict.fromkeys(rule.arguments, "a"))
        assert path is not None
        form = Sent("POST", f"http://localhost{path[1]}", {"csrf_token": token, "id": "a"})
        answer = post(rita.client, form)
        assert answer.status_code in (200, 403, 404, 422), f"{path[1]}: {answer.status_code}"
        assert contents(owner) == before, rule.endpoint


def contents(visit: Visit) -> list[object]:
    with visit.runtime.storage.read() as tx:
        return [tx.rows.page(spec.record) for spec in TABLES]


@pytest.mark.parametrize("role", ["reader", "operator", "owner"])
def test_no_one_but_an_owner_of_all_workspaces_posts_to_members(owner: Visit, role: str) -> None:
    rita = owner.join(role, "rita", *(("a",) if role == "owner" else ()))
    token = rita.page("/console/account").form("/sign-out").fields["csrf_token"]
    uid, own = owner.uid("olga"), owner.uid("rita")
    fields = {"csrf_token": token, "role": "owner", "limit": "all"}
    for path in (
        "invite",
        "links/x/withdraw",
        *(
            f"{who}/{action}"
            for who in (uid, own)
            for action in ("change", "deactivate", "activate", "end-sessions", "new-password")
        ),
    ):
        form = Sent("POST", f"http://localhost/console/members/{path}", fields)
        assert post(rita.client, form).status_code == 403, path
    assert owner.role("rita") == (role, role != "owner")


def test_another_members_session_cannot_be_ended(owner: Visit) -> None:
    rita = owner.join("reader", "rita")
    with owner.runtime.storage.read() as tx:
        (session,) = tx.sign_ins.of_member(owner.uid("olga"), owner.runtime.clock())
    token = rita.page("/console/account").form("/sign-out").fields["csrf_token"]
    action = f"http://localhost/console/account/sessions/{session.uid}/end"
    assert post(rita.client, Sent("POST", action, {"csrf_token": token})).status_code == 404
    owner.page("/console/account")


def test_links_do_not_follow_the_host_of_a_request(olga: Visit) -> None:
    form = olga.page("/console/members").form("/invite")
    for headers in (
        {"Host": "evil.example"},
        {"X-Forwarded-Host": "evil.example"},
        {"Forwarded": "host=evil.example"},
    ):
        answer = post(olga.client, form, **headers)
        if answer.status_code == 200:
            assert "http://127.0.0.1:8000/console/link?token=" in answer.text
        assert "evil.example" not in answer.text


def test_what_a_browser_sends_gets_into_no_header_and_no_line_of_the_log(
    olga: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    browser = Visit.of(olga)
    form = browser.page("/console/sign-in").form("/sign-in")
    hostile = "x\r\nSet-Cookie: memservice_session=planted\r\n\r\n<script>"
    form.fields |= {"name": hostile, "password": hostile}
    answer = post(browser.client, form, **{"User-Agent": "evil <script>alert(1)</script>"})
    assert answer.status_code == 403
    assert "planted" not in str(answer.headers)
    assert "<script>a" not in answer.text
    assert all("planted" not in record.getMessage() for record in caplog.records)
    browser.page("/console/link?token=%0d%0aSet-Cookie:%20x=y", 404)
    browser.sign_in("olga")
    assert "planted" not in str(browser.open("/console/account?done=%0d%0aplanted").headers)


@pytest.mark.every_storage
def test_a_nul_names_nothing(storage_name: str, tmp_path: Path) -> None:
    """Some stores cannot look for it."""
    with (
        store_of(storage_name, tmp_path) as uri,
        opened(tmp_path, **KEYS, DB_CONNECTION_URI=uri) as site,
    ):
        made = links.set_up(site.runtime, COMMAND_LINE)
        olga = Visit.of(site)
        olga.link(f"{links.PATH}?token={made.token}", "olga")
        olga.page("/console/members/a%00b", 404)
        olga.page("/console/link?token=a%00b", 404)
        olga.page("/console/audit?actor=a%00b&action=%00")
        token = olga.page("/console/account").form("/sign-out").fields["csrf_token"]
        for path in (
            *(
                f"members/a%00b/{action}"
                for action in ("deactivate", "activate", "end-sessions", "new-password")
            ),
            "members/links/a%00b/withdraw",
            "account/sessions/a%00b/end",
        ):
            form = Sent("POST", f"http://localhost/console/{path}", {"csrf_token": token})
            assert post(olga.client, form).status_code == 404, path
        other = Visit.of(site)
        other.sign_in("a\0b", "a\0b", 403)
        invite = olga.page("/console/members").form("/invite")
        olga.send(invite, {"role": "reader", "limit": "some", "workspaces": "a\0b"}, 422)


def test_the_browser_of_a_session_is_shown_as_text(olga: Visit) -> None:
    other = Visit.of(olga)
    form = other.page("/console/sign-in").form("/sign-in")
    form.fields |= {"name": "olga", "password": PASSWORD}
    post(other.client, form, **{"User-Agent": "<script>alert(1)</script> \u202e"})
    assert "<script>alert" not in olga.page("/console/account").source


def test_a_name_is_shown_as_text(olga: Visit) -> None:
    Visit.of(olga).link(olga.invite("reader"), "<img src=x onerror=alert(1)>")
    for path in ("/console/members", "/console/audit"):
        assert "<img" not in olga.page(path).source


def test_the_address_is_the_one_that_a_trusted_proxy_adds(tmp_path: Path) -> None:
    def address(site: Site, peer: str, **headers: str) -> str:
        olga = Visit.of(site)
        form = olga.page("/console/sign-in").form("/sign-in")
        form.fields |= {"name": "olga", "password": "wrong password"}
        olga.client.post(
            "/console/sign-in",
            data=form.fields,
            headers=headers,
            environ_base={"REMOTE_ADDR": peer},
        )
        with site.runtime.storage.read() as tx:
            (entry,) = tx.audit_log.page(limit=1)
        return entry.address or ""

    with opened(tmp_path, **KEYS, CONSOLE_PROXIES="10.0.0.1") as site:
        made = links.set_up(site.runtime, COMMAND_LINE)
        Visit.of(site).link(f"{links.PATH}?token={made.token}", "olga")
        forwarded = {"X-Forwarded-For": "6.6.6.6, 192.0.2.5"}
        assert address(site, "10.0.0.1", **forwarded) == "192.0.2.5"
        assert address(site, "10.0.0.1") == "10.0.0.1"
        assert address(site, "203.0.113.1", **forwarded) == "203.0.113.1"


# --- without authentication


def test_without_authentication_only_this_machine_opens_the_console(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        page = site.page("/console")
        assert "Authentication is off" in page.text
        for environ, headers in (
            ({"REMOTE_ADDR": "192.0.2.1"}, {}),
            ({}, {"Host": "192.0.2.7:8000"}),
            ({}, {"X-Forwarded-For": "192.0.2.1"}),
        ):
            answer = site.open("/console", environ_base=environ, headers=headers)
            assert answer.status_code in (400, 403), answer.text
            assert "only on this machine" in answer.text


def test_without_authentication_there_are_no_members(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        for path in PAGES_OF_OWNERS:
            site.page(path, 403)
        assert site.open("/console/link?token=x").status_code == 404
        form = site.page("/console/sign-in").form("/sign-in")
        form.fields |= {"name": "olga", "password": PASSWORD}
        assert post(site.client, form).status_code == 405
