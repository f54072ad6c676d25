"""Identifiers use the standard terms of the field; retired words do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.project.sources import modules, nodes, parsed

pytestmark = pytest.mark.xdist_group("sources")

RETIRED: dict[str, str] = {
    "nouns": "repositories",
    "hasten": "make_due",
    "hurry": "make_due",
    "bell": "notifier",
    "notebook": "draft",
    "recalled": "representation",
    "worlds": "fixtures",
    "gathering": "batching",
    "upkeep": "store_compatibility",
    "sessionless": "peer_messages",
    "likeness": "deduplication",
    "rested": "failed",
    "notebooks": "drafts",
    "somebody": "a caller",
    "mend": "repair",
    "mended": "repaired",
    "doomed": "target",
    "rests": "is_final, failed",
    "portion": "batch",
    "portions": "batches",
    "rooms": "sessions",
    "company": "batching",
    "whoever": "the caller",
    "whose": "of the owner",
    "know": "the name of the thing",
    "want": "the name of the thing",
    "wants": "the name of the thing",
    "stays": "the name of the thing",
    "meanwhile": "the name of the thing",
    "misfit": "violation",
    "offer": "bound_tool, candidate",
    "offers": "bound_tools",
    "noun": "subject, kind, repository",
    "unsaid": "defaults",
    "hear": "check_write_hooks",
    "tend": "housekeeping",
    "tending": "housekeeping",
    "strangers": "others",
    "farewell": "close_timeout",
    "sayings": "shingle_index",
    "lender": "neighbour",
    "Placed": "MessagePosition",
    "World": "Dataset",
    "View": "Transaction",
    "Where": "IndexFilter",
    "Node": "Condition",
    "Caller": "ModelClient",
    "Loop": "ToolLoop",
    "Offer": "BoundTool",
    "Notebook": "DreamDraft",
    "Whole": "Integer",
    "ListOf": "List",
    "MapOf": "Map",
    "Coded": "TypedMessage",
    "Aliased": "AliasedSchema",
    "Older": "LegacySchema",
    "UNSAID": "DEFAULTS",
    "Recalled": "Representation",
    "Said": "UserMessage",
    "SaidDraft": "UserMessageDraft",
    "Learned": "FeatureNegotiation",
    "Exchange": "ModelResponse",
    "Turns": "WriterLock",
    "Mend": "Repair",
    "Forget": "DeleteVectors",
    "understand": "analyse_query",
    "lend": "bm25_with_neighbours",
    "REACH": "WINDOW",
    "may_ask": "allow",
    "did_not_answer": "record_failure",
    "Resting": "CircuitBreaker",
    "gathers": "is_enabled",
    "heard_message": "apply",
    "may_store": "allows",
    "TellsOfRest": "Handler.on_failed",
    "TellsOfGivingUp": "Handler.failure_events",
    "HandlesFailure": "Handler.on_failed",
    "ReportsFailure": "Handler.failure_events",
    "HasRetryPolicy": "Handler.retry_after",
    "REASONER_TASK": "TaskKind.reasoning",
    "USER_FACING": "TaskKind.in_queue_status",
    "Patient": "Handler.retry_after",
    "gave_up": "failure_events",
    "Place": "ConnectionSettings",
    "hasten_all": "make_all_due",
    "hurried": "due",
    "Material": "DreamInput, DeriveInput",
    "Made": "Stored",
    "nobody": "name the actor",
    "met": "matching",
    "basket": "draft",
    "ripe": "is_due",
    "unfit": "invalid",
    "concluding": "with_conclusions",
    "travels": "is_exported",
    "watched": "progress, summed",
    "FoundConclusion": "ConclusionHit",
    "CallerGone": "ClientDisconnected",
    "NAMESAKES_LOOKED_AT": "MAX_NAMESAKES",
}
"""Word of an identifier (`place` of `place_of`), or a whole identifier (with a capital) → what to
write instead."""

RETIRED_CONSTANTS = {
    r"_?MOST_\w+": "MAX_…",
    r"_?LEAST_\w+": "MIN_…",
    r"_?LONGEST_\w+": "MAX_…",
    r"\w+_AT_ONCE": "…BATCH_SIZE, or MAX_CONCURRENT_… of what runs side by side",
}
"""Pattern of a constant's name → what to write instead."""

ALLOWED: dict[tuple[str, str], str] = {}
"""(File, identifier) → why the word is the right one there."""

SHELVES = ("memservice", "backends", "plugins")

