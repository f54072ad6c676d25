"""What each role of the console's members may do. The only table of permissions.

| permission | reader | operator | owner | needs all workspaces |
| --- | --- | --- | --- | --- |
| view memory | yes | yes | yes | |
| manage jobs | | yes | yes | |
| manage webhooks | | yes | yes | |
| edit memory | | | yes | |
| delete workspaces | | | yes | |
| view settings | | yes | yes | yes |
| manage budgets | | yes | yes | yes |
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
    chat."""
    MANAGE_JOBS = "manage jobs"
    """Retry and delete failed jobs, schedule dreams."""
    MANAGE_WEBHOOKS = "manage webhooks"
    """Register, test and delete webhook endpoints; see deliveries and send one again."""
    EDIT_MEMORY = "edit memory"
    """Create, change and delete anything inside a workspace, and create workspaces."""
    DELETE_WORKSPACES = "delete workspaces"
    VIEW_SETTINGS = "view settings"
    """Settings with secrets masked, plugins and health."""
    MANAGE_BUDGETS = "manage budgets"
    """Set how many tokens a workspace may use in a day. No key of the workspace may: the budget
    limits it."""
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
        Permission.MANAGE_BUDGETS,
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
            Permission.MANAGE_BUDGETS,
        }
    ),
    Role.OWNER: ALL,
}

OF_WORKSPACE_KEY = ALL - STORE_WIDE
"""Permissions of a workspace's key at the console. The services permit the same."""
OF_ADMIN_KEY = ALL - {
    Permission.VIEW_SETTINGS,
    Permission.MANAGE_MEMBERS,
    Permission.VIEW_AUDIT_LOG,
}
"""Permissions of an admin key at the console. A key belongs to a program: it cannot create members,
which would outlive its revocation, and cannot read the service's settings."""
WITHOUT_AUTHENTICATION = OF_ADMIN_KEY - {Permission.MANAGE_KEYS} | {Permission.VIEW_SETTINGS}
"""Permissions while authentication is off. Keys and members created by anyone now would work once
it is on, so neither can be created."""


def permissions_of(role: Role, limited: bool) -> frozenset[Permission]:
    """Permissions of a member with this role; `limited`: to some workspaces."""
    return OF_ROLE[role] - STORE_WIDE if limited else OF_ROLE[role]
