"""Environments of the other published clients: an old one, the one for Node, the commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.clients.environments import client_python, node_packages
from support.clients.fixtures import CLIENT

OLDER_CLIENT = ("honcho-ai==2.1.0",)
NODE_CLIENT = ("@honcho-ai/sdk@2.5.0",)
COMMANDS = ("honcho-cli==0.3.0",)
UNDER_THE_COMMANDS = (
    *CLIENT,
    "certifi",
    "click>=8",
    "httpx>=0.27",
    "questionary>=2.1",
    "rich>=13",
    "typer>=0.15",
)
"""What the commands require, but for the age of the certificates: not every mirror has ones as new,
and nothing here is encrypted."""


@pytest.fixture(scope="session")
def older_client() -> Path:
    """The interpreter of an environment with an old published client of the third generation of the
    API."""
    return client_python("honcho-ai-2.1", OLDER_CLIENT)


@pytest.fixture(scope="session")
def node_client() -> Path:
    """A folder with the published client for Node."""
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(
            "the published client for Node is not tested: there is no "
            f"{' and no '.join(missing)} here"
        )
    return node_packages("honcho-ai-sdk", NODE_CLIENT)


@pytest.fixture(scope="session")
def commands() -> Path:
    """The interpreter of an environment with the published commands."""
    return client_python("honcho-cli", UNDER_THE_COMMANDS, alone=COMMANDS)
