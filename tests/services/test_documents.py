"""The text of files: encodings, JSON, PDF and Word, and what happens to files that were made to do
harm."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.errors import InvalidInput, TooLarge, Unavailable, UnsupportedMedia
from memservice.services.documents import formats, reader
from memservice.services.documents.plain import decode, json_text
from support.services.files import (
    docx_bomb,
    docx_of,
    docx_with,
    pdf_bomb,
    pdf_locked,
    pdf_of,
    pdf_of_cipher,
    read_in_this_process,  # noqa: F401 - a fixture
)

MANY = 5_000_000

here = pytest.mark.usefixtures("read_in_this_process")
"""For rules about what is read. Others test the process that reads, which takes a fifth of a second
to start."""

NORWEGIAN = "Smørrebrød på Ærøskøbing, «naïve» café"
CHINESE = "我妹妹住在特罗姆瑟，她是护士。\n妹はトロムソに住んでいます。"
RUSSIAN = "Моя сестра работает в больнице.\r\nОна живёт в Перми."


@pytest.mark.parametrize("text", [NORWEGIAN, CHINESE, RUSSIAN, "plain words", "🧺 picnic", ""])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_with_a_byte_order_mark(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("text", [NORWEGIAN, CHINESE, RUSSIAN, "plain words", "ab"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_byte_order_mark(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("text", [NORWEGIAN, "café", "cafés", "Grüße", "»ja«", "ÿ"])
def test_encodings_of_western_editors(text: str) -> None:
    assert decode(text.encode("latin-1")) == text
    assert decode(text.encode("cp1252")) == text


def test_typographic_quotes_of_windows() -> None:
    assert decode("“quoted” – well…".encode("cp1252")) == "“quoted” – well…"


@given(st.binary(max_size=60))
def test_any_bytes_decode_to_text(data: bytes) -> None:
    assert isinstance(decode(data), str)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_utf_8_is_never_decoded_as_another_encoding(text: str) -> None:
    if "\0" not in text and not text.startswith("\ufeff"):
        assert decode(text.encode()) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{\n  "a": 1,\n  "b": ["x", null, true]\n}\n', '{"a": 1, "b": ["x", null, true]}'),
        ('{"city": "Tromsø", "u": "\\u00e9"}'.encode(), '{"city": "Tromsø", "u": "é"}'),
        (b'\xef\xbb\xbf"marked"', '"marked"'),
        (b"[]", "[]"),
        (b"1.5", "1.5"),
        (b"null", "null"),
    ],
)
def test_json_on_one_line(data: bytes, text: str) -> None:
    assert json_text(data) == text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   ",
        b"{",
        b"{'a': 1}",
        b"NaN",
        b"1 2",
        b"\xff\xfe",
        '{"a": "ø"}'.encode("latin-1"),
        b"[" * 200 + b"]" * 200,
    ],
)
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        json_text(data)
    assert caught.value.problems[0].loc[:1] == ("file",)


@pytest.mark.slow
def test_pages_of_a_pdf_are_numbered_and_empty_ones_left_out() -> None:
    assert (
        formats.text_of("pdf", pdf_of("First page.", "", "Third page."), MANY)
        == "[Page 1]\nFirst page.\n\n[Page 3]\nThird page."
    )


@pytest.mark.slow
def test_paragraphs_and_tables_of_a_word_file_in_order() -> None:
    data = docx_of("Dear Ada,", "", [["name", "age"], ["Ada", "36"]], "Yours – Ærø")
    assert formats.text_of("docx", data, MANY) == "Dear Ada,\n\nname\tage\nAda\t36\n\nYours – Ærø"


def readers_seconds() -> float:
    """CPU time of all readers so far: their bound, and unlike the time on the clock the same on a
    busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def refusal(kind: str, data: bytes, most: int = MANY) -> str:
    with pytest.raises(InvalidInput) as caught:
        formats.text_of(kind, data, most)
    (problem,) = caught.value.problems
    assert problem.loc == ("file",)
    return problem.message


@here
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"%PDF-1.4 nothing",
        b"no pdf at all",
        pdf_of("text")[:80],
        b"%PDF-1.7\n" + bytes(range(256)) * 20,
    ],
)
def test_invalid_pdf_is_refused(data: bytes) -> None:
    assert refusal("pdf", data)


@here
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04",
        b"no archive",
        docx_of("text")[:200],
        docx_with(b"<w:document"),
        docx_with(b""),
    ],
)
def test_an_invalid_word_file_is_refused(data: bytes) -> None:
    assert refusal("docx", data)


@pytest.mark.parametrize(("kind", "data"), [("pdf", pdf_of("")), ("docx", docx_of(""))])
@here
def test_a_document_without_text_is_refused(kind: str, data: bytes) -> None:
    assert "no text in the file" in refusal(kind, data)


@here
@pytest.mark.parametrize("cipher", ["RC4-40", "RC4-128"])
def test_a_password_protected_pdf_is_refused_as_encrypted(cipher: str) -> None:
    assert "protected by a password; save it without one" in refusal(
        "pdf", pdf_locked("secret", cipher)
    )


@here
@pytest.mark.parametrize("cipher", ["RC4-40", "RC4-128"])
def test_a_pdf_that_only_its_owner_may_change_is_read(cipher: str) -> None:
    assert formats.text_of("pdf", pdf_locked("", cipher), MANY) == "[Page 1]\nlocked away"


