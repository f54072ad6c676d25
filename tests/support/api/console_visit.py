"""Browsers at the console: one with no session, one of the first owner."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from memservice.services.auth.permissions import ALL
from memservice.services.auth.principal import Principal
from memservice.services.members import links
from support.api.console_site import KEYS, Page, Sent, Site, opened

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


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with opened(tmp_path, **KEYS) as opened_site:
        yield opened_site


@pytest.fixture
def olga(site: Site) -> Visit:
    """The browser of the first owner."""
    link = links.set_up(site.runtime, COMMAND_LINE)
    browser = Visit.of(site)
    browser.link(f"{links.PATH}?token={link.token}", "olga")
    return browser


@pytest.fixture
def owner(olga: Visit) -> Visit:
    admin = olga.as_bearer_of(olga.key())
    for name in ("a", "b"):
        admin.say(name, "s1", ("alice", f"secret of {name}"))
    return olga


def post(client: FlaskClient, form: Sent, **headers: str) -> TestResponse:
    url = urlsplit(form.action).path
    return client.post(url, data=form.fields, headers={"Accept": "text/html", **headers})
