"""The console's pages: what they show, that their forms work without JavaScript, and that stored
text stays text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import memservice_console
from memservice.domain.errors import Busy
from memservice.domain.filters.ast import TRUE, Condition
from memservice.hookspecs import hookimpl
from memservice.services import message_days
from memservice.services.tasks import jobs
from memservice.spi import web
from memservice.spi.rows import Rows
from memservice_console.pages import home
from support.api.console_pages import crawled, paths
from support.api.console_pages import filled_site as filled_site
from support.api.console_pages import site as site
from support.api.console_site import ADMIN, KEYS, Page, Site, opened
from support.browser import checks

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}",
    "safe \u202egnp.exe \u2066isolated",
    "\x1b[31mred\x1b[0m \x07 bell",
    "x" * 24_000,
)


# --- every page


@pytest.mark.slow
def test_every_link_leads_to_a_page_and_every_file_is_here(filled_site: Site) -> None:
    pages = crawled(filled_site)
    assert {"/console", "/console/workspaces", "/console/workspaces/w"} <= pages.keys()
    assert "/console/workspaces/w/sessions/s1" in pages
    for asset in {asset for page in pages.values() for asset in page.assets}:
        with filled_site.open(urlsplit(asset).path) as answer:
            assert answer.status_code == 200


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere_and_no_script_is_injected(filled_site: Site) -> None:
    for path in ("/console", "/console/assets/console.js", "/console/workspaces/none"):
        with filled_site.open(path) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self'" in policy
            assert "style-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            assert not re.search(r"https?:|\*|unsafe", policy)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            # With `no-referrer`, forms come with `Origin: null`, and are refused.
            assert answer.headers["Referrer-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "folder",
    [Path(memservice_console.__file__).parent / "vendor", Path(checks.__file__).parent / "axe"],
    ids=["htmx", "axe"],
)
def test_files_of_others_are_as_they_were_published(folder: Path) -> None:
    sums = re.findall(r"^    ([0-9a-f]{64})  (.*)$", (folder / "README.md").read_text(), re.M)
    assert {name for _, name in sums} == {path.name for path in folder.iterdir()} - {"README.md"}
    for digest, name in sums:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


def luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_is_sufficient_in_both_themes() -> None:
    """WCAG 2.2 AA: 4.5 to 1 for text."""
    styles = Path(memservice_console.__file__).parent / "static" / "console.css"
    themes = re.findall(r":root \{([^}]*)\}", styles.read_text(encoding="utf-8"))
    assert len(themes) == 2
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#\w+)", theme))
        for text in ("text", "dim", "link", "good", "fair", "bad"):
            for ground in ("ground", "soft", "one", "two", "three", "four"):
                lighter, darker = sorted(
                    (luminance(colours[text]), luminance(colours[ground])), reverse=True
                )
                ratio = (lighter + 0.05) / (darker + 0.05)
                assert ratio >= 4.5, (text, ground, round(ratio, 2))


@pytest.mark.slow
def test_stored_text_is_shown_and_does_nothing(site: Site) -> None:
    site.say("w", "s1", *(("alice", text) for text in HOSTILE))
    site.conclude("w", "alice", "alice", *HOSTILE[:5])
    for path in (
        "/console/workspaces/w/sessions/s1",
        "/console/workspaces/w/sessions/s1/context?tokens=50000&target=alice",
        "/console/workspaces/w/peers/alice",
    ):
        page = site.page(path)
        assert HOSTILE[0] in page.text, "as text"
        assert "{{ 7 * 7 }}" in page.text
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", page.source), path
        assert "⟨U+202E⟩" in page.text
        assert "␛[31m" in page.text
    assert "x" * 24_000 in site.page("/console/workspaces/w/sessions/s1").text


# --- the root


@pytest.mark.slow
def test_browsers_are_sent_to_the_console_and_programs_get_links(site: Site) -> None:
    answer = site.open("/")
    assert (answer.status_code, answer.headers["Location"]) == (303, "console")
    for accept in ("application/json", "*/*"):
        answer = site.client.get("/", headers={"Accept": accept})
        assert answer.json is not None
        assert answer.json["name"] == "memservice"
        for link in answer.json["links"].values():
            assert site.client.get(f"/{link}").status_code == 200


def test_the_console_can_be_switched_off(tmp_path: Path) -> None:
    with opened(tmp_path, CONSOLE_ENABLED="false") as site:
        for path in ("/", "/console", "/console/workspaces", "/console/assets/console.css"):
            assert site.open(path).status_code == 404


# --- home


@pytest.mark.slow
def test_home_shows_health_with_advice_and_how_to_connect(filled_site: Site) -> None:
    page = filled_site.page("/console")
    for part in ("storage", "embedder", "work", "plugins"):
        assert part in page.text
    assert "hashed-v1" in page.text
    assert "Authentication is off" in page.text
    for client in ("curl", "Python", "TypeScript"):
        assert client in page.text
    assert 'base_url="http://localhost"' in page.text
    assert "YOUR_KEY" not in page.text


@pytest.mark.slow
def test_home_shows_how_to_connect_an_assistant(filled_site: Site) -> None:
    page = filled_site.page("/console")
    assert "claude mcp add --transport http memory http://localhost/mcp" in page.text
    assert filled_site.client.post("/mcp").status_code not in (404, 405)


@pytest.mark.slow
def test_home_shows_no_way_to_connect_an_assistant_if_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, MCP_ENABLED="false") as site:
        assert "claude mcp" not in site.page("/console").text
    with opened(tmp_path) as site:
        assert "claude mcp" in site.page("/console").text
        monkeypatch.setattr(home, "find_spec", lambda name: None)
        assert "claude mcp" not in site.page("/console").text


@pytest.mark.slow
def test_home_shows_messages_per_day(filled_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Messages per day" not in filled_site.page("/console").text
    message_days.count(filled_site.runtime)
    monkeypatch.setattr(message_days, "SETTLED_AFTER", timedelta())
    message_days.count(filled_site.runtime)
    page = filled_site.page("/console")
    assert page.source.count("<rect") == message_days.DAYS
    assert re.search(r"Messages by day(.|\n)*71", page.text)


@pytest.mark.slow
def test_home_and_the_list_of_workspaces_count_no_rows(
    filled_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the store holds: tasks are counted up to a limit, everything else is summed before
    or read from an index."""
    monkeypatch.setattr(jobs, "MAX_COUNTED", 2)
    assert "2 or more" in filled_site.page("/console").text
    with filled_site.runtime.storage.read() as tx:
        rows = type(tx.rows)
    count = rows.count

    def bounded(
        rows: Rows, record: type, condition: Condition = TRUE, limit: int | None = None
    ) -> int:
        assert limit is not None, f"all rows of {record.__name__} were counted"
        return count(rows, record, condition, limit)

    monkeypatch.setattr(rows, "count", bounded)
    jobs.backlog(filled_site.runtime, ADMIN)
    filled_site.page("/console/workspaces")


