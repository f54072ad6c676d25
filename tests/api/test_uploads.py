"""Files become messages: what is read, how it is cut, and what is refused."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug.test import TestResponse

from memservice.domain.filters import equals
from memservice.domain.records import Message
from support.services.files import DOCX, PDF, docx_of, pdf_of, read_in_this_process  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from api.conftest import Api

pytestmark = pytest.mark.every_index

UPLOAD = "/sessions/s/messages/upload"
UNREADABLE = b"\x89PNG\r\n\x1a\n"


def send(
    api: Api,
    data: bytes,
    name: str = "notes.txt",
    kind: str | None = "text/plain",
    *,
    headers: Any = None,
    **form: Any,
) -> TestResponse:
    fields = {"peer_id": "alice", **form}
    file = (io.BytesIO(data), name) if kind is None else (io.BytesIO(data), name, kind)
    answer = api.post(
        UPLOAD,
        data={"file": file, **{key: value for key, value in fields.items() if value is not None}},
        headers=headers,
    )
    answer.request.environ["wsgi.input"].close()  # a file, where the form is a long one
    return answer


def upload(api: Api, *args: Any, **form: Any) -> Any:
    return api.ok(send(api, *args, **form), 201)


def listed(api: Api) -> list[Any]:
    items: list[Any] = api.ok(api.post("/sessions/s/messages/list", query_string={"size": 100}))[
        "items"
    ]
    return items


def internals(api: Api) -> list[dict[str, Any]]:
    with api.runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug(api.workspace)
        assert workspace is not None
        return [
            message.internal
            for message in tx.rows.page(Message, equals(workspace_key=workspace.key))
        ]


@pytest.mark.slow
def test_a_text_file_is_one_message(api: Api) -> None:
    (message,) = upload(
        api,
        "Dear diary – today\nit rained.\n".encode(),
        metadata='{"from": {"phone": 1}}',
        created_at="2024-05-01T12:00:00+02:00",
    )
    assert list(message) == [
        "id",
        "content",
        "peer_id",
        "session_id",
        "metadata",
        "created_at",
        "workspace_id",
        "token_count",
    ]
    assert message["content"] == "Dear diary – today\nit rained.\n"
    assert (message["peer_id"], message["session_id"], message["workspace_id"]) == (
        "alice",
        "s",
        api.workspace,
    )
    assert message["metadata"] == {"from": {"phone": 1}}
    assert message["created_at"] == "2024-05-01T10:00:00Z"
    assert message["token_count"] > 0
    assert listed(api) == [message]
    assert api.ids("/peers/list") == ["alice"]


def test_uploads_and_messages_share_one_order(api: Api) -> None:
    api.say("s", ("bob", "before"))
    upload(api, b"file")
    api.say("s", ("bob", "after"))
    assert [message["content"] for message in listed(api)] == ["before", "file", "after"]


@pytest.mark.parametrize(
    ("data", "name", "kind", "content"),
    [
        (b"# Title\n\n* one", "a.md", "text/markdown", "# Title\n\n* one"),
        (b"name,age\nAda,36\n", "a.csv", "text/csv", "name,age\nAda,36\n"),
        (b"<p>hi</p>", "a.html", "text/html; charset=utf-8", "<p>hi</p>"),
        (b"hi", "a", "TEXT/PLAIN", "hi"),
        ("Smørrebrød".encode("latin-1"), "a.txt", "text/plain", "Smørrebrød"),
        ("Smørrebrød".encode("utf-16"), "a.txt", "text/plain", "Smørrebrød"),
        ("Smørrebrød".encode("utf-8-sig"), "a.txt", "text/plain", "Smørrebrød"),
        (
            '{\n "b": "ø",\n "a": [1, 2]\n}'.encode(),
            "a.json",
            "application/json",
            '{"b": "ø", "a": [1, 2]}',
        ),
        (pdf_of("Hello there."), "a.pdf", PDF, "[Page 1]\nHello there."),
        (docx_of("Hello there."), "a.docx", DOCX, "Hello there."),
        (b"hi", "a.md", "application/octet-stream", "hi"),
        (b"hi", "A.TXT", "application/octet-stream", "hi"),
        (b"[ 1 ]", "a.json", "application/octet-stream", "[1]"),
        (b"a\0b", "a.txt", "text/plain", "ab"),
    ],
)
@pytest.mark.slow
def test_supported_types_become_text(
    api: Api, data: bytes, name: str, kind: str, content: str
) -> None:
    assert [message["content"] for message in upload(api, data, name, kind)] == [content]


def test_an_empty_text_file_is_an_empty_message(api: Api) -> None:
    (message,) = upload(api, b"")
    assert (message["content"], message["token_count"]) == ("", 0)


def test_a_long_file_becomes_several_messages_with_the_same_fields(api: Api) -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "The sea was calm that day. " * 40 for n in range(60))
    messages = upload(
        api,
        text.encode(),
        "books/sea.txt",
        metadata='{"book": 1}',
        configuration='{"reasoning": {"enabled": false}}',
        created_at="2024-05-01",
    )
    assert len(messages) == -(-len(text) // 25_000)
    assert "".join(message["content"] for message in messages) == text
    assert all(len(message["content"]) <= 25_000 for message in messages)
    assert all(message["content"].startswith("Paragraph") for message in messages), (
        "cut at blank lines"
    )
    assert {
        (message["peer_id"], json.dumps(message["metadata"]), message["created_at"])
        for message in messages
    } == {("alice", '{"book": 1}', "2024-05-01T00:00:00Z")}
    assert listed(api) == messages
    assert api.ok(api.get("/queue/status"))["total_work_units"] == 0, (
        "the configuration holds for all of them"
    )
    facts = internals(api)
    assert [fact["chunk_index"] for fact in facts] == list(range(len(messages)))
    assert len({fact["file_id"] for fact in facts}) == 1
    assert len(facts[0]["file_id"]) == 21
    for fact, message in zip(facts, messages, strict=True):
        first, last = fact["chunk_character_range"]
        assert text[first:last] == message["content"]
        assert (fact["filename"], fact["original_file_size"], fact["content_type"]) == (
            "sea.txt",
            len(text),
            "text/plain",
        )
        assert fact["total_chunks"] == len(messages)


@pytest.mark.slow
def test_a_file_may_become_more_than_a_hundred_messages(api: Api) -> None:
    messages = upload(api, b"x" * (101 * 25_000))
    assert len(messages) == 101
    assert [message["id"] for message in messages[:100]] == [
        message["id"] for message in listed(api)
    ]


def test_facts_of_the_file_are_in_no_response(api: Api) -> None:
    (message,) = upload(api, b"hi", "secret-name.txt")
    for answer in (
        api.get(f"/sessions/s/messages/{message['id']}"),
        api.post("/sessions/s/messages/list"),
    ):
        assert "secret-name" not in answer.text


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (UNREADABLE, "a.png", "image/png"),
        (UNREADABLE, "a.bin", "application/octet-stream"),
        (b"hi", "a.exe", "application/octet-stream"),
        (b"hi", "a.txt", "application/x-yaml"),
        (b"hi", "a.txt", "application/msword"),
        (b"hi", "noending", "application/octet-stream"),
    ],
)
def test_other_types_are_refused(api: Api, data: bytes, name: str, kind: str) -> None:
    detail = api.ok(send(api, data, name, kind), 415)["detail"]
    assert detail.startswith(f"Unsupported file type: {kind}. Supported types: [")
    assert "application/pdf" in detail
    assert api.ok(api.post("/sessions/s/messages/list"))["total"] == 0


@pytest.mark.parametrize(
    "kind", ["text/pl\0ain", "text/" + "x" * 300_000, "text/", "text/a b", "text/é", "x" * 300_000]
)
def test_an_invalid_media_type_is_refused(api: Api, kind: str) -> None:
    """It would be kept with every message of the file, and not every storage could."""
    body = (
        PEER
        + FILE.replace(b"\r\n\r\n", f"\r\nContent-Type: {kind}\r\n\r\n".encode()) % b"a.txt"
        + b"--x--\r\n"
    )
    detail = api.ok(
        api.post(UPLOAD, data=body, content_type="multipart/form-data; boundary=x"), 415
    )["detail"]
    assert detail.startswith("Unsupported file type: ")
    assert len(detail) < 400


def test_a_file_that_is_too_large_is_refused(api: Api) -> None:
    detail = api.ok(send(api, b"x" * (5_242_880 + 1)), 413)["detail"]
    assert detail == "File size (5242881 bytes) exceeds maximum allowed size (5242880 bytes)"
    assert (
        api.ok(api.post("//v3/workspaces/list", {"filters": {"id": api.workspace}}))["total"] == 0
    )


@pytest.mark.usefixtures("read_in_this_process")
@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"", "a.json", "application/json"),
        (b"{", "a.json", "application/json"),
        (b"NaN", "a.json", "application/json"),
        ('"ø"'.encode("latin-1"), "a.json", "application/json"),
        (b"", "a.pdf", PDF),
        (b"%PDF-1.4 nothing", "a.pdf", PDF),
        (pdf_of(""), "a.pdf", PDF),
        (b"", "a.docx", DOCX),
        (b"PK\x03\x04", "a.docx", DOCX),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(api: Api, data: bytes, name: str, kind: str) -> None:
    (problem,) = api.refused(send(api, data, name, kind))
    assert problem["loc"][:2] == ["body", "file"]
    assert (
        api.ok(api.post("//v3/workspaces/list", {"filters": {"id": api.workspace}}))["total"] == 0
    )


@pytest.mark.parametrize(
    ("form", "loc"),
    [
        ({"metadata": "{"}, ["body", "metadata", 1]),
        ({"metadata": "hello"}, ["body", "metadata", 0]),
        ({"metadata": "[]"}, ["body", "metadata"]),
        ({"metadata": "5"}, ["body", "metadata"]),
        ({"metadata": '"text"'}, ["body", "metadata"]),
        ({"metadata": '{"a": NaN}'}, ["body", "metadata"]),
        ({"metadata": '{"a":{"a":{"a":{"a":{"a":{}}}}}}'}, ["body", "metadata"]),
        ({"metadata": json.dumps({str(n): n for n in range(101)})}, ["body", "metadata"]),
        ({"configuration": "{"}, ["body", "configuration", 1]),
        ({"configuration": "[]"}, ["body", "configuration"]),
        ({"configuration": '{"reasoning": 5}'}, ["body", "configuration", "reasoning"]),
        (
            {"configuration": '{"reasoning": {"enabled": "perhaps"}}'},
            ["body", "configuration", "reasoning", "enabled"],
        ),
        ({"created_at": "yesterday"}, ["body", "created_at"]),
        ({"created_at": "0000-01-01"}, ["body", "created_at"]),
        ({"peer_id": None}, ["body", "peer_id"]),
        ({"peer_id": ""}, ["body", "peer_id"]),
        ({"peer_id": "two words"}, ["body", "peer_id"]),
        ({"peer_id": "a\0b"}, ["body", "peer_id"]),
        ({"peer_id": "scope.mine"}, ["body", "peer_id"]),
    ],
)
def test_a_problem_of_the_form_names_its_field(
    api: Api, form: dict[str, Any], loc: list[str | int]
) -> None:
    api.refused(send(api, b"hi", **form), loc)
    assert (
        api.ok(api.post("//v3/workspaces/list", {"filters": {"id": api.workspace}}))["total"] == 0
    )


def test_every_problem_of_the_form_is_reported_at_once(api: Api) -> None:
    answer = api.post(UPLOAD, data={"file": "no file"}, content_type="multipart/form-data")
    api.refused(answer, ["body", "file"])
    answer = api.post(UPLOAD, data={"metadata": (io.BytesIO(b"{}"), "m.json"), "created_at": "x"})
    api.refused(
        answer, ["body", "file"], ["body", "peer_id"], ["body", "metadata"], ["body", "created_at"]
    )


def test_a_problem_of_a_long_file_is_reported_once(api: Api) -> None:
    assert len(api.refused(send(api, b"x" * 80_000, peer_id="two words"), ["body", "peer_id"])) == 1


def test_an_author_may_be_called_null(api: Api) -> None:
    assert upload(api, b"hi", peer_id="null")[0]["peer_id"] == "null"


@pytest.mark.parametrize("value", ["", "null"])
def test_an_empty_field_counts_as_absent(api: Api, value: str) -> None:
    (message,) = upload(api, b"hi", metadata=value, configuration=value, created_at=value)
    assert message["metadata"] == {}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"peer_id": "alice"}', "application/json"),
        (b"peer_id=alice", "application/x-www-form-urlencoded"),
        (b"", None),
        (b"hello", "text/plain"),
    ],
)
def test_a_body_that_is_not_a_form_is_refused(api: Api, body: bytes, kind: str | None) -> None:
    (problem,) = api.refused(api.post(UPLOAD, data=body, content_type=kind), ["body"])
    assert "multipart/form-data" in problem["msg"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--x",
        b"--x--",
        b"--x\r\n\r\nhi\r\n--x--\r\n",
        b"\0\xff" * 50,
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a',
    ],
)
def test_a_truncated_or_malformed_form_is_refused(api: Api, body: bytes) -> None:
    for kind in ("multipart/form-data; boundary=x", "multipart/form-data"):
        api.refused(api.post(UPLOAD, data=body, content_type=kind))


PEER = b'--x\r\nContent-Disposition: form-data; name="peer_id"\r\n\r\nalice\r\n'
FILE = b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\nhi\r\n'


@pytest.mark.parametrize(
    ("body", "boundary"),
    [
        (PEER + FILE % b"a.txt", "x"),
        (PEER + FILE % b"a.txt" + b"--x--\r\n", "y"),
        (PEER + FILE % b"a.txt" + b"--x--\r\n", ""),
        (PEER + FILE % b"caf\xe9.txt" + b"--x--\r\n", "x"),
        (b"--x\r\n\r\nhi\r\n--x--\r\n", "x"),
    ],
)
def test_an_unreadable_form_is_not_reported_as_empty(api: Api, body: bytes, boundary: str) -> None:
    """Its fields are there, so they cannot be said to be missing."""
    (problem,) = api.refused(
        api.post(UPLOAD, data=body, content_type=f"multipart/form-data; boundary={boundary}"),
        ["body"],
    )
    assert problem["msg"].startswith("The form cannot be read")


def test_a_field_that_is_too_long_is_refused(api: Api) -> None:
    detail = api.ok(send(api, b"hi", metadata=json.dumps({"a": "x" * 600_000})), 413)["detail"]
    assert "500000 bytes in a part that is not a file" in detail


@pytest.mark.slow
def test_a_form_of_too_many_parts_is_refused(api: Api) -> None:
    detail = api.ok(
        api.post(UPLOAD, data={"x": ["y"] * 1001}, content_type="multipart/form-data"), 413
    )["detail"]
    assert "it may have 1000 parts" in detail


def test_two_files_in_one_request_are_refused(api: Api) -> None:
    files = [(io.BytesIO(text), "a.txt", "text/plain") for text in (b"one", b"two")]
    (problem,) = api.refused(
        api.post(UPLOAD, data={"file": files, "peer_id": "alice"}), ["body", "file"]
    )
    assert problem["msg"] == "Expected one file, got 2: send each in a request of its own"
    assert listed(api) == []


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://evil.example", 400),
        ("null", 400),
        ("http://localhost", 201),
        ("http://127.0.0.1:8000", 201),
    ],
)
def test_other_origins_cannot_upload(api: Api, origin: str, status: int) -> None:
    """A browser sends a form without asking first."""
    api.ok(send(api, b"hi", headers={"Origin": origin}), status)
    assert api.ok(api.post("/sessions/s/messages/list"))["total"] == (status == 201)


def test_allowed_origins_can_upload(api: Api) -> None:
    file = (io.BytesIO(b"hi"), "a.txt", "text/plain")
    answer = api.post(
        UPLOAD,
        data={"file": file, "peer_id": "alice"},
        headers={"Origin": "https://memory.localhost"},
        base_url="http://memory.localhost",
    )
    api.ok(answer, 201)


def test_a_repeated_upload_with_a_key_stores_nothing_again(api: Api) -> None:
    first = upload(api, b"x" * 60_000, headers={"Idempotency-Key": "k"})
    assert upload(api, b"x" * 60_000, headers={"Idempotency-Key": "k"}) == first
    assert len(listed(api)) == 3
    api.refused(send(api, b"y", headers={"Idempotency-Key": "k"}), ["header", "Idempotency-Key"])


def test_a_session_that_is_being_deleted_accepts_no_file(api: Api) -> None:
    api.session("s")
    api.ok(api.delete("/sessions/s"), 202)
    api.missing(send(api, b"hi"), "s")


def test_the_text_of_a_file_is_searchable(api: Api) -> None:
    upload(api, b"I adopted a tortoise named Balthazar.")
    hits = api.ok(api.post("/search", {"query": "Balthazar tortoise"}))
    assert [message["content"] for message in hits] == ["I adopted a tortoise named Balthazar."]
