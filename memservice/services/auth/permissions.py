"""What each role of the console's members may do: the one table.

| permission | reader | operator | owner | needs all workspaces |
| --- | --- | --- | --- | --- |
| view memory | yes | yes | yes | |
| manage jobs | | yes | yes | |
| manage webhooks | | yes | yes | |
| edit memory | | | yes | |
| delete workspaces | | | yes | |
| view settings | | yes | yes | yes |
| manage keys | | | yes | yes |
| manage members | | | yes | yes |
| view the audit log | | | yes | yes |

A member who is limited to some workspaces has none of the permissions of the last column.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from memservice.domain.records import OPERATOR, OWNER, READER


class Permission(StrEnum):
    VIEW = "view memory"
    """Read workspaces, peers, sessions, messages, conclusions, usage and the queue; search and
    ask."""
    MANAGE_JOBS = "manage jobs"
    """Retry and delete failed jobs, schedule dreams."""
    MANAGE_WEBHOOKS = "manage webhooks"
    """Register, test and delete webhook endpoints; see deliveries and send one again."""
    EDIT_MEMORY = "edit memory"
    """Create, change and delete anything inside a workspace, and create workspaces."""
    DELETE_WORKSPACES = "delete workspaces"
    VIEW_SETTINGS = "view settings"
    """Settings with secrets masked, plugins and health."""
    MANAGE_KEYS = "manage keys"
    """List, create and revoke API keys."""
    MANAGE_MEMBERS = "manage members"
    """List, invite, change and deactivate members."""
    VIEW_AUDIT_LOG = "view the audit log"


class Role(StrEnum):
    READER = READER
    OPERATOR = OPERATOR
    OWNER = OWNER


ALL = frozenset(Permission)

STORE_WIDE = frozenset(
    {
        Permission.VIEW_SETTINGS,
        Permission.MANAGE_KEYS,
        Permission.MANAGE_MEMBERS,
        Permission.VIEW_AUDIT_LOG,
    }
)
"""Permissions that reach beyond any one workspace."""

OF_ROLE: Mapping[Role, frozenset[Permission]] = {
    Role.READER: frozenset({Permission.VIEW}),
    Role.OPERATOR: frozenset(
        {
            Permission.VIEW,
            Permission.MANAGE_JOBS,
            Permission.MANAGE_WEBHOOKS,
            Permission.VIEW_SETTINGS,
        }
    ),
    Role.OWNER: ALL,
}

OF_WORKSPACE_KEY = ALL - STORE_WIDE
"""What the console offers to the key of a workspace. The services let it do as much."""
OF_ADMIN_KEY = ALL - {
    Permission.VIEW_SETTINGS,
    Permission.MANAGE_MEMBERS,
    Permission.VIEW_AUDIT_LOG,
}
"""A key belongs to a program. It does not make members, who would outlive its revocation, and does
not see the service's settings."""
WITHOUT_AUTHENTICATION = OF_ADMIN_KEY - {Permission.MANAGE_KEYS} | {Permission.VIEW_SETTINGS}
"""Keys and members that anyone could make while authentication is off would work once it is on."""


def permissions_of(role: Role, limited: bool) -> frozenset[Permission]:
    """Of a member; `limited` to some workspaces or not."""
    return OF_ROLE[role] - STORE_WIDE if limited else OF_ROLE[role]
