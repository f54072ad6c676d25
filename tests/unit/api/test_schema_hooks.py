"""The hooks of schemas are those that marshmallow finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from marshmallow import post_load, pre_load
from marshmallow.schema import SchemaMeta

from memservice.api import generations
from memservice.api.schema import BaseSchema


class Renaming(BaseSchema):
    @pre_load
    def rename(self, data: Any, **kwargs: Any) -> Any:
        return data


class Inheriting(Renaming):
    """Adds none."""


class Adding(Renaming):
    @post_load
    def build(self, data: Any, **kwargs: Any) -> Any:
        return data


class Replacing(Renaming):
    def rename(self, data: Any, **kwargs: Any) -> Any:
        return data


class Twofold(Inheriting, BaseSchema):
    """Has two bases."""


def below(schema: type[BaseSchema]) -> Iterator[type[BaseSchema]]:
    for each in schema.__subclasses__():
        yield each
        yield from below(each)


def names(schema: type[BaseSchema]) -> dict[str, list[str]]:
    return {tag: [name for name, *_ in hooks] for tag, hooks in schema._hooks.items() if hooks}


def test_every_schema_has_the_hooks_that_marshmallow_finds() -> None:
    assert generations.GROUPS
    schemas = list(below(BaseSchema))
    assert len(schemas) > 150
    for schema in schemas:
        expected = SchemaMeta.resolve_hooks(schema)
        assert {tag: hooks for tag, hooks in schema._hooks.items() if hooks} == expected, schema


def test_hooks_are_inherited_added_and_replaced() -> None:
    assert names(Inheriting) == names(Twofold) == {"pre_load": ["rename"]}
    assert names(Adding) == {"pre_load": ["rename"], "post_load": ["build"]}
    assert names(Replacing) == {}


def test_a_schema_without_hooks_of_its_own_does_not_look_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(schema: type[BaseSchema]) -> None:
        raise AssertionError(schema)

    monkeypatch.setattr(SchemaMeta, "resolve_hooks", refuse)
    another = type("Another", (Renaming,), {})
    assert names(another) == {"pre_load": ["rename"]}
