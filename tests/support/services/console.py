"""Members of the console, over a store of their own."""

from __future__ import annotations

from collections.abc import Callable

from memservice.domain.records import AuditEntry
from memservice.runtime import Runtime
from memservice.services.auth import api_keys
from memservice.services.auth.permissions import ALL
from memservice.services.auth.principal import Principal
from memservice.services.members import audit, links, sign_ins, visitors
from memservice.services.members.visitors import Browser, Visitor
from support.services.services import Clock

PASSWORD = "correct horse battery"
HOME = Browser("203.0.113.7", "Firefox")
ELSEWHERE = Browser("198.51.100.9", "curl")
COMMAND_LINE = Principal(admin=True, permissions=ALL)
Open = Callable[..., Runtime]
AUTH_ON = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40}


class Console:
    """A console with its members; `owner` is the first."""

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self.rt, self.clock = runtime, clock
        self.owner = self.join(links.set_up(runtime, COMMAND_LINE).token, "olga")

    def join(self, token: str, name: str) -> str:
        """Use a link up; the session id of the new member."""
        member = links.accept(self.rt, HOME, token, name, PASSWORD)
        return sign_ins.after_link(self.rt, HOME, member).session_id

    def invite(self, name: str, role: str, *workspaces: str) -> str:
        link = links.invite(self.rt, self.visitor(self.owner), HOME, role, workspaces or None)
        return self.join(link.token, name)

    def visitor(self, session_id: str) -> Visitor:
        visitor = visitors.visitor_of(self.rt, session_id)
        assert visitor is not None
        return visitor

    def is_open(self, session_id: str | None) -> bool:
        return visitors.visitor_of(self.rt, session_id) is not None

    def uid(self, session_id: str) -> str:
        uid = self.visitor(session_id).actor_uid
        assert uid is not None
        return uid

    def sign_in(
        self, name: str, password: str = PASSWORD, browser: Browser = HOME, **more: str
    ) -> sign_ins.SignedIn:
        return sign_ins.with_password(self.rt, browser, name, password, **more)

    def key(self, **names: str) -> api_keys.Minted:
        return api_keys.mint(self.rt, COMMAND_LINE, api_keys.KeyRequest(**names))

    def log(self) -> list[AuditEntry]:
        """The audit log, oldest first."""
        return list(reversed(list(audit.every(self.rt, COMMAND_LINE))))

    def actions(self) -> list[tuple[str, str]]:
        return [(entry.actor, entry.action) for entry in self.log()]