# --- workspaces


@pytest.mark.slow
def test_workspaces_are_listed_with_size_and_last_message(site: Site) -> None:
    site.say("w", "s1", ("alice", "one"), ("alice", "two"))
    site.say("v", "s1", ("alice", "one"))
    site.send(site.page("/console/workspaces").form("/workspaces"), {"id": "empty"})
    rows = re.findall(
        r'>(\w+)</a></th><td class="number">(\d+)</td><td>(.*?)</td>',
        site.page("/console/workspaces").source,
    )
    assert [(name, number) for name, number, _ in rows] == [("empty", "0"), ("v", "1"), ("w", "2")]
    assert [at.startswith("<time") for _, _, at in rows] == [False, True, True]


@pytest.mark.slow
def test_a_workspace_is_created_once_and_problems_stand_beside_their_field(site: Site) -> None:
    page = site.page("/console/workspaces")
    assert "There is no workspace yet" in page.text
    form = page.form("/workspaces")
    wrong = site.send(form, {"id": "not a name!"}, 422)
    assert wrong.form("/workspaces").fields["id"] == "not a name!", "nothing typed is lost"
    assert re.search(r'aria-describedby="(f-id-problem)"(.|\n)*id="\1"', wrong.source)
    assert "w1" in site.send(form, {"id": "w1"}).text
    assert "choose another one" in site.send(form, {"id": "w1"}, 422).text


