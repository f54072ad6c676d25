"""The console in a browser: scripts work under its Content-Security-Policy, nothing overflows a
small screen, and a refresh takes nothing away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from memservice.domain.records import FAILED, Task
from support.api.console_site import Site, opened
from support.browser import chromium
from support.browser.checks import overflow, refresh_is_held_back
from support.browser.walk import SMALL, Reader

pytestmark = [
    pytest.mark.heavy,
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


def test_a_download_shows_its_progress(page: Any, tmp_path: Path) -> None:
    page.goto("/console/workspaces/w")
    with page.expect_download() as download:
        page.locator("form[data-download] button").click()
    assert download.value.suggested_filename == "w.jsonl"
    download.value.save_as(tmp_path / "w.jsonl")
    lines = (tmp_path / "w.jsonl").read_text(encoding="utf-8").splitlines()
    assert '"end"' in lines[-1]
    progress = page.locator("#export-progress")
    progress.get_by_text("Complete").wait_for()
    assert progress.inner_text().strip() == f"Complete: {len(lines)} lines"
    bar = progress.locator("progress")
    assert bar.evaluate("bar => bar.value === bar.max && bar.max > 32")


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
    assert not refresh_is_held_back(page)
    chosen.check()
    assert refresh_is_held_back(page), "a refresh would undo the choice"
    assert chosen.is_checked()


# --- hostile content

HOSTILE = {
    "script": "<script>window.injected = 1; alert(1)</script><img src=x onerror=alert(2)>",
    "override": "safe \u202egnp.exe \u2066isolated",
    "terminal": "\x1b[31mred\x1b[0m \x07 bell",
    "long line": "x" * 25_000,
}
NAMES = {"script": '"><script>alert(3)</script>', "override": "\u202eevil", "long": "n" * 100}


@pytest.fixture(scope="module")
def hostile(site: tuple[Site, str]) -> Site:
    """A workspace whose texts and names try to break pages."""
    console = site[0]
    console.say("h", "s", *(("alice", text) for text in HOSTILE.values()))
    console.say("h", "n" * 100, ("n" * 100, "hello"))
    console.conclude("h", "alice", "alice", *list(HOSTILE.values())[:3], "y" * 8_000)
    for name in NAMES.values():
        body = {"id": "alice", "metadata": {"name": name}}
        assert console.client.post("/v3/workspaces/h/peers", json=body).status_code in (200, 201)
    now = console.runtime.clock()
    failed = [
        Task(
            uid=f"hostile{number}",
            unit=f"erase:hostile{number}",
            kind="erase",
            created_at=now,
            not_before=now,
            state=FAILED,
            finished_at=now,
            last_error=text,
        )
        for number, text in enumerate(HOSTILE.values())
    ]
    console.runtime.storage.write(lambda tx: tx.tasks.add(failed))
    return console


HOSTILE_PATHS = (
    "/console/workspaces/h",
    "/console/workspaces/h/sessions/s",
    f"/console/workspaces/h/sessions/{'n' * 100}",
    "/console/workspaces/h/sessions/s/context?target=alice&tokens=50000",
    "/console/workspaces/h/peers/alice",
    f"/console/workspaces/h/peers/{'n' * 100}",
    "/console/workspaces/h/search?query=safe+red+bell+script",
    "/console/jobs?state=failed",
)


def test_hostile_content_is_shown_as_text(hostile: Site, page: Any) -> None:
    """No dialog, no script, no request, nothing wider than the window; see `page`."""
    for path in HOSTILE_PATHS:
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert overflow(page) == 0, path
        assert page.evaluate("window.injected") is None
        assert page.locator("main script, main img").count() == 0
        raw = page.evaluate(
            "/[\\u202a-\\u202e\\u2066-\\u2069\\x1b\\x07]/.test(document.body.innerText)"
        )
        assert not raw, path
    page.goto("/console/workspaces/h/sessions/s")
    text = page.locator(".transcript").inner_text()
    for shown in ("<script>window.injected", "⟨U+202E⟩gnp.exe", "␛[31mred", "x" * 25_000):
        assert shown in text


def test_text_of_each_author_is_isolated_from_its_surroundings(hostile: Site, page: Any) -> None:
    """A right-to-left text does not reorder what stands beside it."""
    page.goto("/console/workspaces/h/peers/alice")
    directions = page.evaluate(
        "[...document.querySelectorAll('main [dir=auto]')]"
        ".map((element) => getComputedStyle(element).unicodeBidi)"
    )
    assert directions
    assert set(directions) <= {"isolate", "plaintext", "isolate-override"}


# --- a calm page


def test_a_refresh_keeps_the_scroll_position_and_the_focus(
    site: tuple[Site, str], page: Any
) -> None:
    page.goto("/console/jobs")
    page.evaluate("scrollTo(0, 150)")
    page.get_by_label("Workspace").focus()
    before = page.evaluate("[scrollY, document.activeElement.id]")
    page.evaluate(
        """() => {
            document.getElementById("jobs").dataset.isOld = "";
            const jobs = { source: "#jobs", target: "#jobs", select: "#jobs" };
            htmx.ajax("GET", location.pathname, { ...jobs, swap: "outerHTML" });
        }"""
    )
    page.locator("#jobs:not([data-is-old])").wait_for()
    assert page.evaluate("[scrollY, document.activeElement.id]") == before


EMPTY = {
    "/console/workspaces/empty": ("No peers yet", "A client creates one"),
    "/console/workspaces/empty/webhooks": ("no endpoint", "Register one"),
    "/console/workspaces/empty/search?query=x": ("No message fits", "Try other words"),
    "/console/jobs?workspace=empty": ("no such work", "how to send one"),
    "/console/usage?workspace=empty": ("No model was called", "Without a configured model"),
}


def test_empty_pages_say_what_to_do_next(site: tuple[Site, str], page: Any) -> None:
    site[0].client.post("/v3/workspaces", json={"id": "empty"})
    for path, texts in EMPTY.items():
        page.goto(path)
        shown = " ".join(page.locator("main .empty").all_inner_texts())
        for text in texts:
            assert text in shown, path
