"""Endpoints of providers, opened from the settings of their connection."""

from __future__ import annotations

from collections.abc import Mapping

from memservice.domain.errors import ConfigurationError
from memservice.spi.providers import Context, Settings
from memservice_http.client import MAX_ANSWER, Endpoint


def open_endpoint(
    name: str,
    settings: Settings,
    context: Context,
    *,
    base_url: str,
    missing: str,
    headers: Mapping[str, str],
    max_answer: int | None = None,
) -> Endpoint:
    """An endpoint at `base_url`. `missing`: which settings to make, for the error without a key, a
    base URL and extra headers. `headers`: credentials and version. `max_answer`: bytes."""
    if not settings["api_key"] and not settings["base_url"] and not settings["extra_headers"]:
        raise ConfigurationError(f"{name}: no model is configured: set {missing}")
    return Endpoint(
        name, base_url, headers, settings, context.clock, max_answer=max_answer or MAX_ANSWER
    )
