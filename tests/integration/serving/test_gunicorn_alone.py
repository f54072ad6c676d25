"""gunicorn without `memservice serve`, with `gunicorn.conf.py`: it serves, counts and
drains."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from memservice.testing import failpoints
from support.processes import preloaded
from support.processes.command import environment
from support.processes.gate import FOLDER, STORE, Gates
from support.processes.processes import eventually, python_path

pytestmark = pytest.mark.e2e


def ask(url: str, data: bytes | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.status, answer.read().decode()


def answers(url: str) -> bool:
    try:
        return ask(url)[0] == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def test_plain_gunicorn_serves_counts_and_drains(root: Path, tmp_path: Path, gates: Gates) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    site = failpoints.announce(tmp_path / "site", gate="support.processes.gate")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    more = {
        "METRICS_ENABLED": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": python_path(site),
        FOLDER: str(gates.folder),
        "TMPDIR": str(temporary),
    }
    environ = environment(PORT=port, WORKERS="2", THREADS="4") | more
    preloaded.run(["db", "upgrade"], tmp_path, {}).check_returncode()
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "--config",
        str(root / "config" / "memservice_deployment" / "gunicorn.conf.py"),
        "memservice.serving.wsgi:app",
    ]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True
    )
    try:
        eventually(lambda: answers(f"{url}/health"), what="it answers")
        assert "memservice-metrics-" in " ".join(path.name for path in temporary.iterdir())
        assert ask(f"{url}/metrics")[0] == 200
        outcome: list[int] = []
        ask(f"{url}/v3/workspaces", b'{"id": "w"}')
        ask(f"{url}/v3/workspaces/w/sessions", b'{"id": "s"}')
        message = b'{"messages": [{"content": "I speak slowly.", "peer_id": "alice"}]}'
        gates.close(STORE)
        request = threading.Thread(
            target=lambda: outcome.append(
                ask(f"{url}/v3/workspaces/w/sessions/s/messages", message)[0]
            )
        )
        request.start()
        eventually(lambda: gates.waiting(STORE) is not None, what="the request is in hand")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None, "it waits for the request"
        gates.open(STORE)
        request.join(20)
        assert outcome == [201]
        _, log = process.communicate(timeout=20)
        assert (process.returncode, "Traceback" in log) == (0, False), log
        assert [
            path.name for path in temporary.iterdir() if "memservice-metrics-" in path.name
        ] == []
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.mark.heavy
def test_plain_gunicorn_ends_without_a_traceback_if_no_process_can_start(
    root: Path, tmp_path: Path
) -> None:
    """Processes fail at the same time: one more while gunicorn stops because of the first."""
    command = [
        *(sys.executable, "-m", "gunicorn", "--config"),
        str(root / "config" / "memservice_deployment" / "gunicorn.conf.py"),
        "memservice.serving.wsgi:app",
    ]
    settings = environment(
        PORT="0", WORKERS="4", DB_CONNECTION_URI=f"sqlite:///{tmp_path}/absent/m.db"
    )
    result = subprocess.run(
        command, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 4, result.stderr
    assert "mkdir -p" in result.stderr
    assert "Traceback" not in result.stderr, result.stderr
