"""The console in a browser: scripts work under its Content-Security-Policy, nothing overflows a
small screen, and a refresh takes nothing away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from memservice.domain.records import Task
from support.api.console_site import Site, opened
from support.browser import chromium
from support.browser.walk import SMALL, Reader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("console-browser"),
    pytest.mark.skipif(bool(chromium.MISSING), reason=chromium.MISSING or "not skipped"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    folder: Path = tmp_path_factory.mktemp("console")
    with opened(folder) as site:
        site.say("w", "s", *(("alice", f"I live in Ghent, house {number}") for number in range(30)))
        site.say("w", "s", ("bob", "x" * 5_000), ("bob", "<script>window.injected = 1</script>"))
        site.conclude("w", "alice", "alice", "lives in Ghent", "<img src=x onerror=alert(1)>")
        server = make_server("127.0.0.1", 0, site.app, threaded=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield site, f"http://127.0.0.1:{server.port}"
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.launched() as browser:
        yield browser


@pytest.fixture
def page(site: tuple[Site, str], browser: Any) -> Iterator[Any]:
    """A page that fails the test for each error of a script and each violation of the policy."""
    reader = Reader(browser, site[1], viewport=SMALL)
    yield reader.page
    reader.close()
    reader.watch.check()


PATHS = (
    "/console",
    "/console/instance",
    "/console/workspaces",
    "/console/workspaces/w",
    "/console/workspaces/w/search?query=Ghent",
    "/console/workspaces/w/peers/alice",
    "/console/workspaces/w/sessions/s",
    "/console/workspaces/w/sessions/s/context?target=alice",
    "/console/workspaces/w/webhooks",
    "/console/jobs",
    "/console/usage",
    "/console/settings",
)


def test_no_page_is_wider_than_a_small_screen(page: Any) -> None:
    wide = {}
    for path in PATHS:
        page.goto(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > SMALL["width"]:
            wide[path] = width
        assert page.evaluate("window.injected") is None
    assert wide == {}


def test_times_are_in_the_zone_of_the_reader(page: Any) -> None:
    page.goto("/console/workspaces")
    moment = page.locator("main time").first
    assert "UTC" not in moment.inner_text()
    assert "UTC" in moment.get_attribute("title")


def test_an_answer_is_streamed_beside_its_evidence(page: Any) -> None:
    page.goto("/console/workspaces/w/peers/alice")
    page.get_by_label("Question").fill("Where does alice live?")
    page.get_by_role("button", name="Ask").click()
    page.locator("#answer-evidence li").first.wait_for()
    assert "Ghent" in page.locator("#answer-text").inner_text()
    assert page.url.endswith("/peers/alice"), "the page stayed"


def test_the_context_follows_the_slider(page: Any) -> None:
    page.goto("/console/workspaces/w/sessions/s/context?tokens=0")
    messages = page.locator("#preview .content")
    assert messages.count() == 0
    page.locator("#f-slider").fill("20000")
    messages.first.wait_for()
    assert page.locator("#f-tokens").input_value() == "20000"


REFRESH = """() => {
    const part = document.getElementById("jobs");
    const detail = { elt: part };
    const options = { bubbles: true, cancelable: true, detail };
    const event = new CustomEvent("htmx:beforeRequest", options);
    document.activeElement.blur();
    part.dispatchEvent(event);
    return event.defaultPrevented;
}"""
"""Whether the page holds back the next refresh."""


def test_a_refresh_shows_new_jobs_but_keeps_what_was_chosen(
    site: tuple[Site, str], page: Any
) -> None:
    rt = site[0].runtime
    now = rt.clock()

    def add(name: str) -> None:
        task = Task(uid=name, unit=f"erase:{name}", kind="erase", created_at=now, not_before=now)
        rt.storage.write(lambda tx: tx.tasks.add([task]))

    add("zero")
    page.goto("/console/jobs")
    add("first")
    chosen = page.get_by_label("Choose erase first")
    chosen.wait_for(timeout=15_000)
    assert not page.evaluate(REFRESH)
    chosen.check()
    assert page.evaluate(REFRESH), "a refresh would undo the choice"
    assert chosen.is_checked()
