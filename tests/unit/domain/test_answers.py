"""Reading what models write: reasoning, JSON with mistakes, calls as text, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.domain.answers.json_text import Unreadable, documents, read
from memservice.domain.answers.reasoning_tags import ReasoningFilter, without_reasoning
from memservice.domain.answers.refusals import is_refusal
from memservice.domain.answers.written_calls import may_begin_call, written_calls

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "required": ["names"],
}
NUMBERS: dict[str, Any] = {
    "type": "object",
    "properties": {"ids": {"type": "array", "items": {"type": "integer"}}},
    "required": ["ids"],
}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Hm.</think>\n\nYes.", "Yes."),
        ("  <THINK>\nHm.\n</think><thinking>And?</thinking> Yes.", "Yes."),
        ("<reasoning>Hm.</reasoning>Yes.", "Yes."),
        ("<thought>Hm.</thought>Yes.", "Yes."),
        ("[THINK]Hm.[/THINK]Yes.", "Yes."),
        ("<think>Hm.", ""),
        ("Hm.\n</think>\n\nYes.", "Yes."),
        ("Hm.</think>\nHm again.\n</think>\nYes.", "Yes."),
        ("Yes.", "Yes."),
        (" Yes.", " Yes."),
        ("She wrote `</think>` in a message.", "She wrote `</think>` in a message."),
        ("She likes <think> tags.", "She likes <think> tags."),
        ('{"names": ["</think>\\n"]}', '{"names": ["</think>\\n"]}'),
    ],
)
def test_reasoning_is_removed_from_an_answer(text: str, answer: str) -> None:
    assert without_reasoning(text)[0] == answer


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Hm.</think>\n\nYes.", "Yes."),
        ("\n<think>Hm <b>.</think><reasoning>x</reasoning>Yes.", "Yes."),
        ("<think>Hm.", ""),
        ("<b>Yes.</b>", "<b>Yes.</b>"),
        (" Yes, 1 < 2.", " Yes, 1 < 2."),
        ("<thi", "<thi"),
    ],
)
def test_a_stream_returns_the_same_text(size: int, text: str, answer: str) -> None:
    reader = ReasoningFilter()
    pieces = [reader.take(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join(pieces) + reader.end() == answer


def test_a_stream_delays_text_no_longer_than_needed() -> None:
    reader = ReasoningFilter()
    assert [reader.take(piece) for piece in ("<", "b", "> Yes", ".")] == ["", "<b", "> Yes", "."]


@pytest.mark.parametrize(
    ("text", "answer"), [("Hm.\n</think>\nYes.", "Yes."), ("Yes.", "Yes."), ("", "")]
)
def test_an_answer_may_begin_inside_reasoning(text: str, answer: str) -> None:
    reader = ReasoningFilter(is_open=True)
    assert "".join(map(reader.take, text)) + reader.end() == answer


def test_a_stream_drops_blanks_after_reasoning_and_keeps_those_of_an_answer() -> None:
    for text, answer in (("<think>Hm.</think> \n", ""), (" \n <b>", " \n <b>"), (" \n", " \n")):
        reader = ReasoningFilter()
        assert "".join(map(reader.take, text)) + reader.end() == answer


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"names": ["Ada",],}', ["Ada"]),
        (
            "{'names': ['Ada', 'O\\'Hara', 'D'Arcy', 'a \"b\"']}",
            ["Ada", "O'Hara", "D'Arcy", 'a "b"'],
        ),
        ('First {"names": []}, no: {"names": ["Ada"]}. {"other": 1}', ["Ada"]),
        ('```json\n{"names": ["Ada"]}\n```', ["Ada"]),
        ('{"names": ["a\nb"]}', ["a\nb"]),
    ],
)
def test_the_last_complete_document_that_fits_is_read(text: str, names: list[str]) -> None:
    document = read(text, SCHEMA)
    assert (document.value, document.is_whole) == ({"names": names}, True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"names": ["Ada", "Bo', ["Ada"]),
        ('{"names": ["Ada", "Bo"', ["Ada", "Bo"]),
        ('{"names": ["Ada",', ["Ada"]),
        ('{"names": [', []),
        ("{'names': ['Ada', 'B", ["Ada"]),
    ],
)
def test_a_cut_document_has_the_complete_items_of_its_lists(text: str, names: list[str]) -> None:
    document = read(text, SCHEMA)
    assert (document.value, document.is_whole) == ({"names": names}, False)


def test_a_complete_document_is_preferred_to_a_cut_one() -> None:
    assert read('{"names": ["Ada"]} {"names": ["Bo', SCHEMA).value == {"names": ["Ada"]}


def test_numbers_may_be_written_as_text() -> None:
    assert read('{"ids": ["1", "[2]", 3, "12"]}', NUMBERS).value == {"ids": [1, 2, 3, 12]}
    assert read('{"ids": [1, 12', NUMBERS).value == {"ids": [1]}, "12 may have gone on"


@pytest.mark.parametrize("text", ["", "Ada", '{"names": "Ada"}', '{"names": [NaN]}', "[" * 9_999])
def test_unreadable_text_raises(text: str) -> None:
    with pytest.raises(Unreadable):
        read(text, SCHEMA)


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize(
    "number",
    ["1" * 4_301, "-" + "1" * 4_301, "1e999", "-1e999"],
    ids=["digits", "negative digits", "exponent", "negative exponent"],
)
def test_a_number_that_is_too_large_does_not_fit(kind: str, number: str) -> None:
    schema = {"type": "object", "properties": {"id": {"type": kind}}, "required": ["id"]}
    for text in (f'{{"id": "{number}"}}', f'{{"id": {number}}}', f"{{'id': {number}}}"):
        with pytest.raises(Unreadable):
            read(text, schema)


def test_documents_are_found_in_order() -> None:
    assert [document.value for document in documents('a {"b": 1} [as you like] [2] {"c": [3')] == [
        {"b": 1},
        [2],
        {"c": []},
    ]


CALL = ("search", {"query": "bees"})


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "search", "arguments": {"query": "bees"}}\n</tool_call>',
        '<tool_call>{"name": "search", "arguments": {"query": "bees"}}',
        '<tool_call>{"name": "search", "arguments": "{\\"query\\": \\"bees\\"}"}</tool_call>',
        "<tool_call><function=search><parameter=query>\nbees\n</parameter></function></tool_call>",
        '<function=search>{"query": "bees"}</function>',
        '<|python_tag|>{"name": "search", "parameters": {"query": "bees"}}<|eom_id|>',
        '{"name": "search", "parameters": {"query": "bees"}}',
        '```json\n{"name": "search", "arguments": {"query": "bees"}}\n```',
        '[TOOL_CALLS][{"name": "search", "arguments": {"query": "bees"}}]',
        '[TOOL_CALLS]search[ARGS]{"query": "bees"}',
        '{"type": "function", "function": {"name": "search", "arguments": {"query": "bees"}}}',
    ],
)
def test_calls_are_read_in_the_forms_of_common_models(text: str) -> None:
    assert written_calls(text, ["search"]) == [CALL]
    assert all(may_begin_call(text[:end]) for end in range(1, len(text)))


def test_several_calls_are_read() -> None:
    one = '<tool_call>{"name": "search", "arguments": {"query": "bees"}}</tool_call>'
    assert written_calls(f"{one}\n{one}", ["search"]) == [CALL, CALL]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Alice keeps bees.",
        'I call <tool_call>{"name": "search", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "search", "arguments": {}}</tool_call> Alice keeps bees.',
        '<tool_call>{"name": "launch", "arguments": {}}</tool_call>',
        '{"name": "search", "age": 5}',
        '{"name": "search", "arguments": {"query": "be',
        "<tool_call>nonsense</tool_call>",
    ],
)
def test_other_text_is_not_a_call(text: str) -> None:
    assert written_calls(text, ["search"]) == []


@pytest.mark.parametrize(
    "value",
    ["NaN", "1e999", "1" * 4_301, "[" * 9_999],
    ids=["not a number", "exponent", "digits", "brackets"],
)
def test_an_argument_that_is_not_json_is_text(value: str) -> None:
    text = f"<function=search><parameter=query>{value}</parameter></function>"
    assert written_calls(text, ["search"]) == [("search", {"query": value})]


@pytest.mark.parametrize(
    ("text", "declines"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I’m sorry, but I cannot assist with this request.", True),
        ("I can't help with that.", True),
        ("Es tut mir leid, dabei kann ich nicht helfen.", True),
        ("Lo siento, no puedo ayudar con eso.", True),
        ("Alice is sorry that she cannot help Bob.", False),
        ("I cannot eat gluten, Alice said.", False),
        ("They met in Oslo.", False),
        ("I'm sorry, but I can't help. " * 50, False),
        ("", False),
    ],
)
def test_a_refusal_in_words_is_recognised(text: str, declines: bool) -> None:
    assert is_refusal(text) is declines
