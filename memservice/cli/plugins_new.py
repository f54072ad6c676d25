"""`memservice plugins new`: the files of a package with one plugin, from the templates beside this
module."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import click
from msgspec import Struct

from memservice.domain.errors import ConfigurationError
from memservice.plugins import GROUP
from memservice.services.private_files import Unwritable

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MAX_NAME = 40


class Kind(Struct, frozen=True):
    """A kind of plugin that has templates."""

    summary: str
    """What the package contains."""
    usage: str
    """How it is used, with the placeholders `name` and `variable`."""
    entry: str = ""
    """What the entry point names inside the module, if not the module."""
    requirements: tuple[str, ...] = ()
    """What the module imports besides memservice."""
    extra: Mapping[str, str] | None = None
    """Further files of the module, each with its template."""


KINDS: Mapping[str, Kind] = {
    "storage": Kind(
        "A storage in memory",
        "memservice plugins check {name} --scratch {name}://",
    ),
    "vector-index": Kind(
        "A vector index in memory",
        "memservice plugins check {name} --scratch {name}",
        requirements=("numpy",),
    ),
    "language-model": Kind(
        "A protocol of language models",
        "LLM_TRANSPORT={name} LLM_{variable}_BASE_URL=http://127.0.0.1:11434/v1 memservice serve",
    ),
    "embedder": Kind(
        "An embedder that counts words",
        "EMBEDDER={name} memservice serve",
        requirements=("numpy",),
    ),
    "reasoner": Kind(
        "A reasoner that keeps sentences word for word",
        "REASONER={name} memservice serve",
    ),
    "webhook-transport": Kind(
        "A webhook transport to folders",
        "PLUGIN_{variable}__DIRECTORY=/var/spool/{name} memservice serve",
    ),
    "hooks": Kind(
        "Event hooks that remove words",
        "PLUGIN_{variable}__WORDS='[\"secret\"]' PLUGINS_REQUIRED={name} memservice serve",
        entry="plugin",
    ),
    "routes": Kind("Routes", "memservice serve  # GET /{name}/version", requirements=("flask",)),
    "console-page": Kind(
        "A page of the console",
        "memservice serve  # /console/plugins/{name}",
        extra={"page.html": "page.html"},
    ),
    "command": Kind("A command", "memservice {name}", requirements=("click",)),
}


def rendered(kind: str, name: str) -> dict[str, str]:
    """The text of each file of the package, by its path. Raises `ConfigurationError` for a name
    that a plugin cannot have."""
    from jinja2 import Environment, StrictUndefined

    _require_name(name)
    chosen = KINDS[kind]
    module = f"memservice_{name.replace('-', '_')}"
    variable = name.replace("-", "_").upper()
    requirements = ("memservice", *chosen.requirements)
    values = {
        "name": name,
        "module": module,
        "distribution": f"memservice-{name}",
        "class": "".join(part.capitalize() for part in name.split("-")),
        "variable": variable,
        "summary": chosen.summary,
        "usage": chosen.usage.format(name=name, variable=variable),
        "entry_point": f"{module}:{chosen.entry}" if chosen.entry else module,
        "requirements": ", ".join(f'"{requirement}"' for requirement in requirements),
    }
    environment = Environment(
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - writes Python and TOML, of checked names
    )
    sources = {
        "pyproject.toml": "common/pyproject.toml",
        "README.md": "common/README.md",
        ".gitignore": "common/gitignore",
        ".github/workflows/test.yml": "common/test.yml",
        f"{module}/__init__.py": f"{kind}/module.py",
        f"{module}/py.typed": "common/py.typed",
        **{f"{module}/{file}": f"{kind}/{source}" for file, source in (chosen.extra or {}).items()},
        f"tests/test_{module}.py": f"{kind}/test.py",
    }
    texts = {
        path: environment.from_string(_text(source)).render(values)
        for path, source in sources.items()
    }
    return {**texts, "LICENSE": _text("common/LICENSE")}


def _text(source: str) -> str:
    """The text of one template. Its file has a suffix, so that no tool takes it for what it will
    be."""
    return (files("memservice.cli") / "plugin_templates" / f"{source}.txt").read_text("utf-8")


def write(kind: str, name: str, directory: Path) -> list[Path]:
    """Write the package into that directory, which may exist if it is empty. Returns the paths of
    the files. Raises `ConfigurationError` for a directory with files."""
    texts = rendered(kind, name)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigurationError(
            f"{directory} is not an empty directory: name another with --directory"
        )
    written = []
    for path, text in texts.items():
        file = directory / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Unwritable(f"{file} cannot be written: {error.strerror}") from error
        written.append(file)
    return written


def _require_name(name: str) -> None:
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise ConfigurationError(
            f"{name!r} cannot be the name of a plugin: write at most {MAX_NAME} lower-case "
            "letters, digits and single dashes, a letter first"
        )
    if keyword.iskeyword(name):
        raise ConfigurationError(f"{name!r} is a word of Python: choose another name")
    taken = sorted({entry.name for entry in entry_points(group=GROUP)})
    if name in taken:
        raise ConfigurationError(
            f"an installed plugin is called {name!r} already; taken: {', '.join(taken)}"
        )


@click.command("new")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write the package (default: memservice-NAME in the working directory).",
)
def new(kind: str, name: str, directory: Path | None) -> None:
    """Write a package with a working plugin of this KIND, called NAME, and its tests.

    The package has a module, contract tests, a README, the licence Apache-2.0 and a workflow for
    GitHub Actions. It opens no connection and reads no settings.
    """
    target = directory or Path(f"memservice-{name}")
    for file in write(kind, name, target):
        click.echo(file)
    click.echo(f"\nNext: cd {target} && pip install -e '.[test]' && pytest")
