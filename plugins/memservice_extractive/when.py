"""The time that a sentence is about, from words such as "last weekend" and the time of the message.

Only words with one meaning are read. A weekday alone can be the last, the next or every one, so it
is not read.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import cache

from memservice.domain.text.folding import fold
from memservice_extractive.language import UNSPACED
from memservice_extractive.time_words import IN_MONTH, TIME_WORDS, TimeWords

Span = tuple[str, str]
"""First and last day, month or year, in ISO 8601."""
Reading = tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None]]

MAX_MONTHS = 3
"""Largest distance of a month without a year."""
MAX_AMOUNT = 100
"""Largest number of days, weeks, months or years that are added to a date."""


def span(sentence: str, today: date, language: str) -> Span | None:
    """The first time that the sentence names; None if it names none. `today`: the local day on
    which it was said."""
    if language not in TIME_WORDS:
        return None
    folded = fold(sentence)
    hint, readings = _readings(language)
    if not hint.search(folded):
        return None
    spans = []
    for pattern, read in readings:
        match = pattern.search(folded)
        result = read(match, today) if match else None
        if match and result:
            # of two that begin together the longer one: "tomorrow morning", "the day after ..."
            spans.append((match.start(), -match.end(), result))
    return min(spans)[2] if spans else None


@cache
def _readings(language: str) -> tuple[re.Pattern[str], list[Reading]]:
    """A pattern that matches wherever one of the readings does, and the readings."""
    words = TIME_WORDS[language]
    forms = [
        *_days(words),
        *_dates(words, language),
        *_months(words, language),
        *_counted(words),
        *_relative(words, language),
    ]
    is_spaced = language not in UNSPACED
    before, after = (r"(?<![^\W_])", r"(?![^\W_])") if is_spaced else ("", "")
    readings = [(re.compile(f"{before}(?:{form}){after}"), read) for form, read in forms]
    return re.compile("|".join(f"(?:{form})" for form, _ in forms)), readings


Form = tuple[str, Callable[[re.Match[str], date], Span | None]]


def _days(words: TimeWords) -> Iterator[Form]:
    for pattern, distance in words.days.items():
        yield pattern, lambda _, today, n=distance: _day(today + timedelta(n))  # type: ignore[misc]


def _dates(words: TimeWords, language: str) -> Iterator[Form]:
    before = r"(?:((?:19|20)\d\d)年)?" if language in UNSPACED else ""
    after = "" if language in UNSPACED else r"(?:,? (?:de |del |do )?((?:19|20)\d\d))?"
    for number, month in enumerate(words.months, 1):
        for date_form in words.dates:
            form = date_form.format(day=r"(?:[0-2]?\d|3[01])", month=f"(?:{month})")
            yield (
                f"{before}{form}{after}",
                lambda match, today, month=number: _dated(match, today, month),  # type: ignore[misc]
            )


def _months(words: TimeWords, language: str) -> Iterator[Form]:
    """A month without a day: "in May", "in May 2023"."""
    if language in IN_MONTH:
        months = "|".join(f"({month})" for month in words.months)
        year = r"(?:,? (?:de |del |do )?((?:19|20)\d\d))?"
        yield f"(?:{IN_MONTH[language]}) (?:{months}){year}(?! \\d)", _month


def _counted(words: TimeWords) -> Iterator[Form]:
    number = "|".join([r"\d{1,3}", *words.numbers])
    for unit, name in words.units.items():
        for sign, form in ((-1, words.ago), (1, words.ahead)):
            yield (
                form.format(n=f"({number})", unit=f"(?:{name})"),
                lambda match, today, unit=unit, sign=sign: _moved(  # type: ignore[misc]
                    today, unit, sign * _amount(match[1], words)
                ),
            )


def _relative(words: TimeWords, language: str) -> Iterator[Form]:
    gap = "" if language in UNSPACED else " "
    units_and_weekdays = [
        *((name, lambda today, n, unit=unit: _period(today, unit, n))
          for unit, name in words.units.items() if unit != "day"),
        *((name, lambda today, n, weekday=weekday: _weekday(today, weekday, n))
          for weekday, name in enumerate(words.weekdays)),
    ]  # fmt: skip
    for adjective, distance in ((words.last, -1), (words.next, 1), (words.this, 0)):
        for name, read in units_and_weekdays:
            orders = [f"(?:{adjective}){gap}(?:{name})"]
            if gap:
                orders.append(f"(?:{name}) (?:{adjective})")
            for form in orders:
                yield form, lambda _, today, n=distance, read=read: read(today, n)  # type: ignore[misc]


def _amount(text: str, words: TimeWords) -> int:
    if text.isdigit():
        return int(text)
    return next(n for n, word in enumerate(words.numbers, 1) if re.fullmatch(word, text))


def _dated(match: re.Match[str], today: date, month: int) -> Span | None:
    """Without a year: the date nearest to today."""
    # Its own digits: in Chinese and Japanese the month has digits too.
    digits = re.findall(r"\d{1,2}(?!\d)", re.sub(r"(?:19|20)\d\d年?|\d{1,2}月", "", match[0]))
    year = int(match[1]) if match[1] else None
    if not digits:
        return None
    day = int(digits[0])
    years = [year] if year else [today.year - 1, today.year, today.year + 1]
    dates = [date(one, month, day) for one in years if 1 <= day <= monthrange(one, month)[1]]
    return _day(min(dates, key=lambda at: abs(at - today))) if dates else None


def _month(match: re.Match[str], today: date) -> Span | None:
    """Without a year: only a month near to today, since others can be the last or the next one."""
    *months, year = match.groups()
    number = next(index for index, month in enumerate(months) if month)
    present = today.year * 12 + today.month - 1
    if year:
        distance = int(year) * 12 + number - present
    else:
        distance = (number - today.month + 7) % 12 - 6
        if abs(distance) > MAX_MONTHS:
            return None
    return _period(today, "month", distance)


def _moved(today: date, unit: str, amount: int) -> Span | None:
    if abs(amount) > MAX_AMOUNT:
        return None
    if unit == "day":
        return _day(today + timedelta(amount))
    if unit == "year":
        return (f"{today.year + amount}",) * 2
    return _period(today, unit, amount)


def _period(today: date, unit: str, distance: int) -> Span:
    """The week, weekend, month or year at that distance from the present one. A weekend belongs to
    the week before it."""
    if unit == "year":
        year = f"{today.year + distance}"
        return year, year
    if unit == "month":
        months = today.year * 12 + today.month - 1 + distance
        month = f"{months // 12:04}-{months % 12 + 1:02}"
        return month, month
    monday = today - timedelta(today.weekday()) + timedelta(weeks=distance)
    first = monday + timedelta(5) if unit == "weekend" else monday
    return first.isoformat(), (monday + timedelta(6)).isoformat()


def _weekday(today: date, weekday: int, distance: int) -> Span:
    """`distance` -1: the last one before today; 1: the first one after today; 0: in this week."""
    if distance == 0:
        return _day(today - timedelta(today.weekday() - weekday))
    if distance < 0:
        return _day(today - timedelta((today.weekday() - weekday - 1) % 7 + 1))
    return _day(today + timedelta((weekday - today.weekday() - 1) % 7 + 1))


def _day(at: date) -> Span:
    return at.isoformat(), at.isoformat()
