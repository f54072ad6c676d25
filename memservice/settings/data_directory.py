"""The default place of the store: the working directory if it holds a store or configuration, else
the user's data directory (XDG Base Directory Specification)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memservice.domain.errors import Unavailable

NAME = "memservice"


def directory(environ: Mapping[str, str]) -> Path | None:
    """`memservice` in `XDG_DATA_HOME`, else in `~/.local/share`. None if there is no home."""
    data = environ.get("XDG_DATA_HOME", "")
    if Path(data).is_absolute():
        return Path(data) / NAME
    home = environ.get("HOME", "")
    return Path(home) / ".local" / "share" / NAME if Path(home).is_absolute() else None


def file_name(uri: str) -> str:
    """The file that a default URI names, relative to the working directory."""
    return uri.partition(":///")[2]


def uri_in(folder: Path, uri: str) -> str:
    """The default URI `uri`, with its file in `folder`."""
    scheme, separator, name = uri.partition(":///")
    return f"{scheme}{separator}{folder.absolute() / name}"


def create(folder: Path | None) -> None:
    """Create the data directory, readable by its user only. None: nothing to create. Raises
    `Unavailable`."""
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"the data directory {folder} cannot be created ({error.strerror}): set "
            "DB_CONNECTION_URI to the location of the store"
        ) from error
