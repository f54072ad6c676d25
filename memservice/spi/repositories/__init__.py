"""Repositories: the data access of services, one per entity, over `memservice.spi.rows.Rows`.

Every storage is correct with these. To make a method faster, override it in a subclass and return
that from your `Transaction`; the contract suite requires the same results. Repositories have no
rules of the product.
"""

from memservice.spi.repositories.conclusions import Cards, Conclusions
from memservice.spi.repositories.console import (
    AuditLog,
    ConsoleLinks,
    ConsoleMembers,
    SignIns,
)
from memservice.spi.repositories.erasures import Erasures
from memservice.spi.repositories.facts import Facts
from memservice.spi.repositories.keys import Keys
from memservice.spi.repositories.members import Members
from memservice.spi.repositories.messages import Counted, Messages, Position, Span, Summaries
from memservice.spi.repositories.peers import Peers
from memservice.spi.repositories.sessions import Sessions
from memservice.spi.repositories.spaces import Spaces
from memservice.spi.repositories.tasks import KindCount, QueueCount, Tasks
from memservice.spi.repositories.usage import Ledger, UsageTotal
from memservice.spi.repositories.webhooks import Webhooks
from memservice.spi.repositories.workspaces import Located, Workspaces

__all__ = [
    "AuditLog",
    "Cards",
    "Conclusions",
    "ConsoleLinks",
    "ConsoleMembers",
    "Counted",
    "Erasures",
    "Facts",
    "Keys",
    "KindCount",
    "Ledger",
    "Located",
    "Members",
    "Messages",
    "Peers",
    "Position",
    "QueueCount",
    "Sessions",
    "SignIns",
    "Spaces",
    "Span",
    "Summaries",
    "Tasks",
    "UsageTotal",
    "Webhooks",
    "Workspaces",
]
