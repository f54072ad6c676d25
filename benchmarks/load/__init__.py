"""What requests cost over HTTP, beside a bare Flask application on the same machine."""

import os

# As the processes of a server: numpy's own threads wait for work by computing.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
