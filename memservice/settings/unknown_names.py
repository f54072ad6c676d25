"""What is reported about names that are no settings: those of other servers of this API, likely
mistypings, and the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from memservice.settings import families
from memservice.settings.declare import Tree

Kind = Literal["without effect", "mistyped", "unknown"]

WITHOUT_EFFECT_PREFIXES = (
    "SENTRY_",
    "CACHE_",
    "LANGFUSE_",
    "TRACE_VIEWER_",
    "VECTOR_STORE_TURBOPUFFER_",
)
WITHOUT_EFFECT = frozenset(
    {
        "PERFORMANCE_LOG_FORMAT",
        "COLLECT_METRICS_LOCAL",
        "LOCAL_METRICS_FILE",
        "DB_TRACING",
        "DERIVER_LOG_OBSERVATIONS",
        "VECTOR_STORE_MIGRATED",
        "VECTOR_STORE_DIMENSIONS",
        "VECTOR_STORE_LANCEDB_PATH",
    }
)
"""Names that other servers of this API have and this one does without: an operator's old file may
keep them."""

OTHER_PROGRAMS = {"DATABASE_URL": "DB_CONNECTION_URI"}
"""Usual names of other programs, each with the setting that it would be here."""

NEAR_PREFIXED, NEAR_PLAIN = 0.8, 0.87
"""How similar (0 to 1) a variable must be to a setting to count as mistyped."""
MIN_PLAIN = 8
"""Shorter names without a prefix, such as HOST, resemble too many others."""
_SERVICE_LINK = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?)")
"""Variables that Kubernetes sets in each container, for every service of the namespace."""


def is_without_effect(name: str) -> bool:
    """Whether other servers of this API have a setting of this name (upper case), and this one
    does not."""
    return name in WITHOUT_EFFECT or name.startswith(WITHOUT_EFFECT_PREFIXES)


def explain(name: str, tree: Tree, *, ours: bool) -> tuple[Kind, str] | None:
    """What a variable is that is no setting, and, for a mistyped one, the rest of the sentence
    about it. None: it is no concern of memservice. `ours`: it stands in a file that was written
    for memservice."""
    canonical = name.upper() if ours else name
    if is_without_effect(canonical):
        return ("without effect", "") if ours else None
    if name in OTHER_PROGRAMS:
        return "mistyped", f"; the setting is {OTHER_PROGRAMS[name]}"
    if canonical != name and canonical in tree.by_variable:
        return "mistyped", f"; write {canonical}"
    if _SERVICE_LINK.fullmatch(canonical):
        return None
    if canonical.startswith(tree.prefixes):
        names = [*tree.by_variable, *families.similar(canonical)]
        near = did_you_mean(canonical, names, NEAR_PREFIXED)
        return ("mistyped", near) if near else ("unknown", "")
    plain = [variable for variable in tree.plain if len(variable) >= MIN_PLAIN]
    near = did_you_mean(canonical, plain, NEAR_PLAIN)
    return ("mistyped", near) if near else None


def did_you_mean(name: str, names: Iterable[str], cutoff: float = 0.55) -> str:
    """`; did you mean A or B?`, or nothing if no known name is near."""
    from difflib import SequenceMatcher, get_close_matches

    near = get_close_matches(name, list(names), n=3, cutoff=cutoff)
    # Of a name with one letter wrong, others that merely have words in common are no help.
    ratios = [SequenceMatcher(None, other, name).ratio() for other in near]
    near = [other for other, ratio in zip(near, ratios, strict=True) if ratio > ratios[0] - 0.1]
    return f"; did you mean {' or '.join(near)}?" if near else ""
