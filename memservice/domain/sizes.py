"""How large may be what a caller sends, where neither a setting nor the contract says so.
`docs/operations.md` has them as a table."""

from __future__ import annotations

MAX_QUERY = 10_000
"""Characters of what is searched for, and of a question."""

MAX_QUESTIONS = 25
"""Questions of `MAX_QUERY` characters that a caller of `/v1` may join into one."""

MAX_CONCLUSION = 65_535
"""Characters of a conclusion that a caller writes."""

MAX_CARD_LINE = 500
"""Characters of one line of a peer card that a caller writes. Lines that the service writes are
shorter (`card_rules`)."""

MAX_METADATA = 64 * 2**10
"""Bytes of metadata, and of a peer's configuration, as JSON in UTF-8 without needless blanks."""

MAX_BODY = 2**20
"""Bytes of a request's body."""

MAX_LARGE_BODY = 96 * 2**20
"""Bytes of a body that carries many texts: a hundred conclusions of the greatest length, every
character escaped, and some."""
