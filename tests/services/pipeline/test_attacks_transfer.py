"""Forged export files: rows of other workspaces that they name are not changed, and every error is
reported."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memservice.domain.errors import Conflict, MemserviceError
from memservice.services.transfer import checks, export, importing, lines, record_formats
from memservice.services.transfer.export import ExportOptions
from memservice.services.transfer.lines import Line, UnreadableExport, format_line, reading
from memservice.services.transfer.record_formats import RecordFormat
from services.pipeline.conftest import OpenPipeline
from support.pipeline.all_tables import Contents, fill, filled_once, rows
from support.pipeline.pipeline import Pipeline

# The storage in memory would be copied as a whole for each of many files that are refused.
pytestmark = [pytest.mark.every_storage("sqlite"), pytest.mark.slow]

EVERYTHING = ExportOptions(secrets=True)
HEADER_BYTES = 10 + len("file.jsonl") + 1
"""Of a packed file: what may change in them changes no line."""
ODD: list[Any] = [
    None,
    True,
    5,
    -1,
    2**63,
    1.5,
    "x",
    "",
    "../b",
    "2024-03-01",
    "a\x1b[2J\nb",
    [],
    [5],
    [None],
    {},
    {"kind": []},
]


@pytest.fixture
def target(open_pipeline: OpenPipeline, other_uri: str, contents: Contents) -> Pipeline:
    """A store that contains the foreign workspace `b`."""
    return filled_once(
        contents,
        other_uri,
        lambda: open_pipeline(DB_CONNECTION_URI=other_uri),
        lambda pipeline: fill(pipeline, "b", "private"),
    )


@pytest.fixture(scope="module")
def exports() -> dict[str, list[str]]:
    """By storage, the export that all tests of this module begin with, as JSON."""
    return {}


@pytest.fixture
def file(pipeline: Pipeline, exports: dict[str, list[str]]) -> list[Line]:
    """An export of the workspace `w`, without its end, with rows of every kind."""
    storage = pipeline.rt.storage.name
    if storage not in exports:
        fill(pipeline, "w", "talk", turns=12)
        exports[storage] = [json.dumps(line) for line in logged_lines(pipeline, "w")]
    return [json.loads(line) for line in exports[storage]]


def logged_lines(pipeline: Pipeline, workspace: str) -> list[Line]:
    return [json.loads(line) for line in export.lines(pipeline.rt, workspace, EVERYTHING)][:-1]


def sealed(file: list[Line]) -> Iterator[bytes]:
    """With a valid checksum at the end, which any author of a file can compute."""
    data = [format_line(line) for line in file]
    end = {
        "type": "end",
        "lines": len(data) - 1,
        "sha256": hashlib.sha256(b"".join(data[1:])).hexdigest(),
    }
    return iter([*data, format_line(end)])


def changed(file: list[Line], kind: str, number: int = 0, /, **values: Any) -> list[Line]:
    """With other values in one line of a kind."""
    positions = [position for position, line in enumerate(file) if line["type"] == kind]
    return [
        {**line, **values} if position == positions[number] else line
        for position, line in enumerate(file)
    ]


@pytest.mark.parametrize(
    "lapses",
    ["never", [["2026-01-01"]], [["then", "now"]], [[1, 2]], [["2026-01-01", "2026-01-02"]], {}],
    ids=repr,
)
def test_lapses_must_be_spans_of_time(file: list[Line], target: Pipeline, lapses: object) -> None:
    hostile = changed(file, "conclusions", internal={"lapses": lapses})
    with pytest.raises(UnreadableExport, match="lapses"):
        importing.load(target.rt, sealed(hostile))


def of_kind(file: list[Line], kind: str) -> list[Line]:
    return [line for line in file if line["type"] == kind]


def test_no_reference_leads_into_another_workspace(file: list[Line], target: Pipeline) -> None:
    """Every field that names a row, in every kind of row, given the uid of such a row of `b`."""
    before, tried = logged_lines(target, "b"), 0
    for record_format in record_formats.FORMATS.values():
        for field, record in (*record_format.references.items(), *record_format.lists.items()):
            theirs = of_kind(
                before,
                next(
                    other.name
                    for other in record_formats.FORMATS.values()
                    if other.record is record
                ),
            )[0]["uid"]
            name = record_formats.name_of(field)
            hostile = changed(
                file,
                record_format.name,
                **{name: [theirs] if field in record_format.lists else theirs},
            )
            # may name a row that comes later; one that never comes is no successor
            if field == "superseded_by":
                importing.load(target.rt, sealed(hostile))
            else:
                with pytest.raises(UnreadableExport, match=r"not in the file|by another uid"):
                    importing.load(target.rt, sealed(hostile))
            assert logged_lines(target, "b")[1:] == before[1:], name
            tried += 1
    assert tried > 25
    assert not any(
        line["superseded_by"] for line in of_kind(logged_lines(target, "w"), "conclusions")
    )


@pytest.mark.parametrize(
    "kind",
    [
        record_format.name
        for record_format in record_formats.FORMATS.values()
        if record_format.identity == ("uid",) and record_format.name != "api_keys"
    ],
)
def test_an_import_cannot_replace_rows_of_another_workspace(
    file: list[Line], target: Pipeline, kind: str
) -> None:
    before = logged_lines(target, "b")
    with pytest.raises(Conflict, match="--as"):
        importing.load(target.rt, sealed(changed(file, kind, uid=of_kind(before, kind)[0]["uid"])))
    assert logged_lines(target, "b")[1:] == before[1:]


def test_a_successor_must_be_in_the_same_workspace(file: list[Line], target: Pipeline) -> None:
    """`b`'s conclusion as what is superseded: its uid is taken."""
    before = logged_lines(target, "b")
    theirs, ours = of_kind(before, "conclusions")[0]["uid"], of_kind(file, "conclusions")
    hostile = changed(file, "conclusions", uid=theirs, superseded_by=ours[1]["uid"])
    with pytest.raises(Conflict):
        importing.load(target.rt, sealed(hostile))
    assert logged_lines(target, "b")[1:] == before[1:]


