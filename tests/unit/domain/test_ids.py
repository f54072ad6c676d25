"""Public ids, and digests of what was said."""

from __future__ import annotations

import re

from memservice.domain.ids import derived_uid, fingerprint, new_uid


def test_ids_are_21_characters_that_no_command_line_takes_for_an_option() -> None:
    uids = [new_uid() for _ in range(5_000)]
    assert len(set(uids)) == len(uids)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{20}", uid) for uid in uids)
    assert {uid[0] for uid in uids} == set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
    )
    assert any("-" in uid for uid in uids)


def test_fingerprints_ignore_case_and_white_space_only() -> None:
    assert fingerprint("  I like\ttea ") == fingerprint("i LIKE tea") != fingerprint("I like tea.")


def test_derived_uids_look_like_others_and_depend_on_every_part() -> None:
    uids = [derived_uid("a", str(number)) for number in range(2_000)]
    assert len(set(uids)) == len(uids)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{20}", uid) for uid in uids)
    assert derived_uid("a", "1") == uids[1]
    assert derived_uid("a", "b", "c") != derived_uid("a", "bc")
