"""`memservice` in new processes that do not start Python or import the product again.

Both take most of a second of CPU for each process, and a server has four. A fork of a process that
has imported the product needs a tenth of it: see `fork_server`.
"""

from __future__ import annotations

import atexit
import functools
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO

from support.processes import fork_server
from support.processes.command import MEMSERVICE, environment

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
TESTS = Path(__file__).resolve().parents[2]
READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "COVERAGE")
"""Prefixes of variables that an interpreter reads when it starts: a command with such a setting
runs in a new interpreter. Forks read PYTHONPATH, too, but not a `sitecustomize` there."""


class ForkedProcess(fork_server.RemoteFork):
    """One run of `memservice`, with the methods of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], report: int) -> None:
        super().__init__(command, report)
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None

    def communicate(self, timeout: float) -> tuple[str, str]:
        """All output and errors, once the process has ended. Raises `subprocess.TimeoutExpired`."""
        assert self.stdout is not None
        assert self.stderr is not None
        texts = ["", ""]

        def read(number: int, stream: IO[str]) -> None:
            with stream:
                texts[number] = stream.read()

        readers = [
            threading.Thread(target=read, args=stream, daemon=True)
            for stream in enumerate((self.stdout, self.stderr))
        ]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        return texts[0], texts[1]


Process = subprocess.Popen[str] | ForkedProcess


class ForkServer:
    def __init__(self) -> None:
        self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                # -P: the product is the installed one, not that of the folder which tests run in.
                [sys.executable, "-P", fork_server.__file__, str(other.fileno())],
                stdin=subprocess.DEVNULL,
                env=environment(OPENBLAS_NUM_THREADS="1"),
                pass_fds=[other.fileno()],
            )
        self._environment = environment()

    def can_run(self, environment: Mapping[str, str]) -> bool:
        folders = environment.get("PYTHONPATH", "").split(os.pathsep)
        return all(
            self._environment.get(name) == value or name == "PYTHONPATH"
            for name, value in environment.items()
            if name.startswith(READ_AT_START)
        ) and not any(Path(folder, "sitecustomize.py").exists() for folder in folders if folder)

    def start(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> ForkedProcess:
        """`stdin`, `stdout` and `stderr` are descriptors."""
        streams = (stdin, stdout, stderr)
        report = fork_server.send_run(
            self._control, command, folder.resolve(), environment, streams
        )
        return ForkedProcess(command, report)

    def run_script(
        self, script: str, folder: Path, settings: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a script of bash in which `memservice` is a fork."""
        with tempfile.TemporaryDirectory() as programs:
            program = Path(programs, MEMSERVICE.name)
            source = Path(__file__).with_name("forwarding.py").read_text(encoding="utf-8")
            program.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
            program.chmod(0o755)
            path = os.pathsep.join([programs, str(MEMSERVICE.parent), os.environ["PATH"]])
            descriptor = self._control.fileno()
            return subprocess.run(
                ["bash", "-c", script],
                cwd=folder,
                env=environment(**settings, PATH=path, MEMSERVICE_TEST_FORK_SERVER=str(descriptor)),
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )

    def close(self) -> None:
        self._control.close()
        self._process.wait(20)


@functools.cache
def the_fork_server() -> ForkServer:
    """One for this process and its forks."""
    server = ForkServer()
    atexit.register(server.close)
    return server


def start(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output: IO[bytes] | None = None,
    program: Path = MEMSERVICE,
    stdin: int | None = None,
    errors: IO[bytes] | None = None,
) -> Process:
    """`memservice` with the arguments in the folder. Its output and errors go to the file `output`,
    the errors to `errors` if it is set; without a file, the process has them as pipes of text.
    `program` may be the command of another environment, which is not preloaded. `stdin` is a
    descriptor."""
    command = [str(program), *arguments]
    errors = errors or output
    if program == MEMSERVICE and the_fork_server().can_run(environment):
        return _fork(command, folder, environment, output, stdin, errors)
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=output or subprocess.PIPE,
        stderr=errors or subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def start_python(
    script: str,
    *arguments: str,
    folder: Path,
    settings: Mapping[str, str] = NO_SETTINGS,
    stdin: int | None = None,
) -> ForkedProcess:
    """A script of Python that imports the product, and may import `support`, in a process of its
    own. Its output and errors are pipes of text. `stdin` is a descriptor."""
    environ = environment(**{"PYTHONPATH": str(TESTS)} | dict(settings))
    return _fork(["-c", script, *arguments], folder, environ, None, stdin)


def start_reasoner(
    command: Sequence[str], environment: Mapping[str, str]
) -> fork_server.ForkedReasoner:
    """Instead of `memservice.reasoning.apart.reasoner._started`."""
    return fork_server.ForkedReasoner(command, environment, the_fork_server()._control)


def _fork(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output: IO[bytes] | None,
    stdin: int | None,
    errors: IO[bytes] | None = None,
) -> ForkedProcess:
    with open(os.devnull, "rb") as nothing:
        stdin = nothing.fileno() if stdin is None else stdin
        if output is not None:
            streams = (stdin, output.fileno(), (errors or output).fileno())
            return the_fork_server().start(command, folder, environment, *streams)
        (stdout, its_stdout), (stderr, its_stderr) = os.pipe(), os.pipe()
        try:
            process = the_fork_server().start(
                command, folder, environment, stdin, its_stdout, its_stderr
            )
        finally:
            os.close(its_stdout)
            os.close(its_stderr)
    process.stdout = os.fdopen(stdout, encoding="utf-8")
    process.stderr = os.fdopen(stderr, encoding="utf-8")
    return process


def run(
    arguments: Sequence[str],
    folder: Path,
    settings: Mapping[str, str],
    timeout: float = 120,
    stdin: bytes = b"",
) -> subprocess.CompletedProcess[str]:
    """`memservice` with the arguments in the folder, with no settings but these. `timeout` is in
    seconds; `stdin` comes through a pipe.

    Raises `subprocess.TimeoutExpired` after it has killed the command.
    """
    with piped(stdin) as descriptor:
        process = start(arguments, folder, environment(**settings), stdin=descriptor)
    return _completed(process, timeout)


def run_python(
    script: str,
    *arguments: str,
    folder: Path,
    settings: Mapping[str, str] = NO_SETTINGS,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """As `start_python`, once it has ended. `timeout` is in seconds."""
    return _completed(start_python(script, *arguments, folder=folder, settings=settings), timeout)


@contextmanager
def piped(content: bytes) -> Iterator[int]:
    """A descriptor from which the content can be read, to its end."""
    read, write = os.pipe()

    def feed() -> None:
        with suppress(BrokenPipeError), os.fdopen(write, "wb") as file:
            file.write(content)

    threading.Thread(target=feed, daemon=True).start()
    try:
        yield read
    finally:
        os.close(read)


def _completed(process: Process, timeout: float) -> subprocess.CompletedProcess[str]:
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    assert process.returncode is not None
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def run_script(
    script: str, folder: Path, timeout: float = 120, **settings: str
) -> subprocess.CompletedProcess[str]:
    """A script of bash, in which `memservice` is the command. `timeout` is in seconds."""
    return the_fork_server().run_script(script, folder, settings, timeout)
