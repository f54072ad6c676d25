"""The text of PDF and Word files, read in a subprocess:

`python -m memservice.services.documents.reader KIND < file`.

Such files can be crafted to use any amount of time and memory, so they are read in a process with
limits on both. The limits are arguments; the answer is a line of JSON, `{"text": …}` or `{"error":
kind, "message": …}`, on standard output.
"""

from __future__ import annotations

import io
import json
import logging
import resource
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

UNREADABLE, TOO_LONG, NOT_INSTALLED = "unreadable", "too long", "not installed"


class Refused(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def _pages(data: bytes, most_pages: int) -> Iterator[str]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    reader = None
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Refused(
                UNREADABLE, "the PDF is protected by a password; save it without one and send that"
            )
        count = len(reader.pages)
        if count > most_pages:
            raise Refused(TOO_LONG, f"the PDF has {count} pages; at most {most_pages} are read")
        for number, page in enumerate(reader.pages, 1):
            text = page.extract_text().strip()
            if text:
                yield f"[Page {number}]\n{text}"
    except (DependencyError, NotImplementedError) as error:
        if reader is None or reader.is_encrypted:  # by a cipher that is not supported
            raise Refused(
                UNREADABLE,
                "the PDF is encrypted; save it without a password or restrictions and send that",
            ) from error
        raise Refused(UNREADABLE, f"the PDF cannot be read ({error})") from error
    except PyPdfError as error:
        raise Refused(UNREADABLE, f"the PDF cannot be read ({error})") from error


def _paragraphs(data: bytes, most_bytes: int) -> Iterator[str]:
    try:
        import docx
        from docx.opc.exceptions import OpcError
        from docx.table import Table
    except ImportError as error:
        raise Refused(NOT_INSTALLED, str(error)) from error

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > most_bytes:
            raise Refused(
                TOO_LONG, f"the document unpacks to {unpacked} bytes; at most {most_bytes} are read"
            )
        document = docx.Document(io.BytesIO(data))
        if document.element.getroottree().docinfo.internalDTD is not None:
            # Word writes no DTD. Entities are not resolved, and the text would end at the first
            # one.
            raise Refused(UNREADABLE, "the document declares entities, which Word files must not")
        for block in document.iter_inner_content():
            if isinstance(block, Table):
                yield "\n".join("\t".join(_cells(row)) for row in block.rows)
            elif block.text.strip():
                yield block.text
    except SyntaxError as error:
        # this is how the XML library reports that memory is exhausted
        if error.msg.startswith("unknown error"):
            raise MemoryError from error
        raise Refused(UNREADABLE, f"the document cannot be read ({error})") from error
    except (zipfile.BadZipFile, OpcError, KeyError) as error:
        raise Refused(UNREADABLE, f"the document cannot be read ({error})") from error


def _cells(row: Any) -> Iterator[str]:
    """The texts of a row's cells; one that spans several columns counts once."""
    last = None
    for cell in row.cells:
        if cell._tc is not last:
            yield " ".join(cell.text.split())
        last = cell._tc


def read(kind: str, data: bytes, most_pages: int, most_bytes: int, most_characters: int) -> str:
    """The file's text. Raises `Refused`."""
    parts = _pages(data, most_pages) if kind == "pdf" else _paragraphs(data, most_bytes)
    texts: list[str] = []
    length = 0
    for part in parts:
        length += len(part)
        if length > most_characters:
            raise Refused(
                TOO_LONG,
                f"the file has more text than the maximum of {most_characters} characters",
            )
        texts.append(part)
    if not texts:
        raise Refused(UNREADABLE, "there is no text in the file; text in images is not read")
    return "\n\n".join(texts)


def _answer(kind: str, data: bytes, *limits: int) -> dict[str, str]:
    try:
        return {"text": read(kind, data, *limits)}
    except Refused as refused:
        return {"error": refused.kind, "message": str(refused)}
    except MemoryError:
        return {"error": TOO_LONG, "message": "reading the file takes too much memory"}
    except Exception as error:  # crafted files can raise any error
        return {"error": UNREADABLE, "message": f"the file cannot be read ({type(error).__name__})"}


def main() -> None:
    kind, seconds, memory, *limits = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # not every system can limit memory; the time is limited everywhere
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    logging.disable()  # the answer reports problems of the file
    sys.setrecursionlimit(2_000)
    answer = _answer(kind, sys.stdin.buffer.read(), *map(int, limits))
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
