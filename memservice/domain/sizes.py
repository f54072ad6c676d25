"""How large may be what a caller sends, where neither a setting nor the contract says so.
`docs/operations.md` has them as a table."""

from __future__ import annotations

MAX_QUERY = 10_000
"""Characters of what is searched for."""

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
