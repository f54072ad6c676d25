"""Routes of generation 2: most are those of the newest one, with another path and another
status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from flask import Response, request
from flask.sansio.blueprints import BlueprintSetupState
from msgspec.structs import asdict

from memservice.api import routing
from memservice.api.routing import EXTENSION, Handler, Operation
from memservice.api.v2.client import EARLIEST_PATH, client_of, serving

_PATH, _NEWEST_PATH = "/v2/", "/v3/"
_HERE = _PATH + "workspaces"


class Routes(routing.Routes):
    """A group of operations. Routes under `/v2/workspaces` also exist under `/v1/workspaces`,
    undocumented: this API was served there before it became a separate generation."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(name, description, "v2")

    def operation(
        self, method: str, rule: str, *, also: Sequence[str] = (), **declared: Any
    ) -> Callable[[Handler], Handler]:
        earliest = [
            EARLIEST_PATH + path.removeprefix(_PATH)
            for path in (rule, *also)
            if path.startswith(_HERE)
        ]
        return super().operation(method, rule, also=(*also, *earliest), **declared)

    def _view(self, operation: Operation, handler: Handler) -> Callable[..., Response]:
        view = super()._view(operation, handler)

        @wraps(view)
        def view_for_client(**path: str) -> Response:
            with serving(client_of(request)):
                return view(**path)

        return view_for_client

    def _serve(
        self,
        state: BlueprintSetupState,
        rule: str,
        name: str,
        view: Callable[..., Response],
        method: str,
    ) -> None:
        """Paths of generation 1 are served only if it is enabled."""
        if (
            not rule.startswith(EARLIEST_PATH)
            or state.app.extensions[EXTENSION].settings.api.v1_enabled
        ):
            super()._serve(state, rule, name, view, method)

    def as_newest(
        self,
        source: routing.Routes,
        handler: Callable[..., Any],
        *,
        also: Sequence[str] = (),
        **changes: Any,
    ) -> None:
        """Serve the same operation as the newest generation with this handler, with these `changes`
        of its declaration.

        Its status 201 becomes 200.
        """
        (newest,) = [operation for operation, name in source.operations if name == handler.__name__]
        declared = {
            name: value for name, value in asdict(newest).items() if name not in ("method", "rule")
        }
        if 201 in newest.status:
            declared["status"], handler = (200,), _without_status(handler)
        rule = _PATH + newest.rule.removeprefix(_NEWEST_PATH)
        self.operation(
            newest.method, changes.pop("rule", rule), also=also, **{**declared, **changes}
        )(handler)


def _without_status(handler: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(handler)
    def handle(*args: Any, **path: str) -> Any:
        result = handler(*args, **path)
        return result[0] if type(result) is tuple else result

    return handle
