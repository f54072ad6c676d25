"""A place of its own for each test, within the one that an operator gave up to be filled and thrown
away.

In what names that place, `{path}` stands for a file or directory and `{unique}` for a name of the
test's own. Where the provider's settings have a `schema` or a `namespace`, the test has one of its
own as well. Afterwards it is erased.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, StorageProvider, VectorIndexProvider

APART = ("schema", "namespace")
"""Settings that keep installations apart which share a server."""
PATH, UNIQUE = "{path}", "{unique}"


class Scratch:
    def __init__(
        self,
        plugins: Plugins,
        provider: StorageProvider | VectorIndexProvider,
        section: Mapping[str, Any],
        location: str,
        context: Context,
    ) -> None:
        """`section`: the provider's settings; `location`: the URI or URL, in which a test's own
        part is marked.

        Raises `ConfigurationError` if what may be opened by several has nothing that would keep
        tests apart.
        """
        self._plugins = plugins
        self._provider = provider
        self._section = section
        self._place = location
        self._context = context
        fields = {} if provider.settings is None else provider.settings().fields
        self._apart = [
            field.data_key or name
            for name, field in fields.items()
            if (field.data_key or name) in APART
        ]
        marked = PATH in location or UNIQUE in location
        if not marked and not self._apart and Capability.SHARED in provider.capabilities:
            raise ConfigurationError(
                f"every test needs a place of its own: write {PATH} or {UNIQUE} into "
                "--scratch, where a new name is to go"
            )

    @contextmanager
    def one(self, folder: Path) -> Iterator[Callable[[], Any]]:
        """What opens the provider in a new place. The place is erased in the end: by then all that
        was opened in it has to be closed."""
        name = f"check_{uuid.uuid4().hex[:16]}"
        location = self._place.replace(PATH, str(folder / "place")).replace(UNIQUE, name)
        where = (
            ("uri", "connection_uri") if isinstance(self._provider, StorageProvider) else ("url",)
        )
        given = {
            **self._section,
            **dict.fromkeys(where, location),
            **dict.fromkeys(self._apart, name),
        }
        ever = False

        def opened() -> Any:
            nonlocal ever
            found = self._plugins.open_provider(self._provider, given, self._context)
            ever = True
            return found

        try:
            yield opened
        finally:
            if ever:
                self._plugins.erase(self._provider, given, self._context)
