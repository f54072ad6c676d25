"""`memservice bench`: sets, the model proxy, grades, the judge and reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import jsonschema
import pytest
from click.testing import CliRunner

from memservice_bench import grading
from memservice_bench.builtin import conversations
from memservice_bench.command import bench
from memservice_bench.corpus import Fact, Question
from memservice_bench.judge import Judge, judge_test, known_pairs
from memservice_bench.model_proxy import Call, ModelProxy, Upstream, least, shown
from memservice_bench.public_sets import load_longmemeval
from memservice_bench.report import comparison, table
from memservice_bench.run import RESULTS, Options, Result, Run, estimate, read_results


def result(question: str, **changes: object) -> Result:
    values: dict[str, object] = {
        "conversation": "one",
        "question": question,
        "category": "near",
        "repetition": 0,
        "answer": "x",
        "seconds": 0.1,
        "calls": 1,
        "tokens": 10,
        "prompt_characters": 100,
        "shown_first": 0.5,
        "shown": 1.0,
        "matched": True,
        "abstained": False,
    }
    return Result(**(values | changes))  # type: ignore[arg-type]


# Sets


def test_the_built_in_set_has_answers_facts_and_unanswerable_questions() -> None:
    corpus = conversations(seed=1, count=4)
    for talk in corpus:
        texts = {turn.key: turn for turn in talk.turns}
        assert all(question.evidence for question in talk.questions)
        assert not any(question.evidence for question in talk.unanswerable)
        assert talk.unanswerable
        for fact in talk.facts:
            assert fact.value.casefold() in texts[fact.key].text.casefold()
            assert texts[fact.key].speaker == fact.about
    own = [q for talk in corpus for q in talk.questions if q.category in ("near", "update")]
    assert all(question.answer and question.asker for question in own)


def test_longmemeval_is_read(tmp_path: Path) -> None:
    talk = [
        {"role": "user", "content": "My dog is Rex.", "has_answer": True},
        {"role": "assistant", "content": "Nice!", "has_answer": False},
    ]
    entry = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What is the dog's name?",
        "answer": "Rex",
        "haystack_session_ids": ["s1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [talk],
        "answer_session_ids": ["s1"],
    }
    file = tmp_path / "set.json"
    file.write_text(json.dumps([entry, entry | {"question_id": "q2_abs"}]), "utf-8")
    answerable, unknown = load_longmemeval(file)
    assert answerable.questions[0].evidence == {1}
    assert (answerable.questions[0].answer, answerable.turns[0].at.hour) == ("Rex", 2)
    assert (unknown.questions, unknown.unanswerable[0].category) == ((), "unknown")


# The model proxy


@contextmanager
def provider(text: str) -> Iterator[tuple[str, list[str]]]:
    """A model on loopback that always answers `text`; its URL and the paths it was asked at."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            paths.append(self.path)
            body = {
                "choices": [{"message": {"role": "assistant", "content": text}}],
                "usage": {"total_tokens": 7},
            }
            raw = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing in the output of tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", paths
    finally:
        server.shutdown()
        server.server_close()


def ask(proxy: ModelProxy, **body: object) -> httpx.Response:
    request = {"model": "m", "messages": [{"role": "user", "content": "Hello  there"}]} | body
    return httpx.post(f"{proxy.base_url}/chat/completions", json=request)


