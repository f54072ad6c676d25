"""A report at the end of a run of the contract suites: what each object said that it can do, and
what was left out for lack of it.

A plugin of pytest. Ask for it with `-p memservice.testing.report`, or in your `conftest.py` with
`pytest_plugins = ["memservice.testing.report"]`.
"""

from __future__ import annotations

import pytest

from memservice.spi.capabilities import Capability

DECLARED = "memservice capabilities"
"""Name of the property of a test that tells which class it was of, and what its object declared."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Report(), "memservice capability report")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """The object is among what the test was given: itself, or as the index of an engine."""
    kind = getattr(item, "cls", None)
    if kind is None or not any(
        base.__module__.startswith("memservice.testing.") for base in kind.__mro__
    ):
        return
    for value in getattr(item, "funcargs", {}).values():
        declared = getattr(getattr(value, "index", value), "capabilities", None)
        if isinstance(declared, frozenset):
            item.user_properties.append((DECLARED, (kind.__name__, sorted(map(str, declared)))))
            return


class Report:
    """Collects from the reports of tests, so it works for tests that ran in other processes as
    well."""

    def __init__(self) -> None:
        self.declared: dict[str, list[str]] = {}
        self.skipped: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == DECLARED and isinstance(value, (list, tuple)):
                self.declared[value[0]] = list(value[1])
        if report.skipped:
            told = report.longrepr
            reason = str(told[2] if isinstance(told, tuple) else told).removeprefix("Skipped: ")
            self.skipped.setdefault(reason, []).append(report.nodeid.rpartition("::")[2])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.declared:
            return
        terminalreporter.section("capabilities")
        for kind, declared in sorted(self.declared.items()):
            terminalreporter.write_line(
                f"{kind} declares {', '.join(declared) or 'none'}, of {', '.join(Capability)}"
            )
        for reason, tests in sorted(self.skipped.items()):
            terminalreporter.write_line(f"not run: {', '.join(tests)}: {reason}")
