"""Version 1 of the plugin interface only grows: what it had when it was frozen is still there, and
nothing is required of plugins that was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memservice.spi.providers import SPI_VERSION
from support.project.plugin_interface import (
    IMPLEMENTED,
    PROVIDED,
    Interface,
    dumped,
    incompatibilities,
    interface,
    loaded,
)

RECORDED = Path(__file__).with_name("plugin_interface_1.jsonl")


def test_plugins_of_this_version_still_work() -> None:
    assert SPI_VERSION == 1
    assert incompatibilities(loaded(RECORDED.read_text("utf-8")), interface()) == []


def test_additions_are_recorded() -> None:
    """From the release with them on, they have to stay as well."""
    assert dumped(interface()) == RECORDED.read_text("utf-8"), "run scripts/record-plugin-interface"


def function(*parameters: str, kind: str = PROVIDED, name: str = "memservice.spi.f") -> Interface:
    return {name: {"kind": kind, "parameters": list(parameters)}}


def a_class(*members: str, kind: str = PROVIDED) -> Interface:
    return {"memservice.spi.C": {"kind": kind, "members": sorted(members)}}


HOOK: dict[str, Any] = {"kind": IMPLEMENTED, "name": "memservice.hookspecs.memservice_storing"}


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        (function("a"), {}, ["memservice.spi.f is missing"]),
        ({}, function("a"), []),
        (function("a"), function("a", "b="), []),
        (function("a"), function("a", "*b="), []),
        (function("a", "*c="), function("a", "*b=", "*c="), []),
        (function("a"), function("a="), []),
        (
            function("a"),
            function("a", "b"),
            ["memservice.spi.f: the new parameter b has no default"],
        ),
        (
            function("a", "c="),
            function("a", "b=", "c="),
            ["memservice.spi.f: the new parameter b= is not the last one"],
        ),
        (function("a", "b"), function("a"), ["memservice.spi.f has no parameter b any more"]),
        (function("a="), function("a"), ["memservice.spi.f has no parameter a= any more"]),
        (
            function("a", "b"),
            function("b", "a"),
            ["memservice.spi.f: parameters are in another order"],
        ),
        (
            function("self", kind=IMPLEMENTED),
            function("self", "a=", kind=IMPLEMENTED),
            ["memservice.spi.f has a new parameter a=, which plugins do not take"],
        ),
        (function("a", **HOOK), function("new", "a", **HOOK), []),
        (a_class("a"), a_class("a", "b"), []),
        (a_class("a", "b"), a_class("a"), ["memservice.spi.C has no b any more"]),
        (
            a_class("a", kind=IMPLEMENTED),
            a_class("a", "b", kind=IMPLEMENTED),
            ["memservice.spi.C has a new b, which plugins do not have"],
        ),
    ],
)
def test_a_change_that_breaks_plugins_is_named(
    before: Interface, after: Interface, reasons: list[str]
) -> None:
    assert incompatibilities(before, after) == reasons


def test_the_record_names_what_plugins_implement_and_use() -> None:
    recorded = loaded(RECORDED.read_text("utf-8"))
    query = recorded["memservice.spi.vectors.VectorIndex.query"]
    assert query["parameters"][-2:] == ["index_filter", "ids="]
    assert recorded["memservice.spi.rows.Rows"]["kind"] == IMPLEMENTED
    assert recorded["memservice.spi.toolbox.Toolbox"]["kind"] == PROVIDED
    assert recorded["memservice.hookspecs.memservice_message_storing"]["kind"] == IMPLEMENTED
    assert "content" in recorded["memservice.domain.records.Message"]["members"]
