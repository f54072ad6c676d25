"""The principal of commands. Routes and services cannot import this
(`tests/unit/project/test_imports.py` holds it): they work as their caller."""

from __future__ import annotations

from memservice.services.auth.permissions import ALL
from memservice.services.auth.principal import Principal

OPERATOR = Principal(admin=True, permissions=ALL)
"""The operator at this machine, who can read the store anyway: may do everything."""
