"""The proxies of the templates, as processes on the loopback address, without TLS."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

START_SECONDS = 20.0
NAME = "memory.example.com"


def nginx(template: str, port: int, backend: str, folder: Path) -> tuple[str, list[str]]:
    """The configuration, and the command that runs it in the foreground."""
    text = re.sub(r"^ *ssl_certificate.*\n", "", template, flags=re.M)
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    text = text.replace(f"server_name {NAME};", "server_name _;")
    text = text.replace("server 127.0.0.1:8000;", f"server {backend};")
    paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{name}_temp_path {folder}/{name};\n" for name in paths)
    whole = (
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{text}}}\n"
    )
    return whole, ["nginx", "-p", str(folder), "-c", str(folder / "configuration")]


def caddy(template: str, port: int, backend: str, folder: Path) -> tuple[str, list[str]]:
    text = template.replace(f"{NAME} {{", f"http://:{port} {{\n\tbind 127.0.0.1\n")
    text = text.replace("127.0.0.1:8000", backend)
    options = f"{{\n\tadmin off\n\tauto_https off\n\tstorage file_system {folder}\n}}\n"
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "configuration")]
    return options + text, command


Proxy = Callable[[str, int, str, Path], tuple[str, list[str]]]
PROXIES: dict[str, tuple[str, Proxy]] = {
    "nginx": ("nginx.conf", nginx),
    "caddy": ("Caddyfile", caddy),
}


def missing(name: str) -> str | None:
    """What this machine lacks; None if nothing."""
    return None if shutil.which(name) else f"needs {name} (Debian: apt-get install {name})"


@contextmanager
def proxying(name: str, templates: Path, backend: str, folder: Path) -> Iterator[str]:
    """The address of a proxy in front of `backend`, both as host and port."""
    file, configure = PROXIES[name]
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text, command = configure((templates / file).read_text(encoding="utf-8"), port, backend, folder)
    (folder / "configuration").write_text(text, encoding="utf-8")
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": str(folder)},
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
