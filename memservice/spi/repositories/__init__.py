"""What services ask of a storage, by noun, written once over `memservice.spi.rows.Rows`.

A storage is correct with these as they are. One that is faster at a method overrides it in a
subclass and returns that from its `Transaction`; the contract suite holds both to the same answers.
No rule of the product lives here.
"""

from memservice.spi.repositories.conclusions import Cards, Conclusions
from memservice.spi.repositories.console import (
    AuditLog,
    ConsoleLinks,
    ConsoleMembers,
    SignIns,
)
from memservice.spi.repositories.facts import Facts
from memservice.spi.repositories.keys import Keys
from memservice.spi.repositories.members import Members
from memservice.spi.repositories.messages import Messages, Position, Summaries
from memservice.spi.repositories.peers import Peers
from memservice.spi.repositories.sessions import Sessions
from memservice.spi.repositories.spaces import Spaces
from memservice.spi.repositories.tasks import QueueCount, Tasks
from memservice.spi.repositories.usage import Ledger, UsageTotal
from memservice.spi.repositories.webhooks import Webhooks
from memservice.spi.repositories.workspaces import Located, Workspaces

__all__ = [
    "AuditLog",
    "Cards",
    "Conclusions",
    "ConsoleLinks",
    "ConsoleMembers",
    "Facts",
    "Keys",
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
    "Summaries",
    "Tasks",
    "UsageTotal",
    "Webhooks",
    "Workspaces",
]
