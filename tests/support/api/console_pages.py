"""A console with and without data, and the pages of it that links lead to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.api.console_site import Page, Site, opened


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with opened(tmp_path) as opened_site:
        yield opened_site


@pytest.fixture
def filled_site(site: Site) -> Site:
    site.say("w", "s1", *(("alice", f"message {number}") for number in range(70)))
    site.say("w", "s1", ("bob", "I like tea"))
    site.conclude("w", "alice", "alice", "likes tea", "lives in Ghent")
    site.conclude("w", "bob", "alice", "is kind")
    return site


def paths(page: Page) -> set[str]:
    return {urlsplit(link).path for link in page.links}


def crawled(site: Site, start: str = "/console") -> dict[str, Page]:
    """Every page that links lead to, by its address; no downloads."""
    pages: dict[str, Page] = {}
    left = [start]
    while left:
        url = left.pop()
        if url in pages:
            continue
        pages[url] = page = site.page(url)
        for link in page.links:
            parts = urlsplit(link)
            assert parts.netloc == "localhost"
            if parts.path.startswith("/console") and "/export" not in parts.path:
                left.append(parts.path + (f"?{parts.query}" if parts.query else ""))
        assert len(pages) < 200, "the crawl does not end"
    return pages
