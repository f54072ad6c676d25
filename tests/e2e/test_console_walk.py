"""A walk through the console in a browser, from the set-up link to the sign-out, against a served
process with authentication, a worker, the published client and a receiver of webhooks.

The tests are steps: each one continues where the one before ended. Without the heavy ones, whose
requests tests/api/test_console*.py send, the walk comes to each page.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.browser import chromium
from support.browser.checks import (
    accessibility_violations,
    layout_problems,
    page_problems,
    refresh_is_held_back,
    tab_through,
)
from support.browser.client_process import ClientProcess, client_process
from support.browser.model_server import ModelServer, serving_model
from support.browser.walk import LINK, SMALL, WIDE, Reader, set_up_link
from support.clients.older_generations import SECRET
from support.clients.server import Server, serving
from support.receiver import LOOPBACK, Receiver, receiving

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("console-walk"),
    pytest.mark.skipif(bool(chromium.MISSING), reason=chromium.MISSING or "not skipped"),
]

STATEMENT: dict[str, Any] = {
    "content": "Alice's tortoise is called Balthazar",
    "messages": [1],
    "basis": "said",
    "confirms": [],
}
MESSAGES = [
    ("alice", "My tortoise is called Balthazar."),
    ("assistant", "Lovely! How old is he?"),
    *(("alice", f"I planted tulips in row {number}.") for number in range(1, 9)),
]
GARDEN = "/console/workspaces/garden"
SESSION = f"{GARDEN}/sessions/planning"
CONTEXT = f"{SESSION}/context"
ALICE = f"{GARDEN}/peers/alice"


class Walk:
    """What the steps share."""

    def __init__(
        self, server: Server, browser: Any, client: ClientProcess, model: ModelServer
    ) -> None:
        self.server, self.browser, self.client, self.model = server, browser, client, model
        self.owner = Reader(browser, server.url)
        self.has_owner = self.is_broken = False
        self.key = ""
        """Of the published client: an admin key."""
        self.webhook = ""
        """The path of the endpoint's page."""

    def reader(self, **options: Any) -> Reader:
        """Another browser."""
        return Reader(self.browser, self.server.url, **options)

    @contextmanager
    def without_session(self) -> Iterator[Reader]:
        """The owner's browser, used by somebody else. Another one takes two seconds of CPU."""
        context = self.owner.context
        cookies = context.cookies()
        context.clear_cookies()
        yield self.owner
        context.clear_cookies()
        context.add_cookies(cookies)


@pytest.fixture(scope="module")
def receiver_of_walk() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory, published_client: Path) -> Iterator[Walk]:
    with ExitStack() as stack:
        model = stack.enter_context(serving_model(""))
        server = stack.enter_context(
            serving(
                tmp_path_factory.mktemp("walk"),
                AUTH_USE_AUTH="true",
                AUTH_JWT_SECRET=SECRET,
                WORKERS="1",
                THREADS="8",
                WORKER_MAX_ATTEMPTS="1",
                WEBHOOK_ALLOW_NETWORKS=LOOPBACK,
                DERIVER_FLUSH_ENABLED="true",
                **model.settings("DERIVER"),
            )
        )
        client = stack.enter_context(client_process(published_client, server.url))
        yield Walk(server, stack.enter_context(chromium.launched()), client, model)


@pytest.fixture(autouse=True)
def step(walk: Walk, request: pytest.FixtureRequest) -> Iterator[None]:
    """Skips the steps after one that failed."""
    if walk.is_broken:
        pytest.skip("a step before this one failed")
    if not walk.has_owner and request.function is not test_the_set_up_link_makes_the_owner:
        pytest.skip("the steps before this one are not among the chosen tests")
    failures = request.session.testsfailed
    yield
    walk.is_broken = request.session.testsfailed > failures


def eventually(condition: Callable[[], object], pause: float = 0.05) -> None:
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(pause)


def test_the_set_up_link_makes_the_owner(walk: Walk) -> None:
    walk.owner.join(set_up_link(walk.server), "olga")
    walk.has_owner = True
    page = walk.owner.open("/console/account")
    assert re.search(r"Role\s+owner", page.locator("main").inner_text())


def test_the_owner_signs_in(walk: Walk) -> None:
    walk.owner.press("Sign out", exact=True)
    walk.owner.open("/console", 401)
    walk.owner.sign_in("olga")
    assert walk.owner.page.get_by_role("heading", name="Home").count() == 1


