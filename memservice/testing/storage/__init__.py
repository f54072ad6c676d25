"""The contract of a storage.

Subclass `StorageContract`, define the fixture `open_storage`, and run pytest. The fixture is a
callable without arguments that opens the store of this test and returns it migrated. A second call
within a test opens the same store again (a storage without the capability `SHARED` is opened once).
Every test begins with an empty store. The suite closes the storages that it opened.

The first chapters test rows, filters and transactions. The others have the names of the modules of
`memservice.spi.repositories`. To deviate on purpose, override the test and give the reason there.
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
    """The whole contract of a storage."""
