"""What services ask of a storage, by noun, written once over `memservice.spi.rows.Rows`.

A storage is correct with these as they are. One that is faster at a method overrides it in a subclass and returns that from its
`View`; the contract suite holds both to the same answers. No rule of the product lives here.
"""

from memservice.spi.nouns.conclusions import Cards, Conclusions
from memservice.spi.nouns.keys import Keys
from memservice.spi.nouns.messages import Messages, Position, Summaries
from memservice.spi.nouns.people import Members, Peers
from memservice.spi.nouns.places import Located, Sessions, Workspaces
from memservice.spi.nouns.store import Facts, Spaces
from memservice.spi.nouns.usage import Ledger, UsageTotal
from memservice.spi.nouns.webhooks import Webhooks
from memservice.spi.nouns.work import QueueCount, Tasks

__all__ = [
    "Cards",
    "Conclusions",
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
    "Spaces",
    "Summaries",
    "Tasks",
    "UsageTotal",
    "Webhooks",
    "Workspaces",
]
