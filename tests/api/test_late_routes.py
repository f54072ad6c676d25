"""What a route needs is made when it is first used."""

from __future__ import annotations

from typing import Any

from memservice.api.auth import RouteAccess
from memservice.api.document import Document
from memservice.api.routing import Routes
from memservice.api.schema import BaseSchema
from memservice.app import create_app
from memservice.settings import load_settings

MEMORY = load_settings(environ={}, overrides={"DB_CONNECTION_URI": "memory://"})
instances: list[type[BaseSchema]] = []


class Counted(BaseSchema):
    def __init__(self, **options: Any) -> None:
        instances.append(type(self))
        super().__init__(**options)


class Question(Counted):
    """What is asked for."""


class Reply(Counted):
    """What is returned."""


def test_a_route_makes_its_schemas_at_its_first_request_and_only_then() -> None:
    instances.clear()
    routes = Routes("late", "Made late")

    @routes.operation(
        "GET", "/v3/late", access=RouteAccess(open=True), query=Question, answer=Reply, alone=True
    )
    def reply() -> object:
        """Answer

        In two
        lines.
        """
        return object()

    app = create_app(MEMORY)
    app.register_blueprint(routes)
    document = Document(app, "late", "1", requires_keys=False)
    document.describe(routes)
    assert instances == []
    client = app.test_client()
    for _ in range(2):
        assert client.get("/v3/late").get_json() == {}
        assert instances == [Question, Reply]

    described = document.content()["paths"]["/v3/late"]["get"]
    assert (described["operationId"], described["summary"]) == ("reply", "Answer")
    assert described["description"] == "In two lines."
