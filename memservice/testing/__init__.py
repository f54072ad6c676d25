"""Contract suites: the requirements of every kind of plugin, as pytest classes that a plugin author
subclasses.

Each suite needs one fixture that returns the object under test. A test is skipped only if the
object declares that it lacks a capability; the reason names it. Needs the extra `testing`.

```python
from memservice.testing.storage import StorageContract

class TestMyStorage(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path):
        return lambda: opened_and_migrated(tmp_path / "my.store")
```
"""

import pytest

# A failing assertion inside a suite then shows its values, like one in a test file.
pytest.register_assert_rewrite(
    *(
        f"memservice.testing.{suite}"
        for suite in ("storage", "text", "vectors", "embedding", "reasoner", "webhooks")
    ),
)
