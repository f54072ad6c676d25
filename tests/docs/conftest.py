"""The fixtures of end-to-end tests, for what the documentation shows."""

from support.clients.fixtures import published_client as published_client
from support.clients.fixtures import pytest_runtest_teardown as pytest_runtest_teardown
from support.clients.fixtures import server as server
from support.clients.fixtures import servers as servers
