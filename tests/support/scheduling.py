"""Which tests run in the same process."""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

FOLDERS = ("tests/api/", "tests/contracts/", "tests/services/", "tests/unit/")
"""Folders whose files run as a whole. Their tests are short, and cost less than the fixtures and
caches of a module, which each process with tests of the file would make again."""


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """Distribute files of short tests as a whole, and all other tests one by one. Tests with the
    same `xdist_group` stay together."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return (
            nodeid.partition("::")[0] if group == nodeid and nodeid.startswith(FOLDERS) else group
        )