PARTICIPLES: dict[str, str] = {
    "asked": "request, queries",
    "found": "match, rows, hits",
    "given": "value, arguments, body",
    "gone": "removed",
    "heard": "event",
    "held": "locked, stored",
    "kept": "remaining, unique",
    "known": "rows by their key",
    "made": "created",
    "place": "position, slot, workspace",
    "places": "positions, values",
    "room": "remaining, budget, session",
    "said": "text, messages",
    "seen": "visible",
    "told": "event, log",
    "wanted": "requested name or id",
    "who": "principal",
}
"""Identifier that names no thing → what it usually stands for."""

PLAIN_PACKAGES = ("memservice", "backends", "plugins", "tests", "benchmarks", "examples")
"""Packages without the identifiers of `PARTICIPLES`."""
PRODUCT_FIELDS = {"found", "given", "held", "kept", "known"}
"""Fields of records and requests of the product (see PLAIN_EXCEPTIONS), which tests may read and
pass."""
PLAIN_EXCEPTIONS = {
    ("memservice/api/v3/schemas/dreams.py", "kept"): "a field on the wire",
    ("memservice/cli/doctor.py", "found"): "a field of memservice.spi",
    ("memservice/cli/dreams.py", "kept"): "a field on the wire",
    ("memservice/operations/doctor.py", "found"): "a field of memservice.spi, and of its web pages",
    ("memservice/pipeline/card_lines.py", "given"): "a stored column",
    ("memservice/services/erasure/cards.py", "given"): "a stored column",
    ("memservice/services/erasure/dream_cards.py", "given"): "a stored column",
    ("memservice/services/erasure/mentions.py", "given"): "a stored column",
    ("memservice/services/erasure/redaction.py", "given"): "a stored column",
    ("memservice/pipeline/dream/handler.py", "given"): "a stored column",
    ("memservice/pipeline/derive/card.py", "known"): "a field of the reasoner's request",
    ("memservice/pipeline/derive/context.py", "held"): "a field of the reasoner's request",
    ("memservice/pipeline/derive/statements.py", "held"): "a field of the reasoner's request",
    ("memservice/pipeline/dream/handler.py", "known"): "a field of the request, a stored count",
    ("memservice/pipeline/scopes/backfill.py", "held"): "a stored count",
    ("memservice/reasoning/card.py", "known"): "a field of memservice.spi, and of a prompt",
    ("memservice/reasoning/consolidate.py", "known"): "a field of memservice.spi",
    ("memservice/reasoning/derive_prompt.py", "held"): "a field of memservice.spi",
    ("memservice/reasoning/dream_draft.py", "known"): "a field of memservice.spi",
    ("memservice/services/cards.py", "given"): "a stored column",
    ("memservice/services/dream_changes.py", "given"): "a stored column",
    ("memservice/services/dream_changes.py", "kept"): "a field on the wire",
    ("memservice/domain/records/conclusions.py", "given"): "a stored column",
    ("memservice/spi/reasoner.py", "held"): "a field of memservice.spi",
    ("memservice/spi/reasoner.py", "known"): "a field of memservice.spi",
    ("memservice/spi/storage.py", "found"): "a field of memservice.spi",
    ("memservice/testing/storage/examples.py", "given"): "a stored column",
    ("memservice/testing/storage/properties.py", "given"): "a name of hypothesis",
    ("backends/memservice_postgres/storage.py", "found"): "a field of memservice.spi",
    ("plugins/memservice_extractive/consolidate.py", "known"): "a field of memservice.spi",
    ("examples/langgraph/agent.py", "known"): "a key of the graph's state",
}

RETIRED_IN_TESTS: dict[str, str] = {
    "Bench": "ModelHarness",
    "Box": "FakeToolbox",
    "Club": "Console",
    "Gated": "GatedReasoner",
    "Honest": "CorrectModel, CorrectEmbedder",
    "Keyed": "AuthClient",
    "Lengths": "LengthEmbedder",
    "Mood": "CommandReasoner",
    "Night": "DreamingMemory",
    "Outside": "ExternalIndex",
    "Place": "Pipeline",
    "Places": "PopulatedIds",
    "Scripted": "ScriptedReasoner",
    "Small": "Services",
    "World": "name what it holds",
    "place": "pipeline, workspace, path, position",
    "places": "workspaces, paths, positions",
}
"""Identifier or module name → what tests and benchmarks write instead."""


def identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names as they are bound, used and passed: of variables, attributes, parameters, functions,
    classes and modules."""
    for node in nodes(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                for part in value.split("."):
                    yield getattr(node, "lineno", 0), part
        if isinstance(node, ast.ImportFrom) and node.module:
            for part in node.module.split("."):
                yield node.lineno, part


def without_prose(source: str) -> str:
    """A source without its comments and most of its texts."""
    source = re.sub(r'""".*?"""', "", source, flags=re.DOTALL)
    return re.sub(r'"[^"\n{}]*"|#.*', "", source)


def names_of_others(tree: ast.Module) -> set[tuple[int, str]]:
    """Line and identifier of what a test does not name itself: fields of the product's records, and
    `given` of hypothesis."""
    of_hypothesis = any(
        isinstance(node, ast.ImportFrom) and node.module == "hypothesis" for node in nodes(tree)
    )
    names = set()
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") != "self":
            names.add((node.lineno, node.attr))
        elif isinstance(node, ast.keyword) and node.arg:
            names.add((node.lineno, node.arg))
    names = {(line, name) for line, name in names if name in PRODUCT_FIELDS}
    if of_hypothesis:
        names |= {(line, name) for line, name in identifiers(tree) if name == "given"}
    return names


def words(identifier: str) -> set[str]:
    """`_placeOf_rows` → {"place", "of", "rows"}."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)}


@cache
def better(identifier: str) -> str | None:
    """What to write instead of a retired identifier; None for one that may stay."""
    if identifier in RETIRED:
        return RETIRED[identifier]
    for word in words(identifier):
        if word in RETIRED:
            return RETIRED[word]
    return next(
        (term for pattern, term in RETIRED_CONSTANTS.items() if re.fullmatch(pattern, identifier)),
        None,
    )


@pytest.mark.slow
def test_retired_words_are_no_identifiers(root: Path) -> None:
    wrong, excused = [], set()
    for shelf in SHELVES:
        for file, tree in modules(root / shelf):
            name = file.relative_to(root).as_posix()
            names = [(0, file.stem), *identifiers(tree)]
            for line, identifier in names:
                term = better(identifier)
                if term is None:
                    continue
                if (name, identifier) in ALLOWED:
                    excused.add((name, identifier))
                else:
                    wrong.append(
                        f"{name}:{line}: {identifier}: say {term} (or add a row to ALLOWED "
                        "in this file, and why)"
                    )
    assert wrong == [], "\n".join(wrong)
    assert excused == set(ALLOWED), "an exception that nothing needs any more"


@pytest.mark.slow
def test_plain_packages_name_things(root: Path) -> None:
    """A local or a field is named after the thing, not after a participle."""
    wrong, excused = [], set()
    a_participle = re.compile(rf"\b_?({'|'.join(PARTICIPLES)})\b")
    for package in PLAIN_PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            if not a_participle.search(without_prose(file.read_text(encoding="utf-8"))):
                continue  # to parse all files takes seconds
            tree = parsed(file)
            allowed = names_of_others(tree) if package == "tests" else set()
            for line, identifier in identifiers(tree):
                term = PARTICIPLES.get(identifier.strip("_"))
                if (name, identifier) in PLAIN_EXCEPTIONS:
                    excused.add((name, identifier))
                elif term is not None and (line, identifier) not in allowed:
                    wrong.append(f"{name}:{line}: {identifier}: name the thing ({term})")
    assert wrong == [], "\n".join(wrong)
    assert excused == set(PLAIN_EXCEPTIONS), "an exception that nothing needs any more"


@pytest.mark.slow
def test_helpers_of_tests_have_names_that_say_what_they_are(root: Path) -> None:
    wrong = []
    a_retired_word = re.compile(rf"\b({'|'.join(RETIRED_IN_TESTS)})\b")
    for shelf in ("tests", "benchmarks"):
        for file in sorted((root / shelf).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            source = file.read_text(encoding="utf-8")
            if not a_retired_word.search(f"{file.stem}\n{source}"):
                continue  # to parse all files takes seconds
            tree = ast.parse(source)
            for line, identifier in [(0, file.stem), *identifiers(tree)]:
                if identifier in RETIRED_IN_TESTS:
                    wrong.append(f"{name}:{line}: {identifier}: say {RETIRED_IN_TESTS[identifier]}")
    assert wrong == []


def test_the_check_covers_parts_of_names_but_not_texts() -> None:
    tree = ast.parse(
        '"""hurry"""\nclass MyHurry:\n    def hasten(self, x):\n        return '
        'x.MOST_CALLS, "hurry", hurrying\n'
    )
    assert [(line, name) for line, name in identifiers(tree) if better(name)] == [
        (2, "MyHurry"),
        (3, "hasten"),
        (4, "MOST_CALLS"),
    ]
