"""Find the packages on the repository's three shelves; all else is in setup.cfg."""

from setuptools import find_packages, setup

SHELVES = (".", "backends", "plugins")

package_dir = {
    package: f"{shelf}/{package.replace('.', '/')}"
    for shelf in SHELVES
    for package in find_packages(shelf, include=["memservice*"])
}

setup(packages=list(package_dir), package_dir=package_dir)
