"""`memservice init`: files to start an installation with, from the templates of
`memservice_deployment`."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import click
from msgspec import Struct

from memservice.domain.installation import installer, wheel_command
from memservice.services.private_files import replacing

COMMAND_IN_UNITS = "/opt/memservice/bin/memservice"
"""The command as the templates name it."""
HIDDEN_BY_UNITS = ("/home", "/root", "/run/user")
"""By `ProtectHome=yes`."""


class _File(Struct, frozen=True):
    """One file to write."""

    name: str
    template: str
    fill: Callable[[str], str] = str
    is_private: bool = False


def _with_secret(text: str) -> str:
    """The settings with a new secret, which signs keys."""
    return text.replace("# AUTH_JWT_SECRET=\n", f"AUTH_JWT_SECRET={secrets.token_urlsafe(32)}\n", 1)


def _with_command(text: str) -> str:
    """A unit that runs this installation."""
    return text.replace(COMMAND_IN_UNITS, str(_command()))


def _command() -> Path:
    return Path(sys.executable).with_name("memservice")


_ENV = _File(".env", "example.env", _with_secret, is_private=True)
SHAPES = {
    "laptop": (_File("memservice.toml", "default.toml"),),
    "team": (_File("memservice.toml", "team.toml"), _ENV),
    "large": (_File("memservice.toml", "large.toml"), _ENV),
    "systemd": (
        _File("memservice.service", "systemd/memservice.service", _with_command),
        _File("memservice-worker@.service", "systemd/memservice-worker@.service", _with_command),
        _File("memservice.toml", "default.toml"),
        _File("memservice.env", "example.env", _with_secret, is_private=True),
    ),
    "docker": (
        _File("Dockerfile", "docker/Dockerfile"),
        _File(".dockerignore", "docker/.dockerignore"),
        _File("compose.yaml", "docker/compose.yaml"),
        _File("prometheus.yml", "docker/prometheus.yml"),
        _File("alerts.yml", "docker/alerts.yml"),
        _File(".env", "docker/compose.env", is_private=True),
    ),
}


@click.command()
@click.option(
    "--directory",
    "-d",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to write the files (default: the working directory).",
)
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.argument("shape", type=click.Choice(list(SHAPES)))
def init(directory: Path, force: bool, shape: str) -> None:
    """Write the files of an installation: settings with a new secret, systemd units, or containers.

    Prints what to do next. Starts nothing and installs nothing.
    """
    files = SHAPES[shape]
    existing = [file.name for file in files if (directory / file.name).exists()]
    if existing and not force:
        raise click.ClickException(
            f"{', '.join(existing)} in {directory.absolute()} would be replaced: name another "
            "--directory, or use --force"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for file in files:
        _write(directory / file.name, file)
        click.echo(f"wrote {directory / file.name}")
    click.echo(f"\nnext:\n{_next_steps(shape)}", nl=False)
    hidden = next((home for home in HIDDEN_BY_UNITS if _command().is_relative_to(home)), None)
    if shape == "systemd" and hidden is not None:
        click.echo(
            f"WARNING: the units hide {hidden} from the service, and {_command()} is there: "
            f"install memservice elsewhere, for instance as {COMMAND_IN_UNITS}",
            err=True,
        )


def _next_steps(shape: str) -> str:
    text = _template("next-steps.txt").partition(f"[{shape}]\n")[2].partition("\n[")[0]
    return text.replace("INSTALL", installer()).replace("WHEEL", wheel_command())


def _template(name: str) -> str:
    return resources.files("memservice_deployment").joinpath(name).read_text(encoding="utf-8")


def _write(path: Path, file: _File) -> None:
    content = file.fill(_template(file.template)).encode()
    with replacing(path) as new:
        new.write(content)
    if not file.is_private:
        path.chmod(0o644)
