"""The console as a browser without JavaScript uses it: pages, links and forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services.auth import api_keys
from memservice.services.auth.principal import Principal
from memservice.settings import load_settings

ADMIN = Principal(admin=True)
KEYS = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40}
VOID = {"meta", "link", "input", "br"}
CONTROLS = {"input", "select", "textarea"}


@dataclass
class Sent:
    """A form of a page: where it goes, and what it would send unchanged."""

    method: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """What a page contains. Feeding it checks what holds for every page."""

    def __init__(self, url: str, text: str) -> None:
        super().__init__()
        self.url, self.source = url, text
        self.links: list[str] = []
        self.assets: list[str] = []
        self.forms: list[Sent] = []
        self.ids: list[str] = []
        self.text = ""
        self._labelled: set[str] = set()
        self._controls: list[dict[str, str | None]] = []
        self._areas: list[str] = []
        self._select: str | None = None
        self._headings = 0
        self._open: list[str] = []
        self.feed(text)
        self._check()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        assert len(attributes) == len(attrs), f"{self.url}: {tag} repeats an attribute"
        assert tag != "style", f"{self.url}: a style inside the page"
        for name in attributes:
            assert not name.startswith("on"), f"{self.url}: a script in the attribute {name}"
        if attributes.get("class") == "copy" or "data-mirrors" in attributes:
            assert "hidden" in attributes, f"{self.url}: {tag} does nothing without JavaScript"
            assert name != "style", f"{self.url}: a style in an attribute"
            assert not name.startswith("hx-on"), f"{self.url}: a script for htmx"
        if tag == "script":
            assert attributes.get("src"), f"{self.url}: a script inside the page"
        if tag not in VOID:
            self._open.append(tag)
        self._headings += tag == "h1"
        if (identifier := attributes.get("id")) is not None:
            self.ids.append(identifier)
        if tag == "label":
            self._labelled.add(attributes.get("for") or "")
        if tag == "form":
            self.forms.append(
                Sent(
                    (attributes.get("method") or "get").upper(), self._resolve(attributes["action"])
                )
            )
        if tag in CONTROLS and attributes.get("type") != "hidden":
            self._controls.append(attributes)
        is_sent = attributes.get("type") not in ("checkbox", "radio") or "checked" in attributes
        if tag == "input" and is_sent and attributes.get("name") is not None:
            self.forms[-1].fields[attributes["name"] or ""] = attributes.get("value") or ""
        if tag == "select":
            self._select = attributes["name"]
        if tag == "option" and self._select is not None:
            values = self.forms[-1].fields
            if "selected" in attributes or self._select not in values:
                values[self._select] = attributes["value"] or ""
        if tag == "textarea":
            self._areas.append(attributes["name"] or "")
            self.forms[-1].fields[self._areas[-1]] = ""
        for attribute, urls in (("href", self.links), ("src", self.assets)):
            if (value := attributes.get(attribute)) is not None and not value.startswith("#"):
                assert not value.startswith(("/", "http", "javascript")), f"{self.url}: {value}"
                (self.assets if tag == "link" else urls).append(self._resolve(value))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"{self.url}: nothing is open for </{tag}>"
        assert self._open.pop() == tag, f"{self.url}: </{tag}> closes something else"
        if tag == "textarea":
            name = self._areas.pop()
            fields = self.forms[-1].fields
            fields[name] = fields[name].removeprefix("\n")
        if tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._areas:
            self.forms[-1].fields[self._areas[-1]] += data

    def form(self, action: str) -> Sent:
        """The form whose address ends so."""
        (form,) = [form for form in self.forms if urlsplit(form.action).path.endswith(action)]
        return form

    def _resolve(self, address: str | None) -> str:
        return urljoin(self.url, address or "")

    def _check(self) -> None:
        assert not [tag for tag in self._open if tag not in ("html", "body")], self._open
        assert len(self.ids) == len(set(self.ids)), f"{self.url}: an id is there twice"
        assert self._headings == 1, f"{self.url}: {self._headings} main headings"
        for control in self._controls:
            assert control.get("aria-label") or control.get("id") in self._labelled, (
                f"{self.url}: no label for {control}"
            )


class Site:
    """The console of one application, and one visitor of it."""

    def __init__(self, app: Flask, runtime: Runtime, key: str | None = None) -> None:
        self.app, self.runtime = app, runtime
        self.client: FlaskClient = app.test_client()
        self.headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def as_bearer_of(self, key: str) -> Site:
        return Site(self.app, self.runtime, key)

    def key(self, **names: str) -> str:
        return api_keys.mint(self.runtime, ADMIN, api_keys.KeyRequest(**names)).token

    def open(self, url: str, method: str = "GET", **options: Any) -> TestResponse:
        headers = {"Accept": "text/html", **self.headers, **options.pop("headers", {})}
        return self.client.open(url, method=method, headers=headers, **options)

    def page(self, url: str, status: int = 200) -> Page:
        answer = self.open(url)
        if status == 200 and answer.status_code == 303:
            target = urlsplit(urljoin(f"http://localhost{url}", answer.headers["Location"]))
            return self.page(target.path)
        assert answer.status_code == status, f"{url}: {answer.status_code} {answer.text[:300]}"
        assert answer.mimetype == "text/html"
        return Page(f"http://localhost{url}", answer.text)

    def send(self, form: Sent, typed: Mapping[str, str] = {}, status: int = 303) -> Page:
        """Send a form with these changes; the page that comes of it."""
        url = urlsplit(form.action)
        target = url.path + (f"?{url.query}" if url.query else "")
        answer = self.open(target, form.method, data={**form.fields, **typed})
        assert answer.status_code == status, f"{target}: {answer.status_code} {answer.text[:300]}"
        if status != 303:
            return Page(form.action, answer.text)
        location = urlsplit(urljoin(form.action, answer.headers["Location"]))
        return self.page(location.path + (f"?{location.query}" if location.query else ""))

    def say(self, workspace: str, session: str, *turns: tuple[str, str]) -> None:
        messages = [{"peer_id": peer, "content": content} for peer, content in turns]
        answer = self.client.post(
            f"/v3/workspaces/{workspace}/sessions/{session}/messages",
            json={"messages": messages},
            headers=self.headers,
        )
        assert answer.status_code == 201, answer.text

    def conclude(self, workspace: str, observer: str, observed: str, *contents: str) -> None:
        pair = {"observer_id": observer, "observed_id": observed}
        answer = self.client.post(
            f"/v3/workspaces/{workspace}/conclusions",
            json={"conclusions": [{"content": content, **pair} for content in contents]},
            headers=self.headers,
        )
        assert answer.status_code == 201, answer.text


@contextmanager
def opened(folder: Path, *extra: object, **overrides: str) -> Iterator[Site]:
    """A console over a store of its own, in memory unless `overrides` name another."""
    overrides = {"DB_CONNECTION_URI": "memory://", **overrides}
    settings = load_settings(environ={}, cwd=folder, overrides=overrides)
    runtime = open_runtime(settings, "api", plugins=load_plugins(settings, extra))
    runtime.storage.migrate()
    try:
        yield Site(create_app(runtime=runtime), runtime)
    finally:
        runtime.close()
