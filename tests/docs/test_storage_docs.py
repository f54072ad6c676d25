"""The page on storages says what the storages take."""

from __future__ import annotations

import json
import re
from pathlib import Path

from memservice.settings import Settings
from memservice.settings.service import Db
from memservice_postgres.settings import PostgresSettings
from memservice_postgres.vector_indexes import LARGE, MAX_FULL, MAX_HALF
from memservice_postgres.vectors import EXACT
from memservice_sql.signatures import MIN_DIMENSION, MIN_ROWS


def page(root: Path) -> str:
    return (root / "docs" / "storage.md").read_text(encoding="utf-8")


def test_settings_of_postgres_are_listed_with_their_defaults(root: Path) -> None:
    _, _, rest = page(root).partition("| In `DB_OPTIONS` |")
    listed = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", rest.split("\n\n")[0], re.M)
    common = {*vars(Settings().db), *Db.__dataclass_fields__, "uri"}
    own = {
        name: field.load_default
        for name, field in PostgresSettings().fields.items()
        if name not in common
    }
    assert {name: json.loads(value) for name, value in listed} == own


def test_the_numbers_equal_those_of_the_code(root: Path) -> None:
    text = " ".join(page(root).split())
    assert f"one by one up to {LARGE:,};" in text
    assert f"filters that leave {EXACT:,} rows or fewer are exact" in text
    assert f"with {MIN_DIMENSION:,} or more dimensions" in text
    assert f"at least {MIN_ROWS:,} of a filter in memory" in text
    assert f"more than {MAX_FULL:,} dimensions" in text
    assert f"more than {MAX_HALF:,} are compared" in text
