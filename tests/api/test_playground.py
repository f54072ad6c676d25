"""`/docs`: pages on which the API can be tried, with everything that they need and nothing from
elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from flask import Flask

from memservice.api import playground
from memservice.app import create_app
from memservice.settings import load_settings

FOLDER = Path(playground.__file__).parent


@pytest.fixture(scope="module")
def keyed() -> Flask:
    """With authentication: the page is served without a key, because it contains no data."""
    return create_app(load_settings(environ={"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40}))


@pytest.mark.slow
def test_the_page_loads_only_files_that_are_served(keyed: Flask) -> None:
    client = keyed.test_client()
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert answer.mimetype == "text/html"
    paths = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert len(paths) == 6
    for path in paths:
        assert not re.match(r"[a-z]+:|/", path), "relative, so that a proxy may add a prefix"
        with client.get(f"/{path}") as file:
            assert file.status_code == 200
            assert file.data


def test_the_policy_forbids_other_origins_and_inline_scripts(keyed: Flask) -> None:
    client = keyed.test_client()
    for path in ("/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js"):
        with client.get(path) as answer:
            policy = dict(
                part.strip().split(" ", 1)
                for part in answer.headers["Content-Security-Policy"].split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == "'self'"
            assert policy["connect-src"] == "'self'"
            assert policy["frame-ancestors"] == "'none'"
            assert not re.search(
                r"https?:|\*|unsafe-eval", answer.headers["Content-Security-Policy"]
            )
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|javascript:", client.get("/docs").text), (
        "no script inside the page"
    )


@pytest.mark.slow
def test_each_document_can_be_opened(keyed: Flask) -> None:
    client = keyed.test_client()
    match = re.search(r'data-documents="([^"]*)"', client.get("/docs").text)
    assert match is not None
    documents = json.loads(unescape(match[1]))
    assert [each["name"] for each in documents] == ["v3", "v2", "v1"]
    for each in documents:
        assert client.get(f"/{each['path']}").get_json()["openapi"].startswith("3.1")


@pytest.mark.slow
def test_a_key_can_be_entered(keyed: Flask) -> None:
    document = keyed.test_client().get("/openapi.json").get_json()
    assert document["components"]["securitySchemes"] == {
        "HTTPBearer": {"type": "http", "scheme": "bearer"}
    }
    operations = [
        (path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert [path for path, operation in operations if "security" not in operation] == [
        "/health",
        "/health/ready",
    ]


def test_the_page_calls_no_validator_and_takes_no_address_from_the_query() -> None:
    start = (FOLDER / "page" / "start.js").read_text(encoding="utf-8")
    assert "validatorUrl: null" in start
    assert "queryConfigEnabled: false" in start
    assert "persistAuthorization: false" in start


STARTED = """
const [start, address, documents] = process.argv.slice(1);
const page = { dataset: { documents }, append() {}, setAttribute() {} };
let given;
require("vm").runInNewContext(require("fs").readFileSync(start, "utf-8"), {
  document: { getElementById: () => page, createElement: () => ({ setAttribute() {} }) },
  location: new URL(address),
  URL, URLSearchParams,
  SwaggerUIBundle: Object.assign((options) => { given = options; }, { presets: { apis: {} } }),
});
const update = given.plugins[0]().statePlugins.spec.wrapActions.updateJsonSpec((described) => \
described);
console.log(JSON.stringify({ url: given.url, validatorUrl: given.validatorUrl, described: update({ \
info: { title: "t" } }) }));
"""
"""What the page's script asks of Swagger UI at an address."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node, which runs the page's script")
@pytest.mark.parametrize(
    ("address", "document", "root"),
    [
        ("http://localhost:8000/docs", "v3/openapi.json", "http://localhost:8000"),
        ("http://localhost:8000/docs?of=v1#/messages", "v1/openapi.json", "http://localhost:8000"),
        (
            "http://localhost:8000/docs?of=https://elsewhere.example/x.json",
            "v3/openapi.json",
            "http://localhost:8000",
        ),
        (
            "https://example.org/some/prefix/docs",
            "v3/openapi.json",
            "https://example.org/some/prefix",
        ),
    ],
)
def test_requests_go_to_the_origin_and_prefix_of_the_page(
    address: str, document: str, root: str
) -> None:
    """Behind a proxy's prefix as well: the key must not be sent to what else lives on that host."""
    documents = json.dumps(
        [{"name": name, "path": f"{name}/openapi.json"} for name in ("v3", "v1")]
    )
    command = ["node", "-e", STARTED, "--", str(FOLDER / "page" / "start.js"), address, documents]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    described = {"info": {"title": "t"}, "servers": [{"url": root}]}
    assert json.loads(result.stdout) == {
        "url": document,
        "validatorUrl": None,
        "described": described,
    }


@pytest.mark.parametrize(
    "path",
    [
        "/docs/..%2f__init__.py",
        "/docs/page.html",
        "/docs/nothing.js",
        "/docs/vendor/LICENSE",
        "/docs//start.js",
    ],
)
def test_other_files_are_not_served(keyed: Flask, path: str) -> None:
    answer = keyed.test_client().get(path)
    assert answer.status_code == 404
    assert answer.get_json() == {"detail": "Not Found"}


def test_assets_are_cached_and_revalidated(keyed: Flask) -> None:
    client = keyed.test_client()
    with client.get("/docs/swagger-ui.css") as answer:
        assert "max-age=3600" in answer.headers["Cache-Control"]
        tag = answer.headers["ETag"]
    with client.get("/docs/swagger-ui.css", headers={"If-None-Match": tag}) as again:
        assert again.status_code == 304


def test_the_page_is_served_with_a_trailing_slash(keyed: Flask) -> None:
    answer = keyed.test_client().get("/docs/")
    assert (answer.status_code, answer.headers["Location"]) == (307, "/docs")


def test_third_party_files_are_unmodified() -> None:
    vendor = FOLDER / "vendor"
    sums = dict(
        reversed(line.split())
        for line in re.findall(r"^    ([0-9a-f]{64} .*)$", (vendor / "README.md").read_text(), re.M)
    )
    assert sums.keys() == {path.name for path in vendor.iterdir()} - {"README.md"}
    for name, digest in sums.items():
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest, name
    assert "Apache License" in (vendor / "LICENSE").read_text()
    assert (vendor / "NOTICE").read_text().startswith("swagger-ui")
