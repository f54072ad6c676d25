"""Repositories with methods where one SQL statement replaces several calls of the primitives, or
reads fewer rows."""

from __future__ import annotations

from memservice_sql.repositories.conclusions import SqlConclusions
from memservice_sql.repositories.keys import SqlKeys
from memservice_sql.repositories.messages import SqlMessages
from memservice_sql.repositories.peers import SqlPeers
from memservice_sql.repositories.sessions import SqlSessions
from memservice_sql.repositories.sign_ins import SqlSignIns
from memservice_sql.repositories.tasks import SqlTasks
from memservice_sql.repositories.workspaces import SqlWorkspaces

__all__ = [
    "SqlConclusions",
    "SqlKeys",
    "SqlMessages",
    "SqlPeers",
    "SqlSessions",
    "SqlSignIns",
    "SqlTasks",
    "SqlWorkspaces",
]
