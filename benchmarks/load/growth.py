"""How costs grow with the store: `python -m benchmarks.load growth --db URI`.

One workspace is filled to each size in turn, a tenth of its messages in one session, and the same
requests are measured at each size, in process (`benchmarks.load.in_process`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor, log10
from typing import Any

from benchmarks.load import in_process
from benchmarks.load.client import Request, post
from benchmarks.load.data import BATCH, PEERS, message, text
from benchmarks.load.measuring import FLOOR_NAME, Cell
from benchmarks.load.scenarios import FILTER, Scenario, query, question

NAME = "growth"
FIXED, LARGE, WRITTEN = "fixed", "large", "written"
"""Sessions: of 1,000 messages at every size, of a tenth of the messages, and the one that the
measured writes go to."""
SIZES = (10_000, 100_000, 1_000_000)
FIXED_BATCHES = 10
CONCLUSIONS = 10_000
PAIR = {"observer_id": PEERS[0], "observed_id": PEERS[0]}
LATE_PAGE = 15
"""Of the fixed session, 50 messages a page."""
OPTIONS = {"DERIVER_ENABLED": "false", "SUMMARY_ENABLED": "false"}
"""Without background tasks, which nobody would do."""
COLOURS = ("#4878a8", "#b03030", "#3a8a3a", "#8a5aa8", "#b07020", "#208a8a", "#707070", "#c060a0")


def path(name: str) -> str:
    """Of a workspace."""
    return f"/v3/workspaces/{name}"


@dataclass(frozen=True, slots=True)
class Point:
    """The costs of every scenario in a store with this many messages."""

    messages: int
    cells: list[Cell]

    def cpu(self, scenario: str) -> float | None:
        """CPU milliseconds of a request, with the database's."""
        return next((cell.cpu for cell in self.cells if cell.scenario == scenario), None)


def session_of(batch: int) -> str:
    """The session of a batch of messages, counted from 0."""
    if batch < FIXED_BATCHES:
        return FIXED
    return LARGE if batch % 10 == 0 else f"other{batch // 12}"


