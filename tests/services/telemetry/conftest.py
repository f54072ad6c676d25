"""Telemetry over the services, on each storage."""

from services.conftest import begin as begin
