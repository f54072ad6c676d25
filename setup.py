"""Find the packages on the repository's four shelves; all else is in setup.cfg."""

import re
from pathlib import Path

from setuptools import find_packages, setup

SHELVES = (".", "backends", "config", "plugins")

package_dir = {
    package: f"{shelf}/{package.replace('.', '/')}"
    for shelf in SHELVES
    for package in find_packages(shelf, include=["memservice*"])
}


def long_description() -> str:
    """README.md as the page of a package index shows it: without pictures, and with text instead of
    links to files of the repository."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    text = re.sub(r"<picture>.*?</picture>", "", text, flags=re.S)
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)


setup(
    packages=list(package_dir),
    package_dir=package_dir,
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
