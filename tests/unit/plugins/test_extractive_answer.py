"""Answering without a model: what is stored, with its sources, as text or in the shape of a
schema."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memservice.domain.json_schema import violation
from memservice.spi.reasoner import AnswerRequest, Utterance
from memservice.spi.toolbox import Evidence
from memservice_extractive.reasoner import ExtractiveReasoner
from support.examples import examples

SAID = datetime(2023, 5, 8, 10, tzinfo=UTC)
EVIDENCE = (
    Evidence("message", "m1", "I live in Rome\nand I am 34 years old.", SAID, author="bob"),
    Evidence(
        "conclusion",
        "c1",
        "I work at Siemens.",
        SAID + timedelta(days=1),
        about="bob",
        level="explicit",
    ),
    Evidence(
        "conclusion",
        "c2",
        "i work at siemens",
        SAID + timedelta(days=2),
        about="bob",
        level="explicit",
    ),
    Evidence(
        "message",
        "m2",
        "Bob has 3 dogs.",
        SAID.astimezone(timezone(timedelta(hours=9))),
        author="alice",
    ),
)


def answered(
    question: str = "Where does Bob live?",
    subject: str | None = "bob",
    evidence: tuple[Evidence, ...] = EVIDENCE,
    **more: Any,
) -> list[str]:
    return list(ExtractiveReasoner().answer(AnswerRequest(question, subject, evidence, **more)))


def shaped(schema: dict[str, Any], evidence: tuple[Evidence, ...] = EVIDENCE, **more: Any) -> Any:
    (document,) = answered(evidence=evidence, response_format=schema, **more)
    value = json.loads(document)
    Draft202012Validator(schema).validate(value)
    return value


def properties(**parts: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": parts,
        "required": list(parts),
        "additionalProperties": False,
    }


def test_evidence_is_quoted_with_its_sources_after_one_plain_sentence() -> None:
    assert answered() == [
        (
            "No language model is configured, so here are the stored statements about bob that "
            "fit the question best:"
        ),
        "\n- [2023-05-08 10:00] bob: I live in Rome and I am 34 years old.",
    ]


@pytest.mark.parametrize(
    ("question", "intro", "nothing"),
    [
        (
            "Where does Bob live?",
            "No language model is configured",
            "Nothing is known about bob that would answer this.",
        ),
        (
            "Wo wohnt Bob und was macht er?",
            "Es ist kein Sprachmodell eingerichtet",
            "Über bob ist nichts bekannt, was diese Frage beantwortet.",
        ),
        ("他住在哪里？", "未配置语言模型", "没有关于 bob 的信息可以回答这个问题。"),
        (
            "彼はどこに住んでいますか？",
            "言語モデルが設定されていない",
            "bob について、この質問に答えられる情報はありません。",
        ),
    ],
)
def test_the_frame_is_in_the_language_of_the_question(
    question: str, intro: str, nothing: str
) -> None:
    assert answered(question)[0].startswith(intro)
    assert answered(question, evidence=()) == [nothing]


def test_a_spent_budget_is_distinguished_from_a_missing_model() -> None:
    assert answered(model_is_spent=True)[0].startswith(
        "The language model has no tokens left for today, so here are"
    )


def test_a_question_over_the_workspace_names_no_peer() -> None:
    assert answered(subject=None)[0] == (
        "No language model is configured, so here are the stored statements that fit the "
        "question best:"
    )
    assert answered(subject=None, evidence=()) == ["Nothing is known that would answer this."]


@pytest.mark.parametrize(
    ("level", "most"),
    [("minimal", 3), ("low", 8), ("medium", 12), ("high", 16), ("max", 20), ("strange", 8)],
)
def test_the_level_limits_the_evidence(level: str, most: int) -> None:
    evidence = tuple(
        Evidence("message", f"m{n}", f"I own book {n}.", SAID, author="bob") for n in range(30)
    )

    lines = answered("Which books does Bob own?", evidence=evidence, level=level)[1:]

    assert lines == [f"\n- [2023-05-08 10:00] bob: I own book {n}." for n in range(most)]


def test_cards_and_recent_messages_count_if_they_share_a_word() -> None:
    recent = [
        Utterance(1, "r1", "bob", "I live near the river.", SAID),
        Utterance(2, "r2", "bob", "My cat sleeps.", SAID),
    ]

    lines = answered(
        evidence=(),
        cards={"bob": ["ATTRIBUTE: I live in Rome.", "IDENTITY: I'm a nurse."]},
        recent=recent,
    )

    assert lines[1:] == [
        "\n- [2023-05-08 10:00] bob: I live near the river.",
        "\n- card of bob: ATTRIBUTE: I live in Rome.",
    ]


def test_the_nearest_sentences_of_a_long_message_are_shown() -> None:
    filler = "The train to the office was late because of snow. " * 20
    evidence = (Evidence("message", "m1", f"{filler}I live in Rome. {filler}", SAID, author="bob"),)

    (line,) = answered(evidence=evidence)[1:]

    assert "I live in Rome." in line
    assert " … " in line
    assert len(line) < 640


def test_a_schema_is_filled_from_the_evidence_that_shares_its_words() -> None:
    schema = properties(
        answer={"type": "string"},
        employer={"type": "string", "description": "Where Bob works"},
        age={"type": "integer", "description": "Age in years"},
        dogs={"type": "number"},
        cats={"type": "integer"},
        likes_tea={"type": "boolean"},
        city={"enum": ["Paris", "Rome", "Oslo"]},
        mood={"enum": ["good", "bad", "unknown"]},
        facts={"type": "array", "items": {"type": "string"}, "maxItems": 2},
        sources={"type": "array", "items": {"type": "string"}, "maxItems": 1},
    )

    assert shaped(schema) == {
        "answer": "I live in Rome and I am 34 years old.",
        "employer": "I work at Siemens.",
        "age": 34,
        "dogs": 3,
        "cats": 0,
        "likes_tea": False,
        "city": "Rome",
        "mood": "unknown",
        "facts": ["I live in Rome and I am 34 years old.", "I work at Siemens."],
        "sources": ["[2023-05-08 10:00] bob: I live in Rome and I am 34 years old."],
    }


def test_nothing_is_invented_without_evidence() -> None:
    schema = {
        "type": "object",
        "properties": {
            "answer": {"type": "string"},
            "city": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "age": {"type": ["integer", "null"]},
            "hobby": {"type": "string"},
            "tone": {"type": "string", "default": "plain"},
            "facts": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["answer", "city", "age", "facts"],
    }

    assert shaped(schema, evidence=()) == {
        "answer": "Nothing is known about bob that would answer this.",
        "city": None,
        "age": None,
        "tone": "plain",
        "facts": [],
    }


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 0.5),
        ({"oneOf": [{"type": "integer"}, {"enum": [0, 1]}]}, -1),
        (
            {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/place"}]},
            {"name": "I live in Rome and I am 34 years old."},
        ),
        (
            {"$ref": "#/$defs/place", "description": "where"},
            {"name": "I live in Rome and I am 34 years old."},
        ),
        (
            {"type": "array", "items": {"$ref": "#/$defs/place"}},
            [{"name": "I live in Rome and I am 34 years old."}],
        ),
        ({"const": 5}, 5),
        ({"enum": [None, "x"]}, None),
        ({"enum": [True, 1]}, True),
        ({"type": "string", "maxLength": 6}, "I live"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "integer", "maximum": -7}, -7),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 3}, [0, 1, -1]),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True},
            ["a", "b"],
        ),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": ["boolean", "null"]}, False),
        (
            {"type": "object", "properties": {"x": {"type": "string", "default": "y"}}},
            {"x": "I live in Rome and I am 34 years old."},
        ),
        ({"type": "object"}, {}),
        (
            {"oneOf": [properties(kind={"const": "a"}), properties(kind={"const": "b"})]},
            {"kind": "a"},
        ),
    ],
)
def test_every_kind_of_part_gets_a_valid_value(part: dict[str, Any], value: Any) -> None:
    schema = {**properties(thing=part), "$defs": {"place": properties(name={"type": "string"})}}

    assert shaped(schema) == {"thing": value}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "number", "default": "x", "minimum": 3, "maximum": 1},
        {"type": "integer", "description": "bees", "multipleOf": 7, "minimum": 100, "maximum": 104},
        {
            "anyOf": [{"type": "null", "default": 1}, {"type": "string", "default": 1}],
            "default": 2,
            "maxLength": 0,
        },
    ],
)
@pytest.mark.parametrize(
    "evidence",
    [(), (Evidence("conclusion", "c", "Alice has 2.5 kilos of bees.", EVIDENCE[0].said_at),)],
)
def test_unsatisfiable_bounds_do_not_break_the_structure(
    part: dict[str, Any], evidence: tuple[Evidence, ...]
) -> None:
    schema = properties(a=part)
    (document,) = answered(evidence=evidence, response_format=schema)
    assert violation(schema, json.loads(document)) is None


def test_a_required_property_without_schema_is_filled() -> None:
    assert set(shaped({"type": "object", "required": ["x"]})) == {"x"}


@pytest.mark.slow
def test_references_cannot_create_an_endless_document() -> None:
    levels = {
        f"d{n}": properties(a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"})
        for n in range(18)
    }
    schema = {
        **properties(top={"$ref": "#/$defs/d0"}),
        "$defs": {**levels, "d18": {"type": "string"}},
    }

    before = time.process_time()

    (document,) = answered(response_format=schema)

    assert len(document) < 1_000_000
    assert time.process_time() - before < 3, "each part is validated once, not with each whole"


def test_indistinguishable_options_take_little_time() -> None:
    levels = {f"d{n}": {"oneOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(18)}
    schema = {
        **properties(top={"$ref": "#/$defs/d0"}),
        "$defs": {**levels, "d18": {"type": "string"}},
    }
    before = time.process_time()

    (document,) = answered(response_format=schema)

    assert set(json.loads(document)) == {"top"}
    assert time.process_time() - before < 5


SCALARS = st.one_of(
    st.sampled_from(
        [{"type": kind} for kind in ("string", "integer", "number", "boolean", "null")]
    ),
    st.lists(
        st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"]),
        min_size=1,
        max_size=3,
        unique=True,
    ).map(lambda kinds: {"type": kinds}),
    st.lists(
        st.sampled_from(["a", "Rome", "unknown", 1, 2.5, None, False]),
        min_size=1,
        max_size=4,
        unique_by=repr,
    ).map(lambda some: {"enum": some}),
    st.integers(-50, 50).map(lambda low: {"type": "integer", "minimum": low, "maximum": low + 3}),
    st.integers(0, 30).map(lambda most: {"type": "string", "maxLength": most}),
    st.sampled_from(
        [
            {"const": "x"},
            {"$ref": "#/$defs/leaf"},
            {"$ref": "#/$defs/node"},
            {"type": "string", "default": "d", "description": "dogs"},
        ]
    ),
)
NAMES = st.sampled_from(["answer", "age", "city", "sources", "dogs", "likesTea", "x"])


def objects(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda named, needed, closed: {
            "type": "object",
            "properties": named,
            "required": sorted(needed & named.keys()),
            **({"additionalProperties": False} if closed else {}),
        },
        st.dictionaries(NAMES, parts, max_size=4),
        st.sets(NAMES),
        st.booleans(),
    )


def nested(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        objects(parts),
        st.builds(
            lambda items, least: {"type": "array", "items": items, "minItems": least},
            parts,
            st.integers(0, 3),
        ),
        st.lists(parts, min_size=1, max_size=3).map(lambda options: {"anyOf": options}),
    )


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(
    objects(st.recursive(SCALARS, nested, max_leaves=10)),
    st.booleans(),
    st.sampled_from(["minimal", "max"]),
)
def test_any_schema_of_the_subset_gets_a_valid_document(
    schema: dict[str, Any], has_evidence: bool, level: str
) -> None:
    definitions = {
        "leaf": {"type": "string"},
        "node": properties(name={"$ref": "#/$defs/leaf"}, size={"type": ["number", "null"]}),
    }

    shaped({**schema, "$defs": definitions}, EVIDENCE if has_evidence else (), level=level)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.sampled_from(["string", "integer", "boolean", "null", "array", "object"]),
        min_size=1,
        max_size=4,
        unique=True,
    ).map(lambda kinds: {"oneOf": [{"type": kind} for kind in kinds]})
)
def test_exactly_one_option_of_one_of_is_valid(part: dict[str, Any]) -> None:
    shaped(properties(thing=part))
    shaped(properties(thing=part), evidence=())


def says(*texts: str, author: str = "lisandro") -> tuple[Evidence, ...]:
    return tuple(
        Evidence("message", f"m{number}", text, SAID, author=author)
        for number, text in enumerate(texts)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "texts", "introduction"),
    [
        ("¿Lisandro es fumador?", ("Soy fumador desde hace años.",), "No hay ningún modelo"),
        ("Ornella, medico?", ("Sono Ornella e faccio il medico.",), "Nessun modello"),
        ("Does Lisandro smoke?", ("Soy fumador desde hace años.",), "No language model"),
    ],
)
def test_the_answer_is_in_the_language_of_the_statements_if_the_question_tells_none(
    question: str, texts: tuple[str, ...], introduction: str
) -> None:
    assert answered(question, "lisandro", says(*texts))[0].startswith(introduction)


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("¿A qué se dedica Lisandro?", True),
        ("¿A qué se dedica Aitana?", False),
        ("¿A qué se dedica?", True),
    ],
)
def test_a_statement_without_the_person_whom_the_question_names_is_no_answer(
    question: str, answers: bool
) -> None:
    (text, *_) = answered(question, "lisandro", says("Trabajo como camarero en un hotel."))
    assert ("ninguna afirmación" not in text) is answers, text


@pytest.mark.parametrize(
    ("question", "statement", "answers"),
    [
        ("Where does Bob live?", "My sister Clara is a pilot. She lives in Oslo.", False),
        ("Where does Clara live?", "My sister Clara is a pilot. She lives in Oslo.", True),
        ("Wann hat Inga Geburtstag?", "Meine Frau Inga hat am 3. Mai Geburtstag.", True),
    ],
)
def test_a_sentence_is_read_with_what_says_whom_it_is_about(
    question: str, statement: str, answers: bool
) -> None:
    evidence = (Evidence("conclusion", "c1", statement, SAID, about="bob", level="explicit"),)
    request = AnswerRequest(question, "bob", evidence=evidence)
    introduction = next(iter(ExtractiveReasoner().answer(request)))
    is_refusal = "answers this" in introduction or "beantwortet das" in introduction
    assert is_refusal is not answers
