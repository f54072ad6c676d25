"""The paths of generation 1, and the keys that open them."""

from __future__ import annotations

from memservice.api.auth import RouteAccess

APPS = "/v1/apps"
APP = APPS + "/<app_id>"
USERS = APP + "/users"
USER = USERS + "/<user_id>"
SESSIONS = USER + "/sessions"
SESSION = SESSIONS + "/<session_id>"
MESSAGES = SESSION + "/messages"
METAMESSAGES = USER + "/metamessages"
COLLECTIONS = USER + "/collections"
COLLECTION = COLLECTIONS + "/<collection_id>"
DOCUMENTS = COLLECTION + "/documents"

OF_ADMINS = RouteAccess(admin=True)
OF_APP = RouteAccess(workspace="app_id", by_uid=True)
OF_USER = RouteAccess(workspace="app_id", peer="user_id", by_uid=True)
OF_SESSION = RouteAccess(workspace="app_id", peer="user_id", session="session_id", by_uid=True)
OF_COLLECTIONS = RouteAccess(workspace="app_id", peer="user_id", of_collections=True, by_uid=True)
OF_COLLECTION = RouteAccess(
    workspace="app_id",
    peer="user_id",
    collection="collection_id",
    of_collections=True,
    collections=True,
    by_uid=True,
)

# The resource of a look-up is named by the query or by the key: the service decides.
LOOK_UP_APP = RouteAccess(handler=True)
LOOK_UP = RouteAccess(workspace="app_id", handler=True, by_uid=True)
LOOK_UP_COLLECTION = RouteAccess(
    workspace="app_id", handler=True, of_collections=True, collections=True, by_uid=True
)
