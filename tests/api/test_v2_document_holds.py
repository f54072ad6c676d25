"""What is sent as the second generation's document says is answered as it says, and never with a
server error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode

from api.test_attacks_across import own_handlers_of_v2
from api.test_document_holds import FEW, MANY, DocumentedApi, ask
from memservice.api import v2
from memservice.api.routing import walk

OPERATIONS = sorted(
    (operation.rule.replace("<", "{").replace(">", "}"), operation.method)
    for operation, _ in walk(v2.GROUPS)
)
OWN = {(rule.replace("<", "{").replace(">", "}"), method) for method, rule in own_handlers_of_v2()}
"""The answers of the others are made by handlers of generation 3."""


@pytest.fixture(scope="module")
def documented_api() -> Iterator[DocumentedApi]:
    opened = DocumentedApi("v2")
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "method"),
    [
        pytest.param(*operation, marks=() if operation in OWN else pytest.mark.heavy)
        for operation in OPERATIONS
    ],
)
def test_answers_are_as_described(documented_api: DocumentedApi, path: str, method: str) -> None:
    @FEW
    @given(data=st.data())
    def check_answers(data: st.DataObject) -> None:
        ask(documented_api, path, method, data, GenerationMode.POSITIVE)

    check_answers()


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_answers_are_as_described_to_many_requests(
    documented_api: DocumentedApi, path: str, method: str, mode: GenerationMode
) -> None:
    @MANY
    @given(data=st.data())
    def check_answers(data: st.DataObject) -> None:
        ask(documented_api, path, method, data, mode)

    check_answers()
