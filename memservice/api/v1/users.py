"""Users."""

from __future__ import annotations

from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v1 import paths, schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import Peer
from memservice.services.paging import Page
from memservice.services.v1 import users
from memservice.services.v1.resolve import Path

routes = Routes("users", "Users are the people in the conversations of an app.", "v1")


@routes.operation(
    "POST", paths.USERS, access=paths.OF_APP, body=schemas.UserCreate, answer=schemas.User
)
def create_user(call: Call, app_id: str) -> Peer:
    """Create a user

    409 if the name is in use.
    """
    return users.create(call.rt, call.principal, app_id, call.body["name"], call.body["metadata"])


@routes.operation(
    "GET", paths.USERS, access=paths.LOOK_UP, query=schemas.UserQuery, answer=schemas.User
)
def get_user(call: Call, app_id: str) -> Peer:
    """Get the user with this id, or the user of the key"""
    return users.get(call.rt, call.principal, app_id, call.query["user_id"])


@routes.operation(
    "POST",
    paths.USERS + "/list",
    reads=True,
    access=paths.OF_APP,
    query=PageQuery,
    body=schemas.UserGet,
    body_optional=True,
    answer=page_of(schemas.User),
)
def get_users(call: Call, app_id: str) -> Page[Peer]:
    """List an app's users"""
    return users.page(call.rt, call.principal, app_id, call.body["filter"], paging(call.query))


@routes.operation("GET", paths.USERS + "/name/<name>", access=paths.OF_APP, answer=schemas.User)
def get_user_by_name(call: Call, app_id: str, name: str) -> Peer:
    """Get a user by its name"""
    return users.by_name(call.rt, call.principal, app_id, name)


@routes.operation(
    "GET",
    paths.USERS + "/get_or_create/<name>",
    access=paths.OF_APP,
    writes=True,
    answer=schemas.User,
)
def get_or_create_user(call: Call, app_id: str, name: str) -> Peer:
    """Get a user by its name, or create it"""
    return users.get_or_create(call.rt, call.principal, app_id, name)


@routes.operation(
    "PUT", paths.USER, access=paths.OF_USER, body=schemas.UserUpdate, answer=schemas.User
)
def update_user(call: Call, app_id: str, user_id: str) -> Peer:
    """Rename a user, or replace its metadata"""
    return users.update(
        call.rt, call.principal, Path(app_id, user_id), call.body["name"], call.body["metadata"]
    )
