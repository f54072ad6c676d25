"""The time that a sentence is about: a table; add a row for each form that should be read."""

from __future__ import annotations

from datetime import date

import pytest

from memservice_extractive.when import span

MONDAY = date(2024, 7, 8)
DAY, WEEK, WEEKEND = ("2024-07-07",) * 2, ("2024-07-01", "2024-07-07"), ("2024-07-06", "2024-07-07")
SEPTEMBER = ("2024-09-14",) * 2

TABLE: list[tuple[str, str, tuple[str, str] | None]] = [
    ("en", "I saw him yesterday.", DAY),
    ("en", "He left the day before yesterday.", ("2024-07-06",) * 2),
    ("en", "We moved to Braga last weekend!", WEEKEND),
    ("en", "I was ill last week.", WEEK),
    ("en", "It opens next Friday.", ("2024-07-12",) * 2),
    ("en", "It closed last Monday.", ("2024-07-01",) * 2),
    ("en", "I start in six weeks.", ("2024-08-19", "2024-08-25")),
    ("en", "We married three years ago.", ("2021",) * 2),
    ("en", "The wedding is on September 14th.", SEPTEMBER),
    ("en", "The wedding is on the 14th of September 2025.", ("2025-09-14",) * 2),
    ("en", "We met on 2 February.", ("2024-02-02",) * 2),
    ("en", "I started to eat fish again in April.", ("2024-04",) * 2),
    ("en", "We met in May 2021.", ("2021-05",) * 2),
    ("en", "I travel in December.", None),
    ("de", "Im September heiraten wir.", ("2024-09",) * 2),
    ("es", "En agosto me mudo.", ("2024-08",) * 2),
    ("fr", "En mai je suis parti.", ("2024-05",) * 2),
    ("it", "A settembre parto.", ("2024-09",) * 2),
    ("pt", "Em junho eu me mudei.", ("2024-06",) * 2),
    ("ru", "В августе едем в Томск.", ("2024-08",) * 2),
    ("en", "I play the cello every Thursday.", None),
    ("en", "I saw it on Monday.", None),
    ("en", "It fell on 31 February.", None),
    ("en", "That was 500 years ago.", None),
    ("de", "Gestern bin ich 41 geworden.", DAY),
    ("de", "Wir sind letzte Woche umgezogen.", WEEK),
    ("de", "Am 14. September heiraten wir.", SEPTEMBER),
    ("de", "Vor zwei Monaten war ich dort.", ("2024-05",) * 2),
    ("es", "La semana pasada me mudé.", WEEK),
    ("es", "Nos casamos el 14 de septiembre.", SEPTEMBER),
    ("es", "Lo compré hace tres meses.", ("2024-04",) * 2),
    ("fr", "Nous avons déménagé le week-end dernier.", WEEKEND),
    ("fr", "Le mariage est le 14 septembre.", SEPTEMBER),
    ("fr", "C'était il y a deux ans.", ("2022",) * 2),
    ("it", "Ieri ho visto Marco.", DAY),
    ("it", "La settimana scorsa ero malato.", WEEK),
    ("pt", "Ontem fui ao cinema.", DAY),
    ("pt", "Nós nos mudamos na semana passada.", WEEK),
    ("ru", "Вчера я был дома.", DAY),
    ("ru", "На прошлой неделе мы переехали.", WEEK),
    ("ru", "Свадьба 14 сентября.", SEPTEMBER),
    ("zh", "我昨天去了。", DAY),
    ("zh", "我们上周搬到了杭州。", WEEK),
    ("zh", "婚礼是9月14日。", SEPTEMBER),
    ("ja", "昨日行きました。", DAY),
    ("ja", "先週、引っ越しました。", WEEK),
    ("ja", "結婚式は9月14日です。", SEPTEMBER),
    ("ko", "어제 갔어요.", None),
]


@pytest.mark.parametrize(("language", "sentence", "expected"), TABLE)
def test_the_time_of_a_sentence(
    language: str, sentence: str, expected: tuple[str, str] | None
) -> None:
    assert span(sentence, MONDAY, language) == expected


def test_a_date_without_a_year_is_the_nearest_one() -> None:
    assert span("It was on 30 December.", date(2024, 1, 5), "en") == ("2023-12-30",) * 2
    assert span("It is on 2 January.", date(2024, 12, 28), "en") == ("2025-01-02",) * 2


def test_the_longer_of_two_readings_counts() -> None:
    assert span("Übermorgen, nicht morgen.", MONDAY, "de") == ("2024-07-10",) * 2
