"""What goes wrong in a browser without a page showing it: errors, dialogs and requests."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

LOCAL_SCHEMES = {"data", "blob", "about"}
_FAILED_DOCUMENT = re.compile(r"Failed to load resource: .* status of (\d+)")


class Watch:
    """Notes for each page of a browser context what a reader does not see. `problems` is empty if
    nothing went wrong."""

    def __init__(self, context: Any, origin: str) -> None:
        """`origin`: the only origin that pages may load anything from."""
        self.origin = origin
        self.problems: list[str] = []
        context.on("page", self._add_page)
        context.on("request", self._check_request)

    def check(self) -> None:
        """Fails with all problems since the last call."""
        problems, self.problems = self.problems, []
        assert not problems, problems

    def _add_page(self, page: Any) -> None:
        page.on("pageerror", lambda error: self.problems.append(f"error of a script: {error}"))
        page.on("console", lambda message: self._check_console(page, message))
        page.on("dialog", self._dismiss)

    def _check_console(self, page: Any, message: Any) -> None:
        """Violations of the Content-Security-Policy are errors here, too."""
        if message.type not in ("error", "warning"):
            return
        # The caller of `goto` compares the status of the document.
        if _FAILED_DOCUMENT.match(message.text) and message.location.get("url") == page.url:
            return
        self.problems.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _check_request(self, request: Any) -> None:
        url = urlsplit(request.url)
        if url.scheme not in LOCAL_SCHEMES and f"{url.scheme}://{url.netloc}" != self.origin:
            self.problems.append(f"a request to another origin: {request.url}")

    def _dismiss(self, dialog: Any) -> None:
        self.problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()
