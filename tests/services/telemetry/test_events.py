"""The records are the contract's events, field by field."""

from __future__ import annotations

import typing
from datetime import datetime
from typing import Any

import pytest

from memservice.hookspecs import hookimpl
from memservice.telemetry import events
from memservice.telemetry.events import Event, MessageCreated
from services.conftest import OpenServices
from support.telemetry.contract import EVENTS, Listed

JSON_TYPES = {"integer": int, "number": float, "boolean": bool, "string": str}


def created(number: int = 1) -> MessageCreated:
    return MessageCreated(
        workspace_name="w",
        session_name="s",
        message_count=number,
        total_tokens=2,
        source="api",
        last_message_id=f"m{number}",
    )


def test_there_is_a_record_for_every_event_and_no_other() -> None:
    assert [kind.TYPE for kind in events.TYPES] == list(EVENTS)


@pytest.mark.parametrize("kind", events.TYPES, ids=lambda kind: kind.TYPE)
def test_a_record_has_the_fields_that_are_listed(kind: type[Event]) -> None:
    listed = EVENTS[kind.TYPE]
    assert (listed.version, listed.category, listed.high_volume) == (
        kind.VERSION,
        kind.CATEGORY,
        kind.HIGH_VOLUME,
    )
    assert set(kind.__struct_fields__) == set(listed.fields)
    hints = typing.get_type_hints(kind)
    for name, schema in listed.fields.items():
        _same(hints[name], schema, f"{kind.TYPE} {name}")
    assert set(kind.RESOURCE) <= set(listed.fields)


def _same(hint: Any, schema: dict[str, Any], where: str) -> None:
    options = typing.get_args(hint)
    nullable = type(None) in options
    assert nullable == ("anyOf" in schema), where
    if nullable:
        schema = schema["anyOf"][0]
        (hint,) = [option for option in options if option is not type(None)]
    if "enum" in schema:
        assert list(typing.get_args(hint)) == schema["enum"], where
    elif schema["type"] in JSON_TYPES:
        assert hint is JSON_TYPES[schema["type"]], where
    else:
        assert typing.get_origin(hint) is not None, where


def test_the_list_itself_is_parsed_correctly() -> None:
    listed: Listed = EVENTS["agent.tool.conclusions.deleted"]
    assert listed.version == 3
    assert listed.fields["levels"] == {"type": "array", "items": {"type": "string"}}
    assert EVENTS["message.created"].fields["source"] == {"enum": ["api", "file_upload"]}
    assert EVENTS["llm.call.completed"].high_volume
    assert EVENTS["llm.call.completed"].fields["run_id"] == {
        "anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]
    }
    assert len(EVENTS) == 22


def test_listeners_are_called_in_order_and_a_failing_one_stops_no_other(
    open_services: OpenServices, caplog: pytest.LogCaptureFixture
) -> None:
    rt = open_services().rt
    calls: list[tuple[Event, datetime]] = []

    def fail(event: Event, at: datetime) -> None:
        raise RuntimeError("no")

    rt.events.on_event(fail)
    rt.events.on_event(lambda event, at: calls.append((event, at)))
    assert rt.hears_events
    rt.emit(created(1))
    rt.emit(created(2))
    assert [event for event, _ in calls] == [created(1), created(2)]
    assert calls[0][1].tzinfo is not None
    assert "the event message.created could not be noted: RuntimeError" in caplog.text


class Ear:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    @hookimpl
    def memservice_event_emitted(self, type: str, data: dict[str, Any]) -> None:
        self.events.append((type, data))


def test_plugins_receive_events(open_services: OpenServices) -> None:
    ear = Ear()
    rt = open_services(ear).rt
    assert rt.hears_events
    rt.emit(created())
    assert ear.events == [("message.created", created().data())]


def test_an_event_without_listeners_is_not_built(
    open_services: OpenServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = open_services().rt

    def fail(self: Event) -> dict[str, Any]:
        raise AssertionError("nobody listens")

    monkeypatch.setattr(Event, "data", fail)
    assert not rt.hears_events
    rt.emit(created())