@pytest.mark.slow
def test_the_script_answers_text_json_and_streams() -> None:
    proxy = ModelProxy(None, None)
    try:
        schema = {
            "type": "object",
            "properties": {
                "statements": {"type": "array", "items": {"type": "string"}},
                "done": {"type": "boolean"},
                "kind": {"enum": ["a", "b"]},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["statements", "done", "kind", "note"],
        }
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        text = ask(proxy).json()["choices"][0]["message"]["content"]
        structured = ask(proxy, response_format=form).json()["choices"][0]["message"]["content"]
        streamed = ask(proxy, stream=True).text
    finally:
        proxy.close()
    assert text == "READY"
    jsonschema.validate(json.loads(structured), schema)
    assert streamed.startswith("data: ")
    assert streamed.endswith("data: [DONE]\n\n")
    assert proxy.since(0)[0].prompt == "m user Hello there"


@pytest.mark.slow
def test_a_recorded_request_is_not_paid_twice(tmp_path: Path) -> None:
    with provider("Rex") as (url, paths):
        for _ in range(2):
            proxy = ModelProxy(Upstream(url), tmp_path)
            try:
                assert ask(proxy).json()["choices"][0]["message"]["content"] == "Rex"
                assert proxy.tokens == 7
            finally:
                proxy.close()
    assert paths == ["/v1/chat/completions"]
    replayed = ModelProxy(None, tmp_path, replay_only=True)
    try:
        assert ask(replayed).status_code == 200
        assert ask(replayed, temperature=1).status_code == 502
    finally:
        replayed.close()


def test_the_minimal_document_fits_the_schema() -> None:
    assert least({"type": ["string", "null"]}) is None
    assert least({"type": "object", "properties": {"n": {"type": "integer"}}}) == {"n": 0}


# Grades


def test_evidence_counts_if_the_prompt_contains_the_turn() -> None:
    question = Question("?", frozenset({1, 2}), "near")
    texts = {1: "My dog\nis Rex.", 2: "x" * 1_000}
    calls = [Call(shown({"messages": ["alice: My dog  is Rex."]}), 0), Call("x" * 400, 0)]
    assert grading.evidence_shown(question, texts, calls[:1]) == 0.5
    assert grading.evidence_shown(question, texts, calls) == 1.0
    assert grading.evidence_shown(Question("?", frozenset(), "unknown"), texts, calls) is None


@pytest.mark.parametrize(
    ("gold", "answer", "matched"),
    [
        ("Rex", "The dog is called REX.", True),
        ("Rex", "The dog has no name.", False),
        ("Ann\nRex", "Ann has Rex.", True),
        ("Ann\nRex", "Rex.", False),
        ("on 14 September 2024 in Porto", "In Porto, on the 14th September of 2024", True),
        ("about 20 minutes walking every day", "She walks about 20 minutes every day", True),
        ("about 20 minutes walking every day", "She walks about 30 minutes every day", False),
        ("Rex", None, False),
    ],
)
def test_gold_answers_are_recognised(gold: str, answer: str | None, matched: bool) -> None:
    assert grading.matches(Question("?", frozenset({1}), "near", gold), answer) is matched


@pytest.mark.parametrize(
    ("answer", "abstains"),
    [
        (None, True),
        ("", True),
        ("Nothing is known about that.", True),
        ("I don't have any information about a dog.", True),
        ("Darüber ist nichts bekannt.", True),
        ("She lives in Porto.", False),
    ],
)
def test_abstention_is_recognised(answer: str | None, abstains: bool) -> None:
    assert grading.abstains(answer) is abstains


def test_facts_are_searched_at_their_owner() -> None:
    facts = [Fact(1, "ann", "Rex"), Fact(2, "ben", "Porto")]
    conclusions = {"ann": ["ann's dog is called Rex", "ann lives in Porto"], "ben": []}
    assert grading.fact_recall(facts, conclusions) == 0.5
    assert grading.fact_recall([], conclusions) is None


# The judge


def test_the_judge_test_has_60_pairs_of_which_20_are_vague() -> None:
    pairs = known_pairs()
    assert (len(pairs), sum(correct for _, _, correct in pairs)) == (60, 20)
    assert len({answer for _, answer, _ in pairs}) == 60


@pytest.mark.slow
def test_a_judge_that_accepts_everything_agrees_with_a_third() -> None:
    with provider('{"correct": true}') as (url, paths):
        agreed = judge_test(Judge(Upstream(url), "m"), known_pairs()[:6])
    assert agreed == pytest.approx(1 / 3)
    assert len(paths) == 18


# Reports and the command


def test_reports_show_each_category_and_paired_differences() -> None:
    first = [result("a", matched=False), result("b", category="far", correct=True)]
    second = [result("a"), result("b", category="far", correct=True), result("c")]
    lines = table(second).splitlines()
    assert [line.split()[0] for line in lines] == ["category", "far", "near", "all"]
    assert "100.0 ±0.0" in lines[-1]
    compared = comparison(first, second).splitlines()
    assert "+100.0" in next(line for line in compared if line.startswith("near"))
    assert compared[-1].split()[1] == "2"


@pytest.mark.slow
def test_a_folder_contains_one_run(tmp_path: Path) -> None:
    Run(tmp_path, Options("builtin"), None, None, print)._describe()
    (tmp_path / RESULTS).write_text("", "utf-8")
    assert read_results(tmp_path) == []
    outcome = CliRunner().invoke(
        bench, ["run", str(tmp_path), "--level", "high", "--base-url", "http://127.0.0.1:9"]
    )
    assert outcome.exit_code == 1
    assert "other options (level)" in outcome.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "F", "--set", "nothing"], "one of builtin, assistant"),
        (["run", "F", "--judge-model", "m"], "--judge-model and --judge-url must be set together"),
        (["run", "F", "--base-url", "http://127.0.0.1:9", "--ablation", "search"], "scratch"),
        (["run", "F", "--base-url", "http://127.0.0.1:9"], "Is the server at"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, words: list[str], message: str) -> None:
    words = [str(tmp_path / "run") if word == "F" else word for word in words]
    outcome = CliRunner().invoke(bench, [*words, "--count", "1"] if words[0] == "run" else words)
    assert outcome.exit_code != 0
    assert message in outcome.output


def test_an_estimate_calls_no_model() -> None:
    corpus = conversations(seed=1, count=2)
    numbers = estimate(corpus, Options("builtin", limit=5))
    assert numbers["questions"] == 10
    assert numbers["messages"] == sum(len(talk.turns) for talk in corpus)
