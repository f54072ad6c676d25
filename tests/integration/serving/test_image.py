"""The image of the Dockerfile, built and started without a container engine.

Its steps run in a root file system of their own, and its entry point runs there as the first
process, as the image's user.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.containers.dockerfile import Stage, sent, stages
from support.containers.root_filesystem import (
    RootFilesystem,
    command_of,
    health_check_of,
    missing,
)
from support.redis_server import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("image"),
    pytest.mark.skipif(missing() is not None, reason=missing() or "not skipped"),
]
START_SECONDS = 60.0
STOP_SECONDS = 45.0
USER = 10001


@pytest.fixture(scope="module")
def last_stage(root: Path) -> Stage:
    text = (root / "config/memservice_deployment/docker/Dockerfile").read_text(encoding="utf-8")
    return stages(text)[-1]


@pytest.fixture(scope="module")
def image(root: Path, tmp_path_factory: pytest.TempPathFactory) -> RootFilesystem:
    folder = tmp_path_factory.mktemp("image")
    folder.chmod(0o755)
    text = (root / "config/memservice_deployment/docker/Dockerfile").read_text(encoding="utf-8")
    built: dict[str, RootFilesystem] = {}
    for number, stage in enumerate(stages(text)):
        filesystem = RootFilesystem(folder / str(number))
        filesystem.build(stage, root, built)
        built[stage.name or str(number)] = filesystem
    return filesystem


class Container:
    """`docker run`, with a port of its own on the loopback address."""

    def __init__(self, image: RootFilesystem, stage: Stage) -> None:
        self.port = str(free_port())
        self.process = image.start(command_of(stage), HOST="127.0.0.1", PORT=self.port)
        self.lines: list[str] = []
        self._listens = threading.Event()
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in (self.process.stdout, self.process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._listens.wait(0.1):
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output

    def ask(self, key: str | None = None) -> int:
        """The status of a request that needs a key."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v3/workspaces/list",
            data=b"{}",
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {key}"} if key else {}),
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def first_process(self) -> int:
        """The number outside of the process that is number 1 inside."""
        pid = self.process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return int(child)

    def stop(self) -> int:
        """As `docker stop` does: SIGTERM to the first process. The status."""
        with contextlib.suppress(ProcessLookupError, ValueError, FileNotFoundError):
            os.kill(self.first_process(), signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            for reader in self._readers:
                reader.join(30)
            for stream in (self.process.stdout, self.process.stderr):
                assert stream is not None
                stream.close()

    def _read(self, stream: object) -> None:
        for line in stream:  # type: ignore[attr-defined]
            self.lines.append(line)
            if line.startswith("listening "):
                self._listens.set()


@contextmanager
def running(image: RootFilesystem, stage: Stage) -> Iterator[Container]:
    container = Container(image, stage)
    try:
        container.wait_until_it_listens()
        yield container
    finally:
        status = container.stop()
    assert status == 0, container.output


def admin_keys(output: str) -> list[str]:
    return re.findall(r"^admin key +(\S+)$", output, re.M)


@pytest.mark.heavy
def test_the_first_start_makes_a_secret_and_prints_one_admin_key(
    image: RootFilesystem, last_stage: Stage
) -> None:
    with running(image, last_stage) as container:
        (key,) = admin_keys(container.output)
        assert container.ask() == 401
        assert container.ask(key) == 200
        status = Path(f"/proc/{container.first_process()}/status").read_text(encoding="utf-8")
        assert re.search(rf"^Uid:\t{USER}\t{USER}", status, re.M)
        image.check(health_check_of(last_stage), PORT=container.port)
        # What `docker exec` does: no entry point, but the same directory and environment.
        assert "made at the first start" in image.check(["memservice", "keys", "list"])
    (secret,) = re.findall(r"^AUTH_JWT_SECRET=(\S{43})\n", image.path("/data/.env").read_text())
    for name in (".env", "memservice.db"):
        file = image.path(f"/data/{name}").stat()
        assert (file.st_uid, file.st_mode & 0o077) == (USER, 0), name
    with running(image, last_stage) as container:
        assert admin_keys(container.output) == []
        assert container.ask(key) == 200
    assert image.path("/data/.env").read_text(encoding="utf-8").count(secret) == 1


@pytest.mark.heavy
def test_every_extra_of_the_image_is_installed(image: RootFilesystem) -> None:
    result = image.check(["memservice", "plugins"])
    assert "failed" not in result
    assert {"postgres", "qdrant", "minilm", "mcp"} <= set(result.split())


def test_the_context_contains_what_is_built_and_no_secrets(root: Path, tmp_path: Path) -> None:
    ignored = (root / ".dockerignore").read_text(encoding="utf-8")
    docker = root / "config/memservice_deployment/docker"
    assert ignored == (docker / ".dockerignore").read_text(encoding="utf-8")
    for name in ("setup.cfg", "README.md", "plugins/x/a.py", "memservice-0.1-py3-none-any.whl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in (".env", "plugins/.env", "memservice.toml", "memservice.db", "memservice/a.db-wal"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").touch()
    assert [str(path.relative_to(tmp_path)) for path in sent(tmp_path, ignored)] == [
        "README.md",
        "memservice-0.1-py3-none-any.whl",
        "plugins/x/a.py",
        "setup.cfg",
    ]


@pytest.mark.heavy
def test_a_volume_of_another_user_is_explained(image: RootFilesystem, last_stage: Stage) -> None:
    data = image.path("/data")
    data.chmod(0o555)
    try:
        status, _, log = image.run(command_of(last_stage), HOST="127.0.0.1")
    finally:
        data.chmod(0o700)
    assert status == 1
    assert f"user {USER} cannot write to /data. Make it the owner of the volume: chown" in log
