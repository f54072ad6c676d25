"""Telemetry over the services, on each storage."""

from services.conftest import open_services as open_services
