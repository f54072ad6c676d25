"""Limits of what a caller may send that are neither settings nor part of the contract.
`docs/operations.md` lists them in a table."""

from __future__ import annotations

MAX_QUERY = 10_000
"""Characters of a search query, and of a question."""

MAX_QUESTIONS = 25
"""Questions of `MAX_QUERY` characters that a caller of `/v1` may join into one."""

MAX_CONCLUSION = 65_535
"""Characters of a conclusion that a caller writes."""

MAX_CARD_LINE = 500
"""Characters of one line of a peer card that a caller writes. The service writes shorter lines
(`card_rules`)."""

MAX_METADATA = 64 * 2**10
"""Bytes of metadata, and of a peer's configuration, as JSON in UTF-8 without needless blanks."""

MAX_BODY = 2**20
"""Bytes of a request's body."""

MAX_LARGE_BODY = 96 * 2**20
"""Bytes of a body with many texts: more than a hundred conclusions of maximum length with every
character escaped."""
