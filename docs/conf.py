"""The documentation site: `sphinx-build -W --keep-going docs SITE` (extra `docs`)."""

import gc
import logging
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import memservice
from memservice.spi import vectors

sys.path.insert(0, str(Path(__file__).parent))

from generators import api_pages, messages_page, python_pages, root_pages

project = "memservice"
author = "The memservice authors"
copyright = "2026, The memservice authors"
version = release = memservice.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["generators"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
smartquotes = False
toc_object_entries = False
# The code has annotations; to look for comments with types takes a tenth of the time of a build.
autodoc_use_type_comments = False
# Annotations are short names, and a module may re-export what another one defines.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"memservice {version}"
html_show_sphinx = False
html_copy_source = False

GENERATORS = {
    ".": (root_pages.pages, messages_page.pages),
    "api": (api_pages.pages,),
    "python": (python_pages.pages,),
}


def write_generated_pages(app: Any) -> None:
    """Write the pages that are made from the code, before any page is read."""
    logging.getLogger("memservice").setLevel(logging.WARNING)
    for folder, generators in GENERATORS.items():
        target = Path(app.srcdir) / "generated" / folder
        target.mkdir(parents=True, exist_ok=True)
        for pages in generators:
            for name, text in pages():
                (target / f"{name}.md").write_text(text, encoding="utf-8")


def copy_screenshots(app: Any, failure: Exception | None) -> None:
    """Pages show them with `picture`, which Sphinx copies as it is. A release has none."""
    screenshots = Path(app.srcdir) / "images"
    if failure is None and screenshots.is_dir():
        shutil.copytree(screenshots, Path(app.outdir) / "images", dirs_exist_ok=True)


def name_vectors() -> None:
    """The signature of a struct is made from the values of its annotations, and `Vector` has a
    name for type checkers only: importing numpy would take a tenth of a second of each start."""
    vectors.Vector = NDArray[np.float32]


def setup(app: Any) -> None:
    name_vectors()
    # A page is a tree of thousands of nodes that stay until it is written: to look for cycles as
    # often as Python does by default takes a tenth of the time of a build.
    gc.set_threshold(100_000, 50, 100)
    app.connect("builder-inited", write_generated_pages)
    app.connect("source-read", root_pages.redirect_links)
    app.connect("source-read", root_pages.list_other_pages)
    app.connect("build-finished", copy_screenshots)
    app.connect("autodoc-process-docstring", python_pages.convert_docstring)
    app.connect("autodoc-skip-member", python_pages.is_skipped)
