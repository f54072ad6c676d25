"""What tests of the conflicts between generations share."""

from __future__ import annotations

import pytest

from api.conftest import Api
from api.test_auth_first_generation import client as client
from support.api.all_generations import AllGenerations
from support.api.all_generations import all_generations as all_generations


@pytest.fixture
def user(all_generations: AllGenerations) -> str:
    """The path of alice, whom the first generation made."""
    return all_generations.v1.user(all_generations.v1.app())


def later(all_generations: AllGenerations) -> tuple[Api, Api]:
    return all_generations.v2, all_generations.newest


TORTOISE = "I adopted a tortoise named Balthazar."
