"""What a Dockerfile says, as far as ours use the language."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

KNOWN = {
    *("FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE"),
    *("STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
}


@dataclass(frozen=True)
class Step:
    keyword: str
    argument: str


@dataclass
class Stage:
    base: str
    name: str | None
    steps: list[Step] = field(default_factory=list)

    def last(self, keyword: str) -> str:
        """The argument of the last step of this keyword."""
        return [step.argument for step in self.steps if step.keyword == keyword][-1]


def stages(text: str) -> list[Stage]:
    """The stages of a Dockerfile, in order. Raises `ValueError` for an instruction that the tests
    would have to leave out."""
    result: list[Stage] = []
    lines = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.M))
    for line in filter(str.strip, lines.splitlines()):
        keyword, _, argument = line.strip().partition(" ")
        if keyword not in KNOWN:
            raise ValueError(f"no test follows the instruction {keyword}")
        if keyword == "FROM":
            base, _, name = argument.partition(" AS ")
            result.append(Stage(base, name or None))
        else:
            result[-1].steps.append(Step(keyword, argument.strip()))
    return result


def sent(context: Path, patterns: str) -> list[Path]:
    """The files of a build context that a .dockerignore of these patterns lets through. As in
    Docker, the last pattern that fits a file, or a directory above it, decides."""
    rules = [
        (line.removeprefix("!"), line.startswith("!"))
        for line in patterns.splitlines()
        if line and not line.startswith("#")
    ]

    @cache
    def deciding(path: PurePosixPath) -> int:
        """The number of the last pattern that fits the path or a directory above it, or -1."""
        above = -1 if path == path.parent else deciding(path.parent)
        numbers = range(len(rules) - 1, above, -1)
        return next((n for n in numbers if _fits(path.as_posix(), rules[n][0])), above)

    def included(path: PurePosixPath) -> bool:
        number = deciding(path)
        return number < 0 or rules[number][1]

    return [
        path
        for path in sorted(context.rglob("*"))
        if path.is_file() and included(PurePosixPath(path.relative_to(context).as_posix()))
    ]


def _fits(name: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatchcase(PurePosixPath(name).name, pattern.removeprefix("**/"))
    same_depth = name.count("/") == pattern.count("/")
    return same_depth and fnmatch.fnmatchcase(name, pattern)
