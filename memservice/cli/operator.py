"""The principal of commands. Routes and services cannot import it
(`tests/unit/project/test_imports.py` checks this): they use their caller's principal."""

from __future__ import annotations

from memservice.services.auth.permissions import ALL
from memservice.services.auth.principal import Principal

OPERATOR = Principal(admin=True, permissions=ALL, actor="command line")
"""The operator of this machine. Has all rights, since the operator can read the store anyway."""
