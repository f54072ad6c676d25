"""Run the calls on standard input with a published client:
`python -m support.clients.one_workspace first|second|newest URL KEY`.

Each line is a JSON list [workspace, method of `support.api.all_generations.GenerationClient`,
arguments]; so is each answer: [true, result] or [false, traceback]."""

from __future__ import annotations

import importlib
import json
import sys
import traceback

if __name__ == "__main__":
    name, url, key = sys.argv[1:]
    speaker = importlib.import_module(f"support.clients.one_workspace.{name}").Speaker
    for line in sys.stdin:
        workspace, method, arguments = json.loads(line)
        try:
            answer = [True, getattr(speaker(url, key, workspace), method)(*arguments)]
        except Exception:  # whatever went wrong is the answer
            answer = [False, traceback.format_exc()]
        print(json.dumps(answer), flush=True)
