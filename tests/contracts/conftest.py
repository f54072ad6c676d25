"""Fixtures of the contract tests: a scripted model server, and models that talk to it."""

from integration.models.conftest import calls as calls
from integration.models.conftest import context as context
from integration.models.conftest import open_embedder as open_embedder
from integration.models.conftest import open_model as open_model
from integration.models.conftest import plugins as plugins
from integration.models.conftest import server as server
