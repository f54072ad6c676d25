"""The documentation site: Sphinx builds it without a warning, it loads nothing from other servers,
and its search works without one. By default, a site of a few pages is built, and the pages that are
made from the code are read before Sphinx converts them: that of all takes half a minute of CPU."""

from __future__ import annotations

import importlib.util
import inspect
import io
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
from types import ModuleType
from typing import Any

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


FEW = ("start", "releasing", "glossary")


@pytest.fixture(scope="module")
def few(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built site of some of the pages, whose links to others lead nowhere."""
    source = tmp_path_factory.mktemp("few")
    for name in FEW:
        shutil.copy(root / "docs" / f"{name}.md", source)
    shutil.copytree(root / "docs" / "generators", source / "generators")
    (source / "index.md").write_text(
        "\n".join(["# Some", "```{toctree}", *FEW, "```", ""]), encoding="utf-8"
    )
    configuration = (root / "docs" / "conf.py").read_text(encoding="utf-8")
    changed = f"{configuration}\nGENERATORS = {{}}\nsuppress_warnings += ['myst.xref_missing']\n"
    (source / "conf.py").write_text(changed, encoding="utf-8")
    return built(source.parent, source.name, tmp_path_factory.mktemp("few-site"))


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, from a copy of the files that it is made from."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("docs", "changes", "memservice", "backends", "config", "plugins"):
        ignored = shutil.ignore_patterns("generated", "__pycache__")
        shutil.copytree(root / name, copy / name, ignore=ignored)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml"):
        shutil.copy(root / name, copy)
    return built(copy, "docs", tmp_path_factory.mktemp("site"))


def built(folder: Path, source: str, site: Path) -> Path:
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", source, str(site)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return site


def pages(site: Path) -> list[Path]:
    return [page for page in site.rglob("*.html") if "_static" not in page.parts]


@pytest.mark.heavy
def test_every_page_is_in_the_site(site: Path, root: Path) -> None:
    pages_built = {page.relative_to(site).with_suffix("").as_posix() for page in pages(site)}
    written = {
        page.relative_to(root / "docs").with_suffix("").as_posix()
        for page in (root / "docs").rglob("*.md")
        if "generated" not in page.parts
    }
    assert written <= pages_built
    assert {"generated/messages", "generated/changelog", "search", "genindex"} <= pages_built


FENCE = re.compile(r"^ *(`{3,})(\w+)[^\n]*\n(.*?)^ *\1$", re.M | re.S)


def test_every_block_of_code_is_highlighted(root: Path) -> None:
    """Sphinx warns of a language that Pygments does not know, and of text that is not in it."""
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Error

    faults, lexers = [], dict[str, Any]()
    for page in (root / "docs").rglob("*.md"):
        for _, name, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if "generated" not in page.parts:
                lexer = lexers.setdefault(name, get_lexer_by_name(name))
                faults += [
                    (page.name, part) for kind, part in lexer.get_tokens(text) if kind in Error
                ]
    assert faults == []
    assert {"sh", "python", "toml"} <= lexers.keys()


def docstrings(module: ModuleType) -> Iterator[str]:
    """That of a module, and those of its own classes, functions and properties."""
    own = [
        member
        for member in vars(module).values()
        if inspect.isfunction(member) or inspect.isclass(member)
        if member.__module__ == module.__name__
    ]
    inner = [
        member
        for kind in own
        if inspect.isclass(kind)
        for member in vars(kind).values()
        if inspect.isfunction(member) or isinstance(member, property)
    ]
    for documented in (module, *own, *inner):
        if not getattr(documented, "__name__", "").startswith(("test_", "_")):
            yield inspect.cleandoc(documented.__doc__ or "")


def test_every_docstring_is_valid_markup(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the modules that plugins are written with, as autodoc gives them to docutils."""
    monkeypatch.syspath_prepend(root / "docs")
    from docutils.core import publish_doctree
    from generators import python_pages

    texts = {
        python_pages.converted(text)
        for package in python_pages.PACKAGES
        for module in python_pages._modules(package)
        for text in docstrings(importlib.import_module(module))
    }
    assert len(texts) > 400
    warnings = io.StringIO()
    settings = {"warning_stream": warnings, "report_level": 2, "syntax_highlight": "none"}
    publish_doctree("\n\n".join(sorted(texts)), settings_overrides=settings)
    assert warnings.getvalue() == ""


def check_that_nothing_is_loaded(site: Path) -> None:
    """Neither by a page nor by a style sheet."""
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


@pytest.mark.heavy
def test_the_pages_load_nothing_from_other_servers(site: Path) -> None:
    check_that_nothing_is_loaded(site)
    assert len(pages(site)) > 40


def test_some_pages_load_nothing_from_other_servers(few: Path) -> None:
    check_that_nothing_is_loaded(few)
    assert len(pages(few)) > len(FEW)
    assert list(few.rglob("*.css"))


def test_the_test_of_loading_finds_what_loads(tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text('<script src="https://cdn.example.com/x.js"></script>')
    with pytest.raises(AssertionError, match="bad"):
        check_that_nothing_is_loaded(tmp_path)


def index_of(site: Path) -> dict[str, object]:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index: dict[str, object] = json.loads(text.removeprefix("Search.setIndex(").rstrip(");\n"))
    return index


def pages_with(site: Path, term: str) -> set[str]:
    index = index_of(site)
    names, terms = index["docnames"], index["terms"]
    assert isinstance(names, list)
    assert isinstance(terms, dict)
    postings = terms[snowballstemmer.stemmer("english").stemWord(term)]
    numbers = postings if isinstance(postings, list) else [postings]
    return {names[number] for number in numbers}


@pytest.mark.heavy
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
    assert page in pages_with(site, term)


def test_the_search_index_of_some_pages_finds_a_term(few: Path) -> None:
    assert pages_with(few, "towncrier") == {"releasing"}
    assert "start" in pages_with(few, "balthazar")


@pytest.fixture(scope="module")
def generated(root: Path) -> dict[str, str]:
    """The text of each page that is made from the code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "docs")
        from generators import api_pages, python_pages

        return {
            f"{folder}/{name}": text
            for folder, pages in (("api", api_pages.pages), ("python", python_pages.pages))
            for name, text in pages()
        }


def test_every_operation_of_the_api_is_described(generated: dict[str, str]) -> None:
    client = create_app(Settings()).test_client()
    for generation in ("v1", "v2", "v3"):
        paths = client.get(f"/{generation}/openapi.json").get_json()["paths"]
        operations = set(re.findall(r"^([A-Z]+ /\S*)$", generated[f"api/{generation}"], re.M))
        expected = {
            f"{method.upper()} {path}"
            for path, methods in paths.items()
            for method in methods
            if method != "parameters"
        }
        assert expected <= operations, generation


@pytest.mark.heavy
def test_every_hook_and_interface_is_described(site: Path) -> None:
    from memservice import hookspecs
    from memservice.spi import storage

    hooks = (site / "generated/python/memservice.hookspecs.html").read_text(encoding="utf-8")
    names = [name for name in vars(hookspecs) if name.startswith("memservice_")]
    assert len(names) > 8
    assert [name for name in names if f'id="memservice.hookspecs.{name}"' not in hooks] == []
    spi = (site / "generated/python/memservice.spi.html").read_text(encoding="utf-8")
    assert f'id="{storage.Storage.__module__}.Storage"' in spi


@pytest.mark.heavy
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
