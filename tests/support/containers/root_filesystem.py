"""The root file system of an image, and processes in it, without a container engine.

Each stage is a directory in which the steps of the Dockerfile run after chroot, in mount and
process namespaces of their own, so paths and users are those of a container. The base image is this
machine's own system. The Python packages that memservice needs come from the environment of the
tests: nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.containers.dockerfile import Stage, sent

SYSTEM = ("/usr", "/dev")
LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
ETC = ("group", "gshadow", "login.defs", "passwd", "shadow", "ld.so.cache", "localtime")
PACKAGES = "/opt/packages-of-the-tests"
SECONDS = 100.0

_ENTER = """
set -eu
mount --make-rprivate /
while read -r source target; do
    mount --rbind "$source" "$0$target"
done <"$0/.mounts"
mount -t proc proc "$0/proc"
exec "$@"
"""


def missing() -> str | None:
    """What this machine lacks for it; None if nothing."""
    programs = [name for name in ("unshare", "mount", "chroot") if shutil.which(name) is None]
    if programs:
        return f"needs the programs {', '.join(programs)}"
    if os.geteuid() != 0:
        return "needs root, since an image has files and processes of other users"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "mount", "--make-rprivate", "/"],
        capture_output=True,
        check=False,
        timeout=10,
    )
    return None if tried.returncode == 0 else "needs mount namespaces (CAP_SYS_ADMIN)"


class RootFilesystem:
    """One stage of an image, in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self.arguments: dict[str, str] = {}
        self.user = "0:0"
        self.directory = "/"
        folder.mkdir()
        folder.chmod(0o755)
        self._lay_base()

    def build(self, stage: Stage, context: Path, built: Mapping[str, RootFilesystem]) -> None:
        """Do the steps of a stage; `built` are the stages before it, by name."""
        for step in stage.steps:
            match step.keyword:
                case "ARG":
                    name, _, default = step.argument.partition("=")
                    self.arguments[name] = default
                case "ENV":
                    pairs = (pair.partition("=") for pair in shlex.split(step.argument))
                    self.environment |= {name: value for name, _, value in pairs}
                case "USER":
                    self.user = step.argument
                case "WORKDIR":
                    self.directory = step.argument
                    self.path(step.argument).mkdir(parents=True, exist_ok=True)
                case "COPY":
                    self._copy(shlex.split(step.argument), context, built)
                case "RUN":
                    self.check(["sh", "-c", step.argument])
                    self._share_packages()

    def path(self, name: str) -> Path:
        """Where a file of the image is here."""
        return self.folder / name.lstrip("/")

    def start(self, command: Sequence[str], **settings: str) -> subprocess.Popen[str]:
        """A process in the image, as its user and in its directory. It is the first process of its
        container."""
        environment = self._base_environment() | self.environment | settings
        cd = f'cd {shlex.quote(self.directory)} && exec "$@"'
        return subprocess.Popen(
            [
                *("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER),
                *(str(self.folder), str(shutil.which("chroot")), f"--userspec={self.user}"),
                *("--groups=", str(self.folder)),
                *("sh", "-c", cd, "sh", *command),
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def check(self, command: Sequence[str], **settings: str) -> str:
        """The output of a command in the image. Raises `RuntimeError` if it fails."""
        status, output, log = self.run(command, **self.arguments | settings)
        if status:
            raise RuntimeError(f"{shlex.join(command)}: {output}{log}")
        return output

    def run(self, command: Sequence[str], **settings: str) -> tuple[int, str, str]:
        """The status, output and log of a command in the image."""
        with self.start(command, **settings) as process:
            try:
                output, log = process.communicate(timeout=SECONDS)
            finally:
                process.kill()
        return process.returncode, output, log

    def _lay_base(self) -> None:
        mounts = {source: source for source in (*SYSTEM, sys.base_prefix)}
        for number, packages in enumerate(_packages()):
            mounts[str(packages)] = f"{PACKAGES}/{number}"
        for target in (*mounts.values(), "/proc", "/tmp", "/etc"):
            self.path(target).mkdir(parents=True, exist_ok=True)
        self.path("/tmp").chmod(0o1777)
        for name in LINKS:
            if Path(name).is_symlink():
                self.path(name).symlink_to(os.readlink(name))
        for name in ETC:
            if (source := Path("/etc") / name).exists():
                shutil.copy2(source, self.path("/etc"), follow_symlinks=True)
        lines = "".join(f"{source} {target}\n" for source, target in mounts.items())
        (self.folder / ".mounts").write_text(lines, encoding="utf-8")

    def _base_environment(self) -> dict[str, str]:
        return {
            "PATH": f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of --build-isolation
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _share_packages(self) -> None:
        """An environment that a step has made finds the packages of the tests."""
        listed = "".join(f"{PACKAGES}/{number}\n" for number, _ in enumerate(_packages()))
        for config in self.folder.glob("opt/*/pyvenv.cfg"):
            (site,) = config.parent.glob("lib/python*/site-packages")
            (site / "packages-of-the-tests.pth").write_text(listed, encoding="utf-8")

    def _copy(
        self, words: Sequence[str], context: Path, built: Mapping[str, RootFilesystem]
    ) -> None:
        *sources, target = [word for word in words if not word.startswith("--")]
        options = [word for word in words if word.startswith("--")]
        if not options:
            assert sources == ["."], "the whole context"
            ignored = (context / ".dockerignore").read_text(encoding="utf-8")
            for file in sent(context, ignored):
                copy = self.path(self.directory) / target / file.relative_to(context)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy)
            return
        (option,) = options
        stage = built[option.removeprefix("--from=")]
        for source in sources:
            shutil.copytree(stage.path(source), self.path(target), symlinks=True)


def command_of(stage: Stage) -> list[str]:
    """The command that a container of this stage runs."""
    entry, command = (json.loads(stage.last(name)) for name in ("ENTRYPOINT", "CMD"))
    return [*entry, *command]


def health_check_of(stage: Stage) -> list[str]:
    match = re.search(r"CMD (\[.*\])$", stage.last("HEALTHCHECK"))
    assert match is not None
    command: list[str] = json.loads(match[1])
    return command


def _packages() -> list[Path]:
    """The directories with packages that this Python finds."""
    folders = [Path(entry) for entry in sys.path if entry.endswith("-packages")]
    return [path for path in dict.fromkeys(folders) if path.is_dir()]
