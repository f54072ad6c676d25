"""Yardsticks: invented and public conversations with known evidence, and how well search finds
it."""
