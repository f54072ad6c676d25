"""The contract of a storage.

Subclass `StorageContract`, give it the fixture `open_storage`, and run pytest: a callable without
arguments that opens the store of this test and returns it migrated. Called again within a test it
opens the same place once more (a storage without the capability `SHARED` is opened once). Every
test begins with an empty store; what was opened is closed by the suite.

The chapters bear the names of the modules of `memservice.spi.repositories`, after those for rows,
filters and transactions. A difference that is meant is an override of the test with a reason, where
it can be found.
"""

from memservice.testing.storage.conclusions import ConclusionsChapter
from memservice.testing.storage.console import ConsoleChapter
from memservice.testing.storage.filters import FiltersChapter
from memservice.testing.storage.messages import MessagesChapter
from memservice.testing.storage.peers import PeersChapter
from memservice.testing.storage.properties import PropertiesChapter
from memservice.testing.storage.rows import RowsChapter
from memservice.testing.storage.sharing import SharingChapter
from memservice.testing.storage.spaces import SpacesChapter
from memservice.testing.storage.tasks import TasksChapter
from memservice.testing.storage.transactions import TransactionsChapter
from memservice.testing.storage.uniqueness import UniquenessChapter
from memservice.testing.storage.usage import UsageChapter
from memservice.testing.storage.workspaces import WorkspacesChapter

__all__ = ["StorageContract"]


class StorageContract(
    RowsChapter,
    UniquenessChapter,
    FiltersChapter,
    PropertiesChapter,
    TransactionsChapter,
    SharingChapter,
    WorkspacesChapter,
    PeersChapter,
    MessagesChapter,
    ConclusionsChapter,
    TasksChapter,
    SpacesChapter,
    UsageChapter,
    ConsoleChapter,
):
    """Everything that a storage has to do."""
