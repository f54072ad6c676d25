"""Routes and console pages of plugins: their access rules, and the objects they work with.

```python
@extra.get("/extra/<workspace_id>")
@access(Access(workspace="workspace_id"))
def answer(workspace_id):
    return {"peers": count_peers(runtime(), principal(), workspace_id)}
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")

_ATTRIBUTE = "memservice_access"


class Access(Struct, frozen=True):
    """The keys that give access to a route. An admin key gives access to every route. The default
    is no other key."""

    open: bool = False
    """No key is needed. `principal()` is then the bearer of the key that the request carries, or,
    while authentication is on and there is no key, a principal that may do nothing."""
    workspace: str | None = None
    """The name of a path parameter that contains a workspace id: a key of that workspace gives
    access. Keys of peers and sessions do not."""


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
    """The access that a view function or a blueprint declares; None if it declares none."""
    rule = getattr(target, _ATTRIBUTE, None)
    return rule if isinstance(rule, Access) else None


class ConsolePage(Struct, frozen=True):
    """A page of a plugin in the console, with an entry in its menu
    (`memservice_console_pages`)."""

    name: str
    """Its title, and its text in the menu."""
    path: str
    """Its address below `/console/plugins/`: lower-case letters, digits and dashes."""
    template: Path
    """A Jinja template: what the page shows below its title. Values are escaped. Scripts and
    styles inside it do not run: the console's Content-Security-Policy forbids both."""
    values: Callable[[], Mapping[str, Any]] = dict
    """Called for each request; returns the template's variables. It can call `runtime()` and
    `principal()`."""
    access: Access = ADMIN
    """Its readers: administrators, or (`OPEN`) everyone with access to the console."""


class Bound(Protocol):
    """What the application provides for one request to a route of a plugin."""

    @property
    def runtime(self) -> Any: ...

    @property
    def settings(self) -> Any: ...

    @property
    def requires_keys(self) -> bool: ...

    def principal(self) -> Any: ...

    def admit(self, principal: Any, /) -> None: ...

    def health(self) -> Any: ...

    def hold_slot(self) -> Callable[[], None]: ...


_bound: ContextVar[Bound | None] = ContextVar("memservice_web", default=None)


def bind(bound: Bound | None) -> None:
    """For the application: set what the functions of this module use in this request; None after
    its end."""
    _bound.set(bound)


def _current() -> Bound:
    bound = _bound.get()
    if bound is None:
        raise RuntimeError(
            "memservice.spi.web works only while a request to a route of a plugin is handled"
        )
    return bound


def runtime() -> Any:
    """The opened parts of this process (`memservice.runtime.Runtime`): the first argument of every
    service."""
    return _current().runtime


def settings() -> Any:
    """The settings in force. Opens no storage."""
    return _current().settings


def principal() -> Any:
    """The caller (`memservice.services.auth.principal.Principal`): the second argument of every
    service, which decides by it what it returns and changes. Raises `Unauthorised` for a key that
    is not valid. While authentication is off, every caller may do everything."""
    return _current().principal()


def admit(principal: Any) -> None:
    """Make `principal()` return this caller for the rest of the request. For a plugin that
    recognises callers itself, as the console recognises its members by a cookie."""
    _current().admit(principal)


def requires_keys() -> bool:
    """Whether authentication is on."""
    return _current().requires_keys


def health() -> Any:
    """The checks of `memservice doctor` (`memservice.operations.doctor.Check`), at most a few
    seconds old; all requests share them."""
    return _current().health()


def hold_slot() -> Callable[[], None]:
    """Reserve one of the process's slots for slow answers. Returns the function that frees it,
    which can be called repeatedly. Raises `Busy` if all are in use."""
    return _current().hold_slot()
