"""A PgBouncer in front of a test's database, where it is installed: no wheel contains it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

IGNORING = "ignore_startup_parameters = options"
"""The setting that the documentation recommends: PgBouncer drops the settings of a connection
instead of rejecting it."""


@contextmanager
def pooled(uri: str, setting: str = "") -> Iterator[str]:
    """The URI of the same database through a PgBouncer in transaction mode, with one more line in
    its configuration. Skips the test if PgBouncer is not installed."""
    binary = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        pytest.skip("pgbouncer is not installed")
    url = make_url(uri)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="ms-bouncer-"))  # another user has to reach it
    host = url.host or url.query.get("host")
    (folder / "users.txt").write_text(f'"{url.username}" "{url.password or ""}"\n')
    (folder / "pgbouncer.ini").write_text(f"""
[databases]
{url.database} = host={host} port={url.port or url.query.get("port") or 5432} \
dbname={url.database} user={url.username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = 4
logfile = {folder}/log
{setting}
""")
    user = None
    # It refuses to run as the superuser, and the server's socket may be for its owner alone.
    if os.geteuid() == 0:
        user = Path(str(host)).owner() if str(host).startswith("/") else "nobody"
        shutil.chown(folder, user)
    started = subprocess.Popen(
        [binary, "-q", str(folder / "pgbouncer.ini")], user=user, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, started)
        yield f"postgresql+psycopg://{url.username}@127.0.0.1:{port}/{url.database}"
    finally:
        started.terminate()
        started.wait(30)
        shutil.rmtree(folder)


def _wait_for(port: int, started: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and started.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"pgbouncer does not listen on port {port}")
