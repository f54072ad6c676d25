"""What holds for each page in a browser: accessibility, width and focus."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

AXE = Path(__file__).parent / "axe"
MAX_NODES = 3
"""Elements that a message names for each violation."""

_RUN = """async () => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const result = await axe.run(document, { resultTypes: ["violations"], runOnly: tags });
    return result.violations.map(({ id, impact, help, nodes }) => ({
        id, impact, help, targets: nodes.map((node) => node.target.join(" ")),
        why: nodes[0].failureSummary,
    }));
}"""

CONTROLS = """
    const shown = (element) => element.checkVisibility({ visibilityProperty: true })
        && !element.disabled && !element.closest("details:not([open]) > :not(summary)");
    const controls = [...document.querySelectorAll(
        "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]"
    )].filter(shown);
    const name = (element) => element.outerHTML.slice(0, 120);
"""
_UNFOCUSABLE = f"""() => {{
    {CONTROLS}
    const wrong = [];
    for (const control of controls) {{
        if (control.tabIndex > 0) wrong.push(["out of order", name(control)]);
        control.focus();
        if (document.activeElement !== control) wrong.push(["not reached", name(control)]);
        const style = getComputedStyle(control);
        if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2)
            wrong.push(["invisible focus", name(control)]);
    }}
    document.activeElement.blur();
    return wrong;
}}"""
_REFRESH = """() => {
    const part = document.getElementById("jobs");
    const detail = { elt: part };
    const options = { bubbles: true, cancelable: true, detail };
    const event = new CustomEvent("htmx:beforeRequest", options);
    document.activeElement.blur();
    part.dispatchEvent(event);
    return event.defaultPrevented;
}"""
_NUMBER_OF_CONTROLS = f"() => {{ {CONTROLS} return controls.length; }}"
_POSITION = f"() => {{ {CONTROLS} return controls.indexOf(document.activeElement); }}"


@cache
def _axe() -> str:
    return (AXE / "axe.min.js").read_text(encoding="utf-8")


def accessibility_violations(page: Any) -> list[str]:
    """What axe-core finds (WCAG 2.2 AA and its best practices), a line for each rule."""
    # `evaluate` runs beside the page's scripts, which its Content-Security-Policy still restricts.
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_axe())
    return [
        f"{row['impact']}: {row['id']}: {row['help']} at {row['targets'][:MAX_NODES]}: {row['why']}"
        for row in page.evaluate(_RUN)
    ]


def overflow(page: Any) -> int:
    """Pixels by which the page is wider than its window."""
    excess: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return excess


def focus_problems(page: Any) -> list[list[str]]:
    """Controls that the keyboard does not reach in their order, or whose focus is not visible."""
    problems: list[list[str]] = page.evaluate(_UNFOCUSABLE)
    return problems


def layout_problems(page: Any) -> list[str]:
    """A line for each thing that is wrong with the page's width and focus at its present width."""
    excess = overflow(page)
    return [
        *([f"the page is {excess} pixels too wide"] if excess else []),
        *(": ".join(problem) for problem in focus_problems(page)),
    ]


def page_problems(page: Any) -> list[str]:
    """A line for each thing that is wrong with the page at its present width."""
    return [*layout_problems(page), *accessibility_violations(page)]


def refresh_is_held_back(page: Any) -> bool:
    """Whether the page of the jobs prevents its next refresh."""
    is_held_back: bool = page.evaluate(_REFRESH)
    return is_held_back


def tab_through(page: Any) -> tuple[list[int], int]:
    """Press the tab key once for each control: the positions that get the focus, in the order of
    the page, and the number of controls."""
    count: int = page.evaluate(_NUMBER_OF_CONTROLS)
    positions = []
    for _ in range(count):
        page.keyboard.press("Tab")
        positions.append(page.evaluate(_POSITION))
    return positions, count
