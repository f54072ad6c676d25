"""Ends a process with SIGKILL while it erases a peer, and lets another one continue.

Run as a program, since it forks: `erasing.py FOLDER STORAGE NUMBER…`, where STORAGE is `sqlite` or
`postgres` and each NUMBER is that of a commit. Prints one line of JSON: what the store holds in the
end, by the point at which a process ended; `""` for none.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from memservice.domain.filters import TRUE
from memservice.domain.records import Erasure
from memservice.pipeline.deletion import peers as peer_erasure
from memservice.runtime import Runtime
from memservice.services import messages
from memservice.services.auth.principal import Principal
from memservice.services.erasure import peers
from memservice.services.messages import Draft
from memservice.spi.schema import TABLES
from memservice.testing import failpoints
from support.erasure import stored_bytes
from support.processes.boundaries import (
    Databases,
    Files,
    Stores,
    contents,
    in_a_process,
    opened,
    warm_up,
    work,
)

ADMIN = Principal(admin=True)
MARKER = "quokka"
FACTS = [f"I keep {number} {{}} behind house {number * 7}." for number in range(1, 11)]
BATCH_SIZE = 3
"""Rows per step of an erasure, so that it has many."""


def fill(stores: Stores, name: str) -> None:
    rt = opened(stores.uri(name))
    rt.storage.migrate()
    for author, animals in (("ada", f"{MARKER}s"), ("bot", "goats")):
        drafts = [Draft(fact.format(animals), author) for fact in FACTS]
        messages.create(rt, ADMIN, "w", "s", drafts, f"from {author}")
    work(rt)
    rt.close()


def erase(rt: Runtime) -> None:
    peer_erasure.BATCH_SIZE = BATCH_SIZE  # pyrefly: ignore[bad-assignment]
    peers.erase(rt, ADMIN, "w", "ada")
    work(rt)


def proceed(stores: Stores, name: str, answer: Path) -> None:
    """Continue, and write down what the store holds then."""
    peer_erasure.BATCH_SIZE = BATCH_SIZE  # pyrefly: ignore[bad-assignment]
    rt = opened(stores.uri(name))
    work(rt)
    with rt.storage.read() as tx:
        rows = {spec.name: repr(tx.rows.page(spec.record, TRUE)).encode() for spec in TABLES}
        erasures = [(row.target, row.state) for row in tx.rows.page(Erasure)]
    result = contents(rt) | {"erasures": erasures}
    rt.close()
    uri = stores.uri(name)
    if uri.startswith("postgresql"):
        rows |= stored_bytes.of_postgres(uri)
    else:
        files = stores.folder.glob(f"{name}.db*")
        rows |= {f"file {file.name}": file.read_bytes() for file in files}
    result["left"] = stored_bytes.occurrences([MARKER], rows)
    answer.write_text(json.dumps(result), encoding="utf-8")


def after(stores: Stores, point: str, status: int) -> dict[str, Any]:
    """What a store holds after a process ended at this point with this exit status."""
    name = point.replace(":", "_") or "whole"
    stores.copy("full", name)

    def interrupted() -> None:
        rt = opened(stores.uri(name), point)
        erase(rt)
        rt.close()

    ended = in_a_process(interrupted)
    assert ended == status, (point, ended)
    answer = stores.note(name, "json")
    assert in_a_process(lambda: proceed(stores, name, answer)) == 0
    result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    stores.drop(name)
    return result


def main(stores: Stores, numbers: list[int]) -> None:
    warm_up(stores)
    stores.make("full")
    assert in_a_process(lambda: fill(stores, "full")) == 0
    results = {"": after(stores, "", 0)}
    for moment in (failpoints.BEFORE, failpoints.AFTER):
        for number in numbers:
            point = f"kill:{moment}:{number}"
            results[point] = after(stores, point, -9)
    print(json.dumps(results))


if __name__ == "__main__":
    chosen = Path(sys.argv[1])
    os.chdir(chosen)
    commits = [int(number) for number in sys.argv[3:]]
    if sys.argv[2] == "sqlite":
        main(Files(chosen), commits)
    else:
        databases = Databases(chosen)
        try:
            main(databases, commits)
        finally:
            databases.drop_all()
