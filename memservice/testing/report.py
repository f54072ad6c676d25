"""A report at the end of a run of the contract suites: the capabilities that each object declares,
and the tests that were skipped for lack of one.

A plugin of pytest. Enable it with `-p memservice.testing.report`, or in your `conftest.py` with
`pytest_plugins = ["memservice.testing.report"]`.
"""

from __future__ import annotations

import pytest

from memservice.spi.capabilities import Capability

DECLARED = "memservice capabilities"
"""Name of the test property with the class of the test and the capabilities of its object."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Report(), "memservice capability report")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """The object under test is one of the fixtures, or the `index` of one."""
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
    """Reads the reports of tests, so it also covers tests that ran in other processes."""

    def __init__(self) -> None:
        self.declared: dict[str, list[str]] = {}
        self.skipped: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == DECLARED and isinstance(value, (list, tuple)):
                self.declared[value[0]] = list(value[1])
        if report.skipped:
            skipped = report.longrepr
            reason = str(skipped[2] if isinstance(skipped, tuple) else skipped).removeprefix(
                "Skipped: "
            )
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
