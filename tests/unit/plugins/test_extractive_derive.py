"""Deriving without a model: the quoted authors, what is left out, and that nothing is invented."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memservice.spi.reasoner import DeriveRequest, Utterance
from memservice_extractive import facts, prose, worth
from memservice_extractive.prose import own_lines
from memservice_extractive.reasoner import ExtractiveReasoner
from memservice_extractive.sentences import MAX_LENGTH, split
from memservice_extractive.subjects import REPLY_MARK
from support.examples import examples

START = datetime(2023, 5, 8, 10, tzinfo=UTC)
REASONER = ExtractiveReasoner()


def says(key: int, author: str, content: str, new: bool = True) -> Utterance:
    return Utterance(key, f"u{key}", author, content, START + timedelta(minutes=key), new)


def derived(
    *messages: Utterance, observed: str = "bob", names: dict[str, str] | None = None
) -> list[tuple[str, tuple[int, ...]]]:
    statements = REASONER.derive(DeriveRequest(observed, messages, names=names or {})).statements
    return [(statement.content, statement.message_keys) for statement in statements]


def test_only_the_observed_peers_own_new_messages_are_derived() -> None:
    statements = derived(
        says(1, "bob", "I live in Rome.", new=False),
        says(2, "alice", "I live in Oslo."),
        says(3, "bob", "Alice lives in Oslo. I work at Siemens."),
        says(4, "alice", "I work at Bosch."),
    )

    assert statements == [("Alice lives in Oslo.", (3,)), ("I work at Siemens.", (3,))]


def test_a_repeated_sentence_is_one_statement_of_both_messages() -> None:
    statements = derived(
        says(1, "bob", "I live in Rome. I live in Rome."),
        says(2, "bob", "i live in  rome. I play chess."),
    )

    assert statements == [("I live in Rome.", (1, 2)), ("I play chess.", (2,))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "lol that movie was sooo bad",
        "omg, the queue there was endless",
        "ugh, this waiting room is so gloomy",
        "haha das war so lustig",
        "haha c'était trop drôle comme film",
        "jaja esa peli fue malísima",
        "ахаха фильм был смешной",
    ],
)
def test_a_reaction_is_no_statement(text: str) -> None:
    assert derived(says(1, "bob", text)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "lol I moved to Rome",
        "haha my brother broke his arm",
        "omg Anna got married",
        "wow, the concert is on 14 May",
        "lol the dentist appointment is tomorrow",
        "lol bought a new car for the kids",
        "jaja compré una casa nueva",
        "ахаха купила новый дом",
        "haha ich wohne jetzt in Bonn",
    ],
)
def test_news_that_begin_with_laughter_stay(text: str) -> None:
    assert [content for content, _ in derived(says(1, "bob", text))] == [text]


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (
            "Do you have pets?",
            "Yes, a small rabbit by the name of Dot.",
            ["Do you have pets? – Yes, a small rabbit by the name of Dot."],
        ),
        ("Wollen Sie das ändern?", "Ändern.", []),
        ("", "I bought a horn! Second hand, dented.", ["I bought a horn! Second hand, dented."]),
        ("", "I live in Oslo. Nice town, small.", ["I live in Oslo.", "Nice town, small."]),
        (
            "",
            "Mi ricordi la visita dal notaio? È il 15 marzo alle 16.",
            ["Mi ricordi la visita dal notaio? È il 15 marzo alle 16."],
        ),
        ("", "In Rome it rained. In May, my sister fell.", ["In May, my sister fell."]),
    ],
)
def test_statements_keep_the_text_that_they_need(
    question: str, text: str, expected: list[str]
) -> None:
    messages = [says(1, "ada", question)] if question else []
    statements = [content for content, _ in derived(*messages, says(2, "bob", text))]
    assert [each for each in statements if each != "In Rome it rained."] == expected


def test_nothing_is_derived_from_nothing() -> None:
    assert derived() == []
    assert derived(says(1, "bob", "")) == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Alice: I live in Oslo.\nI live in Rome.", ["I live in Rome."]),
        ("al: I live in Oslo.\nI live in Rome.", ["I live in Rome."]),
        ("assistant: You could visit Oslo in May.\nI live in Rome.", ["I live in Rome."]),
        (
            "Carl: I live in Oslo.\nDora: I live in Bonn.\nCarl: My dog is ill.\n\nI live in Rome.",
            ["I live in Rome."],
        ),
        ("[10:02] Carl: I live in Oslo.\nI live in Rome.", ["I live in Rome."]),
        ("Note: I am allergic to nuts.", ["Note: I am allergic to nuts."]),
        (
            "On Monday, 8 May 2023, Carl wrote:\n> I live in Oslo.\nI live in Rome.",
            ["I live in Rome."],
        ),
        ("[2023-05-08 10:00:00] I live in Oslo.\nI live in Rome.", ["I live in Rome."]),
        (
            "## Explicit Observations\n\n[2023-05-08 10:00:00] Bob sails.\nI live in Rome.",
            ["I live in Rome."],
        ),
        ("ATTRIBUTE: I live in Oslo.\nI live in Rome.", ["I live in Rome."]),
        ("<memory>\nBob has two cats.\n</memory>\nI live in Rome.", ["I live in Rome."]),
        ("~~~\nmy cat sleeps\n~~~\nI live in Rome.", ["I live in Rome."]),
        (
            "Look:\n\n    total = price * 3\n    print(total)\n\nI live in Rome.",
            ["I live in Rome."],
        ),
        ("SELECT name FROM cats WHERE age > 3;\nI live in Rome.", ["I live in Rome."]),
        ("| name | age |\n|---|---|\n| Tom | 5 |\nI live in Rome.", ["I live in Rome."]),
        ("I live in a house\nnear the river.", ["I live in a house near the river."]),
        ("    I live in Rome.\n    I play chess.", ["I live in Rome.", "I play chess."]),
        ("“I am a doctor.” I live in Rome.", ["I live in Rome."]),
        ('My favourite quote is "Be yourself".', ['My favourite quote is "Be yourself".']),
        ("`pip install x`", []),
        ("```\nI live in Oslo.", []),
    ],
)
def test_text_that_is_not_the_authors_prose_is_left_out(content: str, expected: list[str]) -> None:
    statements = derived(says(1, "alice", "hello"), says(2, "bob", content), names={"alice": "Al"})

    assert [sentence for sentence, _ in statements] == expected


def test_long_text_is_cut_at_clause_ends() -> None:
    text = "I visited " + ", ".join(f"the {number}th museum of Rome" for number in range(60)) + "."

    pieces = split(text, "en")

    assert len(pieces) > 1
    assert all(len(piece) <= MAX_LENGTH for piece in pieces)
    assert " ".join(pieces) == text
    assert all(piece.endswith(",") for piece in pieces[:-1])
    assert max(map(len, split("x" * 3000, "en"))) <= MAX_LENGTH
    assert "".join(split("猫" * 3000, "zh")) == "猫" * 3000


def test_rare_symbols_that_the_segmenter_loses_are_kept() -> None:
    assert split("I own ∯ a ȸ boat ♨ here. I sail.", "en") == [
        "I own ∯ a ȸ boat ♨ here.",
        "I sail.",
    ]


FRAGMENTS = [
    *(
        "I live in Rome. ",
        "Dr. Müller ",
        "ich mag Tee ",
        "我住在北京",
        "東京に住んでいます",
        "alice: ",
        "https://x.org/a. ",
        "e.g. ",
        "é",
        "😀",
    ),
    *(
        "\n",
        "> ",
        "```",
        "“",
        "”",
        '"',
        "「",
        "」",
        "。",
        "?",
        "!",
        "1. ",
        "- ",
        "<memory>",
        "</memory>",
        "...",
        "\t",
        "\u2028",
        "\x00",
    ),
    *(" ; ", "{", "}", "=", "(", ")", "∯", "&ᓰ&", " ", "    ", "\u3000"),
]
ALPHABET = st.one_of(
    st.text(max_size=80), st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["bob", "alice"]), ALPHABET, st.booleans()), max_size=4))
@example([("bob", "a & ∯ b ȸ c ♨ d. Next one I own.", True)])
@example([("bob", "\ud800 I live in Rome.", True)])
def test_every_statement_is_a_substring_of_a_message_of_the_peer(
    turns: list[tuple[str, str, bool]],
) -> None:
    messages = [
        says(key, author, content, new) for key, (author, content, new) in enumerate(turns, 1)
    ]
    own = {
        message.key: " ".join(message.content.split())
        for message in messages
        if message.author == "bob" and message.new
    }

    statements = REASONER.derive(DeriveRequest("bob", messages)).statements

    uses = set()
    for statement in statements:
        assert statement.message_keys
        assert 0 < len(statement.content) <= MAX_LENGTH
        assert statement.content == " ".join(statement.content.split())
        question, mark, reply = statement.content.rpartition(REPLY_MARK)
        quoted = statement.content
        if quoted not in own[statement.message_keys[0]]:
            assert mark
            assert any(question in " ".join(text.split()) for _, text, _ in turns)
            quoted = reply
        assert quoted in own[statement.message_keys[0]]
        assert all(quoted.casefold() in own[key].casefold() for key in statement.message_keys)
        uses.add(statement.content.casefold())
    assert len(uses) == len(statements)


@given(ALPHABET)
def test_extracted_lines_have_no_surplus_white_space(text: str) -> None:
    assert all(
        line and line == " ".join(line.split()) for line in own_lines(text, "bob", {"alice"})
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "word ",
        "1. 2. ",
        "((((",
        "...",
        "Mr. ",
        '"',
        "=",
        ");",
        "<memory>",
        "alice: ",
        "「",
        "。",
        "a@",
        "- ",
        "hello, ",
        "thanks for ",
        "that is a ",
        "-",
        "我",
        "```\n",
        "\n",
        " \n",
    ],
)
def test_time_stays_bounded_on_hostile_text(unit: str) -> None:
    text = (unit * 25_000)[:25_000]
    before = time.process_time()

    derived(says(1, "bob", text))

    assert time.process_time() - before < 8


@pytest.mark.slow
def test_threads_do_not_disturb_each_other() -> None:
    texts = [
        f"I have {number} cats. Dr. Who lives at No. {number} in St. Louis. How are you?"
        for number in range(200)
    ]
    alone = [derived(says(1, "bob", text)) for text in texts]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: derived(says(1, "bob", text)), texts))

    assert together == alone
    assert all(len(statements) == 2 for statements in alone)


@pytest.mark.slow
def test_the_plugin_loads_nothing_until_it_is_used() -> None:
    code = (
        "import sys, memservice_extractive as plugin\n"
        "from memservice_extractive.reasoner import ExtractiveReasoner\n"
        "loaded = [name for name in ('pysbd', 'numpy', 'memservice_extractive.phrases') if "
        "name in sys.modules]\n"
        "assert not loaded, loaded\n"
        "from datetime import datetime, UTC\n"
        "from memservice.spi.reasoner import DeriveRequest, Utterance\n"
        "said = [Utterance(1, 'u', 'bob', 'I live in Rome.', datetime(2023, 5, 8, "
        "tzinfo=UTC))]\n"
        "print(ExtractiveReasoner().derive(DeriveRequest('bob', "
        "said)).statements[0].content)\n"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    # Without a byte-code cache the segmenter's source is compiled here, which is when Python warns
    # about it.
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={
            "PYTHONPATH": path,
            "PYTHONPYCACHEPREFIX": "/nonexistent/cache",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout.strip()) == (0, "I live in Rome."), run.stderr


def test_the_provider_opens_the_reasoner() -> None:
    import logging

    import memservice_extractive
    from memservice.spi.capabilities import Capability
    from memservice.spi.providers import Context

    (provider,) = memservice_extractive.memservice_reasoners()
    reasoner = provider.open({}, Context(lambda: START, logging.getLogger("test")))

    assert (provider.name, reasoner.name, provider.capabilities, reasoner.capabilities) == (
        "extractive",
        "extractive",
        frozenset({Capability.COMPUTES}),
        frozenset({Capability.COMPUTES}),
    )


def test_quotations_and_tags_without_an_end_are_text() -> None:
    assert (
        worth.without_quotations('He said "go" and „komm“, then «stop and "" and 「x')
        == 'He said   and  , then «stop and "" and 「x'
    )
    assert prose.own_lines("before <memory>I am old</memory> after <context>open") == [
        "before",
        "after <context>open",
    ]


def test_text_longer_than_a_sentence_states_no_fact() -> None:
    fact = "I live in Paris with my sister."
    assert facts.read(fact) is not None
    assert facts.read(fact + " " * 500 + "x") is None
    assert worth.judge("I like tea. " * 42, "en").kind == "filler"


@pytest.mark.parametrize(
    ("sentence", "language", "kind"),
    [
        ("Please keep your answers under five lines.", "en", "instruction"),
        ("One thing: never use tables", "en", "instruction"),
        ("And always answer in German", "en", "instruction"),
        ("Achso und bitte duz mich immer", "de", "instruction"),
        ("Bitte halte deine Antworten kurz", "de", "instruction"),
        ("Una cosa: contéstame siempre con listas cortas", "es", "instruction"),
        ("Please write a poem about your garden.", "en", "command"),
        ("One thing: please write a poem", "en", "command"),
        ("My plan: I always read the paper at breakfast", "en", "statement"),
    ],
)
def test_a_request_about_all_answers_is_kept_whatever_introduces_it(
    sentence: str, language: str, kind: str
) -> None:
    assert worth.judge(sentence, language).kind == kind
