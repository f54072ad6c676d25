"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from memservice.domain.text.late_pattern import late_pattern


def test_it_is_compiled_at_its_first_use_and_then_has_the_methods_of_the_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = []
    compile_pattern = re.compile

    def counted(text: str) -> re.Pattern[str]:
        compiled.append(text)
        return compile_pattern(text)

    monkeypatch.setattr(re, "compile", counted)
    pattern = late_pattern("[a-c]+")
    assert compiled == []
    assert pattern.findall("abc xx cab") == ["abc", "cab"]
    assert pattern.findall("b") == ["b"]
    assert compiled == ["[a-c]+"]
    assert pattern.sub("-", "xaax") == "x-x"
    assert pattern.search("x") is None