def test_a_workspace_is_created(walk: Walk) -> None:
    page = walk.owner.open("/console/workspaces")
    assert "create one here" in page.locator("main .empty").inner_text()
    page.get_by_label("Id").fill("garden")
    walk.owner.press("Create")
    assert page.get_by_role("status").inner_text() == "Created."
    assert page.url.split("?")[0].endswith("/workspaces/garden")


def test_a_workspace_is_configured(walk: Walk) -> None:
    page = walk.owner.open(GARDEN)
    page.get_by_text("Change the configuration").click()
    page.get_by_label("Messages per short summary").fill("10")
    walk.owner.press("Save")
    assert page.get_by_role("status").inner_text() == "Saved."


def test_a_download_shows_its_progress(walk: Walk) -> None:
    page = walk.owner.page
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "garden.jsonl"
    progress = page.locator("#export-progress")
    progress.get_by_text("Complete: 3 lines").wait_for()
    assert progress.locator("progress").evaluate("bar => bar.value === bar.max")
    walk.owner.watch.check()


def new_key(walk: Walk, label: str) -> str:
    """An admin key, as the page shows it once."""
    page = walk.owner.open("/console/keys")
    page.get_by_label("Scope").select_option("admin")
    page.get_by_label("Label").fill(label)
    walk.owner.press("Create")
    key: str = page.get_by_role("status").locator("code").inner_text()
    return key


def test_a_key_is_shown_once_and_copied(walk: Walk) -> None:
    walk.key = new_key(walk, "the client")
    page = walk.owner.page
    page.get_by_role("status").get_by_role("button", name="Copy").click()
    page.get_by_role("status").get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == walk.key
    assert walk.key not in walk.owner.open("/console/keys").content()


def test_messages_of_the_client_are_shown(walk: Walk) -> None:
    assert walk.client("say", walk.key, "garden", session="planning", messages=MESSAGES) == 10
    page = walk.owner.open(SESSION)
    assert page.locator(".transcript > li").count() == 10
    assert "Balthazar" in page.locator("#m1").inner_text()
    moment = page.locator("main time").first
    assert "UTC" not in moment.inner_text(), "it is in the zone of the reader"
    assert "UTC" in moment.get_attribute("title")


def test_a_failed_job_is_retried_and_its_conclusion_is_shown(walk: Walk) -> None:
    """The model has answered with an empty text."""
    failed = "/console/jobs?state=failed&kind=representation"
    rows = walk.owner.page.locator("#jobs tbody tr")
    eventually(lambda: walk.owner.open(failed) and rows.count() == len(MESSAGES), pause=0.5)
    page = walk.owner.page
    walk.model.text = json.dumps({"statements": [STATEMENT]})
    assert not refresh_is_held_back(page)
    for box in page.locator("#jobs input[type=checkbox]").all():
        box.check()
    assert refresh_is_held_back(page), "a refresh would undo the choice"
    walk.owner.press("Retry")
    assert "tried again" in page.get_by_role("status").inner_text()
    page = walk.owner.until(ALICE, STATEMENT["content"])
    (source, *_) = page.locator(".conclusions details").all()
    source.locator("summary").click()
    assert "My tortoise is called" in source.inner_text()
    assert "no such work" in walk.owner.open(failed).content()
    walk.owner.until(SESSION, "summary covers")


@pytest.mark.heavy
def test_a_search_shows_the_parts_of_each_score(walk: Walk) -> None:
    page = walk.owner.open(GARDEN)
    page.get_by_label("Search").fill("my tortoise is called")
    walk.owner.press("Search")
    for kind, parts in (
        ("Messages", ("Score", "Text", "Own words")),
        ("Conclusions", ("Score", "Text", "Similarity")),
    ):
        table = page.get_by_role("group", name=kind)
        heads = table.locator("thead th").all_inner_texts()
        cells = table.locator("tbody tr").first.locator("th, td").all_inner_texts()
        first = dict(zip(heads, cells, strict=True))
        assert "Balthazar" in cells[0]
        assert first["Text rank"] == "1"
        assert [float(first[part]) > 0 for part in parts] == [True] * 3, first
    table = page.get_by_role("group", name="Messages")
    first_row = table.locator("tbody tr").first
    first_row.get_by_role("link").click()
    page.wait_for_url("**/sessions/planning?*")
    assert "Balthazar" in page.locator("#m1").inner_text()


def test_an_answer_is_streamed_beside_its_evidence(walk: Walk) -> None:
    page = walk.owner.open(ALICE)
    page.get_by_label("Question").fill("What is the tortoise called?")
    page.get_by_role("button", name="Ask").click()
    page.locator("#answer-evidence li").first.wait_for()
    assert "Balthazar" in page.locator("#answer-text").inner_text()
    assert "Balthazar" in page.locator("#answer-evidence").inner_text()
    assert page.url.endswith("/peers/alice"), "the page stayed"
    walk.owner.watch.check()


