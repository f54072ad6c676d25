"""Files become messages."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

from honcho.http.exceptions import APIError, UnprocessableEntityError  # type: ignore[import-not-found]

from support.clients.published_client.harness import Caller, contents, ids, scenario

NOTE = "I adopted a tortoise named Balthazar last spring.\n\nHe sleeps under the rhubarb. – Ægir\n"


@scenario
async def a_file_becomes_messages(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    session = await c(honcho).session("talk")
    day = datetime(2023, 7, 4, 12, tzinfo=UTC)
    (note,) = await c(session).upload_file(
        ("note.txt", NOTE.encode(), "text/plain"), alice, metadata={"from": "phone"}, created_at=day
    )
    assert (note.content.strip(), note.peer_id, note.session_id) == (NOTE.strip(), "alice", "talk")
    assert (note.metadata, note.created_at) == ({"from": "phone"}, day)
    assert (await c(session).get_message(note.id)).content == note.content
    (table,) = await c(session).upload_file(
        ("table.csv", io.BytesIO(b"name,age\nAda,36\n"), "text/csv"), "alice"
    )
    assert table.content.split() == ["name,age", "Ada,36"]
    (mark,) = await c(session).upload_file(
        ("read.md", b"# Title\n\n* one\n* two\n", "text/markdown"), "alice"
    )
    assert "# Title" in mark.content
    (data,) = await c(session).upload_file(
        ("data.json", b'{"city": "Troms\xc3\xb8", "n": [1, 2]}', "application/json"), "alice"
    )
    assert json.loads(data.content) == {"city": "Tromsø", "n": [1, 2]}
    assert "Tromsø" in data.content
    (legacy,) = await c(session).upload_file(
        ("old.txt", "Smørrebrød".encode("latin-1"), "text/plain"), "alice"
    )
    assert legacy.content == "Smørrebrød"
    rows = await c.every(await c(session).messages())
    assert ids(rows) == ids([note, table, mark, data, legacy])
    assert contents(await c(honcho).search("Balthazar tortoise", limit=1)) == [note.content]
    await c.settled(honcho)
    assert any(
        "Balthazar" in text for text in contents(await c.every(await c(alice.conclusions).list()))
    )


@scenario
async def a_long_file_becomes_several_messages(c: Caller) -> None:
    honcho = c.honcho()
    session = await c(honcho).session("talk")
    text = "\n\n".join(f"Paragraph {number}: " + "the sea was calm. " * 60 for number in range(60))
    assert len(text) > 2 * 25_000
    parts = await c(session).upload_file(
        ("long.txt", text.encode(), "text/plain"),
        "alice",
        configuration={"reasoning": {"enabled": False}},
        metadata={"book": 1},
    )
    assert len(parts) >= 3
    assert max(len(part.content) for part in parts) <= 25_000
    assert "".join("".join(contents(parts)).split()) == "".join(text.split()), (
        "nothing is lost, the order is kept"
    )
    assert {json.dumps(part.metadata) for part in parts} == {'{"book": 1}'}
    assert ids(await c.every(await c(session).messages(size=100))) == ids(parts)
    await c.settled(honcho)
    assert (await c(honcho.conclusions).list()).total == 0


@scenario
async def a_pdf_becomes_its_text(c: Caller) -> None:
    session = await c(c.honcho()).session("talk")
    (page,) = await c(session).upload_file(
        ("page.pdf", pdf("Balthazar eats dandelions."), "application/pdf"), "alice"
    )
    assert "Balthazar eats dandelions." in page.content
    assert "[Page 1]" in page.content


@scenario
async def a_file_that_cannot_be_read_is_refused(c: Caller) -> None:
    honcho = c.honcho()
    session = await c(honcho).session("talk")

    for error, status, file in (
        (APIError, 415, ("photo.png", b"\x89PNG\r\n\x1a\n", "image/png")),
        (UnprocessableEntityError, 422, ("broken.json", b"{", "application/json")),
        (UnprocessableEntityError, 422, ("broken.pdf", b"%PDF-1.4 nothing", "application/pdf")),
        (APIError, 413, ("large.txt", b"x" * (5 * 1024 * 1024 + 1), "text/plain")),
    ):
        caught = await c.raises(error, c(session).upload_file(file, "alice"))
        assert caught.status == status, file[0]
    await c.raises(
        UnprocessableEntityError,
        c(session).upload_file(("note.txt", b"hello", "text/plain"), "two words"),
    )
    assert (await c(session).messages()).total == 0


def pdf(text: str) -> bytes:
    """A document of one page that shows a line of text."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources "
            b"<< /Font << /F1 5 0 R >> >> >>"
        ),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return body + (
        b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R "
        b">>\nstartxref\n%d\n%%%%EOF\n"
    ) % (table, len(body))