@pytest.mark.parametrize(("version", "revision"), [(5, 6), (9, 9)])
@here
def test_a_pdf_with_a_newer_cipher_is_refused_as_encrypted(version: int, revision: int) -> None:
    """As most programs write them now. pypdf can read the first one where `cryptography` is
    installed, which no extra of ours needs for documents."""
    can_read = revision == 6 and find_spec("cryptography") is not None
    problem = "protected by a password" if can_read else "encrypted"
    assert f"the PDF is {problem}; save it without" in refusal(
        "pdf", pdf_of_cipher(version, revision)
    ).replace("The", "the", 1)


_WORD = (
    b"<w:document "
    b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>%s</w:t></w:r></w:p>'
    b"</w:body></w:document>"
)


@here
@pytest.mark.parametrize(
    "declared", [b'SYSTEM "file:///etc/hostname"', b'SYSTEM "http://127.0.0.1:9/x"', b'"own"']
)
def test_a_word_file_with_entities_is_refused(declared: bytes) -> None:
    """It can read nothing of the server, and is not stored as half of what it says either."""
    hostile = b"<!DOCTYPE d [<!ENTITY e %s>]>" % declared + _WORD % b"before &e; after"
    assert "declares entities" in refusal("docx", docx_with(hostile))


@pytest.mark.slow
def test_expanding_entities_are_refused() -> None:
    lines = b"".join(
        b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10 if n else b"boom") for n in range(12)
    )
    hostile = (
        b"<!DOCTYPE d [" + lines + b"]>"
        b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        b"<w:body><w:p><w:r><w:t>&e11;</w:t></w:r></w:p></w:body></w:document>"
    )
    before = readers_seconds()
    with pytest.raises((InvalidInput, TooLarge)):
        formats.text_of("docx", docx_with(hostile), MANY)
    assert readers_seconds() - before < formats.SECONDS + 2


@here
def test_text_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TooLarge, match="more text than the maximum of 100 characters"):
        formats.text_of("pdf", pdf_of("x" * 60, "y" * 60), 100)


@here
def test_pages_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_PAGES", 2)
    with pytest.raises(TooLarge, match="3 pages; at most 2"):
        formats.text_of("pdf", pdf_of("a", "b", "c"), MANY)


@pytest.mark.slow
def test_a_decompression_bomb_is_refused() -> None:
    data = docx_bomb(formats.MAX_UNPACKED + 10_000_000)
    assert len(data) < 2_000_000
    with pytest.raises(TooLarge, match="unpacks to"):
        formats.text_of("docx", data, MANY)


@pytest.mark.heavy
@pytest.mark.slow
def test_a_pdf_that_unpacks_to_too_much_is_ended_in_time() -> None:
    data = pdf_bomb(400_000_000)
    assert len(data) < 5_000_000
    before = readers_seconds()
    with pytest.raises((InvalidInput, TooLarge)):
        formats.text_of("pdf", data, MANY)
    assert readers_seconds() - before < formats.SECONDS + 2


@pytest.mark.slow
def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "SECONDS", 1)
    data = pdf_bomb(60_000_000)
    before = readers_seconds()
    assert "too long" in refusal("pdf", data)
    assert readers_seconds() - before < formats.SECONDS + 2


@pytest.mark.slow
def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MEMORY", 60 << 20)
    with pytest.raises((InvalidInput, TooLarge), match="memory"):
        formats.text_of("docx", docx_bomb(60_000_000), MANY * 20)


@pytest.mark.slow
def test_a_word_file_too_large_for_memory_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its XML library does not call that by its name."""
    monkeypatch.setattr(formats, "MEMORY", 300 << 20)
    with pytest.raises(TooLarge, match="takes too much memory"):
        formats.text_of("docx", docx_bomb(60_000_000), MANY * 20)


def test_an_error_of_the_xml_library_without_a_name_is_exhausted_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As its errors are for the file above, which takes seconds to read."""
    import docx

    data = docx_of("a")

    def exhausted(file: object) -> None:
        raise SyntaxError("unknown error, line 1, column 1")

    monkeypatch.setattr(docx, "Document", exhausted)
    answer = reader._answer("docx", data, 1, MANY, MANY)
    assert answer["error"] == reader.TOO_LONG
    assert "takes too much memory" in answer["message"]


@pytest.mark.slow
def test_the_number_of_concurrent_readers_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "WAIT_SECONDS", 0.05)
    for _ in range(formats.MAX_CONCURRENT):
        assert formats._slots.acquire(timeout=5)
    try:
        with pytest.raises(Unavailable):
            formats.text_of("pdf", pdf_of("a"), MANY)
    finally:
        for _ in range(formats.MAX_CONCURRENT):
            formats._slots.release()
    assert formats.text_of("pdf", pdf_of("a"), MANY)


def test_without_the_extra_word_files_are_refused_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        formats,
        "_run_reader",
        lambda *arguments: {"error": reader.NOT_INSTALLED, "message": "No module named 'docx'"},
    )
    with pytest.raises(UnsupportedMedia, match=r"pip install 'memservice\[uploads\]'"):
        formats.text_of("docx", b"", MANY)


def test_the_reader_reports_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docx", None)
    with pytest.raises(reader.Refused) as caught:
        reader.read("docx", b"PK", 1, 1, 1)
    assert caught.value.kind == reader.NOT_INSTALLED


def test_the_reader_process_has_none_of_the_servers_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it is given of the environment is what it needs to start."""
    environ: dict[str, str] = {}

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        environ.update(options["env"])  # type: ignore[call-overload]
        return subprocess.CompletedProcess(command, 0, json.dumps({"text": "x"}).encode(), b"")

    monkeypatch.setenv("AUTH_JWT_SECRET", "secret")
    monkeypatch.setattr(subprocess, "run", run)
    assert formats.text_of("pdf", b"", MANY) == "x"
    assert environ.keys() <= {"PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR"}
