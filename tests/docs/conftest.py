"""The fixtures of end-to-end tests, for what the documentation shows."""

from e2e.fixtures import published_client as published_client
from e2e.fixtures import server as server
from e2e.fixtures import servers as servers
