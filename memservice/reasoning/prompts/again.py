"""What a model is told whose answer cannot be used, and how it is shown again what it looked up."""

from __future__ import annotations

AGAIN = (
    "That answer cannot be used: {problem}. Answer again, with one JSON document of the form "
    "asked for and nothing else."
)
NOTHING_SAID = "(nothing)"
TOO_LONG = "it was cut off because it grew too long; be briefer"
LOOKED_UP = "Looked up with {call}:\n{result}"
LOOK_UP_FAILED = "This look-up failed. Go on without it, or try another one."
