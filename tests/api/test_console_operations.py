"""The console's pages about running: jobs, webhooks, keys, usage, settings; search and asking."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import (
    FAILED,
    IMMEDIATELY,
    NEVER,
    PENDING,
    Delivery,
    Task,
    Usage,
    WebhookEndpoint,
)
from memservice.domain.times import day_of
from memservice.services import release_feed
from memservice.services.retrieval import search, workspace_search
from memservice.services.retrieval.search import SearchOptions
from memservice.services.tasks import jobs
from memservice.worker import heartbeats
from support.api.console_site import ADMIN, KEYS, Page, Sent, Site, opened
from support.receiver import Receiver


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with opened(
        tmp_path,
        WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8",
        LLM_OPENAI_API_KEY="sk-secret",
        REASONER="extractive",
    ) as opened_site:
        yield opened_site


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[Site]:
    """With authentication, and as an administrator."""
    with opened(tmp_path, **KEYS) as opened_site:
        yield opened_site.as_bearer_of(opened_site.key())


def post_form(page: Page, action: str) -> Sent:
    (form,) = [
        form
        for form in page.forms
        if form.method == "POST" and form.action.split("?")[0].endswith(action)
    ]
    return form


# --- home


def test_the_oldest_due_task_counts_from_the_moment_it_became_due(site: Site) -> None:
    now = site.runtime.clock()
    hours, minutes = timedelta(hours=1), timedelta(minutes=1)
    tasks = [
        Task(uid=name, unit=name, kind="erase", created_at=now - age, not_before=due)
        for name, age, due in (
            ("late timer", 2 * hours, now - minutes),
            ("immediate", 30 * minutes, IMMEDIATELY),
            ("next", 20 * minutes, IMMEDIATELY),
            ("timer", 3 * hours, now + hours),
        )
    ]
    site.runtime.storage.write(lambda tx: tx.tasks.add(tasks))
    backlog = jobs.backlog(site.runtime, ADMIN)
    assert (backlog.due, backlog.timers) == (3, 1)
    assert backlog.oldest is not None
    assert timedelta() <= backlog.oldest - 30 * minutes < minutes


# --- instance


@pytest.mark.slow
def test_processes_of_all_machines_are_shown_and_mixed_versions_flagged(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = site.runtime
    assert "No process" in site.page("/console/instance").text
    heartbeats.register(rt, "one|boot|ns|11|22|a", heartbeats.SERVER)
    heartbeats.register(rt, "two|boot|ns|33|44|b")
    with rt.storage.read() as tx:
        assert [process.host for process in heartbeats.workers(tx, rt.clock())] == ["two"]
    now = rt.clock()
    rt.storage.write(lambda tx: tx.tasks.claim("erase:7", "two|boot|ns|33|44|c", now, 60))
    rt.storage.write(lambda tx: tx.tasks.claim("erase:8", "two|boot|ns|33|99|c", now, 60))
    page = site.page("/console/instance")
    for text in ("one", "server 11", "two", "worker 33", "erase:7"):
        assert text in page.text
    assert "erase:8" not in page.text, "another process of that machine"
    assert "different releases" not in page.text
    monkeypatch.setattr("memservice.__version__", "0.0.9")
    heartbeats.register(rt, "three|boot|ns|1|2|d")
    monkeypatch.undo()
    assert "different releases: 0.0.9" in site.page("/console/instance").text


@pytest.mark.slow
def test_the_queues_of_each_worker_are_shown_and_queues_without_one_flagged(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, REDIS_URL="redis://127.0.0.1:1/0") as site:
        rt = site.runtime
        assert "No worker takes work" not in site.page("/console/instance").text
        heartbeats.register(rt, "one|b|n|11|22|a", queues=("ingest", "summary"))
        heartbeats.register(rt, "two|b|n|33|44|b", queues=("dream", "webhook"))
        text = site.page("/console/instance").text
        for queues in ("from the queues ingest, summary", "from the queues dream, webhook"):
            assert queues in text
        assert "No worker takes work from the queue maintenance." in text
        heartbeats.register(rt, "three|b|n|55|66|c", queues=("maintenance",))
        assert "No worker takes work" not in site.page("/console/instance").text


def test_a_worker_of_the_release_before_is_shown(site: Site) -> None:
    """Its heartbeats name no queues."""
    value = {"seen": site.runtime.clock().isoformat(), "reasoners": {}, "embedder": "hashed-v1"}
    site.runtime.storage.write(lambda tx: tx.facts.set("worker:old|b|n|1|2|a", json.dumps(value)))
    page = site.page("/console/instance")
    assert "from the store" in page.text
    assert "unknown" in page.text


def test_an_available_upgrade_is_shown_as_text(tmp_path: Path) -> None:
    file = tmp_path / "feed.json"
    hostile = {
        "version": "99.0",
        "date": "\u202e<b>",
        "url": "javascript:alert(1)",
        "changes": "<script>alert(1)</script> {{ 7 * 7 }} \x1b[31m",
    }
    file.write_text(json.dumps({"releases": [hostile]}))
    with opened(tmp_path, CONSOLE_RELEASE_FEED=str(file)) as site:
        assert "Available upgrade" not in site.page("/console/instance").text
        release_feed.refresh(site.runtime)
        page = site.page("/console/instance")
        assert "memservice 99.0 is available" in page.text
        assert "<script>alert(1)</script> {{ 7 * 7 }} ␛[31m" in page.text
        assert not [link for link in page.links if "javascript" in link]
        assert "\u202e" not in page.source
        file.write_text("broken")
        release_feed.refresh(site.runtime)
        page = site.page("/console/instance")
        assert "memservice 99.0 is available" in page.text
        assert "could not be used: it is not valid JSON" in page.text


def test_no_page_reads_the_release_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_feed, "refresh", None)
    monkeypatch.setattr(release_feed, "_document", None)
    with opened(tmp_path, CONSOLE_RELEASE_FEED="https://releases.example/") as site:
        assert "Available upgrade" not in site.page("/console/instance").text


# --- jobs


def add_task(site: Site, name: str, **fields: object) -> Task:
    now = site.runtime.clock()
    values = {"created_at": now, "not_before": now, **fields}
    task = Task(uid=name, unit=f"summary:{name}", kind="summary", **values)  # type: ignore[arg-type]
    return site.runtime.storage.write(lambda tx: tx.tasks.add([task]))[0]


def states(page: Page) -> dict[str, str]:
    rows = re.findall(
        r'value="(t\w+)" aria-label(?:.|\n)*?class="state[^"]*">([^<]+)<', page.source
    )
    return dict(rows)


@pytest.mark.slow
def test_jobs_tell_timers_from_stuck_work(site: Site) -> None:
    now = site.runtime.clock()
    add_task(site, "tdue")
    add_task(
        site, "tstuck", created_at=now - timedelta(hours=1), not_before=now - timedelta(hours=1)
    )
    add_task(site, "ttimer", not_before=now + timedelta(hours=1))
    add_task(site, "tnever", not_before=NEVER)
    add_task(site, "tback", not_before=now + timedelta(hours=1), attempts=2, last_error="boom")
    add_task(site, "tfailed", state=FAILED, finished_at=now, last_error="<b>boom</b>")
    page = site.page("/console/jobs")
    assert states(page) == {
        "tdue": "due",
        "tstuck": "stuck",
        "ttimer": "timer",
        "tnever": "timer",
        "tback": "waits to retry",
        "tfailed": "failed",
    }
    assert "<b>boom</b>" in page.text
    assert "not by itself" in page.text
    assert states(site.page("/console/jobs?state=failed")).keys() == {"tfailed"}


@pytest.mark.slow
def test_chosen_jobs_are_retried_cancelled_and_erased(site: Site) -> None:
    add_task(site, "tfailed", state=FAILED, finished_at=site.runtime.clock())
    add_task(site, "tdue")
    form = post_form(site.page("/console/jobs"), "/jobs")
    assert "at least one" in site.send(form, {"action": "retry"}, 422).text
    assert states(site.send(form, {"action": "retry", "uid": "tfailed"}))["tfailed"] == "due"
    assert "not found" in site.send(form, {"action": "retry", "uid": "tdue"}, 422).text
    assert states(site.send(form, {"action": "cancel", "uid": "tdue"}))["tdue"] == "failed"
    assert 'value="purge"' not in site.page("/console/jobs").source
    assert "failed tasks first" in site.send(form, {"action": "purge"}, 422).text
    page = site.page("/console/jobs?state=failed")
    assert 'value="purge"' in page.source
    assert "There is no such work" in site.send(post_form(page, "/jobs"), {"action": "purge"}).text
    assert states(site.page("/console/jobs")).keys() == {"tfailed"}


@pytest.mark.slow
def test_a_workspace_key_sees_the_jobs_of_its_workspace(keyed: Site) -> None:
    keyed.say("mine", "s", ("alice", "I live in Ghent"))
    keyed.say("theirs", "s", ("bob", "I live in Bruges"))
    own = keyed.as_bearer_of(keyed.key(workspace_id="mine"))
    page = own.page("/console/jobs")
    assert "alice" in page.text
    assert "bob" not in page.text
    own.page("/console/jobs?workspace=theirs", 403)


# --- webhooks


@pytest.mark.slow
def test_a_webhook_is_registered_tested_paused_and_deleted(site: Site, receiver: Receiver) -> None:
    site.say("w", "s", ("alice", "hello"))
    url = "/console/workspaces/w/webhooks"
    page = site.page(url)
    assert "has no endpoint" in page.text
    form = post_form(page, "/webhooks")
    wrong = site.send(form, {"url": "gopher://x"}, 422)
    assert post_form(wrong, "/webhooks").fields["url"] == "gopher://x"
    assert "f-url-problem" in wrong.ids
    listing = site.send(form, {"url": receiver.url()}, 200)
    assert listing.text.count("whsec_") == 2, "once, and once for the copy button's label"
    page = site.page(url)
    assert "whsec_" not in page.source, "shown once"
    assert "there is an endpoint" in site.send(form, {"url": receiver.url()}, 422).text.lower()
    assert "on its way" in site.send(post_form(page, "/webhooks/test")).text
    with site.runtime.storage.read() as tx:
        endpoint = tx.rows.get(WebhookEndpoint, equals(url=receiver.url()))
        assert tx.rows.count(Task, equals(kind="webhook", state=PENDING)) == 1
    assert endpoint is not None
    text = site.page(f"{url}/{endpoint.uid}")
    paused = site.send(post_form(text, "/state"))
    assert "paused" in paused.text
    site.send(post_form(site.page(url), "/webhooks/test"))
    assert "test.event" in site.page(f"{url}/{endpoint.uid}").text, "a dead letter"
    assert "active" in site.send(post_form(paused, "/state")).text
    assert "has no endpoint" in site.send(post_form(text, "/delete")).text


@pytest.mark.slow
def test_attempts_are_shown_with_status_and_duration_and_redelivered(site: Site) -> None:
    site.say("w", "s", ("alice", "hello"))
    now = site.runtime.clock()
    with site.runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug("w")
    assert workspace is not None
    endpoint = WebhookEndpoint(
        uid="e1",
        workspace_key=workspace.key,
        url="http://127.0.0.1:9/x",
        secret="whsec_x",
        created_at=now,
    )
    endpoint = site.runtime.storage.write(lambda tx: tx.webhooks.save(endpoint))
    for number in range(60):
        delivery = Delivery(
            uid=f"d{number}",
            workspace_key=workspace.key,
            endpoint_key=endpoint.key,
            event_uid=f"v{number}",
            event="queue.empty",
            body="{}",
            attempt=1,
            status=500,
            error=None if number == 58 else f"answer {number}",
            duration_ms=1234,
            created_at=now,
        )
        site.runtime.storage.write(lambda tx, row=delivery: tx.webhooks.record(row))  # type: ignore[misc]
    page = site.page("/console/workspaces/w/webhooks/e1")
    assert "answer 59" in page.text
    assert "answer 9 " not in page.text, "on the next page"
    assert page.source.count('<span class="state failed">500</span>') == 50, "with an error or not"
    assert "1\u202f234 ms" in page.text
    again = next(form for form in page.forms if form.fields.get("delivery") == "d59")
    assert "delivered again" in site.send(again).text
    with site.runtime.storage.read() as tx:
        task = tx.rows.get(Task, equals(kind="webhook"))
    assert task is not None
    assert task.payload["event_uid"] == "v59"


# --- keys


@pytest.mark.slow
def test_a_key_is_shown_once_works_and_is_revoked(keyed: Site) -> None:
    keyed.say("w", "s", ("alice", "hello"))
    form = post_form(keyed.page("/console/keys"), "/keys")
    typed = {"scope": "workspace", "workspace_id": "w", "label": "my bot", "expires_in": "1h"}
    page = keyed.send(form, typed, 200)
    (token,) = re.findall(r"<code>(eyJ[\w.-]+)</code>", page.source)
    assert token not in keyed.page("/console/keys").source
    bearer = {"Authorization": f"Bearer {token}"}
    assert keyed.client.post("/v3/workspaces/w/peers/list", headers=bearer).status_code == 200
    revoke = next(form for form in page.forms if "/revoke" in form.action)
    assert "revoked" in keyed.send(revoke).text
    assert keyed.client.post("/v3/workspaces/w/peers/list", headers=bearer).status_code == 401


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("expires_in", {"workspace_id": "w", "expires_in": "soon"}),
        ("workspace_id", {"workspace_id": ""}),
        ("peer_id", {"workspace_id": "w", "peer_id": "not a name"}),
        ("label", {"workspace_id": "w", "label": "x" * 1000}),
    ],
)
def test_problems_of_a_key_stand_beside_their_field(
    keyed: Site, field: str, typed: dict[str, str]
) -> None:
    form = post_form(keyed.page("/console/keys"), "/keys")
    page = keyed.send(form, typed, 422)
    assert f"f-{field}-problem" in page.ids
    assert post_form(page, "/keys").fields.items() >= typed.items()


@pytest.mark.slow
def test_keys_are_for_administrators(keyed: Site, tmp_path: Path) -> None:
    own = keyed.as_bearer_of(keyed.key(workspace_id="w"))
    own.page("/console/keys", 403)
    with opened(tmp_path) as site:
        site.page("/console/keys", 403)
        assert "/console/keys" not in site.page("/console").source


# --- usage


@pytest.mark.slow
def test_usage_is_summed_by_day_model_task_and_workspace(site: Site) -> None:
    site.say("w", "s", ("alice", "hello"))
    assert "No model was called" in site.page("/console/usage").text
    now = site.runtime.clock()
    with site.runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug("w")
    assert workspace is not None
    rows = [
        Usage(
            workspace_key=workspace.key,
            day=day_of(now - timedelta(days=days)),
            task=task,
            provider="openai",
            model=model,
            input_tokens=1000,
            output_tokens=234,
            outcome="ok",
            created_at=now,
        )
        for days, task, model in [(0, "derive", "m1"), (1, "chat", "m2"), (99, "chat", "old")]
    ]
    site.runtime.storage.write(lambda tx: tx.usage.add(rows))
    page = site.page("/console/usage")
    for text in ("m1", "m2", "derive", "chat", "w", "1\u202f000", "1\u202f234"):
        assert text in page.text
    assert "old" not in re.sub(r"(?i)older", "", page.text)
    assert page.source.count("<rect") == 30
    assert "style=" not in page.source
    assert "m1" in site.page("/console/usage?workspace=w").text
    site.page("/console/usage?workspace=none", 404)


def add_usage(site: Site, workspace_id: str, model: str) -> None:
    now = site.runtime.clock()
    with site.runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
    assert workspace is not None
    row = Usage(
        workspace_key=workspace.key,
        day=day_of(now),
        task="chat",
        provider="openai",
        model=model,
        input_tokens=1_000_000,
        output_tokens=500_000,
        outcome="success",
        created_at=now,
    )
    site.runtime.storage.write(lambda tx: tx.usage.add([row]))


@pytest.mark.slow
def test_usage_has_costs_where_prices_are_set(tmp_path: Path) -> None:
    prices = json.dumps({"m1": {"input": 2, "output": 8}})
    with opened(tmp_path, LLM_PRICES=prices) as site:
        site.say("w", "s", ("alice", "hello"))
        for model in ("m1", "m1", "m2"):
            add_usage(site, "w", model)
        for url in ("/console/usage", "/console/usage?workspace=w"):
            text = site.page(url).text
            assert "Cost of 30 days, in the currency of LLM_PRICES: 12.0000." in text
            assert "Models without a price count as free: openai/m2." in text
    with opened(tmp_path) as site:
        site.say("w", "s", ("alice", "hello"))
        add_usage(site, "w", "m1")
        assert "Cost" not in site.page("/console/usage").text


@pytest.mark.slow
def test_a_budget_is_set_and_noted(site: Site) -> None:
    site.say("w", "s", ("alice", "hello"))
    url = "/console/usage?workspace=w"
    form = post_form(site.page(url), "/budget")
    assert form.fields["limit"] == "settings"
    assert "As in the settings: no limit" in site.page(url).text
    for typed in ({"limit": "tokens"}, {"limit": "tokens", "daily_tokens": "-1"}):
        wrong = site.send(form, typed, 422)
        assert "b-daily_tokens-problem" in wrong.ids
        assert post_form(wrong, "/budget").fields["limit"] == "tokens"
    wrong = site.send(form, {"limit": "all", "daily_tokens": "12"}, 422)
    assert "b-limit-problem" in wrong.ids
    assert post_form(wrong, "/budget").fields["daily_tokens"] == "12"
    page = site.send(form, {"limit": "tokens", "daily_tokens": "5000"})
    assert "0 of 5\u202f000 tokens of today are spent" in page.text
    assert post_form(page, "/budget").fields["daily_tokens"] == "5000"
    assert "tokens of today" not in site.send(form, {"limit": "none"}).text
    assert post_form(site.send(form, {"limit": "settings"}), "/budget").fields == form.fields
    with site.runtime.storage.read() as tx:
        entries = [e for e in tx.audit_log.page() if e.action == "budget.change"]
    assert [entry.detail for entry in reversed(entries)] == [
        {"limit": "tokens", "daily_tokens": 5000},
        {"limit": "none", "daily_tokens": None},
        {"limit": "settings", "daily_tokens": None},
    ]


def test_the_key_of_a_workspace_sets_no_budget(keyed: Site) -> None:
    keyed.say("w", "s", ("alice", "hello"))
    own = keyed.as_bearer_of(keyed.key(workspace_id="w"))
    assert "/budget" not in own.page("/console/usage").source
    answer = own.open("/console/workspaces/w/budget", "POST", data={"limit": "none"})
    assert answer.status_code == 403


# --- settings


@pytest.mark.slow
def test_settings_show_values_and_sources_but_no_secrets(site: Site) -> None:
    page = site.page("/console/settings")
    assert "sk-secret" not in page.source
    row = re.search(r"<code>REASONER</code>(.|\n)*?</tr>", page.source)
    assert row is not None
    assert "extractive" in row[0]
    assert "default" not in row[0]
    for plugin in ("sqlite", "hashed", "memservice_blueprints"):
        assert plugin in page.text


@pytest.mark.slow
def test_a_key_does_not_see_settings(keyed: Site) -> None:
    keyed.page("/console/settings", 403)
    assert "dimension 384" in keyed.page("/console").text, "the parts"
    assert "/console/settings" not in keyed.page("/console").source


# --- search


@pytest.mark.slow
def test_search_shows_the_parts_of_each_score(site: Site) -> None:
    site.say("w", "s", ("alice", "I like green tea"), ("bob", "me too"), ("alice", "and Ghent"))
    site.conclude("w", "alice", "alice", "likes green tea")
    assert "Own words" not in site.page("/console/workspaces/w/search").text
    page = site.page("/console/workspaces/w/search?query=green+tea")
    assert "I like green tea" in page.text
    assert "likes green tea" in page.text
    assert ">–</td>" in page.source, "a message that was found by its neighbour's words"
    result = workspace_search.explain(site.runtime, ADMIN, "w", "green tea")
    messages = search.search(site.runtime, ADMIN, "w", SearchOptions("green tea"))
    assert [row.uid for row in result.messages.rows] == [message.uid for message in messages]
    scores = [parts.score for parts in result.messages.parts]
    assert scores == sorted(scores, reverse=True)
    assert all(value > 0 for value in scores)
    ((conclusion, parts),) = result.conclusions.explained
    assert conclusion.content == "likes green tea"
    assert parts.vector is not None
    assert parts.vector.similarity is not None
    assert parts.vector.similarity > 0.5
    assert "Ranked by text. 3 candidates." in page.text
    assert "Ranked by text and vector. 1 candidate." in page.text
    site.page("/console/workspaces/none/search?query=x", 404)


@pytest.mark.slow
def test_search_shows_what_the_limit_removed(site: Site) -> None:
    site.say("w", "s", *(("alice", f"tea number {number}") for number in range(13)))
    page = site.page("/console/workspaces/w/search?query=tea")
    assert "13 candidates; 3 removed by the limit." in page.text


def test_a_search_of_few_rows_is_explained_too(site: Site) -> None:
    site.say("w", "s", ("alice", "tea"))
    result = workspace_search.explain(site.runtime, ADMIN, "w", "nothing alike")
    assert [parts.score for parts in result.messages.parts] == [0.0] * len(result.messages.rows)


# --- ask


@pytest.mark.slow
def test_an_answer_comes_with_its_evidence(site: Site) -> None:
    site.say("w", "s", ("alice", "I live in <b>Ghent</b>"))
    site.conclude("w", "alice", "alice", "lives in <b>Ghent</b>")
    form = site.page("/console/workspaces/w/peers/alice").form("/ask")
    page = site.send(form, {"query": "Where does alice live?"}, 200)
    assert "lives in <b>Ghent</b>" in page.text
    assert "Evidence" in page.text
    assert page.form("/ask").fields["query"] == "Where does alice live?"
    empty = site.send(form, {"query": ""}, 422)
    assert "f-query-problem" in empty.ids


@pytest.mark.slow
def test_an_answer_is_streamed_for_the_script(site: Site) -> None:
    site.say("w", "s", ("alice", "I live in <b>Ghent</b>"))
    site.conclude("w", "alice", "alice", "lives in <b>Ghent</b>")
    form = site.page("/console/workspaces/w/peers/alice").form("/ask")
    answer = site.open(
        "/console/workspaces/w/peers/alice/ask/stream",
        "POST",
        data={**form.fields, "query": "Where does alice live?"},
    )
    assert answer.status_code == 200
    *pieces, last = [json.loads(line) for line in answer.text.splitlines()]
    assert "Ghent" in "".join(piece["text"] for piece in pieces)
    assert "&lt;b&gt;Ghent" in last["evidence"]
    assert "<b>" not in last["evidence"]
    assert 'href="../sessions/s?before=2#m1"' in last["evidence"], "relative to the peer's page"
    empty = site.open(
        "/console/workspaces/w/peers/alice/ask/stream", "POST", data={**form.fields, "query": ""}
    )
    assert empty.status_code == 422
