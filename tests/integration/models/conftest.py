"""A scripted model server, and models that talk to it."""

from support.models.fixtures import calls as calls
from support.models.fixtures import context as context
from support.models.fixtures import open_embedder as open_embedder
from support.models.fixtures import open_model as open_model
from support.models.fixtures import plugins as plugins
from support.models.fixtures import requests_to_models as requests_to_models
from support.models.fixtures import server as server
