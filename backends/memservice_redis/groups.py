"""A second vector set for each group of a large space: the conclusions of one observer about one
peer, the messages of one session, the documents of one collection.

Most queries are about one group. In the set of the whole space, the server tests the filter on row
after row, so such a query costs more the more rows the others have. In the group's set, it compares
the rows of the group and no others.

The key `:grouped` contains the progress of grouping: the last key, or `READY`. While it exists,
each write keeps the groups in step, in the same transaction of the server. Scripts do it, because
the group of a stored row is in its attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from msgspec.structs import replace

from memservice.domain.records import Space
from memservice.spi.index_filter import IndexFilter
from memservice_redis import attributes
from memservice_redis.removing import remove as remove_set
from memservice_redis.server import Client, Pipeline

READY = b"ready"
BATCH_SIZE = 100
"""Rows that one script adds, during which the server serves no other client."""
MAX_ROWS = 20_000
"""Maximum number of rows of groups that one query compares."""
MAX_GROUPS = 8
"""Maximum number of groups that one query compares."""

FIELDS = {
    "conclusion": {"r": "observers", "d": "observed"},
    "message": {"s": "sessions"},
    "document": {"r": "observers"},
}
"""What the rows of a group have in common, by the kind of a space: names in a row's attributes,
with those of the conditions on them."""

_HEAD = """
local vectors, grouped, groups = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', grouped) == 0 then return end
local function group_of(attributes)
    local group = vectors
    for field in ARGV[1]:gmatch('%a') do
        local value = attributes and attributes:match('"' .. field .. '":"(<%d+>)"')
        if not value then return nil end
        group = group .. ':' .. value
    end
    return group
end
"""
_ADD = f"""{_HEAD}
for position = 2, #ARGV do
    local key = ARGV[position]
    local attributes = redis.call('VGETATTR', vectors, key)
    local group = group_of(attributes)
    if group and not redis.call('VGETATTR', group, key) then
        local vector = redis.call('VEMB', vectors, key, 'RAW')[2]
        redis.call('VADD', group, 'FP32', vector, key, 'NOQUANT', 'EF', 16,
                   'SETATTR', attributes, 'M', 4)
        redis.call('SADD', groups, group)
    end
end
"""
# The graph of a group is a cheap one, because no query uses it.
_REMOVE = f"""{_HEAD}
for position = 2, #ARGV do
    local key = ARGV[position]
    local group = group_of(redis.call('VGETATTR', vectors, key))
    if group then
        redis.call('VREM', group, key)
        if redis.call('EXISTS', group) == 0 then redis.call('SREM', groups, group) end
    end
end
"""


def names(vectors: str) -> tuple[str, str]:
    """The names of the progress and of the list of groups of a vector set."""
    return f"{vectors}:grouped", f"{vectors}:groups"


def add(pipe: Client | Pipeline, space: Space, vectors: str, keys: Sequence[int]) -> None:
    """Add rows of the vector set to their groups, if the space has groups."""
    _run(pipe, _ADD, space, vectors, keys)


def remove(pipe: Client | Pipeline, space: Space, vectors: str, keys: Sequence[int]) -> None:
    """Remove rows from their groups. They must still be in the vector set."""
    _run(pipe, _REMOVE, space, vectors, keys)


def _run(
    pipe: Client | Pipeline, script: str, space: Space, vectors: str, keys: Sequence[int]
) -> None:
    fields = "".join(FIELDS.get(space.kind, {}))
    if fields:
        pipe.execute_command("EVAL", script, 3, vectors, *names(vectors), fields, *keys)


def start(client: Client, vectors: str) -> None:
    """Let the space have groups from now on."""
    client.execute_command("SET", names(vectors)[0], 0, "NX")


def proceed(
    client: Client, space: Space, vectors: str, after: int, keys: Sequence[int], is_last: bool
) -> None:
    """Add the rows `keys`, all between `after` and the last of them, to their groups, if they are
    not in them. Groups are ready when this was done from the first row to the last."""
    grouped, _ = names(vectors)
    progress = client.execute_command("GET", grouped)
    if progress is None:
        return
    for begin in range(0, len(keys), BATCH_SIZE):
        add(client, space, vectors, keys[begin : begin + BATCH_SIZE])
    if progress != READY and after <= int(progress):
        reached = READY if is_last else max(int(progress), keys[-1])
        client.execute_command("SET", grouped, reached, "XX")


def drop(client: Client, vectors: str) -> None:
    grouped, groups = names(vectors)
    client.execute_command("UNLINK", grouped)  # from now on, no write adds to a group
    for name in client.execute_command("SMEMBERS", groups):
        remove_set(client, name.decode())
    client.execute_command("UNLINK", groups)


def chosen_by(
    space: Space, vectors: str, index_filter: IndexFilter
) -> tuple[list[str], IndexFilter] | None:
    """The groups that contain every row which fits the filter, and the conditions that are left;
    None if the filter names no groups, or too many."""
    conditions = FIELDS.get(space.kind, {}).values()
    values = [getattr(index_filter, condition) for condition in conditions]
    if not values or None in values:
        return None
    chosen = list(product(*(map(attributes.key, sorted(set(each))) for each in values)))
    if len(chosen) > MAX_GROUPS:
        return None
    rest = replace(index_filter, **dict.fromkeys(conditions))
    return [":".join((vectors, *each)) for each in chosen], rest
