"""Attacks on the console of members: cookies, forms, links, addresses."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from werkzeug.test import TestResponse

from memservice.services.auth import api_keys
from memservice.services.members import links
from memservice.spi.schema import TABLES
from support.api.console_site import KEYS, Sent, Site, opened
from support.api.console_visit import (
    COMMAND_LINE,
    PAGES_OF_OWNERS,
    PASSWORD,
    Visit,
    passwords,
    post,
)
from support.api.console_visit import olga as olga
from support.api.console_visit import owner as owner
from support.api.console_visit import site as site
from support.stores.stores import store_of


def set_cookies(answer: TestResponse) -> dict[str, str]:
    """Attributes of the cookies that an answer sets, in lower case, by name."""
    rows = (header.partition("=") for header in answer.headers.getlist("Set-Cookie"))
    return {name: rest.partition(";")[2].lower() for name, _, rest in rows}


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("how", ["scheme", "setting"])
def test_over_tls_cookies_are_secure_and_of_this_host_only(tmp_path: Path, how: str) -> None:
    settings = {"CONSOLE_URL": "https://memory.example.com/"} if how == "setting" else {}
    with opened(tmp_path, **KEYS, **settings) as site:
        link = links.set_up(site.runtime, COMMAND_LINE)
        base = "https://localhost" if how == "scheme" else "http://localhost"
        client = site.app.test_client()
        page = client.get(f"/console/link?token={link.token}", base_url=base)
        field = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
        assert field is not None
        cookie = re.match(r"([^=]+)=([^;]+)", page.headers["Set-Cookie"])
        assert cookie is not None
        answer = client.post(
            "/console/link",
            data={"csrf_token": field[1], "token": link.token, "name": "o", **passwords(PASSWORD)},
            base_url=base,
            headers={"Cookie": cookie[0]},
        )
        assert answer.status_code == 303, answer.text
        cookies = set_cookies(answer)
        assert cookies.keys() == {"__Host-memservice_session", "__Host-memservice_browser"}
        assert all("secure" in attributes for attributes in cookies.values())
        if how == "setting":
            assert link.url(site.runtime.settings).startswith(
                "https://memory.example.com/console/link?token="
            )


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_stolen_session_is_worth_nothing_after_the_sign_out(olga: Visit) -> None:
    thief = Visit.of(olga)
    thief.client.set_cookie("memservice_session", olga.session or "")
    thief.page("/console/account")
    olga.send(olga.page("/console/account").form("/sign-out"))
    thief.page("/console/account", 401)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_page_of_another_origin_cannot_post(owner: Visit) -> None:
    for form in forms_of(owner):
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
            assert post(owner.client, form, **headers).status_code in (400, 403), form.action
        assert post(owner.client, form, **{"Sec-Fetch-Site": "cross-site"}).status_code in (
            400,
            403,
        )


@pytest.mark.slow
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


@pytest.mark.slow
def test_get_requests_change_nothing(owner: Visit) -> None:
    for form in forms_of(owner):
        path = urlsplit(form.action).path
        if path in ("/console/workspaces",):
            continue
        assert owner.open(path).status_code in (404, 405), path


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
            f"{member}/{action}"
            for member in (uid, own)
            for action in ("change", "deactivate", "activate", "end-sessions", "new-password")
        ),
    ):
        form = Sent("POST", f"http://localhost/console/members/{path}", fields)
        assert post(rita.client, form).status_code == 403, path
    assert owner.role("rita") == (role, role != "owner")


@pytest.mark.slow
def test_another_members_session_cannot_be_ended(owner: Visit) -> None:
    rita = owner.join("reader", "rita")
    with owner.runtime.storage.read() as tx:
        (session,) = tx.sign_ins.of_member(owner.uid("olga"), owner.runtime.clock())
    token = rita.page("/console/account").form("/sign-out").fields["csrf_token"]
    action = f"http://localhost/console/account/sessions/{session.uid}/end"
    assert post(rita.client, Sent("POST", action, {"csrf_token": token})).status_code == 404
    owner.page("/console/account")


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.every_storage("postgres")
def test_a_nul_names_nothing(storage_name: str, tmp_path: Path) -> None:
    """Some stores cannot look for it."""
    with (
        store_of(storage_name, tmp_path) as uri,
        opened(tmp_path, **KEYS, DB_CONNECTION_URI=uri) as site,
    ):
        link = links.set_up(site.runtime, COMMAND_LINE)
        olga = Visit.of(site)
        olga.link(f"{links.PATH}?token={link.token}", "olga")
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


@pytest.mark.slow
def test_the_browser_of_a_session_is_shown_as_text(olga: Visit) -> None:
    other = Visit.of(olga)
    form = other.page("/console/sign-in").form("/sign-in")
    form.fields |= {"name": "olga", "password": PASSWORD}
    post(other.client, form, **{"User-Agent": "<script>alert(1)</script> \u202e"})
    assert "<script>alert" not in olga.page("/console/account").source


@pytest.mark.slow
def test_a_name_is_shown_as_text(olga: Visit) -> None:
    Visit.of(olga).link(olga.invite("reader"), "<img src=x onerror=alert(1)>")
    for path in ("/console/members", "/console/audit"):
        assert "<img" not in olga.page(path).source


@pytest.mark.slow
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
        link = links.set_up(site.runtime, COMMAND_LINE)
        Visit.of(site).link(f"{links.PATH}?token={link.token}", "olga")
        forwarded = {"X-Forwarded-For": "6.6.6.6, 192.0.2.5"}
        assert address(site, "10.0.0.1", **forwarded) == "192.0.2.5"
        assert address(site, "10.0.0.1") == "10.0.0.1"
        assert address(site, "203.0.113.1", **forwarded) == "203.0.113.1"


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
