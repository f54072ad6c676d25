"""`memservice` for shell scripts: the arguments, environment, working directory and streams of this
process go to the fork server, whose descriptor is in MEMSERVICE_TEST_FORK_SERVER.

It has few imports, to start fast.
"""

import json
import os
import socket
import sys

control = socket.socket(fileno=int(os.environ.pop("MEMSERVICE_TEST_FORK_SERVER")))
run = {"command": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ)}
read, write = os.pipe()
socket.send_fds(control, [json.dumps(run).encode()], [0, 1, 2, write])
os.close(write)
with os.fdopen(read) as report:
    report.readline()
    status = int(report.readline())
sys.exit(status if status >= 0 else 128 - status)