@pytest.mark.slow
def test_lists_continue_where_the_page_before_ended(site: Site) -> None:
    names = [f"w{number:03}" for number in range(120)]
    for name in names:
        site.client.post("/v3/workspaces", json={"id": name})
    listed_names: list[str] = []
    url = "/console/workspaces"
    while url:
        assert len(listed_names) < 200
        page = site.page(url)
        page_names = re.findall(r"workspaces/(w\d+)", page.source)
        assert len(page_names) <= 50
        listed_names += page_names
        more = [urlsplit(link) for link in page.links if "after=" in link]
        url = f"{more[0].path}?{more[0].query}" if more else ""
    assert listed_names == names[::-1]


@pytest.mark.slow
def test_a_workspace_shows_its_sizes_peers_and_sessions(filled_site: Site) -> None:
    page = filled_site.page("/console/workspaces/w")
    assert re.search(r"Messages\s*71\s*Conclusions\s*3\s", page.text)
    assert {"/console/workspaces/w/peers/alice", "/console/workspaces/w/sessions/s1"} <= paths(page)


@pytest.mark.slow
def test_a_configuration_is_changed_by_its_form(filled_site: Site) -> None:
    form = filled_site.page("/console/workspaces/w").form("/configuration")
    assert form.fields["reasoning.enabled"] == ""
    typed = {
        "reasoning.enabled": "false",
        "summary.messages_per_short_summary": "30",
        "custom_instructions": "Be brief\nand kind",
    }
    page = filled_site.send(form, typed)
    assert page.form("/configuration").fields.items() >= typed.items()
    stored = filled_site.client.post("/v3/workspaces", json={"id": "w"}).get_json()["configuration"]
    assert stored["reasoning"] == {"enabled": False}
    assert stored["custom_instructions"] == "Be brief\nand kind"
    emptied = filled_site.send(page.form("/configuration"), dict.fromkeys(typed, ""))
    assert emptied.form("/configuration").fields == form.fields


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["5", "many"])
def test_a_wrong_configuration_is_shown_again(filled_site: Site, typed: str) -> None:
    form = filled_site.page("/console/workspaces/w").form("/configuration")
    field = "summary.messages_per_short_summary"
    page = filled_site.send(form, {field: typed, "custom_instructions": "keep me"}, 422)
    assert page.form("/configuration").fields[field] == typed
    assert page.form("/configuration").fields["custom_instructions"] == "keep me"
    assert f'id="c-{field}-problem"' in page.source


@pytest.mark.slow
def test_a_workspace_is_downloaded_as_its_export(filled_site: Site) -> None:
    form = filled_site.page("/console/workspaces/w").form("/export")
    answer = filled_site.open(urlsplit(form.action).path, "POST", data=form.fields)
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == 'attachment; filename="w.jsonl"'
    first, *_, last = [json.loads(line) for line in answer.data.splitlines()]
    assert (first["workspace"], first["secrets"]) == ("w", False)
    assert last["type"] == "end"
    rows = [line for line in answer.data.splitlines() if b'"vector' not in line[:20]]
    assert 71 < int(answer.headers["X-Memservice-Rows"]) <= len(rows)
    missing = filled_site.open("/console/workspaces/none/export", "POST", data=form.fields)
    assert missing.status_code == 404


