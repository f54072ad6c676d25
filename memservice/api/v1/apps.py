"""Apps."""

from __future__ import annotations

from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v1 import paths, schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import Workspace
from memservice.services.paging import Page
from memservice.services.v1 import apps

routes = Routes(
    "apps", "Apps are isolated from each other. Each has its own users and their data.", "v1"
)


@routes.operation(
    "POST", paths.APPS, access=paths.OF_ADMINS, body=schemas.AppCreate, answer=schemas.App
)
def create_app(call: Call) -> Workspace:
    """Create an app

    409 if the name is in use.
    """
    return apps.create(call.rt, call.principal, call.body["name"], call.body["metadata"])


@routes.operation(
    "GET", paths.APPS, access=paths.LOOK_UP_APP, query=schemas.AppQuery, answer=schemas.App
)
def get_app(call: Call) -> Workspace:
    """Get the app with this id, or the app of the key"""
    return apps.get(call.rt, call.principal, call.query["app_id"])


@routes.operation(
    "POST",
    paths.APPS + "/list",
    reads=True,
    access=paths.OF_ADMINS,
    query=PageQuery,
    body=schemas.AppGet,
    body_optional=True,
    answer=page_of(schemas.App),
)
def get_all_apps(call: Call) -> Page[Workspace]:
    """List apps"""
    return apps.page(call.rt, call.principal, call.body["filter"], paging(call.query))


@routes.operation("GET", paths.APPS + "/name/<name>", access=paths.OF_ADMINS, answer=schemas.App)
def get_app_by_name(call: Call, name: str) -> Workspace:
    """Get an app by its name"""
    return apps.by_name(call.rt, call.principal, name)


@routes.operation(
    "GET",
    paths.APPS + "/get_or_create/<name>",
    access=paths.OF_ADMINS,
    writes=True,
    answer=schemas.App,
)
def get_or_create_app(call: Call, name: str) -> Workspace:
    """Get an app by its name, or create it"""
    return apps.get_or_create(call.rt, call.principal, name)


@routes.operation("PUT", paths.APP, access=paths.OF_APP, body=schemas.AppUpdate, answer=schemas.App)
def update_app(call: Call, app_id: str) -> Workspace:
    """Rename an app, or replace its metadata"""
    return apps.update(call.rt, call.principal, app_id, call.body["name"], call.body["metadata"])
