"""The process in which a reasoner works:
`python -m memservice.reasoning.apart.child MODULE:FUNCTION`.

It reads frames from standard input until that ends, as it does when the parent does, however that
ended. Each is a question with the CPU seconds that it may take; the kernel ends the process when
they are over. The answer is a frame on what was standard output.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import resource
import signal
import sys
import time
from datetime import UTC, datetime
from typing import Any, BinaryIO

from memservice.reasoning.apart.wire import HEAD, decoded, encoded
from memservice.spi.providers import Context
from memservice.spi.reasoner import ConsolidateRequest, DeriveRequest, Reasoner, SummarizeRequest

REQUESTS: dict[str, type[Any]] = {
    "derive": DeriveRequest,
    "summarize": SummarizeRequest,
    "consolidate": ConsolidateRequest,
}
"""What is asked for, by the reasoner's method."""


def opened(location: str) -> Reasoner:
    """The reasoner that the function opens whose place is `module:name`."""
    module, _, name = location.partition(":")
    reasoner: Reasoner = getattr(importlib.import_module(module), name)(
        {}, Context(lambda: datetime.now(UTC), logging.getLogger("memservice"))
    )
    return reasoner


def limit(seconds: int) -> None:
    """From now on this process has so much CPU time left."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    ends = int(time.process_time()) + 1 + seconds
    resource.setrlimit(
        resource.RLIMIT_CPU, (ends if hard == resource.RLIM_INFINITY else min(ends, hard), hard)
    )


def answer(reasoner: Reasoner, asked: dict[str, Any]) -> dict[str, Any]:
    limit(asked["seconds"])
    request = decoded(REQUESTS[asked["call"]], asked["request"])
    try:
        return {"result": encoded(getattr(reasoner, asked["call"])(request))}
    except Exception as error:  # whatever it raises is the task's, and told to the parent
        return {"error": type(error).__name__, "message": str(error)}


def serve(reasoner: Reasoner, source: BinaryIO, target: BinaryIO) -> None:
    while len(head := source.read(HEAD.size)) == HEAD.size:
        body = json.dumps(answer(reasoner, json.loads(source.read(*HEAD.unpack(head))))).encode()
        target.write(HEAD.pack(len(body)) + body)
        target.flush()


def main() -> None:
    # Ended by the parent alone: a SIGTERM to all processes of a service lets the batch in hand be
    # finished.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a reasoner prints is no answer
    serve(opened(sys.argv[1]), sys.stdin.buffer, target)


if __name__ == "__main__":
    main()
