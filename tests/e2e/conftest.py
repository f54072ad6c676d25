"""The fixtures of end-to-end tests."""

from e2e.fixtures import published_client as published_client
from e2e.fixtures import server as server
from e2e.other_clients import commands as commands
from e2e.other_clients import node_client as node_client
from e2e.other_clients import older_client as older_client
