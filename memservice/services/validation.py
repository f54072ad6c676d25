"""Validation of names, metadata and configuration from callers. Every write path uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memservice.domain import configuration
from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.records import SCOPE, SCOPE_PREFIX, Peer
from memservice.domain.values import INT_MAX, check_metadata, name_problem, strip_nul
from memservice.runtime import Runtime

Argument = tuple[str | int, ...]
"""An argument of a service, or a part of one, outermost first: `("messages", 3, "peer_id")`."""


def require_name(name: str, argument: Argument) -> str:
    """Validate the name of a new resource. Raises InvalidInput."""
    problem = name_problem(name)
    if problem is not None:
        raise InvalidInput(Problem(argument, problem, "string_pattern_mismatch"))
    return name


def require_length(text: str, maximum: int, argument: Argument) -> None:
    """A text with at most this number of characters."""
    if len(text) > maximum:
        raise InvalidInput(
            Problem(argument, f"String should have at most {maximum} characters", "string_too_long")
        )


def require_names(names: Sequence[str], argument: Argument, by_index: bool = True) -> None:
    """Validate several names; reports all invalid ones."""
    problems = []
    for index, name in enumerate(names):
        problem = name_problem(name)
        if problem is not None:
            problems.append(
                Problem(
                    (*argument, index) if by_index else (*argument, name),
                    problem,
                    "string_pattern_mismatch",
                )
            )
    if problems:
        raise InvalidInput(*problems)


def metadata(
    value: Mapping[str, Any] | None, argument: Argument = ("metadata",)
) -> dict[str, Any] | None:
    """The caller's metadata in its stored form; None for None."""
    if value is None:
        return None
    clean: dict[str, Any] = strip_nul(dict(value))
    check_metadata(clean, argument)
    return clean


def settings_of(
    rt: Runtime, value: Mapping[str, Any] | None, argument: Argument = ("configuration",)
) -> dict[str, Any] | None:
    """The caller's configuration of a workspace, session or message in its stored form; None for
    None."""
    if value is None:
        return None
    sections = configuration.clean(strip_nul(dict(value)))
    problems = [
        *_summary_problems(sections, argument),
        *_retention_problems(sections, argument),
        *_instruction_problems(rt, sections, argument),
    ]
    if problems:
        raise InvalidInput(*problems)
    return sections


def _summary_problems(sections: Mapping[str, Any], argument: Argument) -> list[Problem]:
    summary = sections.get("summary")
    if not isinstance(summary, Mapping):
        return []
    problems = [
        problem
        for name, minimum in configuration.MIN_MESSAGES.items()
        if (problem := _number_problem(summary.get(name), minimum, (*argument, "summary", name)))
    ]
    if problems:
        return problems
    short, long = (summary.get(name) for name in configuration.MIN_MESSAGES)
    if short is not None and long is not None and short >= long:
        return [
            Problem(
                (*argument, "summary"),
                "messages_per_short_summary must be less than messages_per_long_summary",
            )
        ]
    return []


def _retention_problems(sections: Mapping[str, Any], argument: Argument) -> list[Problem]:
    section = sections.get("retention")
    if section is None:
        return []
    if not isinstance(section, Mapping):
        return [Problem((*argument, "retention"), "Input should be a valid dictionary")]
    at = (*argument, "retention")
    return [
        problem
        for name, value in section.items()
        if (problem := _days_problem(value, (*at, name))) is not None
    ]


def _days_problem(value: object, argument: Argument) -> Problem | None:
    # The schemas of older generations do not know this section.
    if not isinstance(value, int) or isinstance(value, bool):
        return Problem(argument, "Input should be a valid integer", "int_type")
    return _number_problem(value, 1, argument, configuration.MAX_RETENTION_DAYS)


def _number_problem(
    value: int | None, minimum: int, argument: Argument, maximum: int = INT_MAX
) -> Problem | None:
    if value is None or minimum <= value <= maximum:
        return None
    if value < minimum:
        message = f"Input should be greater than or equal to {minimum}"
        return Problem(argument, message, "greater_than_equal")
    return Problem(argument, f"Input should be less than or equal to {maximum}", "less_than_equal")


def _instruction_problems(
    rt: Runtime, sections: Mapping[str, Any], argument: Argument
) -> list[Problem]:
    limit = rt.settings.deriver.max_custom_instructions_tokens
    problems = []
    for path, text in configuration.texts(sections):
        if not text.strip():
            continue
        if limit == 0:
            problems.append(
                Problem(
                    (*argument, *path),
                    (
                        "custom_instructions are switched off "
                        "(DERIVER_MAX_CUSTOM_INSTRUCTIONS_TOKENS is 0)"
                    ),
                )
            )
            continue
        # A token is at least one byte of UTF-8, so short texts need no counting.
        if len(text.encode()) <= limit:
            continue
        from memservice.domain import tokens

        used = tokens.count(text)
        if used > limit:
            problems.append(
                Problem(
                    (*argument, *path),
                    f"custom_instructions has {used} tokens; at most {limit} are allowed",
                )
            )
    return problems


def is_scope_name(name: str) -> bool:
    return name.startswith(SCOPE_PREFIX)


def refuse_scope(
    name: str, peer: Peer | None, argument: Argument, unknown_too: bool = True
) -> None:
    """Raise InvalidInput for a scope: it observes, but cannot be observed, be an author or be used
    as a peer.

    Also raised, with `unknown_too`, for the name of a scope that does not exist.
    """
    if (peer is not None and peer.kind == SCOPE) or (
        peer is None and unknown_too and is_scope_name(name)
    ):
        raise InvalidInput.at(
            *argument,
            message=(
                f"{name!r} names a scope: a scope observes sessions and cannot be used as a "
                "peer here"
            ),
        )
