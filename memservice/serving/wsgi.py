"""The application as gunicorn loads it, once in each of its processes."""

from memservice.app import create_app
from memservice.serving.logs import set_up_logging
from memservice.settings import load_settings

_settings = load_settings()
set_up_logging(_settings)
app = create_app(_settings)
