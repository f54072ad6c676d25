"""Environments of the published clients of the first and the second generation.

The client `honcho-ai` up to 1.6.0 asks for any later `honcho-core`, whose names changed with 1.9:
what it was made for is pinned here.
"""

from __future__ import annotations

from pathlib import Path

import jwt

from support.clients.environments import client_python

SECRET = "a-secret-of-the-tests-that-is-long-enough-to-sign-with"
ADMIN = jwt.encode({"t": "", "ad": True}, SECRET, algorithm="HS256")

REQUIREMENTS = {
    "1.0.1": ("honcho-core==1.0.1",),
    "1.1.0": ("honcho-core==1.1.0",),
    "1.3.0": ("honcho-core==1.3.0",),
    "1.5.1": ("honcho-core==1.5.1",),
    "1.8.0": ("honcho-ai==1.6.0", "honcho-core==1.8.0"),
    "1.11.0": ("honcho-core==1.11.0",),
}
"""By the version of `honcho-core`."""


FIRST_CLIENT = ("honcho-ai==0.2.0",)
NODE_CORES = ("@honcho-ai/core@1.8.0", "@honcho-ai/core@2.2.0")
NODE_SDK = ("@honcho-ai/sdk@1.5.0", "@honcho-ai/core@1.8.0")
"""With the generated client beneath that it was published with: it asks for none in particular."""


def first_python() -> Path:
    """The interpreter of an environment with the last client of the first generation."""
    return client_python("honcho-ai-0.2", FIRST_CLIENT)


def core_python(version: str) -> Path:
    """The interpreter of an environment with that version."""
    return client_python(f"honcho-core-{version}", REQUIREMENTS[version])
