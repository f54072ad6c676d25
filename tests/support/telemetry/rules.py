"""The part of Prometheus's expressions that the alert rules use: the greatest or least value of a
metric, or of its change, by some labels, compared with a number."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]

_EXPRESSION = re.compile(
    r"(?P<of>max|min) by \((?P<by>[\w, ]+)\) \("
    r"(?P<delta>delta\()?(?P<metric>\w+)(?:\{(?P<where>[^}]*)\})?(?:\[(?P<span>\d+[mh])\]\))?\)"
    r" (?P<compare>==|>|<) (?P<number>\d+)"
)
_WHERE = re.compile(r'(\w+)="([^"]*)"')
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


class Rule:
    """One expression. Raises `ValueError` for one in another form."""

    def __init__(self, expression: str) -> None:
        match = _EXPRESSION.fullmatch(expression)
        if match is None or bool(match["delta"]) != bool(match["span"]):
            raise ValueError(expression)
        self.metric = match["metric"]
        self.by = tuple(match["by"].split(", "))
        self.where = dict(_WHERE.findall(match["where"] or ""))
        self._of: Callable[[Iterable[float]], float] = max if match["of"] == "max" else min
        self._is_change = bool(match["delta"])
        self._compare, self._number = _COMPARE[match["compare"]], float(match["number"])

    @property
    def labels(self) -> set[str]:
        return {*self.by, *self.where}

    def firing(self, now: Samples, before: Samples) -> list[dict[str, str]]:
        """The labels of each alert that it raises. `before`: the values at the beginning of the
        span."""
        groups: dict[tuple[str, ...], list[float]] = {}
        for (name, labels), value in now.items():
            own = dict(labels)
            if name == self.metric and self.where.items() <= own.items():
                change = value - before[name, labels] if self._is_change else value
                groups.setdefault(tuple(own[label] for label in self.by), []).append(change)
        return [
            dict(zip(self.by, group, strict=True))
            for group, values in groups.items()
            if self._compare(self._of(values), self._number)
        ]
