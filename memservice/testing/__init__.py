"""Contract suites: what every plugin of a kind has to do, as pytest classes that a plugin author
subclasses.

Each suite asks for one fixture that gives the object under test. Tests are skipped only where the
object declares that it lacks a capability, and then say so. Needs the extra `testing`.

```python
from memservice.testing.storage import StorageContract

class TestMyStorage(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path):
        return lambda: opened_and_migrated(tmp_path / "my.store")
```
"""

import pytest

# So that a failing assertion inside a suite shows its values, as one in a test file does.
pytest.register_assert_rewrite(
    *(
        f"memservice.testing.{suite}"
        for suite in ("storage", "text", "vectors", "embedding", "reasoner", "webhooks")
    ),
)