@pytest.mark.parametrize("tokens", [pytest.param(40, marks=pytest.mark.heavy), 2_000])
def test_the_context_preview_equals_what_the_client_gets(walk: Walk, tokens: int) -> None:
    page = walk.owner.open(f"{CONTEXT}?tokens=0&target=alice")
    page.locator("#f-slider").evaluate(
        "(slider, value) => { slider.value = value;"
        "for (const name of ['input', 'change'])"
        "  slider.dispatchEvent(new Event(name, { bubbles: true })); }",
        str(tokens),
    )
    expected = walk.client(
        "context", walk.key, "garden", session="planning", tokens=tokens, target="alice"
    )
    messages = page.locator("#preview .part.messages .content")
    eventually(lambda: messages.all_inner_texts() == expected["messages"])
    shown = page.locator("#preview .part.representation .content").all_inner_texts()
    assert [text.strip() for text in shown] == [expected["representation"].strip()]
    summaries = page.locator("#preview .part.summary .content").all_inner_texts()
    assert summaries == ([expected["summary"]] if expected["summary"] else [])
    colours = page.evaluate(
        "[...document.querySelectorAll('#preview div.part')]"
        ".map((part) => getComputedStyle(part).backgroundColor)"
    )
    assert len(set(colours)) == len(colours), "each part has its own colour"
    walk.owner.watch.check()


@pytest.mark.heavy
def test_a_revoked_key_is_refused(walk: Walk) -> None:
    key = new_key(walk, "another client")
    assert walk.client.answer("queue", key, "garden").keys() == {"result"}
    walk.owner.open("/console/keys")
    walk.owner.press("Revoke another client")
    assert walk.client.answer("queue", key, "garden") == {"error": "AuthenticationError"}
    assert walk.client.answer("queue", walk.key, "garden").keys() == {"result"}


def test_a_webhook_is_tested_and_redelivered(walk: Walk, receiver_of_walk: Receiver) -> None:
    receiver = receiver_of_walk
    page = walk.owner.open(f"{GARDEN}/webhooks")
    assert "Register one" in page.locator("main .empty").inner_text()
    page.get_by_label("URL").fill(receiver.url())
    walk.owner.press("Register")
    assert page.get_by_role("status").locator("code").inner_text()
    walk.owner.press("Send a test event to all")
    eventually(lambda: receiver.requests)
    page.get_by_role("link", name=receiver.url()).click()
    page.wait_for_url("**/webhooks/*")
    walk.webhook = page.url.removeprefix(walk.server.url)
    walk.owner.until(walk.webhook, "204")
    page.get_by_role("button", name="Redeliver").first.click()
    page.get_by_role("status").filter(has_text="delivered again").wait_for()
    eventually(lambda: len(receiver.requests) == 2)
    first, second = receiver.requests
    assert first.event == second.event
    walk.owner.watch.check()


def test_an_invited_reader_sees_no_page_of_owners(walk: Walk) -> None:
    page = walk.owner.open("/console/members")
    page.get_by_label("Role", exact=True).select_option("reader")
    walk.owner.press("Make an invitation")
    match = LINK.search(page.content())
    assert match is not None
    with walk.without_session() as rita:
        rita.join(match[0], "rita")
        assert "Balthazar" in rita.open(ALICE).content()
        links = {link.inner_text() for link in rita.page.locator("nav a").all()}
        assert "Workspaces" in links
        assert links.isdisjoint({"Members", "Keys", "Audit log", "Settings and plugins"})
        for path in ("/console/members", "/console/keys", "/console/audit", "/console/settings"):
            rita.open(path, 403)


@pytest.mark.heavy
def test_everything_works_without_javascript(walk: Walk) -> None:
    reader = walk.reader(java_script_enabled=False)
    reader.sign_in("olga")
    page = reader.open(ALICE)
    page.get_by_label("Question").fill("What is the tortoise called?")
    reader.press("Ask")
    assert "Balthazar" in page.get_by_role("region", name="Answer").inner_text()
    assert "Balthazar" in page.get_by_role("region", name="Evidence").inner_text()
    page = reader.open(CONTEXT)
    assert not page.locator("#f-slider").is_visible()
    page.locator("#f-tokens").fill("0")
    reader.press("Preview")
    assert "Allow more" in page.locator("#preview").inner_text()
    page = reader.open("/console/jobs")
    page.get_by_label("State").select_option("done")
    reader.press("Show")
    page.locator("#jobs input[type=checkbox]").first.check()
    reader.press("Retry")
    reader.open("/console/workspaces")
    page.get_by_label("Id").fill("orchard")
    reader.press("Create")
    page.get_by_text("Delete this workspace").click()
    page.get_by_label("Type the id of the workspace").fill("orchard")
    reader.press("Delete", exact=True)
    assert "Deleted" in page.get_by_role("status").inner_text()
    assert "UTC" in reader.open(SESSION).locator("main time").first.inner_text()
    reader.close()


