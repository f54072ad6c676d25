"""Debian's Chromium, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One process for all pages, which are of one site.
    "--disable-site-isolation-trials",
    "--in-process-gpu",
    "--renderer-process-limit=1",
)
MISSING = (
    "needs the PyPI package playwright"
    if find_spec("playwright") is None
    else "needs Chromium (Debian: apt-get install chromium)"
    if CHROMIUM is None
    else ""
)
"""Why a browser cannot start on this machine; empty if one can."""


@contextmanager
def launched() -> Iterator[Any]:
    """A browser without a window, as `playwright.sync_api.Browser`. Check `MISSING` first."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
