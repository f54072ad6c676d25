"""The environment that this process runs in, as package installers see it."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit


def install_command(requirement: str) -> str:
    """The command that installs a distribution into this environment, from any shell."""
    return f"{installer()} {shlex.quote(requirement)}"


def installer() -> str:
    """The beginning of that command. An environment that uv made has no pip."""
    python = shlex.quote(sys.executable)
    return f"{python} -m pip install" if _has_pip() else f"uv pip install --python {python}"


def wheel_command() -> str:
    """The command that puts the wheel of this memservice into the working directory."""
    pip = f"{shlex.quote(sys.executable)} -m pip" if _has_pip() else "uvx pip"
    return f"{pip} wheel --no-deps {source()}"


def _has_pip() -> bool:
    return find_spec("pip") is not None


def source() -> str:
    """What this memservice was installed from, as pip takes it: a folder or wheel of this machine,
    else the release of a package index."""
    installed = distribution("memservice")
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    path = Path(unquote(url.path))
    if url.scheme == "file" and path.exists():
        return shlex.quote(str(path))
    return f"memservice=={installed.version}"
