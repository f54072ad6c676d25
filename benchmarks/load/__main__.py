"""Load over HTTP: `python -m benchmarks.load run --db URI` or `--url URL`, and `compare A B`.
How costs grow with the store: `growth --db URI`, and with other workspaces: `tenants --db URI`. How
long background work takes: `background --db URI`.

With `--db`, a server is started on that store, which is empty or was seeded by an earlier run. With
`--url`, a running server of this API is used, whatever its implementation; `--server` and
`--database` name the processes whose CPU is measured.

With `--db URI --in-process`, a server only seeds the store. The requests are then answered in this
process, without sockets, and only CPU time is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from benchmarks.load import (
    background,
    copies,
    growth,
    in_process,
    report,
    servers,
    store_files,
    summary,
    tenants,
)
from benchmarks.load.data import Size, Stored, seed
from benchmarks.load.measuring import Plan, Run, Target, machine, measure, memory
from benchmarks.load.scenarios import Scenario, scenarios
from memservice.app import create_app

DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
"""Scheme of a URI → name in the title of a chart."""


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure")
    where = run.add_mutually_exclusive_group(required=True)
    where.add_argument("--db", help="URI of a store")
    where.add_argument("--url", help="URL of a running server")
    run.add_argument("--token", help="key, if the server requires one")
    run.add_argument("--server", type=int, help="process id of the server (with --url)")
    run.add_argument("--database", type=int, help="process id of the database's server")
    run.add_argument("--workers", type=int, default=2, help="processes of the started server")
    run.add_argument("--option", action="append", default=[], help="NAME=VALUE, a setting")
    run.add_argument(
        "--dimensions", type=int, help="vectors of a remote embedder, which is imitated (with --db)"
    )
    run.add_argument(
        "--in-process", action="store_true", help="without sockets (with --db): CPU time only"
    )
    run.add_argument(
        "--requests",
        type=int,
        default=in_process.Plan().requests,
        help="of each scenario and round (with --in-process)",
    )
    size = Size()
    run.add_argument("--medium", type=int, default=size.medium, help="messages of one workspace")
    run.add_argument("--large", type=int, default=size.large, help="messages of another workspace")
    run.add_argument("--conclusions", type=int, default=size.conclusions)
    plan = Plan()
    run.add_argument("--connections", default=",".join(map(str, plan.connections)))
    run.add_argument("--seconds", type=float, default=plan.seconds, help="of each cell and round")
    run.add_argument(
        "--rounds", type=int, help=f"{plan.rounds}, or {in_process.Plan().rounds} with --in-process"
    )
    run.add_argument("--scenarios", help="comma-separated names; all by default")
    run.add_argument("--save", type=Path, help="write the figures as JSON")
    run.add_argument("--chart", type=Path, help="write a chart as SVG")
    grown = commands.add_parser("growth", help="measure an empty store while it grows")
    grown.add_argument("--sizes", default=",".join(map(str, growth.SIZES)), help="of the workspace")
    grown.add_argument("--chart", type=Path, help="write a chart as SVG")
    crowded = commands.add_parser("tenants", help="measure the store of `growth` among tenants")
    crowded.add_argument("--tenants", type=int, default=100, help="number of further workspaces")
    crowded.add_argument("--size", type=int, default=90_000, help="messages of each tenant")
    for each in (grown, crowded):
        each.add_argument("--db", required=True, help="URI of the store")
        each.add_argument("--option", action="append", default=[], help="NAME=VALUE, a setting")
        each.add_argument("--requests", type=int, default=20, help="of each request and round")
        each.add_argument("--rounds", type=int, default=in_process.Plan().rounds)
        each.add_argument("--save", type=Path, help="write the figures as JSON")
    drained = commands.add_parser("background", help="measure background work with a model")
    drained.add_argument("--db", required=True, help="URI of the store")
    drained.add_argument("--option", action="append", default=[], help="NAME=VALUE, a setting")
    drained.add_argument("--messages", type=int, default=2_000)
    drained.add_argument("--sessions", type=int, default=10)
    drained.add_argument("--delays", default="0,200", help="milliseconds of the model's answers")
    drained.add_argument("--save", type=Path, help="write the figures as JSON")
    compare = commands.add_parser("compare", help="compare two saved runs")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    parsed = parser.parse_args(argv)
    if parsed.command == "run" and parsed.in_process and not parsed.db:
        parser.error("--in-process needs --db")
    return parsed


def chosen(all_scenarios: Sequence[Scenario], names: str | None) -> list[Scenario]:
    """The scenarios with these comma-separated names. Raises SystemExit for an unknown name."""
    requested = names.split(",") if names else [scenario.name for scenario in all_scenarios]
    by_name = {scenario.name: scenario for scenario in all_scenarios}
    unknown = [name for name in requested if name not in by_name]
    if unknown:
        raise SystemExit(f"unknown scenarios: {', '.join(unknown)}; known: {', '.join(by_name)}")
    return [by_name[name] for name in requested]


def run(parsed: argparse.Namespace) -> Run:
    size = Size(parsed.medium, parsed.large, parsed.conclusions)
    options = dict(option.split("=", 1) for option in parsed.option)
    if parsed.in_process:
        return run_in_process(parsed, size, options)
    rounds = parsed.rounds or Plan().rounds
    plan = Plan([int(c) for c in parsed.connections.split(",")], parsed.seconds, rounds)
    with ExitStack() as stack:
        if parsed.dimensions:
            options = stack.enter_context(servers.embedder(parsed.dimensions)) | options
        server = servers.Server(parsed.url or "", parsed.server)
        database = parsed.database
        if parsed.db:
            server = stack.enter_context(servers.service(parsed.db, options, parsed.workers))
            database = database or servers.postmaster(parsed.db)
        target = Target(server.url, server.pid, database, parsed.token)
        about = {**machine(), "start_seconds": round(server.start_seconds, 2), "options": options}
        about["memory_at_start"] = memory(target)
        stored = seeded(parsed, server.url, size, options)
        bare = stack.enter_context(servers.floor())
        cells = measure(
            target,
            Target(bare.url, bare.pid),
            chosen(scenarios(stored), parsed.scenarios),
            plan,
            lambda line: print(line, file=sys.stderr),
        )
        about |= {"size": [size.medium, size.large, size.conclusions]}
        about["memory_after"] = memory(target)
    return Run(about, cells)


def run_in_process(parsed: argparse.Namespace, size: Size, options: Mapping[str, str]) -> Run:
    with ExitStack() as stack:
        if parsed.dimensions:
            options = {**stack.enter_context(servers.embedder(parsed.dimensions)), **options}
        with servers.service(parsed.db, options, 1) as server:
            stored = seeded(parsed, server.url, size, options)
        runtime = stack.enter_context(servers.opened(parsed.db, options))
        plan = in_process.Plan(parsed.requests, parsed.rounds or in_process.Plan().rounds)
        cells = in_process.measure(
            create_app(runtime.settings, runtime),
            servers.hello(),
            parsed.database or servers.postmaster(parsed.db),
            chosen(scenarios(stored), parsed.scenarios),
            plan,
            parsed.token,
            lambda line: print(line, file=sys.stderr),
        )
    about = {**machine(), "in_process": True, "options": dict(options)}
    return Run({**about, "size": [size.medium, size.large, size.conclusions]}, cells)


def run_growth(parsed: argparse.Namespace) -> list[growth.Point]:
    options = growth.OPTIONS | dict(option.split("=", 1) for option in parsed.option)

    def progress(line: str) -> None:
        print(line, file=sys.stderr)

    def read_files() -> None:
        total = store_files.read_through(store_files.files_of(parsed.db))
        progress(f"{total // 2**20:,} MiB of the store's files read")

    with servers.opened(parsed.db, options, migrate=True) as runtime:
        return growth.measure(
            create_app(runtime.settings, runtime),
            servers.hello(),
            servers.postmaster(parsed.db),
            [int(size) for size in parsed.sizes.split(",")],
            in_process.Plan(parsed.requests, parsed.rounds),
            progress,
            read_files,
        )


def run_tenants(parsed: argparse.Namespace) -> dict[str, list[growth.Point]]:
    options = growth.OPTIONS | dict(option.split("=", 1) for option in parsed.option)

    def progress(line: str) -> None:
        print(line, file=sys.stderr)

    with servers.opened(parsed.db, options) as runtime:
        return tenants.measure(
            create_app(runtime.settings, runtime),
            servers.hello(),
            servers.postmaster(parsed.db),
            copies.Store(parsed.db, progress),
            parsed.size,
            parsed.tenants,
            in_process.Plan(parsed.requests, parsed.rounds),
            progress,
        )


def run_background(parsed: argparse.Namespace) -> list[background.Drained]:
    options = dict(option.split("=", 1) for option in parsed.option)
    return background.measure(
        parsed.db,
        options,
        parsed.messages,
        parsed.sessions,
        [float(delay) for delay in parsed.delays.split(",")],
        lambda line: print(line, file=sys.stderr),
    )


def seeded(parsed: argparse.Namespace, url: str, size: Size, options: Mapping[str, str]) -> Stored:
    """Store what is missing through the server at `url`."""
    stored = seed(url, size, token=parsed.token)
    if parsed.db:
        summary.add(parsed.db, options)
        if parsed.dimensions:
            servers.embed_pending(parsed.db, options)
    return stored


def main(argv: Sequence[str] | None = None) -> None:
    parsed = arguments(argv)
    if parsed.command == "compare":
        before, after = (
            Run.load(json.loads(path.read_text())) for path in (parsed.before, parsed.after)
        )
        print(report.comparison(before, after))
        return
    if parsed.command == "growth":
        points = run_growth(parsed)
        if parsed.save:
            parsed.save.write_text(json.dumps([machine(), growth.dump(points)], indent=1) + "\n")
        if parsed.chart:
            scheme = parsed.db.partition(":")[0].partition("+")[0]
            parsed.chart.write_text(growth.chart(points, DATABASES.get(scheme, scheme)))
        print(json.dumps(machine()))
        print(growth.table(points))
        return
    if parsed.command == "tenants":
        by_workspace = run_tenants(parsed)
        if parsed.save:
            dumped = {name: growth.dump(points) for name, points in by_workspace.items()}
            parsed.save.write_text(json.dumps([machine(), dumped], indent=1) + "\n")
        print(json.dumps(machine()))
        for name, points in by_workspace.items():
            print(f"\nWorkspace `{name}`:\n\n{growth.table(points)}")
        return
    if parsed.command == "background":
        drained = run_background(parsed)
        if parsed.save:
            dumped_rows = [asdict(each) for each in drained]
            parsed.save.write_text(json.dumps([machine(), dumped_rows], indent=1) + "\n")
        print(json.dumps(machine()))
        print(background.table(drained))
        return
    measured = run(parsed)
    if parsed.save:
        parsed.save.write_text(json.dumps(measured.dump(), indent=1) + "\n")
    if parsed.chart:
        connections = {cell.connections for cell in measured.cells}
        parsed.chart.write_text(report.chart(measured, 8 if 8 in connections else max(connections)))
    print(json.dumps(measured.about))
    print(report.table(measured))


if __name__ == "__main__":
    main()
