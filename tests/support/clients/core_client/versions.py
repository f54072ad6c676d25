"""Which scenarios each version of the clients is to run."""

from __future__ import annotations

PARTS = {
    "1.0.1": ("everywhere", "earliest", "keyed"),
    "1.1.0": ("everywhere", "earliest", "keyed", "status"),
    "1.3.0": ("everywhere",),
    "1.5.1": ("everywhere",),
    "1.8.0": ("everywhere", "keyed", "status", "later"),
    "1.11.0": ("everywhere", "status", "later"),
}

BETWEEN = ("1.3.0", "1.5.1")
"""Run for what they have in common with the others only: not each of their methods."""

NEWEST = "1.11.0"
