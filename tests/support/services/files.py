"""Files made by hand: documents that are good, broken, and hostile."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence

import pytest

from memservice.services.documents import formats, reader

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
_PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << "
    b"/Font << /F1 3 0 R >> >> >>"
)


@pytest.fixture
def read_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are read without a process of their own, and so without limits on time and
    memory."""

    def run_reader(kind: str, data: bytes, most_characters: int) -> dict[str, str]:
        limits = (formats.MAX_PAGES, formats.MAX_UNPACKED, most_characters)
        return reader._answer(kind, data, *limits)

    monkeypatch.setattr(formats, "_run_reader", run_reader)


def pdf_of(*pages: str) -> bytes:
    """One line of text a page."""
    return _pdf(
        [
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn)
            for drawn in map(_drawn, pages)
        ]
    )


def pdf_bomb(size: int) -> bytes:
    """A small file whose only page unpacks to `size` bytes of text."""
    line = b"BT /F1 12 Tf 72 720 Td (boom) Tj ET\n"
    packed = zlib.compress(line * (size // len(line)), 9)
    return _pdf(
        [b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)]
    )


def pdf_locked(password: str, cipher: str) -> bytes:
    """Encrypted; opens with the password."""
    from pypdf import PdfWriter

    writer = PdfWriter(clone_from=io.BytesIO(pdf_of("locked away")))
    writer.encrypt(password, "of the owner", algorithm=cipher)
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def pdf_of_cipher(version: int, revision: int) -> bytes:
    """Said to be encrypted in a certain way, with keys that are none."""
    keys = b"/O <%s> /U <%s> /OE <%s> /UE <%s> /Perms <%s>" % (
        b"ab" * 48,
        b"cd" * 48,
        b"ef" * 32,
        b"01" * 32,
        b"23" * 16,
    )
    filters = (
        b"/CF << /StdCF << /CFM /AESV3 /AuthEvent /DocOpen /Length 32 >> >> /StmF /StdCF /StrF "
        b"/StdCF"
    )
    encryption = b"/Encrypt << /Filter /Standard /V %d /R %d /Length 256 /P -4 %s %s >> " % (
        version,
        revision,
        keys,
        filters,
    )
    return pdf_of("locked away").replace(
        b"/Root 1 0 R", encryption + b"/ID [<00> <00>] /Root 1 0 R"
    )


def _drawn(text: str) -> bytes:
    return f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1") if text else b""


def _pdf(streams: Sequence[bytes]) -> bytes:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(streams)),
        _FONT,
    ]
    for n, stream in enumerate(streams):
        objects += [_PAGE % (5 + 2 * n), stream]
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table)
        + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, len(body))
    )


def docx_of(*blocks: str | list[list[str]]) -> bytes:
    """Paragraphs, and tables given as rows of cells."""
    import docx

    document = docx.Document()
    for block in blocks:
        if isinstance(block, str):
            document.add_paragraph(block)
            continue
        table = document.add_table(rows=len(block), cols=len(block[0]))
        for row, texts in zip(table.rows, block, strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def docx_bomb(size: int) -> bytes:
    """A small archive whose text unpacks to `size` bytes."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(docx_of("x"))) as good,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as bad,
    ):
        for entry in good.infolist():
            if entry.filename != "word/document.xml":
                bad.writestr(entry.filename, good.read(entry))
        paragraph = b"<w:p><w:r><w:t>boom</w:t></w:r></w:p>"
        head = (
            b"<w:document "
            b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
        )
        bad.writestr(
            "word/document.xml",
            head + paragraph * (size // len(paragraph)) + b"</w:body></w:document>",
        )
    return written.getvalue()


def docx_with(document: bytes) -> bytes:
    """A Word file whose text part is this."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx_of("x"))) as good, zipfile.ZipFile(written, "w") as bad:
        for entry in good.infolist():
            bad.writestr(
                entry.filename,
                document if entry.filename == "word/document.xml" else good.read(entry),
            )
    return written.getvalue()