def test_vectors_of_other_workspaces_are_not_replaced(file: list[Line], target: Pipeline) -> None:
    before = logged_lines(target, "b")
    theirs = of_kind(before, "vectors")[0]["uid"]
    last = {**of_kind(file, "vectors")[0], "uid": theirs}
    importing.load(target.rt, sealed([*file, last]))
    assert logged_lines(target, "b")[1:] == before[1:]
    assert theirs not in [line["uid"] for line in of_kind(logged_lines(target, "w"), "vectors")]


def test_imported_tasks_use_rows_of_their_workspace_only(
    file: list[Line], target: Pipeline
) -> None:
    before = logged_lines(target, "b")
    uid = of_kind(before, "messages")[0]["uid"]
    task: Line = {
        **dict.fromkeys(("session_uid", "observer_uid", "observed_uid", "message_uid", "last_error",
        "request_id", "finished_at")),
        "type": "tasks", "state": "pending", "attempts": 0, "outcome": {},
        "not_before": "2024-03-01T00:00:00Z", "created_at": "2024-03-01T00:00:00Z",
    }  # fmt: skip
    others = [
        {**task, "uid": "one", "kind": "embed", "payload": {"kind": "message", "keys": [uid]}},
        {
            **task,
            "uid": "two",
            "kind": "forget",
            "payload": {"kind": "conclusion", "keys": [of_kind(before, "conclusions")[0]["uid"]]},
        },
        {**task, "uid": "three", "kind": "index", "payload": {"keys": [uid]}},
    ]
    importing.load(target.rt, sealed([*file, *others]))
    target.work()
    assert logged_lines(target, "b")[1:] == before[1:]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"kind": "message", "keys": [1]}, "without uids"),
        ({"kind": "message", "keys": [{}]}, "without uids"),
        ({"kind": "message", "keys": {"a": 1}}, "without uids"),
        ({"kind": "nothing", "keys": []}, "a kind without vectors"),
        ({"kind": [], "keys": []}, "a kind without vectors"),
        ({}, "a kind without vectors"),
    ],
)
def test_tasks_name_rows_by_uid(
    file: list[Line], target: Pipeline, payload: Line, reason: str
) -> None:
    task = {**of_kind(file, "tasks")[0], "kind": "embed", "payload": payload, "uid": "other"}
    with pytest.raises(UnreadableExport, match=reason):
        importing.load(target.rt, sealed([*file, task]))


