"""A reader of the console: one browser session against a served process, with its pages watched."""

from __future__ import annotations

import re
import time
from typing import Any

from support.browser.watch import Watch
from support.clients.server import Server

PASSWORD = "correct horse battery"
WIDE = {"width": 1100, "height": 800}
SMALL = {"width": 380, "height": 700}
TIMEOUT_MS = 15_000
LINK = re.compile(r"http://\S+/console/link\?token=[\w-]+")


class Reader:
    """Opens pages, and fails for each problem that the page has beside its content."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        """`options`: those of `playwright.sync_api.Browser.new_context`."""
        self.context = browser.new_context(
            **{
                "base_url": url,
                "viewport": WIDE,
                "timezone_id": "Asia/Tokyo",
                "locale": "en-GB",
                "permissions": ["clipboard-read", "clipboard-write"],
                **options,
            }
        )
        self.context.set_default_timeout(TIMEOUT_MS)
        self.watch = Watch(self.context, url)
        self.page = self.context.new_page()

    def open(self, path: str, status: int = 200) -> Any:
        """The page, once it is loaded."""
        answer = self.page.goto(path)
        assert answer.status == status, f"{path}: {answer.status}"
        self.watch.check()
        return self.page

    def until(self, path: str, text: str, part: str = "main", seconds: float = 30.0) -> Any:
        """The page, reloaded until the elements that the selector `part` names have this text."""
        deadline = time.monotonic() + seconds
        page = self.open(path)
        while text not in "".join(page.locator(part).all_inner_texts()):
            assert time.monotonic() < deadline, page.locator(part).all_inner_texts()
            time.sleep(0.5)
            page = self.open(path)
        return page

    def press(self, name: str, **options: Any) -> None:
        """Click a button and wait for the page that follows."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=name, **options).click()
        self.watch.check()

    def join(self, link: str, name: str) -> None:
        """Use a one-time link up."""
        page = self.open(link)
        page.get_by_label("E-mail address or name").fill(name)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_label("The same password again").fill(PASSWORD)
        self.press("Create the account")

    def sign_in(self, name: str) -> None:
        page = self.open("/console/sign-in")
        page.get_by_label("E-mail address or name").fill(name)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        self.press("Sign in", exact=True)

    def close(self) -> None:
        self.context.close()


def set_up_link(server: Server) -> str:
    """The link that the server prints when it starts for the first time."""
    match = LINK.search(server.output)
    assert match is not None, server.output
    return match[0]
