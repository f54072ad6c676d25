"""PostgreSQL's own programs `pg_dump` and `pg_restore`, as found on the path."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from psycopg.conninfo import make_conninfo

from memservice.domain.errors import ConfigurationError, MemserviceError

MAX_MESSAGE = 1_000
MAX_LINES = 20

_TABLE = re.compile(r'(?:contents of|data for) table "[^".]+\."?([^".]+)"')


class ProgramFailed(MemserviceError):
    """A program of PostgreSQL failed. The message is the program's own."""


def require(name: str, server_version: int | None = None) -> str:
    """The path of a program. Raises `ConfigurationError` if it is not installed, or older than the
    server, whose major version is `server_version`: it could not read that server."""
    path = shutil.which(name)
    if path is None:
        suffix = "" if server_version is None else f"-{server_version}"
        raise ConfigurationError(
            f"the program {name} is not on the PATH. Install the client programs of PostgreSQL (on "
            f"Debian: apt install postgresql-client{suffix})"
        )
    output = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)", output)
    version = int(match[1]) if match else 0
    if server_version is not None and version < server_version:
        raise ConfigurationError(
            f"{path} is of version {version}, but the server is of version {server_version}, which "
            f"it cannot read. Install {name} {server_version} or newer (on Debian: apt install "
            f"postgresql-client-{server_version}), and put it first on the PATH"
        )
    return path


@contextmanager
def connection(arguments: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """The option `--dbname`, and the environment of a program that connects. The password is in a
    private file, because others can read command lines and environments."""
    parameters = {name: value for name, value in arguments.items() if value is not None}
    password = parameters.pop("password", None)
    environment = {**os.environ, "PGAPPNAME": "memservice backup", "LC_ALL": "C"}
    with tempfile.TemporaryDirectory() as folder:
        if password is not None:
            file = Path(folder, "passwords")
            file.touch(mode=0o600)
            escaped = re.sub(r"([\\:])", r"\\\1", str(password))
            file.write_text(f"*:*:*:*:{escaped}\n", encoding="utf-8")
            environment["PGPASSFILE"] = str(file)
        yield f"--dbname={make_conninfo(**parameters)}", environment


@contextmanager
def running(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[IO[bytes]]:
    """Run a program, whose output the caller reads to its end. Raises `ProgramFailed`. What it says
    on standard error is kept in a file, so that it never waits for a reader."""
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,
        )
        try:
            assert process.stdout is not None
            yield process.stdout
            status = process.wait()
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if status != 0:
            messages.seek(0)
            text = messages.read().decode(errors="replace").strip()
            raise ProgramFailed(f"{Path(command[0]).name} failed: {text[-MAX_MESSAGE:]}")


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """The output of a program. Raises `ProgramFailed`."""
    with running(command, environment) as output:
        return output.read().decode(errors="replace")


def run_by_table(
    command: Sequence[str],
    environment: Mapping[str, str],
    counts: Mapping[str, int],
    progress: Callable[[int, int], None],
) -> None:
    """Run `pg_dump` or `pg_restore`, and report the rows of the tables that are done, by `counts`.
    Raises `ProgramFailed`."""
    row_count, total, current = 0, sum(counts.values()), 0
    progress(0, total)
    last = deque[str](maxlen=MAX_LINES)
    process = subprocess.Popen(
        [*command, "--verbose"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            last.append(line)
            table = _TABLE.search(line)
            if table is not None:
                row_count, current = row_count + current, counts.get(table[1], 0)
                progress(min(row_count, total), total)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
    if status != 0:
        text = "".join(last).strip()[-MAX_MESSAGE:]
        raise ProgramFailed(f"{Path(command[0]).name} failed: {text}")
    progress(total, total)