class TestTheWorkspaceItself:
    def test_must_not_have_the_uid_of_another_workspace(
        self, file: list[Line], target: Pipeline
    ) -> None:
        before = logged_lines(target, "b")
        hostile = changed(file, "workspaces", uid=of_kind(before, "workspaces")[0]["uid"])
        with pytest.raises(Conflict, match="under another id"):
            importing.load(target.rt, sealed(hostile))
        assert logged_lines(target, "b")[1:] == before[1:]

    def test_must_come_first_and_once(self, file: list[Line], target: Pipeline) -> None:
        with pytest.raises(UnreadableExport, match="before the workspace"):
            importing.load(target.rt, sealed([file[0], *file[2:]]))
        with pytest.raises(UnreadableExport, match="more than one workspace"):
            importing.load(target.rt, sealed([*file, file[1]]))
        with pytest.raises(UnreadableExport, match="more than one workspace"):
            importing.load(target.rt, sealed([file[0], file[1], *file[1:]]))

    @pytest.mark.parametrize("name", ["../w", "", "a b", "x" * 600, "w\n", None, 5])
    def test_must_have_a_valid_name(self, file: list[Line], target: Pipeline, name: Any) -> None:
        with pytest.raises(UnreadableExport, match="cannot be the id of a workspace"):
            importing.load(target.rt, sealed([{**file[0], "workspace": name}, *file[1:]]))
        if isinstance(name, str):
            with pytest.raises(UnreadableExport, match="cannot be the id of a workspace"):
                importing.load(target.rt, sealed(file), as_slug=name)


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        ("peers", {"slug": "scope.spy", "kind": "peer"}, "cannot be an id"),
        ("peers", {"slug": "spy", "kind": "scope"}, "cannot be an id"),
        ("peers", {"slug": "a/b"}, "cannot be an id"),
        ("sessions", {"slug": "a/b"}, "cannot be an id"),
        ("messages", {"author": "bob", "session": "private"}, "with the uid of another row"),
        ("conclusions", {"observer": "private"}, "with the uid of another row"),
        ("webhook_endpoints", {"url": "file:///etc/passwd"}, "not allowed here"),
        ("webhook_endpoints", {"url": "http://169.254.169.254/latest"}, "not allowed here"),
        ("webhook_endpoints", {"url": "http://127.0.0.1:1/"}, "not allowed here"),
        ("spaces", {"dimension": 10**12}, "must be from 1"),
        ("vectors", {"vector": "AAAA"}, "vector"),
        ("vectors", {"vector": "?"}, "vector cannot be read"),
        (
            "vectors",
            {"space": {"kind": "conclusion", "embedder": "other", "dimension": 3}},
            "a space that is not in the file",
        ),
        ("vectors", {"space": {"kind": [], "embedder": "other", "dimension": 3}}, "has no `space`"),
    ],
)
def test_invalid_rows_are_refused(
    file: list[Line], target: Pipeline, kind: str, values: Line, reason: str
) -> None:
    with pytest.raises(UnreadableExport, match=reason):
        importing.load(target.rt, sealed(changed(file, kind, **values)))


@pytest.mark.parametrize("values", [{"seq": 7}, {"seq": 2**62}, {"seq": 0}])
def test_positions_of_messages_must_be_continuous(
    file: list[Line], target: Pipeline, values: Line
) -> None:
    with pytest.raises(Conflict):
        importing.load(target.rt, sealed(changed(file, "messages", **values)))


@pytest.mark.parametrize("values", [{"admin": True}, {"workspace": "b"}, {"workspace": None}])
def test_keys_of_other_workspaces_are_not_imported(
    file: list[Line], target: Pipeline, values: Line
) -> None:
    created = "2024-03-01T00:00:00Z"
    key = {
        "type": "api_keys",
        "uid": "jti",
        "label": None,
        "admin": False,
        "workspace": "w",
        "peer": None,
        "session": None,
    }
    key |= {"expires_at": None, "revoked_at": None, "last_used_at": None, "created_at": created}
    with pytest.raises(UnreadableExport, match="gives access to more than its workspace"):
        importing.load(target.rt, sealed([*file, {**key, **values}]))
    importing.load(target.rt, sealed([*file, key]))


def test_every_invalid_field_is_reported_in_one_sentence(
    file: list[Line], target: Pipeline
) -> None:
    """Every field of every kind of row, given what no service would write there. What the checks
    let pass is really stored."""
    if target.rt.storage.name == "memory":
        pytest.skip("this storage keeps whatever it is given, so nothing can go wrong in it")
    stored = 0
    for record_format in record_formats.FORMATS.values():
        line = next(iter(of_kind(file, record_format.name)), {})
        for name in line.keys() - {"type"}:
            with pytest.raises(UnreadableExport, match=f"has no `{name}`"):
                checks.require_row(
                    record_format, {key: value for key, value in line.items() if key != name}
                )
            passed = [value for value in ODD if let_pass(record_format, {**line, name: value})]
            if passed:
                stored += 1
                with suppress(MemserviceError):
                    importing.load(
                        target.rt,
                        sealed(changed(file, record_format.name, **{name: passed[-1]})),
                        as_slug=f"w{stored}",
                    )
    assert stored > 50


def let_pass(record_format: RecordFormat, line: Line) -> bool:
    try:
        checks.require_row(record_format, line)
    except UnreadableExport:
        return False
    return True


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"token_counter": None}, "counted by"),
        ({"version": "1"}, "has version"),
        ({"version": [[[]]]}, "has version"),
        ({"format": "zip"}, "not an export of memservice"),
    ],
)
def test_invalid_headers_are_refused(
    file: list[Line], target: Pipeline, header: Line, reason: str
) -> None:
    with pytest.raises(UnreadableExport, match=reason):
        importing.load(target.rt, sealed([{**file[0], **header}, *file[1:]]))


