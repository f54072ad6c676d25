"""Chat without a model, over conversations in eight languages. Add a row to a file in
`conversations` for each kind of question that should be answered, or must not be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memservice.compose import open_runtime
from memservice.domain.filters import equals
from memservice.domain.records import Conclusion
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services import cards, corrections, messages
from memservice.services.chat.chat import ChatOptions, ask_peer
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from memservice_extractive.answer_texts import TEXTS
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE

CONVERSATIONS = Path(__file__).parent / "conversations"
LANGUAGES = sorted(path.stem for path in CONVERSATIONS.glob("*.json"))
ASKED_AT = datetime(2024, 8, 15, 12, tzinfo=UTC)


SECOND = Path(__file__).parent / "second"
"""Conversations whose author did not know the rules; the rules were fitted to them afterwards."""
THIRD = Path(__file__).parent / "third"
"""Conversations about pets, journeys, new work, diets, corrections and fiction in nine languages,
written before the rules were read; the rules were fitted to them afterwards."""
FOURTH = Path(__file__).parent / "fourth"
"""The same, by another author."""
UNSEEN = Path(__file__).parent / "unseen"
"""The same, by an author who did not know the rules. It was unseen once: the rules were fitted to
it afterwards."""
FIFTH = Path(__file__).parent / "fifth"
"""Chats in short lower-case sentences, in nine languages, written before their author read the
rules. They were unseen once: rules were fitted to them afterwards."""
SIXTH = Path(__file__).parent / "sixth"
"""Chats with long sentences and two facts in a message: orders that are late, budgets, schools,
tools, addresses. Written before the rules and the failures of any table were read; the rules were
fitted to them afterwards."""
SEVENTH = Path(__file__).parent / "seventh"
"""Colloquial chats of another author, who knew neither the rules nor the other tables. No rule was
fitted to what is not answered. Do not read these failures to write a rule."""
FLOORS = {
    SECOND: (117, 37),
    THIRD: (105, 32),
    FOURTH: (103, 35),
    UNSEEN: (101, 34),
    FIFTH: (97, 35),
    SIXTH: (98, 32),
    SEVENTH: (66, 26),
}
"""Questions that are answered, and questions without an answer that are not answered: a little
below what was measured (`benchmarks/recall/README.md`, "Answers without a model")."""


@cache
def conversation(language: str, folder: Path = CONVERSATIONS) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / f"{language}.json").read_text())
    return loaded


def opened(language: str, folder: Path, conversations: Path = CONVERSATIONS) -> Runtime:
    """A store in memory with the conversation, and all conclusions drawn from it."""
    loaded = load_settings(
        environ={"DB_CONNECTION_URI": "memory://", "REASONER": "extractive"}, cwd=folder
    )
    runtime = open_runtime(loaded, "command", plugins=load_plugins(loaded), clock=lambda: ASKED_AT)
    runtime.storage.migrate()
    for sent_at, author, content in conversation(language, conversations)["messages"]:
        draft = Draft(content, author, created_at=datetime.fromisoformat(sent_at))
        messages.create(runtime, PRINCIPAL, WORKSPACE, "talk", [draft])
    Worker(runtime).run_until_idle(30)
    return runtime


@pytest.fixture(scope="module")
def read_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Runtime]]:
    """The conversation in a language, in a store that nothing is written to any more."""
    runtimes: dict[str, Runtime] = {}

    def read(language: str) -> Runtime:
        if language not in runtimes:
            runtimes[language] = opened(language, tmp_path_factory.mktemp(language))
        return runtimes[language]

    yield read
    for runtime in runtimes.values():
        runtime.close()


def answer(
    runtime: Runtime, language: str, question: str, conversations: Path = CONVERSATIONS
) -> list[str]:
    """The introduction and the statements."""
    peer = conversation(language, conversations)["peer"]
    content = ask_peer(runtime, PRINCIPAL, WORKSPACE, peer, ChatOptions(question)).content()
    return (content or "").split("\n- ")


def introduces_answers(introduction: str, language: str) -> bool:
    return introduction.endswith(TEXTS[language].about.partition("{name}")[2])


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_statements_answer_questions_in_other_words(
    language: str, read_once: Callable[[str], Runtime]
) -> None:
    runtime = read_once(language)
    missing = []
    for question, expected, *outdated in conversation(language)["questions"]:
        introduction, *statements = answer(runtime, language, question)
        first_two = " ".join(statements[:2]).casefold()
        is_stale = outdated and outdated[0].casefold() in statements[0].casefold()
        if expected.casefold() not in first_two or is_stale:
            missing.append((question, introduction, statements[:2]))
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_questions_without_an_answer_get_the_closest_statements(
    language: str, read_once: Callable[[str], Runtime]
) -> None:
    runtime = read_once(language)
    for question in conversation(language)["unanswerable"]:
        introduction, *statements = answer(runtime, language, question)
        assert not introduces_answers(introduction, language), (question, statements)
        assert statements


def test_the_table_has_120_questions_and_40_without_an_answer() -> None:
    sizes = Counter[str]()
    for language in LANGUAGES:
        sizes["questions"] += len(conversation(language)["questions"])
        sizes["unanswerable"] += len(conversation(language)["unanswerable"])
    assert sizes == {"questions": 120, "unanswerable": 40}


@pytest.mark.slow
def test_a_newer_home_comes_first_and_the_earlier_one_is_marked(
    read_once: Callable[[str], Runtime],
) -> None:
    _, *statements = answer(read_once("en"), "en", "Where does Maria live?")
    assert statements[:2] == [
        "[2024-07-08] about maria: We moved to Braga last weekend! (2024-07-06/2024-07-07)",
        "[2024-03-02] about maria, earlier: I'm Maria, I live in Porto with my husband Rui.",
    ]


@pytest.mark.slow
def test_a_corrected_statement_is_quoted_only_as_an_earlier_one(tmp_path: Path) -> None:
    runtime = opened("en", tmp_path)
    pair = (equals(observer="maria", observed="maria"),)
    with runtime.storage.read() as tx:
        rows = tx.rows.page(Conclusion, *pair)
    (wrong,) = [row for row in rows if "walnuts" in row.content]
    corrections.correct(runtime, PRINCIPAL, WORKSPACE, wrong.uid, "I'm allergic to hazelnuts.")
    _, *statements = answer(runtime, "en", "What is Maria allergic to?")
    runtime.close()
    assert statements[:2] == [
        "[2024-03-02] maria is allergic to hazelnuts.",
        "[2024-03-02 09:12] maria, earlier: I'm vegetarian, and I'm allergic to walnuts. "
        "My mother loves green tea but I only drink black coffee.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "RELATIONSHIP: Meine Frau heißt Petra, wir haben 2010 geheiratet."),
        ("es", "ATTRIBUTE: La semana pasada me mudé a Granada."),
        ("fr", "ATTRIBUTE: Nous avons déménagé à Grenoble le week-end dernier."),
        ("pt", "INSTRUCTION: Por favor, responda sempre em português e sem emojis."),
        ("ru", "ATTRIBUTE: У меня аллергия на орехи, и я не ем мясо."),
        ("zh", "RELATIONSHIP: 我妻子叫李娜，我们有一个女儿叫小雨。"),
    ],
)
def test_a_card_has_lasting_facts_and_requests_and_no_events(
    language: str, expected: str, read_once: Callable[[str], Runtime]
) -> None:
    peer = conversation(language)["peer"]
    lines = cards.get(read_once(language), PRINCIPAL, WORKSPACE, peer, None) or []
    assert expected in lines
    assert not any("2024" in line or "Norwegen" in line or "Байкал" in line for line in lines)


@pytest.mark.heavy
@pytest.mark.parametrize("conversations", FLOORS, ids=lambda folder: folder.name)
def test_conversations_of_others_are_answered_as_often_as_before(
    conversations: Path, tmp_path: Path
) -> None:
    languages = [path.stem for path in conversations.glob("*.json")]
    counts = answered(conversations, languages, tmp_path)
    answers, not_answered = FLOORS[conversations]
    assert counts["false nothing"] == 0
    assert counts["answered"] >= answers, counts
    assert counts["not answered"] >= not_answered, counts


@pytest.mark.slow
def test_italian_questions_are_answered_as_often_as_before(tmp_path: Path) -> None:
    """The language that the conversations above lack."""
    counts = answered(THIRD, ["it"], tmp_path)
    assert counts["false nothing"] == 0
    assert counts["answered"] >= 12, counts
    assert counts["not answered"] >= 4, counts


def answered(conversations: Path, languages: Iterable[str], folder: Path) -> Counter[str]:
    counts = Counter[str]()
    for language in languages:
        runtime = opened(language, folder, conversations)
        for question, expected, *_ in conversation(language, conversations)["questions"]:
            _, *statements = answer(runtime, language, question, conversations)
            counts["answered"] += expected.casefold() in " ".join(statements[:2]).casefold()
            counts["false nothing"] += not statements
        for question in conversation(language, conversations)["unanswerable"]:
            introduction, *_ = answer(runtime, language, question, conversations)
            counts["not answered"] += not introduces_answers(introduction, language)
        runtime.close()
    return counts


@pytest.mark.slow
def test_a_statement_about_another_person_answers_no_question_about_the_speaker(
    tmp_path: Path,
) -> None:
    """It is kept as what ben said, and answers questions that name the other person."""
    loaded = load_settings(
        environ={"DB_CONNECTION_URI": "memory://", "REASONER": "extractive"}, cwd=tmp_path
    )
    runtime = open_runtime(loaded, "command", plugins=load_plugins(loaded), clock=lambda: ASKED_AT)
    runtime.storage.migrate()
    statements = ("Anna lives in Rome.", "I live in Oslo.", "Tom is allergic to nuts.")
    for text in statements:
        messages.create(runtime, PRINCIPAL, WORKSPACE, "talk", [Draft(text, "ben")])
    messages.create(runtime, PRINCIPAL, WORKSPACE, "talk", [Draft("Hello everybody!", "anna")])
    Worker(runtime).run_until_idle(30)

    def answer_of(peer: str, question: str) -> tuple[bool, str]:
        content = ask_peer(runtime, PRINCIPAL, WORKSPACE, peer, ChatOptions(question)).content()
        introduction, first, *_ = (content or "").split("\n- ")
        return introduces_answers(introduction, "en"), first.rpartition("] ")[2]

    assert answer_of("ben", "Where does Ben live?") == (True, "ben lives in Oslo.")
    assert answer_of("ben", "Where does Anna live?") == (True, "about ben: Anna lives in Rome.")
    assert answer_of("ben", "What is Tom allergic to?") == (
        True,
        "about ben: Tom is allergic to nuts.",
    )
    assert answer_of("ben", "What is Ben allergic to?")[0] is False
    assert answer_of("anna", "Where does Anna live?") == (True, "ben: Anna lives in Rome.")
    runtime.close()
