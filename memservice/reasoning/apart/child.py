"""The process that runs a reasoner: `python -m memservice.reasoning.apart.child MODULE:FUNCTION`.

It reads frames from standard input until end of file, which also comes when the parent ends in any
way. Each frame holds a request and its limit of CPU seconds; the kernel ends the process when it
reaches the limit. The response is a frame on the original standard output.
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
"""The type of request for each method of a reasoner."""


def opened(location: str) -> Reasoner:
    """The reasoner that the function at `module:name` opens."""
    module, _, name = location.partition(":")
    reasoner: Reasoner = getattr(importlib.import_module(module), name)(
        {}, Context(lambda: datetime.now(UTC), logging.getLogger("memservice"))
    )
    return reasoner


def limit(seconds: int) -> None:
    """Limit the further CPU time of this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    ends = int(time.process_time()) + 1 + seconds
    resource.setrlimit(
        resource.RLIMIT_CPU, (ends if hard == resource.RLIM_INFINITY else min(ends, hard), hard)
    )


def answer(reasoner: Reasoner, question: dict[str, Any]) -> dict[str, Any]:
    limit(question["seconds"])
    request = decoded(REQUESTS[question["call"]], question["request"])
    try:
        return {"result": encoded(getattr(reasoner, question["call"])(request))}
    except Exception as error:  # the parent raises it again, as a failure of the task
        return {"error": type(error).__name__, "message": str(error)}


def serve(reasoner: Reasoner, source: BinaryIO, target: BinaryIO) -> None:
    while len(head := source.read(HEAD.size)) == HEAD.size:
        body = json.dumps(answer(reasoner, json.loads(source.read(*HEAD.unpack(head))))).encode()
        target.write(HEAD.pack(len(body)) + body)
        target.flush()


def main() -> None:
    # Only the parent ends this process: after a SIGTERM to all processes of a service, the current
    # batch can still finish.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output that a reasoner prints is not part of a response
    serve(opened(sys.argv[1]), sys.stdin.buffer, target)


if __name__ == "__main__":
    main()