@pytest.mark.slow
def test_an_export_takes_a_slot_for_slow_answers_and_frees_it(
    filled_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = iter([Busy("no slot"), None, None])
    freed: list[bool] = []

    def hold_slot() -> object:
        if (error := next(outcomes)) is not None:
            raise error
        return lambda: freed.append(True)

    monkeypatch.setattr("memservice.spi.web.hold_slot", hold_slot)
    fields = filled_site.page("/console/workspaces/w").form("/export").fields
    for workspace, status in (("w", 503), ("w", 200), ("none", 404)):
        path = f"/console/workspaces/{workspace}/export"
        with filled_site.open(path, "POST", data=fields) as answer:
            assert answer.status_code == status
    assert len(freed) == 2


@pytest.mark.slow
def test_a_workspace_is_deleted_after_its_id_was_typed(filled_site: Site) -> None:
    form = filled_site.page("/console/workspaces/w").form("/delete")
    assert "Type w to delete" in filled_site.send(form, {"id": "W"}, 422).text
    assert "Deleted" in filled_site.send(form, {"id": "w"}).text
    filled_site.page("/console/workspaces/w", 404)


# --- peers


@pytest.mark.slow
def test_a_peer_shows_its_card_and_the_conclusions_of_each_observer(filled_site: Site) -> None:
    own = filled_site.page("/console/workspaces/w/peers/alice")
    assert "likes tea" in own.text
    assert "is kind" not in own.text
    form = own.form("/peers/alice")
    assert form.fields == {"observer": "alice"}
    assert "is kind" in filled_site.page("/console/workspaces/w/peers/alice?observer=bob").text
    page = filled_site.send(own.form("/card"), {"lines": "Vegetarian\n\nvegetarian\nSpeaks Dutch"})
    assert page.form("/card").fields["lines"] == "Vegetarian\nSpeaks Dutch"


@pytest.mark.slow
def test_a_conclusion_is_invalidated(filled_site: Site) -> None:
    page = filled_site.page("/console/workspaces/w/peers/alice")
    (form, *_) = [form for form in page.forms if form.action.endswith("/invalidate")]
    after = filled_site.send(form)
    assert len([form for form in after.forms if form.action.endswith("/invalidate")]) == 1


def corrections(page: Page) -> list[str]:
    """Addresses of the pages where the conclusions of a page are corrected."""
    parts = [urlsplit(link) for link in page.links if urlsplit(link).path.endswith("/correct")]
    return [f"{part.path}?{part.query}" for part in parts]


@pytest.mark.slow
def test_a_conclusion_is_corrected_and_restored(filled_site: Site) -> None:
    peer = filled_site.page("/console/workspaces/w/peers/alice")
    pages = [filled_site.page(url) for url in corrections(peer)]
    form = next(f for f in (p.form("/correct") for p in pages) if "tea" in f.fields["content"])
    wrong = filled_site.send(form, {"content": " "}, 422)
    assert "f-content-problem" in wrong.ids
    typed = "likes <b>coffee</b>"
    refused = filled_site.send(form, {"content": typed * 10_000}, 422)
    assert refused.form("/correct").fields["content"] == typed * 10_000
    corrected = filled_site.send(form, {"content": typed})
    assert re.search(r"Superseded \d{4}-\d\d-\d\d \d\d:\d\d UTC: corrected by hand", corrected.text)
    assert typed in corrected.text
    restored = filled_site.send(corrected.form("/restore"))
    assert len(corrections(restored)) == 3
    assert "Superseded" not in restored.text
    with filled_site.runtime.storage.read() as tx:
        actions = [entry.action for entry in tx.audit_log.page(limit=2)]
    assert actions == ["conclusion.restore", "conclusion.correct"]


@pytest.mark.slow
def test_a_form_of_a_later_page_comes_back_to_it(filled_site: Site) -> None:
    filled_site.conclude("w", "alice", "alice", *(f"fact {number}" for number in range(60)))
    first = filled_site.page("/console/workspaces/w/peers/alice")
    (url,) = [link for link in first.links if "after=" in link and "/correct" not in link]
    later = filled_site.page(f"{urlsplit(url).path}?{urlsplit(url).query}")
    form = filled_site.page(corrections(later)[-1]).form("/correct")
    assert form.fields["content"] == "likes tea"
    assert "lives in Ghent" in filled_site.send(form, {"content": "likes coffee"}).text


# --- sessions


@pytest.mark.slow
def test_a_transcript_is_read_backwards(filled_site: Site) -> None:
    page = filled_site.page("/console/workspaces/w/sessions/s1")
    assert "I like tea" in page.text
    assert "m22" in page.ids
    assert "m21" not in page.ids
    assert page.ids.count("m71") == 1
    earlier = filled_site.page("/console/workspaces/w/sessions/s1?before=22")
    assert "m1" in earlier.ids
    assert "m22" not in earlier.ids
    assert "before=72" in earlier.source, "later messages"


@pytest.mark.slow
def test_the_context_preview_shows_what_context_returns(filled_site: Site) -> None:
    url = "/console/workspaces/w/sessions/s1/context"
    page = filled_site.page(f"{url}?tokens=100&target=alice")
    context = filled_site.client.get(
        "/v3/workspaces/w/sessions/s1/context", query_string={"tokens": 100, "peer_target": "alice"}
    ).get_json()
    assert 0 < len(context["messages"]) < 71
    assert [message["content"] for message in context["messages"]] == re.findall(
        r"message \d+|I like tea", page.text
    )
    assert "likes tea" in page.text
    wrong = filled_site.page(f"{url}?tokens=9999999", 422)
    assert wrong.form("/context").fields["tokens"] == "9999999"


# --- who may


# --- limits


@pytest.mark.slow
def test_forms_have_the_limits_of_the_api_and_lose_nothing(filled_site: Site) -> None:
    peer = filled_site.page("/console/workspaces/w/peers/alice")
    question = "x" * 400_000
    refused = filled_site.send(peer.form("/ask"), {"query": question}, 422)
    assert refused.form("/ask").fields["query"] == question
    assert "at most 10000 characters" in refused.text
    assert "f-query-problem" in refused.ids
    streamed = filled_site.open(
        "/console/workspaces/w/peers/alice/ask/stream",
        "POST",
        data={**peer.form("/ask").fields, "query": question},
    )
    assert streamed.status_code == 422

    searched = filled_site.page(f"/console/workspaces/w/search?query={'x' * 10_001}", 422)
    assert "at most 10000 characters" in searched.text
    context = "/console/workspaces/w/sessions/s1/context?tokens=100&target=alice"
    assert "at most 10000" in filled_site.page(f"{context}&query={'x' * 10_001}", 422).text

    lines = "\n".join(("likes tea", "", "y" * 501))
    card = filled_site.send(peer.form("/card"), {"lines": lines}, 422)
    assert card.form("/card").fields["lines"] == lines
    assert "Line 3: String should have at most 500 characters" in card.text
    assert "f-lines-problem" in card.ids


@pytest.mark.slow
def test_problems_of_a_configuration_stand_beside_their_own_field(filled_site: Site) -> None:
    form = filled_site.page("/console/workspaces/w").form("/configuration")
    too_long = "word " * 4_000
    for field, value in {
        "reasoning.custom_instructions": too_long,
        "custom_instructions": too_long,
        "summary.messages_per_short_summary": "9",
        "summary.messages_per_long_summary": str(2**63),
    }.items():
        refused = filled_site.send(form, {field: value}, 422)
        assert f"c-{field}-problem" in refused.ids
        assert refused.form("/configuration").fields[field] == value
    refused = filled_site.send(
        form,
        {
            "summary.messages_per_short_summary": "60",
            "summary.messages_per_long_summary": "20",
        },
        422,
    )
    assert "c-summary.messages_per_long_summary-problem" in refused.ids


# --- pages of plugins


class Weather:
    def __init__(self, folder: Path, *, path: str = "weather") -> None:
        self._template = folder / "weather.html"
        self._template.write_text("<p>{{ sky }}</p><p>{{ admin }}</p>", encoding="utf-8")
        self._path = path

    @hookimpl
    def memservice_console_pages(self) -> Iterator[web.ConsolePage]:
        def values() -> dict[str, object]:
            return {"sky": "<b>grey</b>", "admin": web.principal().admin}

        yield web.ConsolePage("Weather", self._path, self._template, values)
        yield web.ConsolePage("Sea", "sea", self._template, values, web.OPEN)


@pytest.mark.slow
def test_a_plugin_adds_pages(tmp_path: Path) -> None:
    with opened(tmp_path, Weather(tmp_path), **KEYS) as site:
        admin = site.as_bearer_of(site.key())
        page = admin.page("/console/plugins/weather")
        assert "<b>grey</b>" in page.text
        assert "True" in page.text
        assert {"/console/plugins/weather", "/console/plugins/sea"} <= paths(page)
        own = site.as_bearer_of(site.key(workspace_id="w"))
        own.page("/console/plugins/weather", 404)
        assert "/console/plugins/weather" not in paths(own.page("/console/plugins/sea"))
        site.page("/console/plugins/sea", 401)


def test_two_pages_at_one_place_are_refused(tmp_path: Path) -> None:
    from memservice.domain.errors import ConfigurationError

    with (
        pytest.raises(ConfigurationError, match="Two plugins add a console page"),
        opened(tmp_path, Weather(tmp_path, path="sea")),
    ):
        pass
