"""The supported part of JSON Schema: which schemas are supported, and what is wrong with a
value."""

from memservice.domain.json_schema.references import Schema
from memservice.domain.json_schema.supported import UnsupportedSchema, require_supported
from memservice.domain.json_schema.values import Enums, frozen
from memservice.domain.json_schema.violations import Validation, violation

__all__ = [
    "Enums",
    "Schema",
    "UnsupportedSchema",
    "Validation",
    "frozen",
    "require_supported",
    "violation",
]
