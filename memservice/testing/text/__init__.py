"""The contract of a text index.

Subclass `TextIndexContract`, give it the fixture `open_index`, and run pytest: a callable without
arguments that opens the index of this test and returns it as an `Engine`. A second call within a
test opens the same index again. Every test begins empty.
"""

from memservice.testing.text.base import OTHER, OWN, OpenTextIndex, keys, row
from memservice.testing.text.changes import ChangesChapter
from memservice.testing.text.filters import FiltersChapter
from memservice.testing.text.isolation import IsolationChapter
from memservice.testing.text.matching import MatchingChapter

__all__ = ["OTHER", "OWN", "OpenTextIndex", "TextIndexContract", "keys", "row"]


class TextIndexContract(
    MatchingChapter,
    FiltersChapter,
    ChangesChapter,
    IsolationChapter,
):
    """The whole contract of a text index."""
