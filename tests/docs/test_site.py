"""The documentation site: Sphinx builds it without a warning, it loads nothing from other servers,
and its search works without one."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import snowballstemmer

from memservice.app import create_app
from memservice.settings import Settings
from support.browser import chromium

NEEDED = ("sphinx", "furo", "myst_parser")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # half a minute of CPU, on machines that do other things too
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(bool(MISSING), reason=f"needs the extra docs ({', '.join(MISSING)})"),
]


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, from a copy of the files that it is made from."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("docs", "changes", "memservice", "backends", "config", "plugins"):
        ignored = shutil.ignore_patterns("generated", "__pycache__")
        shutil.copytree(root / name, copy / name, ignore=ignored)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml"):
        shutil.copy(root / name, copy)
    built = tmp_path_factory.mktemp("site")
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(built)],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return built


def pages(site: Path) -> list[Path]:
    return [page for page in site.rglob("*.html") if "_static" not in page.parts]


def test_every_page_is_in_the_site(site: Path, root: Path) -> None:
    built = {page.relative_to(site).with_suffix("").as_posix() for page in pages(site)}
    written = {
        page.relative_to(root / "docs").with_suffix("").as_posix()
        for page in (root / "docs").rglob("*.md")
        if "generated" not in page.parts
    }
    assert written <= built
    assert {"generated/messages", "generated/changelog", "search", "genindex"} <= built


def test_the_pages_load_nothing_from_other_servers(site: Path) -> None:
    loading = re.compile(
        r"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|srcset|data)="
        r'"(?:https?:)?//[^"]*"'
        r'|<link\b(?![^>]*rel="(?:canonical|author|license)")[^>]*href="(?:https?:)?//[^"]*"'
    )
    addresses = {
        (page.name, match)
        for page in pages(site)
        for match in loading.findall(page.read_text(encoding="utf-8"))
    }
    assert addresses == set()
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", text) == [], sheet.name
    assert len(pages(site)) > 40


def test_the_test_of_loading_finds_what_loads(site: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text('<script src="https://cdn.example.com/x.js"></script>')
    with pytest.raises(AssertionError, match="bad"):
        test_the_pages_load_nothing_from_other_servers(tmp_path)


def index_of(site: Path) -> dict[str, object]:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index: dict[str, object] = json.loads(text.removeprefix("Search.setIndex(").rstrip(");\n"))
    return index


@pytest.mark.parametrize(
    ("term", "page"),
    [
        ("balthazar", "start"),
        ("pgvector", "operations"),
        ("dimension", "generated/messages"),
        ("towncrier", "releasing"),
    ],
)
def test_the_search_index_finds_a_term(site: Path, term: str, page: str) -> None:
    index = index_of(site)
    names, terms = index["docnames"], index["terms"]
    assert isinstance(names, list)
    assert isinstance(terms, dict)
    postings = terms[snowballstemmer.stemmer("english").stemWord(term)]
    numbers = postings if isinstance(postings, list) else [postings]
    assert page in {names[number] for number in numbers}


def test_every_operation_of_the_api_is_described(site: Path) -> None:
    client = create_app(Settings()).test_client()
    for generation in ("v1", "v2", "v3"):
        paths = client.get(f"/{generation}/openapi.json").get_json()["paths"]
        page = (site / "generated" / "api" / f"{generation}.html").read_text(encoding="utf-8")
        operations = set(re.findall(r"^(?:<pre><span></span>)?([A-Z]+ /\S*)$", _text(page), re.M))
        expected = {
            f"{method.upper()} {path}"
            for path, methods in paths.items()
            for method in methods
            if method != "parameters"
        }
        assert expected <= operations, generation


def test_every_hook_and_interface_is_described(site: Path) -> None:
    from memservice import hookspecs
    from memservice.spi import storage

    hooks = (site / "generated/python/memservice.hookspecs.html").read_text(encoding="utf-8")
    names = [name for name in vars(hookspecs) if name.startswith("memservice_")]
    assert len(names) > 8
    assert [name for name in names if f'id="memservice.hookspecs.{name}"' not in hooks] == []
    spi = (site / "generated/python/memservice.spi.html").read_text(encoding="utf-8")
    assert f'id="{storage.Storage.__module__}.Storage"' in spi


def test_every_picture_is_in_the_site(site: Path) -> None:
    shown = {
        (page, source.split()[0])
        for page in pages(site)
        for source in re.findall(r'(?:src|srcset)="([^"]+)"', page.read_text(encoding="utf-8"))
        if not source.startswith("data:")
    }
    assert [name for page, name in shown if not (page.parent / name.split("?")[0]).is_file()] == []
    assert {name.rpartition("/")[2] for _, name in shown} >= {"architecture.svg", "peer-dark.webp"}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The files of a folder over HTTP, on the loopback address."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.heavy
@pytest.mark.skipif(bool(chromium.MISSING), reason=chromium.MISSING or "not skipped")
def test_a_reader_finds_a_page_without_other_servers(site: Path) -> None:
    """In a browser, from the search field to the page; nothing is asked of another server."""
    with served(site) as url, chromium.launched() as browser:
        page = browser.new_page()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{url}/index.html")
        page.locator("input[name=q]").first.fill("tortoise")
        page.keyboard.press("Enter")
        page.locator("#search-results a", has_text="Start").first.click(timeout=30_000)
        page.wait_for_url("**/start.html*")
        assert page.locator("h1").inner_text().startswith("Start")
        assert [address for address in requests if not address.startswith(url)] == []


def _text(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html).replace("&lt;", "<").replace("&gt;", ">")
