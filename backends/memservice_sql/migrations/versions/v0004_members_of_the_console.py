"""Members of the console: accounts, one-time links, sign-ins, failed attempts and the audit log.

Revision 0004.
"""

from __future__ import annotations

from memservice_sql.migrations.words import create, index, integer, json, text, time, unique

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    create(
        "console_members",
        text("uid"),
        text("name"),
        text("password_hash"),
        text("role"),
        json("workspaces", null=True),
        text("state"),
        time("created_at"),
    )
    create(
        "console_links",
        text("uid"),
        text("digest"),
        text("kind"),
        text("role", null=True),
        json("workspaces", null=True),
        text("member_uid", null=True),
        text("created_by", null=True),
        time("expires_at"),
        time("created_at"),
    )
    create(
        "browser_sessions",
        text("uid"),
        text("digest"),
        text("member_uid", null=True),
        json("claims", null=True),
        text("key_uid", null=True),
        text("address"),
        text("client"),
        time("expires_at"),
        time("created_at"),
    )
    create(
        "sign_in_failures",
        text("subject"),
        integer("failures"),
        time("paused_until"),
        time("last_at"),
    )
    create(
        "audit_entries",
        text("uid"),
        text("actor"),
        text("actor_uid", null=True),
        text("action"),
        text("target", null=True),
        text("workspace", null=True),
        text("address", null=True),
        json("detail"),
        time("created_at"),
    )
    _create_indexes()


def _create_indexes() -> None:
    unique("console_members", "uid")
    unique("console_members", "name")
    index("console_members", "created_at", "key")
    unique("console_links", "uid")
    unique("console_links", "digest")
    index("console_links", "expires_at")
    index("console_links", "member_uid")
    unique("browser_sessions", "uid")
    unique("browser_sessions", "digest")
    index("browser_sessions", "member_uid", "created_at", "key")
    index("browser_sessions", "key_uid")
    index("browser_sessions", "expires_at")
    unique("sign_in_failures", "subject")
    index("sign_in_failures", "last_at")
    unique("audit_entries", "uid")
    index("audit_entries", "created_at", "key")
    index("audit_entries", "actor_uid", "created_at", "key")
