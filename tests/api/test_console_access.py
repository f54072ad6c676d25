"""Who sees what at the console: keys, members, this machine, other origins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from memservice.cli.operator import OPERATOR
from memservice.services.auth import api_keys
from memservice.services.auth.permissions import Role
from memservice.services.members import links, sign_ins
from memservice.services.members.visitors import Browser, visitor_of
from memservice_console.sign_in import SESSION_COOKIE
from support.api.console_pages import crawled, paths
from support.api.console_pages import filled_site as filled_site
from support.api.console_pages import site as site
from support.api.console_site import ADMIN, KEYS, Site, opened
from support.stores.stores import undone


@pytest.mark.slow
def test_without_a_key_there_is_nothing_to_see(tmp_path: Path) -> None:
    with opened(tmp_path, **KEYS) as site:
        admin = site.as_bearer_of(site.key())
        admin.say("w", "s1", ("alice", "a secret"))
        for path in ("/console", "/console/workspaces", "/console/workspaces/w/sessions/s1"):
            page = site.page(path, 401)
            assert "Sign in" in page.text
            assert "secret" not in page.text
        assert site.open("/console/workspaces", "POST", data={"id": "x"}).status_code == 401
        assert "a secret" in admin.page("/console/workspaces/w/sessions/s1").text
        assert "Authentication is off" not in admin.page("/console").text
        assert "YOUR_KEY" in admin.page("/console").text


@pytest.mark.slow
def test_a_workspace_key_sees_its_workspace_only(tmp_path: Path) -> None:
    with opened(tmp_path, **KEYS) as site:
        admin = site.as_bearer_of(site.key())
        admin.say("mine", "s1", ("alice", "hello"))
        admin.say("theirs", "s1", ("bob", "hello"))
        own = site.as_bearer_of(site.key(workspace_id="mine"))
        assert own.open("/console").headers["Location"] == "console/workspaces"
        page = own.page("/console/workspaces")
        assert "mine" in page.text
        assert "theirs" not in page.text
        assert "/console" in paths(page)
        own.page("/console/workspaces/mine/sessions/s1")
        for path in ("", "/sessions/s1", "/sessions/s1/context", "/peers/bob"):
            own.page(f"/console/workspaces/theirs{path}", 403)
        answer = own.open("/console/workspaces/theirs/delete", "POST", data={"id": "theirs"})
        assert answer.status_code == 403
        assert own.open("/console/workspaces", "POST", data={"id": "new"}).status_code == 403
        admin.page("/console/workspaces/theirs")


@pytest.mark.parametrize("narrow", ["peer_id", "session_id"])
def test_narrow_and_wrong_keys_are_refused(tmp_path: Path, narrow: str) -> None:
    with opened(tmp_path, **KEYS) as site:
        admin = site.as_bearer_of(site.key())
        admin.say("w", "x", ("x", "hello"))
        key = site.key(workspace_id="w", **{narrow: "x"})
        assert "whole workspace" in site.as_bearer_of(key).page("/console/workspaces", 403).text
        site.as_bearer_of("none").page("/console/workspaces", 403)


@pytest.mark.slow
def test_a_form_needs_the_token_of_its_browser(site: Site) -> None:
    form = site.page("/console/workspaces").form("/workspaces")
    assert site.open("/console/workspaces", "POST", data={"id": "x"}).status_code == 403
    assert (
        site.open("/console/workspaces", "POST", data={"id": "x", "csrf_token": "x"}).status_code
        == 403
    )
    site.send(form, {"id": "x"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sender", "headers"),
    [
        ("192.0.2.1", {}),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.1"}),
        ("127.0.0.1", {"Host": "192.0.2.1:8000"}),
    ],
)
def test_without_authentication_only_this_machine_is_answered(
    filled_site: Site, sender: str, headers: dict[str, str]
) -> None:
    answer = filled_site.open(
        "/console/workspaces", headers=headers, environ_base={"REMOTE_ADDR": sender}
    )
    assert answer.status_code == 400
    assert "AUTH_USE_AUTH" in answer.text
    assert "alice" not in answer.text


def signed_in(site: Site, key: str) -> Site:
    visitor = Site(site.app, site.runtime)
    session = sign_ins.with_key(site.runtime, Browser("127.0.0.1"), key)
    visitor.client.set_cookie(SESSION_COOKIE, session.session_id, domain="localhost")
    return visitor


def member(site: Site, role: Role, workspaces: Sequence[str] | None = None) -> Site:
    """A member of the console, signed in."""
    rt, browser, password = site.runtime, Browser("127.0.0.1"), "a long enough password"
    owner = links.accept(rt, browser, links.set_up(rt, OPERATOR).token, "owner", password)
    session = sign_ins.after_link(rt, browser, owner)
    visitor = visitor_of(rt, session.session_id)
    assert visitor is not None
    if role is not Role.OWNER:
        link = links.invite(rt, visitor, browser, role, workspaces)
        invited = links.accept(rt, browser, link.token, "other", password)
        session = sign_ins.after_link(rt, browser, invited)
    member_site = Site(site.app, site.runtime)
    member_site.client.set_cookie(SESSION_COOKIE, session.session_id, domain="localhost")
    return member_site


@pytest.fixture
def secured_site(tmp_path: Path) -> Iterator[Site]:
    """With authentication, and two workspaces."""
    with opened(tmp_path, **KEYS) as site:
        admin = site.as_bearer_of(site.key())
        admin.say("w", "s1", ("alice", "hello"))
        admin.say("other", "s1", ("bob", "hello"))
        yield site


@pytest.mark.slow
def test_pages_offer_and_do_what_the_role_permits(secured_site: Site) -> None:
    forms = {}
    for role in Role:
        with undone(secured_site.runtime.storage):
            visitor = member(secured_site, role)
            pages = crawled(visitor)
            forms[role] = {
                urlsplit(form.action).path
                for page in pages.values()
                for form in page.forms
                if form.method == "POST"
            }
            statuses = {
                path: visitor.open(path).status_code
                for path in ("/console/keys", "/console/settings", "/console/workspaces/w/webhooks")
            }
            allowed = {path for path, status in statuses.items() if status == 200}
            assert len(allowed) == {Role.READER: 0, Role.OPERATOR: 2, Role.OWNER: 3}[role]
    asking = {"/console/workspaces/w/peers/alice/ask", "/console/workspaces/other/peers/bob/ask"}
    own = {"/console/account/password", "/console/account/sign-out-everywhere", "/console/sign-out"}
    assert forms[Role.READER] == asking | own | {"/console/jobs"}
    assert "/console/workspaces/w/webhooks" in forms[Role.OPERATOR]
    assert "/console/workspaces/w/delete" not in forms[Role.OPERATOR]
    assert "/console/workspaces/w/delete" in forms[Role.OWNER]
    assert "/console/keys" in forms[Role.OWNER]


@pytest.mark.slow
def test_a_limited_member_sees_those_workspaces_only(secured_site: Site) -> None:
    visitor = member(secured_site, Role.OPERATOR, ["w"])
    pages = crawled(visitor, "/console/workspaces")
    assert not [path for path in pages if "/other" in path]
    assert all("bob" not in page.text for page in pages.values())
    for path in ("/console/instance", "/console/settings", "/console/workspaces/other"):
        assert visitor.open(path).status_code == 403, path


@pytest.mark.slow
def test_a_session_with_a_key_ends_with_the_key(secured_site: Site) -> None:
    minted = api_keys.mint(secured_site.runtime, ADMIN, api_keys.KeyRequest(workspace_id="w"))
    visitor = signed_in(secured_site, minted.token)
    form = visitor.page("/console/workspaces/w").form("/configuration")
    without = {**form.fields, "csrf_token": "x"}
    url = "/console/workspaces/w/configuration"
    assert visitor.open(url, "POST", data=without).status_code == 403
    visitor.send(form)
    api_keys.revoke(secured_site.runtime, ADMIN, minted.key.uid)
    visitor.page("/console/workspaces/w", 401)


def test_pages_of_other_origins_send_no_forms(site: Site) -> None:
    answer = site.open(
        "/console/workspaces", "POST", data={"id": "x"}, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 400
    assert "There is no workspace yet" in site.page("/console/workspaces").text
