"""`memservice serve`: the whole service in one command."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import click

from memservice.api import exposure
from memservice.cli.options import State
from memservice.domain.errors import ConfigurationError
from memservice.reasoning import choice
from memservice.reasoning import warnings as model_warnings
from memservice.serving.forks import importing, release_libraries, use_less_memory
from memservice.serving.logs import set_up_logging
from memservice.serving.metrics import shared_values
from memservice.serving.preloading import preload_server, preload_storage
from memservice.serving.preparation import Preparation
from memservice.serving.supervisor import Plan, Supervisor, listen
from memservice.settings import Settings, data_directory
from memservice.settings.service import Server
from memservice.spi.capabilities import Capability

if TYPE_CHECKING:
    from memservice.runtime import Runtime


@click.command()
@click.option("--host", help="Address to listen on (HOST, default 127.0.0.1).")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on (PORT, default 8000); 0 for any free port.",
)
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Number of server processes (WORKERS)."
)
@click.option(
    "--threads", type=click.IntRange(2, 1024), help="Threads of each server process (THREADS)."
)
@click.option(
    "--worker/--no-worker",
    "with_worker",
    default=True,
    help="Also run background work (default), or only serve, beside `memservice worker`.",
)
@click.pass_obj
def serve(
    state: State,
    host: str | None,
    port: int | None,
    workers: int | None,
    threads: int | None,
    with_worker: bool,
) -> None:
    """Serve the API and run background work."""
    set_up_logging(state.settings)
    server = state.settings.server
    server = replace(
        server,
        host=host or server.host,
        port=server.port if port is None else port,
        workers=workers or server.workers,
        threads=threads or server.threads,
    )
    exposure.require_decision(state.settings, server.host)
    provider = state.plugins.storage(state.settings.db.connection_uri)
    if Capability.SHARED not in provider.capabilities:
        raise ConfigurationError(
            f"The storage {provider.name!r} exists in one process only, but `memservice "
            "serve` runs several. "
            "Set DB_CONNECTION_URI to a storage that processes can share, for instance "
            f"{Settings().db.connection_uri}."
        )
    _check_providers(state)
    listener = listen(server.host, server.port)
    with shared_values(state.settings) as values:
        _run(state, server, listener, with_worker, values)


def _run(
    state: State,
    server: Server,
    listener: socket.socket,
    with_worker: bool,
    values: Mapping[str, str],
) -> NoReturn:
    server = replace(server, port=listener.getsockname()[1])
    url = f"http://{server.host}:{server.port}"
    use_less_memory()
    with importing():
        preload_storage(state.settings, state.plugins)
    plan = Plan(
        workers=server.workers,
        threads=server.threads,
        graceful_seconds=server.graceful_timeout_seconds,
        work=_work if with_worker else None,
        # The limit of concurrent chats depends on the number of threads, and the accepted host
        # names on the address. One-time links of the console begin with host and port.
        environment=state.environment()
        | {"THREADS": str(server.threads), "HOST": server.host, "PORT": str(server.port)},
        server_environment=values,
    )
    supervisor = Supervisor(listener, plan)
    supervisor.await_signals()
    # An error is raised in the child, and reported there. The imports take longer than this.
    preparation = Preparation(lambda: _prepared(state, server, with_worker))
    with importing():
        preload_server()
    supervisor.start()
    try:
        release_libraries()  # a fork maps only what it reads itself
        lines = preparation.lines()
    except BaseException:
        supervisor.abort()
        raise
    if lines is None:
        supervisor.abort()
        sys.exit(1)
    for line in lines:
        click.echo(line)
    for line in (
        *state.settings.notes,
        *exposure.warnings(state.settings, server.host),
        *model_warnings.warnings(state.settings, state.plugins),
    ):
        click.echo(f"WARNING     {line}", err=True)
    click.echo(f"listening   {url}   (API documentation: {url}/docs, schema: {url}/openapi.json)")
    sys.stdout.flush()
    sys.exit(supervisor.run())


def _work() -> None:
    """`memservice worker`, in a process that was forked for it."""
    from memservice.cli import main

    sys.argv = ["memservice", "worker", "--embedded"]
    main()


def _prepared(state: State, server: Server, with_worker: bool) -> list[str]:
    """Create or upgrade the store, and see that everything it needs can be opened. Returns the
    lines of the banner."""
    from memservice.compose import open_runtime
    from memservice.services import store_compatibility
    from memservice.serving.banner import banner

    data_directory.create(state.settings.data_directory)
    runtime = open_runtime(state.settings, plugins=state.plugins)
    try:
        runtime.storage.migrate()
        store_compatibility.initialise(runtime)
        # Open reasoners here too, so that one that cannot start is reported now and not by a
        # worker that dies repeatedly.
        for name in set(runtime.reasoners.values()):
            runtime.reasoner(name)
        return [*banner(runtime, with_worker), *_first_link(runtime, server)]
    finally:
        runtime.close()


def _first_link(runtime: Runtime, server: Server) -> list[str]:
    """While the console has no member: a link that makes the first owner."""
    from memservice.cli.operator import OPERATOR
    from memservice.services.members import links

    settings = replace(runtime.settings, server=server)
    if not (settings.auth.use_auth and settings.console.enabled):
        return []
    new_link = links.first_set_up(runtime, OPERATOR)
    if new_link is None:
        return []
    return [
        f"console     {new_link.url(settings)}",
        "            (makes the first owner of the console: once, and within an hour)",
    ]


def _check_providers(state: State) -> None:
    """Raise `ConfigurationError` for an unknown provider, or a plugin that prevents a start, before
    any process starts."""
    state.plugins.check()
    settings = state.settings
    state.plugins.embedder(settings.app.embedder)
    if settings.vector_store.type:
        state.plugins.vector_index(settings.vector_store.type)
    models = choice.models_of(settings)
    for task, name in choice.choose(settings, state.plugins).items():
        if name == choice.LLM:
            state.plugins.language_model(models[task].transport)
        else:
            state.plugins.reasoner(name)
