"""Public ids, and digests of what was said."""

from __future__ import annotations

import re

from memservice.domain.ids import fingerprint, new_uid


def test_ids_are_21_characters_that_no_command_line_takes_for_an_option() -> None:
    made = [new_uid() for _ in range(5_000)]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{20}", uid) for uid in made)
    assert {uid[0] for uid in made} == set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
    assert any("-" in uid for uid in made)


def test_fingerprints_see_through_case_and_white_space_only() -> None:
    assert fingerprint("  I like\ttea ") == fingerprint("i LIKE tea") != fingerprint("I like tea.")
