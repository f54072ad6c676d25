"""An empty store for each test, in a location that the operator provides for test data.

In the location, `{path}` stands for a file or directory and `{unique}` for a new name; each test
has its own. If the provider's settings have a `schema` or a `namespace`, each test has its own too.
The store is erased after the test.
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
"""Settings that separate installations on one server."""
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
        """`section`: the provider's settings; `location`: the URI or URL, with `{path}` or
        `{unique}` where each test has its own part.

        Raises `ConfigurationError` if a shared provider has nothing that separates tests.
        """
        self._plugins = plugins
        self._provider = provider
        self._section = section
        self._location = location
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
                f"every test needs its own location: write {PATH} or {UNIQUE} into "
                "--scratch, where each test's own name goes"
            )

    @contextmanager
    def one(self, folder: Path) -> Iterator[Callable[[], Any]]:
        """Yields a function that opens the provider in a new location. Close what it returns before
        the block ends: then the location is erased."""
        name = f"check_{uuid.uuid4().hex[:16]}"
        location = self._location.replace(PATH, str(folder / "place")).replace(UNIQUE, name)
        location_fields = (
            ("uri", "connection_uri") if isinstance(self._provider, StorageProvider) else ("url",)
        )
        options = {
            **self._section,
            **dict.fromkeys(location_fields, location),
            **dict.fromkeys(self._apart, name),
        }
        was_opened = False

        def opened() -> Any:
            nonlocal was_opened
            provider = self._plugins.open_provider(self._provider, options, self._context)
            was_opened = True
            return provider

        try:
            yield opened
        finally:
            if was_opened:
                self._plugins.erase(self._provider, options, self._context)
