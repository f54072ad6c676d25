"""One request that is sent with many keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from typing import Any

import pytest
from flask import Flask
from flask.testing import EnvironBuilder
from werkzeug.test import run_wsgi_app

from memservice.domain.auth.jwt_signing import Signer


@contextmanager
def signatures_verified_once() -> Iterator[None]:
    """Verify the signature of each token once, and not with each of thousands of requests: it takes
    a tenth of the time of a short answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Signer, "_verified", cache(Signer._verified))
        yield


@dataclass(frozen=True)
class Answer:
    status_code: int
    headers: list[tuple[str, str]]
    data: bytes

    @cached_property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class PreparedRequest:
    """Built once. The test client builds each request anew, which takes a third of the time of a
    short answer."""

    def __init__(self, app: Flask, method: str, path: str, **options: Any) -> None:
        self._app = app
        builder = EnvironBuilder(app, path, method=method, **options)
        try:
            self._environ = builder.get_environ()
        finally:
            builder.close()
        self._environ["REMOTE_ADDR"] = "127.0.0.1"
        self._body = self._environ["wsgi.input"].read()

    def send(self, token: str | None) -> Answer:
        """The answer to the key, read to its end."""
        return self.send_header(None if token is None else f"Bearer {token}")

    def send_header(self, authorization: str | None) -> Answer:
        """The same with this header `Authorization`."""
        environ = {**self._environ, "wsgi.input": BytesIO(self._body)}
        if authorization is not None:
            environ["HTTP_AUTHORIZATION"] = authorization
        chunks, status, headers = run_wsgi_app(self._app, environ, buffered=True)
        return Answer(int(status.split()[0]), list(headers), b"".join(chunks))
