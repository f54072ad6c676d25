"""What a plugin says of its own routes: which keys open them while authentication is on.

```python
@extra.get("/extra/<workspace_id>")
@access(Access(workspace="workspace_id"))
def answer(workspace_id): ...
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

_ATTRIBUTE = "memservice_access"


@dataclass(frozen=True, slots=True)
class Access:
    """Which keys open a route, besides an admin key, which opens every route. The default is no
    other key."""

    open: bool = False
    """No key is needed."""
    workspace: str | None = None
    """The name of a parameter of the path: a key of the workspace that it names opens the route.
    Keys of peers and sessions do not."""


OPEN = Access(open=True)
ADMIN = Access()


def access(rule: Access) -> Callable[[T], T]:
    """Declare the access of a view function, or of every route of a blueprint that declares none
    itself: `access(OPEN)(blueprint)`."""

    def declare(target: T) -> T:
        setattr(target, _ATTRIBUTE, rule)
        return target

    return declare


def declared(target: Any) -> Access | None:
    """What was declared for a view function or a blueprint; None if nothing was."""
    found = getattr(target, _ATTRIBUTE, None)
    return found if isinstance(found, Access) else None