# --- every page


def pages_of(walk: Walk) -> list[str]:
    """The path of every page that the owner can open."""
    return [
        "/console",
        "/console/instance",
        "/console/workspaces",
        GARDEN,
        f"{GARDEN}/search?query=tortoise",
        ALICE,
        linked(walk, ALICE, "Correct"),
        SESSION,
        f"{CONTEXT}?target=alice",
        f"{SESSION}/delete",
        f"{ALICE}/erase",
        f"{GARDEN}/erasures",
        f"{GARDEN}/webhooks",
        walk.webhook,
        "/console/jobs",
        "/console/usage",
        "/console/keys",
        "/console/settings",
        "/console/members",
        linked(walk, "/console/members", "rita"),
        "/console/audit",
        "/console/account",
    ]


def linked(walk: Walk, path: str, name: str) -> str:
    """The path that the first link of this name leads to."""
    target: str = (
        walk.owner.open(path)
        .get_by_role("link", name=name)
        .first.evaluate("(link) => link.pathname + link.search")
    )
    return target


def test_every_page_fits_a_small_screen_and_some_are_accessible(walk: Walk) -> None:
    """axe-core takes most of the time of a page: by default, it looks at one of ten."""
    walk.owner.page.set_viewport_size(SMALL)
    problems = []
    for number, path in enumerate(pages_of(walk)):
        page = walk.owner.open(path)
        lines = page_problems(page) if number % 10 == 3 else layout_problems(page)
        problems += [f"{path}: {line}" for line in lines]
    walk.owner.page.set_viewport_size(WIDE)
    walk.owner.watch.check()
    assert not problems, "\n".join(problems)


@pytest.mark.heavy
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [SMALL, WIDE], ids=["small", "wide"])
def test_every_page_is_accessible(walk: Walk, scheme: str, size: dict[str, int]) -> None:
    page = walk.owner.page
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)
    problems = []
    for path in pages_of(walk):
        problems += [f"{path}: {line}" for line in accessibility_violations(walk.owner.open(path))]
    assert not problems, "\n".join(problems)


@pytest.mark.heavy
def test_the_tab_key_reaches_every_control_in_order(walk: Walk) -> None:
    for path in ("/console/jobs", ALICE):
        positions, count = tab_through(walk.owner.open(path))
        assert positions == list(range(count)), path


@pytest.mark.heavy
def test_the_checks_notice_what_is_wrong(walk: Walk) -> None:
    reader = walk.reader()
    page = reader.open("/console/sign-in")
    assert page_problems(page) == []
    page.evaluate(
        """() => {
            const main = document.querySelector("main");
            main.insertAdjacentHTML("beforeend", `
                <input tabindex="1"><img src="http://192.0.2.1/x.png" alt="">
                <svg width="5000" height="9" aria-hidden="true"></svg>`);
            const script = document.createElement("script");
            script.textContent = "window.injected = 1";
            main.append(script);
        }"""
    )
    text = "\n".join(page_problems(page))
    for problem in ("pixels too wide", "out of order", "critical: label"):
        assert problem in text
    assert page.evaluate("window.injected") is None
    problems = "\n".join(reader.watch.problems)
    assert "script-src" in problems
    assert "img-src" in problems
    reader.close()


# --- the end


@pytest.mark.heavy
def test_signing_out_everywhere_ends_the_other_browser(walk: Walk) -> None:
    second = walk.reader()
    second.sign_in("olga")
    second.open("/console/members")
    walk.owner.open("/console/account")
    walk.owner.press("Sign out everywhere")
    second.open("/console/members", 401)
    second.close()


def test_pages_for_visitors_without_a_session_are_accessible(walk: Walk) -> None:
    problems = []
    with walk.without_session() as visitor:
        visitor.page.set_viewport_size(SMALL)
        for path, status in (("/console/sign-in", 200), ("/console/link?token=none", 404)):
            problems += [f"{path}: {line}" for line in page_problems(visitor.open(path, status))]
    assert not problems, "\n".join(problems)
