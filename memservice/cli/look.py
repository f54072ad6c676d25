"""`memservice workspaces`, `peers`, `sessions`, `search`, `show`, `ask`: the memory from the shell.
They change nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from memservice.cli.api_access import Api, RequestFailed, api
from memservice.cli.options import State, limit_option
from memservice.cli.tables import show_rest, show_table
from memservice.domain.values import printable

TEXT_WIDTH = 160
"""Characters of a text in a table."""
_CONTROL = re.compile("[\x7f-\x9f]")
LEVELS = ("minimal", "low", "medium", "high", "max")

_WORKSPACE = click.option(
    "--workspace", "-w", help="The workspace (default: the only one in the store)."
)
_PEER = click.option("--peer", "-p", help="Only rows of this peer.")
_SESSION = click.option("--session", "-s", help="Only rows of this session.")


def _command(function: Callable[..., None]) -> click.Command:
    """A command with the API as its first argument, and the options that choose it."""

    @wraps(function)
    @click.pass_obj
    def run(state: State, /, url: str | None, key: str | None, **options: Any) -> None:
        with api(state, url, key) as opened:
            function(opened, **options)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the JSON of the API."),
        click.option(
            "--key",
            envvar="MEMSERVICE_API_KEY",
            help="API key for --url. Prefer MEMSERVICE_API_KEY: others can read command lines.",
        ),
        click.option(
            "--url",
            envvar="MEMSERVICE_URL",
            help="Ask the server at this URL instead of the store of the settings. Also read from "
            "MEMSERVICE_URL.",
        ),
    ):
        run = option(run)
    return click.command(function.__name__.removesuffix("_command"))(run)


@_command
@limit_option("workspaces")
def workspaces(api: Api, limit: int, as_json: bool) -> None:
    """List the workspaces, oldest first."""
    items, total = api.items("workspaces", "list", limit=limit)
    _listed(items, total, as_json)


@_command
@_WORKSPACE
@_SESSION
@limit_option("peers")
def peers(api: Api, workspace: str | None, session: str | None, limit: int, as_json: bool) -> None:
    """List the peers of a workspace, or of a session."""
    name = _workspace(api, workspace)
    if session is None:
        items, total = api.items("workspaces", name, "peers", "list", limit=limit)
    else:
        path = ("workspaces", name, "sessions", session, "peers")
        answer = api.ask("GET", *path, size=min(limit, 100))
        items, total = answer["items"], answer["total"]
    _listed(items, total, as_json)


@_command
@_WORKSPACE
@_PEER
@limit_option("sessions")
def sessions(api: Api, workspace: str | None, peer: str | None, limit: int, as_json: bool) -> None:
    """List the sessions of a workspace, or of a peer."""
    name = _workspace(api, workspace)
    path = ("sessions", "list") if peer is None else ("peers", peer, "sessions")
    items, total = api.items("workspaces", name, *path, limit=limit)
    _listed(items, total, as_json)


@_command
@_WORKSPACE
@_PEER
@_SESSION
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--explain", is_flag=True, help="Show the parts of each score.")
@click.argument("query")
def search(
    api: Api,
    workspace: str | None,
    peer: str | None,
    session: str | None,
    limit: int,
    explain: bool,
    query: str,
    as_json: bool,
) -> None:
    """Search the messages of a workspace, best first."""
    if peer is not None and session is not None:
        raise click.UsageError("Use either --peer or --session.")
    scope = () if peer is None else ("peers", peer)
    scope = scope if session is None else ("sessions", session)
    path = ("workspaces", _workspace(api, workspace), *scope, "search")
    body = {"query": query, "limit": limit, **({"explain": True} if explain else {})}
    messages = api.ask("POST", *path, body=body)
    if as_json:
        _print_json(messages)
    elif explain:
        _show_explained(messages)
    else:
        _show_messages(messages)


@_command
@_WORKSPACE
@limit_option("conclusions or messages", 20)
@click.argument("kind", type=click.Choice(["workspace", "peer", "session"]))
@click.argument("id", required=False)
def show(
    api: Api, workspace: str | None, limit: int, kind: str, id: str | None, as_json: bool
) -> None:
    """Show what is stored: the counts of the workspace ID, the card and conclusions of the peer ID,
    or the summary and latest messages of the session ID."""
    if kind == "workspace":
        if id is not None and workspace not in (None, id):
            raise click.UsageError(f"Name one workspace: {id}, or --workspace {workspace}.")
        _show_workspace(api, _workspace(api, id or workspace), as_json)
        return
    if id is None:
        raise click.UsageError(f"Name the {kind}: memservice show {kind} ID")
    name = _workspace(api, workspace)
    if kind == "peer":
        _show_peer(api, name, id, limit, as_json)
    else:
        _show_session(api, name, id, limit, as_json)


@_command
@_WORKSPACE
@_SESSION
@click.option("--level", type=click.Choice(LEVELS), default="low", show_default=True)
@click.argument("peer")
@click.argument("question")
def ask(
    api: Api,
    workspace: str | None,
    session: str | None,
    level: str,
    peer: str,
    question: str,
    as_json: bool,
) -> None:
    """Ask a QUESTION about the peer PEER, in natural language."""
    body = {"query": question, "session_id": session, "reasoning_level": level}
    path = ("workspaces", _workspace(api, workspace), "peers", peer, "chat")
    answer = api.ask("POST", *path, body=body)
    if as_json:
        _print_json(answer)
    else:
        click.echo(printable(answer["content"] or "no answer"))


def _workspace(api: Api, name: str | None) -> str:
    """The workspace by its option, or the only one. Lists of a workspace that does not exist would
    be empty."""
    try:
        items, total = api.items("workspaces", "list", limit=10)
        if name is not None:
            filters = {"filters": {"id": name}}
            if api.items("workspaces", "list", limit=1, body=filters)[0]:
                return name
    except RequestFailed as error:
        if name is not None and error.status in (401, 403):
            return name  # the key of one workspace may not list them
        raise
    if name is None and total == 1:
        return str(items[0]["id"])
    if total == 0:
        raise click.ClickException("there is no workspace yet")
    names = ", ".join(item["id"] for item in items)
    raise click.UsageError(
        f"Name the workspace with --workspace; there are {total}: {names}"
        if name is None
        else f"There is no workspace {name}; there are {total}: {names}"
    )


def _show_workspace(api: Api, name: str, as_json: bool) -> None:
    path = ("workspaces", name)
    numbers = {
        kind: api.items(*path, kind, "list", limit=1)[1]
        for kind in ("peers", "sessions", "conclusions")
    }
    status = api.ask("GET", *path, "queue", "status")
    content = {"id": name, **numbers, "queue": status}
    if as_json:
        _print_json(content)
        return
    pending = status["pending_work_units"] + status["in_progress_work_units"]
    rows = [("workspace", name), *((kind, str(number)) for kind, number in numbers.items())]
    show_table(("", ""), [*rows, ("work to do", str(pending))])


def _show_peer(api: Api, name: str, peer: str, limit: int, as_json: bool) -> None:
    item = _existing(api, name, "peers", peer)
    path = ("workspaces", name)
    card = api.ask("GET", *path, "peers", peer, "card")["peer_card"]
    filters = {"filters": {"observed_id": peer}}
    conclusions, total = api.items(*path, "conclusions", "list", limit=limit, body=filters)
    if as_json:
        _print_json({**item, "peer_card": card, "conclusions": conclusions})
        return
    click.echo(f"{peer}, since {item['created_at']}")
    for line in card or ["no card yet"]:
        click.echo(f"  {_one_line(line)}")
    show_table(
        ("CONCLUSION", "OBSERVER", "LEVEL", "CREATED AT", "TEXT"),
        [
            (
                one["id"],
                one["observer_id"],
                one["level"],
                one["created_at"],
                _one_line(one["content"]),
            )
            for one in conclusions
        ],
    )
    show_rest(len(conclusions), total)


def _show_session(api: Api, name: str, session: str, limit: int, as_json: bool) -> None:
    item = _existing(api, name, "sessions", session)
    path = ("workspaces", name, "sessions", session)
    summaries = api.ask("GET", *path, "summaries")
    messages, total = api.items(*path, "messages", "list", limit=limit, reverse="true")
    messages.reverse()
    if as_json:
        _print_json({**item, "summaries": summaries, "messages": messages})
        return
    click.echo(f"{session}, since {item['created_at']}, {total} messages")
    summary = summaries.get("long_summary") or summaries.get("short_summary")
    if summary:
        click.echo(f"  {printable(summary['content'])}")
    _show_messages(messages)
    show_rest(len(messages), total)


def _existing(api: Api, name: str, kind: str, id: str) -> Any:
    """The row of a peer or session. It is looked for in the list: other requests would create
    it."""
    items, _ = api.items("workspaces", name, kind, "list", limit=1, body={"filters": {"id": id}})
    if not items:
        raise click.ClickException(
            f"the workspace {name} has no {kind.removesuffix('s')} {id}; `memservice {kind} "
            f"-w {name}` lists them"
        )
    return items[0]


def _listed(items: Sequence[Any], total: int, as_json: bool) -> None:
    if as_json:
        _print_json(items)
        return
    rows = [
        (
            item["id"],
            item["created_at"],
            json.dumps(item["metadata"], ensure_ascii=False) if item["metadata"] else "",
        )
        for item in items
    ]
    show_table(("ID", "CREATED AT", "METADATA"), rows)
    show_rest(len(items), total)


def _show_messages(messages: Sequence[Any]) -> None:
    columns = ("id", "session_id", "peer_id", "created_at")
    show_table(
        ("MESSAGE", "SESSION", "PEER", "CREATED AT", "TEXT"),
        [(*(one[name] for name in columns), _one_line(one["content"])) for one in messages],
    )


def _show_explained(messages: Sequence[Any]) -> None:
    rows = []
    for message in messages:
        parts = message["explanation"]
        text, vector = parts["text"] or {}, parts["vector"] or {}
        numbers = (
            (parts["score"], ".4f"),
            (text.get("rank"), "d"),
            (text.get("score"), ".2f"),
            (text.get("own_score"), ".2f"),
            (vector.get("rank"), "d"),
            (vector.get("similarity"), ".3f"),
            ((parts["source"] or {}).get("rank"), "d"),
            (sum(parts["boosts"].values()), ".2f"),
        )
        cells = ["-" if number is None else format(number, form) for number, form in numbers]
        rows.append((message["id"], *cells, _one_line(message["content"])))
    ranks = ("TEXT RANK", "TEXT", "OWN WORDS", "VECTOR RANK", "SIMILARITY", "SOURCE RANK")
    show_table(("MESSAGE", "SCORE", *ranks, "BOOST", "TEXT OF MESSAGE"), rows)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT_WIDTH else f"{line[: TEXT_WIDTH - 1]}…"


def _print_json(content: Any) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=2)
    # A terminal would execute them; JSON escapes only those below the space.
    click.echo(_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