def batches(first: int, end: int, workspace: str) -> Iterator[Request]:
    """Requests that store the messages from number `first` to before `end`, `BATCH` in each."""
    for batch in range(first // BATCH, end // BATCH):
        dice = random.Random(f"growth {batch}")
        drafts = [message(dice) for _ in range(BATCH)]
        yield post(f"{workspace}/sessions/{session_of(batch)}/messages", {"messages": drafts})


def conclusions(workspace: str) -> Iterator[Request]:
    """Requests that store the conclusions of one peer about itself."""
    for start in range(0, CONCLUSIONS, BATCH):
        dice = random.Random(f"growth conclusions {start}")
        drafts = [{"content": text(dice, 12), **PAIR} for _ in range(BATCH)]
        yield post(f"{workspace}/conclusions", {"conclusions": drafts})


def scenarios(uid: str, workspace: str) -> list[Scenario]:
    """What is measured at each size. `uid` is a message of the fixed session."""
    sessions = f"{workspace}/sessions"
    members: dict[str, object] = {name: {} for name in PEERS}
    reads: list[tuple[str, Callable[[random.Random], Request]]] = [
        ("get a message", lambda dice: Request("GET", f"{sessions}/{FIXED}/messages/{uid}")),
        ("list, page 1", lambda dice: post(f"{sessions}/{LARGE}/messages/list?page=1", {})),
        ("list, late", lambda dice: post(f"{sessions}/{FIXED}/messages/list?page={LATE_PAGE}", {})),
        ("context", lambda dice: Request("GET", f"{sessions}/{LARGE}/context?tokens=4000")),
        ("session", lambda dice: post(sessions, {"id": LARGE, "peers": members})),
        ("search, workspace", lambda dice: post(f"{workspace}/search", query(dice))),
        ("search, session of 1,000", lambda dice: post(f"{sessions}/{FIXED}/search", query(dice))),
        ("search, large session", lambda dice: post(f"{sessions}/{LARGE}/search", query(dice))),
        (
            "filter, large session",
            lambda dice: post(f"{sessions}/{LARGE}/messages/list", {"filters": FILTER}),
        ),
        (
            "query of conclusions",
            lambda dice: post(f"{workspace}/conclusions/query", query(dice, filters=PAIR)),
        ),
        (
            "representation, query",
            lambda dice: post(
                f"{workspace}/peers/{PEERS[0]}/representation", {"search_query": question(dice)}
            ),
        ),
        ("list of workspaces", lambda dice: post("/v3/workspaces/list", {})),
    ]
    writes: list[tuple[str, Callable[[random.Random], Request]]] = [
        (f"create {number}", _creation(f"{sessions}/{WRITTEN}/messages", number))
        for number in (1, 20)
    ]
    return [Scenario(name, request) for name, request in reads] + [
        Scenario(name, request, writes=True) for name, request in writes
    ]


def _creation(path: str, number: int) -> Callable[[random.Random], Request]:
    return lambda dice: post(
        path,
        {"messages": [{"peer_id": PEERS[0], "content": text(dice)} for _ in range(number)]},
    )


def measure(
    application: in_process.Application,
    bare: in_process.Application,
    database: int | None,
    sizes: Sequence[int],
    plan: in_process.Plan,
    progress: in_process.Progress = lambda line: None,
    before_round: Callable[[], object] = lambda: None,
) -> list[Point]:
    """The points of the curve, from the smallest size. The store must be empty: raises ValueError
    if it has the workspace."""
    ordered = sorted(sizes)
    if ordered[0] <= FIXED_BATCHES * BATCH or any(size % BATCH for size in ordered):
        raise ValueError(f"sizes are multiples of {BATCH} above {FIXED_BATCHES * BATCH}")
    workspace = path(NAME)
    if answered(application, post(f"{workspace}/sessions/list", {}))["items"]:
        raise ValueError("the store has the workspace of an earlier run: use an empty one")
    points: list[Point] = []
    stored = 0
    for size in ordered:
        fill(application, stored, size, workspace, progress)
        stored = size
        of_size = scenarios(first_message(application, NAME), workspace)
        cells = in_process.measure(
            application,
            bare,
            database,
            of_size,
            plan,
            progress=progress,
            before_round=before_round,
        )
        points.append(Point(size, cells))
    return points


def fill(
    application: in_process.Application,
    first: int,
    end: int,
    workspace: str,
    progress: in_process.Progress,
) -> None:
    """Store the messages from number `first` to before `end`, and after the first ones the
    conclusions."""
    for number, request in enumerate(batches(first, end, workspace), 1):
        answered(application, request)
        if number % 100 == 0:
            progress(f"{first + number * BATCH:,} messages")
    if not first:
        for request in conclusions(workspace):
            answered(application, request)


def first_message(application: in_process.Application, name: str) -> str:
    """The id of a message of the fixed session."""
    listed = post(f"{path(name)}/sessions/{FIXED}/messages/list?size=1", {})
    uid: str = answered(application, listed)["items"][0]["id"]
    return uid


def answered(application: in_process.Application, request: Request) -> Any:
    status, body = in_process.answer(application, in_process.environ(request, {}))
    if not 200 <= status < 300:
        raise RuntimeError(f"{request.method} {request.path}: {status} {body[:300]!r}")
    return json.loads(body)


def dump(points: Sequence[Point]) -> list[dict[str, Any]]:
    return [asdict(point) for point in points]


def names(points: Sequence[Point]) -> list[str]:
    return [cell.scenario for cell in points[0].cells if cell.scenario != FLOOR_NAME]


def table(points: Sequence[Point]) -> str:
    """CPU milliseconds at each size, and the last as a multiple of the first, as Markdown."""
    heads = [f"{point.messages:,}" for point in points]
    lines = [
        f"| request | {' | '.join(heads)} | growth |",
        f"| --- | {' | '.join('--:' for _ in heads)} | --: |",
    ]
    for name in names(points):
        costs = [point.cpu(name) or 0.0 for point in points]
        growth = f"{costs[-1] / costs[0]:.1f}" if costs[0] else ""
        lines.append(f"| {name} | {' | '.join(f'{cost:.2f}' for cost in costs)} | {growth} |")
    return "\n".join(lines)


def chart(points: Sequence[Point], title: str) -> str:
    """A line for each request over the number of messages, both on logarithmic scales, as SVG."""
    left, top, width, height, labels = 60, 30, 520, 340, 270
    costs = [cost for point in points for name in names(points) if (cost := point.cpu(name))]
    first, last = (log10(points[n].messages) for n in (0, -1))
    low, high = log10(min(costs)), log10(max(costs))

    def x(messages: int) -> float:
        return left + width * (log10(messages) - first) / ((last - first) or 1.0)

    def y(cost: float) -> float:
        return top + height * (1 - (log10(cost) - low) / ((high - low) or 1.0))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + labels} '
        f'{top + height + 40}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="16">{title}: CPU ms of a request by the number of messages</text>',
    ]
    for point in points:
        at = x(point.messages)
        parts.append(
            f'<line x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{top + height}" stroke="#dddddd"/>'
            f'<text x="{at:.1f}" y="{top + height + 18}" text-anchor="middle">'
            f"{point.messages:,}</text>"
        )
    for exponent in range(ceil(low), floor(high) + 1):
        at = y(10.0**exponent)
        parts.append(
            f'<line x1="{left}" y1="{at:.1f}" x2="{left + width}" y2="{at:.1f}" stroke="#dddddd"/>'
            f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**exponent:g}</text>'
        )
    ends: list[float] = []
    by_last_cost = sorted(names(points), key=lambda name: -(points[-1].cpu(name) or 0.0))
    for number, name in enumerate(by_last_cost):
        colour = COLOURS[number % len(COLOURS)]
        coordinates = [(point.messages, cost) for point in points if (cost := point.cpu(name))]
        path = " ".join(f"{x(messages):.1f},{y(cost):.1f}" for messages, cost in coordinates)
        end = max(
            y(coordinates[-1][1]) + 4, ends[-1] + 14 if ends else 0.0
        )  # labels do not overlap
        ends.append(end)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{left + width + 8}" y="{end:.1f}" fill="{colour}">'
            f"{name}: {coordinates[0][1]:.2f} → {coordinates[-1][1]:.2f}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])