@pytest.mark.parametrize("lacking", ["token_counter", "version", "format", "workspace", "vectors"])
def test_incomplete_headers_are_refused(file: list[Line], target: Pipeline, lacking: str) -> None:
    with pytest.raises(UnreadableExport):
        importing.load(
            target.rt, sealed([{k: v for k, v in file[0].items() if k != lacking}, *file[1:]])
        )


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"type":' * 5_000,
        b"\xff\xfe\n",
        b'{"type":"peers","n":1e999}',
        b'{"type":"peers","n":NaN}',
        b'"\\ud800"',
        b"null",
    ],
)
def test_lines_that_are_not_rows_are_refused(
    file: list[Line], target: Pipeline, line: bytes
) -> None:
    with pytest.raises(UnreadableExport, match="line 3 "):
        importing.load(target.rt, iter([*list(sealed(file))[:2], line]))


def packed(folder: Path, data: Iterable[bytes]) -> str:
    path = folder / "file.jsonl.gz"
    with gzip.open(path, "wb") as out:
        out.writelines(data)
    return str(path)


def test_a_decompression_bomb_is_read_in_part_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read as far as a row can be long, and no further."""
    monkeypatch.setattr(lines, "MAX_LINE", 2**20)
    path = packed(tmp_path, [b" " * 2**20] * 64)
    assert Path(path).stat().st_size < 2**20
    with reading(path) as data, pytest.raises(UnreadableExport, match="line 1 is longer than"):
        next(iter(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" " * (2**20 + 2))))
        with reading("-") as data, pytest.raises(UnreadableExport, match="line 1 is longer than"):
            next(iter(data))


def damaged(file: list[Line]) -> dict[str, list[bytes]]:
    """What may happen to a file on its way, by what is said of it."""
    data = list(sealed(file))
    pipeline = next(number for number, line in enumerate(data) if b"apples" in line)
    return {
        "do not match the checksum": [
            *data[:pipeline],
            data[pipeline].replace(b"apples", b"grapes"),
            *data[pipeline + 1 :],
        ],
        "its last line is missing": data[:-1],
        "is not JSON": [*data[:-1], data[-1][:10]],
        "longer than": [*data[:-1], b" " * (lines.MAX_LINE + 1)],
        "continues after its end": [*data, *data],
        "not an export of memservice": data[1:],
    }


@pytest.mark.parametrize("packing", [bytes, gzip.compress])
@pytest.mark.parametrize("standard", [False, True])
def test_a_damaged_file_stores_nothing(
    file: list[Line],
    target: Pipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    packing: Callable[[bytes], bytes],
    standard: bool,
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 2**20)
    before = rows(target)

    def load(content: bytes) -> importing.Report:
        (tmp_path / "file").write_bytes(content)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with reading("-" if standard else str(tmp_path / "file")) as data:
            return importing.load_file(target.rt, data)

    for reason, content in damaged(file).items():
        with pytest.raises(UnreadableExport, match=f"{reason}.*; nothing was stored"):
            load(packing(b"".join(content)))
        assert rows(target) == before, reason
    whole = b"".join(sealed(file))
    if packing is gzip.compress:
        with pytest.raises(UnreadableExport, match="cut off or damaged"):
            load(packing(whole)[:-20])
        assert rows(target) == before
    load(packing(whole))
    assert logged_lines(target, "w")[1:] == file[1:]


def test_a_pipe_can_be_imported(file: list[Line], target: Pipeline, tmp_path: Path) -> None:
    """A pipe by name, as shells make them."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=lambda: (tmp_path / "pipe").write_bytes(b"".join(sealed(file)))
    )
    writer.start()
    with reading(str(tmp_path / "pipe")) as data:
        importing.load_file(target.rt, data)
    writer.join()
    assert logged_lines(target, "w")[1:] == file[1:]


def test_a_compressed_file_with_a_changed_byte_is_refused(tmp_path: Path) -> None:
    texts = [hashlib.sha256(bytes([number])).hexdigest().encode() + b"\n" for number in range(250)]
    path = Path(packed(tmp_path, texts))
    whole = path.read_bytes()
    for pipeline in range(HEADER_BYTES, len(whole), 7):
        path.write_bytes(whole[:pipeline] + bytes([whole[pipeline] ^ 0x55]) + whole[pipeline + 1 :])
        with (
            reading(str(path)) as data,
            pytest.raises(UnreadableExport, match="cut off or damaged"),
        ):
            list(data)
