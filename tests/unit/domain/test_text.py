"""The one text analysis: gold terms, names and dates in queries, and what holds for any text."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.text.analysis import (
    ANALYSER,
    MAX_TERM,
    NamedDate,
    analyse,
    candidate_name_tokens,
    dates_named,
    name_tokens,
    own_text,
    without_names,
    words,
)

GOLD = [
    ("Caroline's café research about adoption agencies", "carolin cafe research adopt agenc"),
    ("Caroline’s CAFE Researched Adopting Agency", "carolin cafe research adopt agenc"),
    ("I don't, I can't, you won't, it isn't", ""),
    ("o'brien and l'amour", "o brien amour"),
    ("'quoted' \"x AND y\" NEAR(z) w* -v col:val {}", "quot x y near z w v col val"),
    ("in 2023 she ran 10 km at 7:30, b12", "2023 ran 10 km 7 30 b12"),
    ("hi_there e-mail@example.org", "hi e mail exampl org"),
    (
        "Straße Łódź İstanbul naïve ﬁne Ærø Ｆｕｌｌ１２",
        "strass lodz istanbul naiv fine aero full12",
    ),
    ("东京", "东 东京 京"),
    ("東京タワーで猫は好き", "東 東京 京 京タ タワ ワー ーで で猫 猫 猫は は好 好 好き"),
    ("책을 좋아해", "책 책을 을 좋 좋아 아 아해 해"),
    ("2023年iPhoneを", "2023 年 iphon を"),
    ("١٢٣ १२", "123 12"),
    ("❤️ 🎉 -- !!", ""),
    ("", ""),
    ("May will be there", "may will"),
]


@pytest.mark.parametrize(("text", "terms"), GOLD)
def test_terms_of_examples(text: str, terms: str) -> None:
    assert analyse(text) == terms.split()


def test_stems_change_only_with_the_name_of_the_analyser() -> None:
    """An index outlives a release: a stemmer that changes its mind must change ANALYSER too."""
    roots = [
        "agree",
        "adopt",
        "apply",
        "beauty",
        "carry",
        "comfort",
        "communicate",
        "create",
        "decide",
        "general",
        "happy",
        "hope",
        "logic",
        "national",
        "organise",
        "play",
        "run",
        "sing",
        "skate",
    ]
    endings = (
        "",
        "s",
        "ed",
        "ing",
        "er",
        "ly",
        "ness",
        "ment",
        "ation",
        "ful",
        "fully",
        "ise",
        "ised",
        "able",
        "ity",
        "ies",
        "al",
        "ally",
    )
    stems = " ".join(analyse(" ".join(root + ending for root in roots for ending in endings)))
    digest = hashlib.sha256(stems.encode()).hexdigest()[:16]
    assert (ANALYSER, digest) == ("english-1", "6eed3c3d8453562b")


def test_thai_is_found_by_a_word_inside_a_sentence() -> None:
    sentence = analyse("ฉันกินข้าวที่บ้านทุกวัน")
    assert set(analyse("ข้าว")) & set(sentence)
    assert all(term.isalnum() for term in sentence)


def test_a_single_chinese_character_finds_its_sentence() -> None:
    assert set(analyse("茶")) <= set(analyse("我喜欢喝茶和咖啡"))


def test_vowel_signs_are_distinguished() -> None:
    assert analyse("की") != analyse("का")
    assert all(term.isalnum() for term in analyse("मैं हिन्दी की किताब"))


@given(st.text(max_size=200))
def test_terms_are_safe_for_every_engine(text: str) -> None:
    terms = analyse(text)
    assert all(
        term.isalnum() and 0 < len(term) <= MAX_TERM and not term.isspace() for term in terms
    )
    assert not any(
        char.isascii() and (char.isupper() or char in "_'\"") for term in terms for char in term
    )
    assert analyse(text) == terms


@given(
    st.lists(
        st.sampled_from(["caroline", "adoption", "café", "2023", "猫が好き", "ran'"]), max_size=6
    ),
    st.sampled_from(' ,.;:!?()[]{}"*-+^~|/\\\n\t'),
)
def test_punctuation_only_separates(parts: list[str], mark: str) -> None:
    assert analyse(mark.join(parts)) == analyse(" ".join(parts))


@given(st.text(alphabet="abcdefgé'- 猫", max_size=60))
def test_case_never_matters(text: str) -> None:
    assert analyse(text.upper()) == analyse(text)


def test_a_very_long_word_is_cut() -> None:
    assert [len(term) for term in analyse("x" * 100_000)] == [MAX_TERM]
    assert all(len(word) <= MAX_TERM for word in words("x" * 1000 + " " + "y'" * 1000))


def test_own_text_contains_author_and_utc_day() -> None:
    at = datetime(2023, 5, 8, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert own_text("Caroline", at, "Hi!") == "[9 May 2023] Caroline: Hi!"
    assert analyse(own_text("Caroline", at, "Hi!")) == ["9", "may", "2023", "carolin", "hi"]


@pytest.mark.parametrize(
    ("slug", "name", "tokens"),
    [
        ("caroline", None, ["caroline"]),
        ("Caroline_Smith-42", None, ["caroline", "smith"]),
        ("u1", "Dr. Zoë O'Neil", ["zoe", "oneil", "u1"]),
        ("may", None, ["^may"]),
        ("may", "May", ["may"]),
        ("user", None, ["^user"]),
        ("assistant", "Ava", ["ava", "^assistant"]),
        ("tanaka", "田中さくら", ["田中さくら", "田中", "さくら", "tanaka"]),
        ("a", "The", []),
        ("12345", None, []),
    ],
)
def test_name_tokens_of_examples(slug: str, name: str | None, tokens: list[str]) -> None:
    assert name_tokens(slug, name) == tokens


@pytest.mark.parametrize(
    ("query", "slug", "name", "named"),
    [
        ("What did Caroline research?", "caroline", None, True),
        ("what did caroline's sister say", "caroline", None, True),
        ("what did CAROLINE say", "caroline", None, True),
        ("When did Zoe leave?", "u1", "Zoë Smith", True),
        ("What may I eat?", "may", None, False),
        ("What did May eat?", "may", None, True),
        ("what may i eat", "x", "May", True),
        ("Will it rain?", "will", None, False),
        ("Will's new job", "will", None, True),
        ("Where does Will live?", "will", None, True),
        ("what does the user like", "user", None, False),
        ("what does User like", "user", None, True),
        ("does it work?", "assistant", None, False),
        ("田中さくらは何が好きですか", "tanaka", "田中さくら", True),
        ("さくらは何が好きですか", "tanaka", "田中さくら", True),
        ("지민이는 뭐를 좋아해?", "jimin", "지민", True),
        ("What about carolines?", "caroline", None, False),
    ],
)
def test_a_peer_is_named_by_a_shared_token(
    query: str, slug: str, name: str | None, named: bool
) -> None:
    assert bool(set(candidate_name_tokens(query)) & set(name_tokens(slug, name))) is named


@given(st.text(max_size=300))
def test_candidates_are_few_and_distinct(query: str) -> None:
    tokens = candidate_name_tokens(query)
    assert len(tokens) == len(set(tokens)) <= 64
    assert all(0 < len(token) <= MAX_TERM + 1 for token in tokens)


@pytest.mark.parametrize(
    ("query", "names", "rest"),
    [
        ("What did Caroline's sister research?", ["caroline"], "What did sister research?"),
        ("What may May eat?", ["^may"], "What may eat?"),
        ("Caroline and CAROLINE!", ["caroline"], "and !"),
        ("Caroline?", ["caroline"], ""),
        ("田中さくらは何が好き", ["田中さくら", "田中"], "は何が好き"),
        ("nobody is  named", [], "nobody is  named"),
    ],
)
def test_names_are_removed_from_the_query(query: str, names: list[str], rest: str) -> None:
    assert without_names(query, names) == rest


@given(st.text(max_size=100))
def test_removing_every_candidate_never_fails(query: str) -> None:
    rest = without_names(query, candidate_name_tokens(query))
    assert len(rest) <= 4 * len(query)


@pytest.mark.parametrize(
    ("query", "dates"),
    [
        ("on 8 May 2023?", [NamedDate(5, 8, 2023)]),
        ("What happened May 8th?", [NamedDate(5, 8)]),
        ("2023-05-08T10:00", [NamedDate(5, 8, 2023)]),
        ("in May 2023", [NamedDate(5, None, 2023)]),
        ("by 8 may", [NamedDate(5, 8)]),
        ("the 8th of May, 2023 and Sept. 3", [NamedDate(5, 8, 2023), NamedDate(9, 3)]),
        ("May 8, 2023", [NamedDate(5, 8, 2023)]),
        ("2023年5月8日に", [NamedDate(5, 8, 2023)]),
        ("5月8日", [NamedDate(5, 8)]),
        ("30 February", []),
        ("may I have 2", []),
        ("room 2023-15-40", []),
        ("", []),
    ],
)
def test_dates_in_examples(query: str, dates: list[NamedDate]) -> None:
    assert dates_named(query) == dates


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_named_day_matches_its_own_day_only(at: datetime) -> None:
    header = own_text("x", at, "")
    (date,) = dates_named(header) if at.year >= 1000 else (NamedDate(at.month, at.day, at.year),)
    assert date.matches(at)
    if 2 < at.year < 9998:
        assert not date.matches(at + timedelta(days=1))
        assert date.matches(at.astimezone(timezone(timedelta(hours=9))))


@given(st.text(max_size=200))
def test_any_query_can_be_asked_for_dates(query: str) -> None:
    assert all(1 <= date.month <= 12 for date in dates_named(query))
