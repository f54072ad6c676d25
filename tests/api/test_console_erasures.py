"""The console's pages about erasing: receipts, a person's data, and the forms that erase."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.worker.polling import Worker
from support.api.console_site import KEYS, Site, opened

WORKSPACE = "/console/workspaces/w"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with opened(tmp_path) as console:
        console.say("w", "talk", ("alice", "I live in Oslo."), ("bob", "I am Bob."))
        yield console


@pytest.mark.slow
def test_a_session_is_deleted_after_its_id_was_typed(site: Site) -> None:
    page = site.page(f"{WORKSPACE}/sessions/talk")
    (link,) = [link for link in page.links if link.endswith("/delete")]
    form = site.page(link.removeprefix("http://localhost")).form("/delete")
    assert "Type talk to delete" in site.send(form, {"id": "Talk"}, 422).text
    receipts = site.send(form, {"id": "talk"}).text
    for word in ("Deleted", "accepted", "session", "talk", "anyone: authentication is off"):
        assert word in receipts
    Worker(site.runtime).run_until_idle()
    finished = site.page(f"{WORKSPACE}/erasures").text
    assert "done" in finished
    assert "messages 2" in finished
    assert "Oslo" not in finished


@pytest.mark.slow
def test_a_peer_is_erased_after_a_dry_run(site: Site) -> None:
    site.conclude("w", "bob", "alice", "Alice lives in Oslo")
    page = site.page(f"{WORKSPACE}/peers/alice")
    (link,) = [link for link in page.links if link.endswith("/erase")]
    preview = site.page(link.removeprefix("http://localhost"))
    for expected in ("Messages1", "Conclusions by it or about it1", "Memberships1"):
        assert expected in preview.text
    form = preview.form("/erase")
    assert "Type alice to erase" in site.send(form, {"id": "bob"}, 422).text
    site.page(f"{WORKSPACE}/peers/alice")
    assert "accepted" in site.send(form, {"id": "alice"}).text
    site.page(f"{WORKSPACE}/peers/alice", 404)
    Worker(site.runtime).run_until_idle()
    assert "done" in site.page(f"{WORKSPACE}/erasures").text
    transcript = site.page(f"{WORKSPACE}/sessions/talk").text
    assert "Oslo" not in transcript
    assert "I am Bob." in transcript


@pytest.mark.slow
def test_mentions_of_a_peer_are_replaced_if_that_is_chosen(site: Site) -> None:
    site.say("w", "talk", ("bob", "Alice is tall."))
    preview = site.page(f"{WORKSPACE}/peers/alice/erase")
    assert "Recent messages and conclusions of others that mention it1" in preview.text
    form = preview.form("/erase")
    assert form.fields["mentions"] == "keep"
    unknown = site.send(form, {"id": "alice", "mentions": "hide"}, 422)
    assert "Choose whether to keep or to replace them" in unknown.text
    site.send(form, {"id": "alice", "mentions": "redact"})
    Worker(site.runtime).run_until_idle()
    transcript = site.page(f"{WORKSPACE}/sessions/talk").text
    assert "[erased] is tall." in transcript
    assert "Alice" not in transcript


@pytest.mark.slow
def test_a_message_is_deleted_on_its_page(site: Site) -> None:
    page = site.page(f"{WORKSPACE}/sessions/talk")
    first, _ = [form for form in page.forms if "/messages/" in form.action]
    transcript = site.send(first)
    assert "Deleted." in transcript.text
    assert "Oslo" not in transcript.text
    assert "I am Bob." in transcript.text
    site.send(first, status=404)


def test_a_workspace_without_erasures_says_what_to_do(site: Site) -> None:
    assert "Nothing was erased" in site.page(f"{WORKSPACE}/erasures").text
    site.page("/console/workspaces/nope/erasures", 404)


@pytest.mark.slow
def test_the_data_of_a_peer_is_a_download(site: Site) -> None:
    form = site.page(f"{WORKSPACE}/peers/alice").form("/export")
    answer = site.open(form.action.removeprefix("http://localhost"), "POST", data=form.fields)
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == 'attachment; filename="alice.jsonl"'
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["content"] for row in rows if row["type"] == "message"] == ["I live in Oslo."]


@pytest.mark.slow
def test_a_key_of_another_workspace_erases_and_exports_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, **KEYS) as site:
        admin = site.as_bearer_of(site.key())
        admin.say("w", "talk", ("alice", "I live in Oslo."))
        admin.say("other", "x", ("x", "hello"))
        stranger = site.as_bearer_of(site.key(workspace_id="other"))
        for method, path in (
            ("GET", "/erasures"),
            ("GET", "/sessions/talk/delete"),
            ("POST", "/sessions/talk/delete"),
            ("POST", "/peers/alice/export"),
            ("GET", "/peers/alice/erase"),
            ("POST", "/peers/alice/erase"),
            ("POST", "/sessions/talk/messages/x/delete"),
        ):
            answer = stranger.open(f"{WORKSPACE}{path}", method, data={"id": "talk"})
            assert answer.status_code == 403, path
        assert "talk" in admin.page(f"{WORKSPACE}/sessions/talk").text
