"""JSON of answers, and JSON that was stored or that others sent: by orjson, which takes a tenth of
the time of the standard library; by the latter where orjson is not installed, and for values that
orjson refuses."""

# fast path: see docs/decisions/fast-paths.md#json-answers

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from memservice.domain import times


def _wire(value: object) -> str:
    if isinstance(value, datetime):
        return times.wire(value)
    raise TypeError(f"{type(value).__name__} is not a type of JSON")


# Keys keep their order; separators are those of the reference servers, and orjson's.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_wire
)
_decode = json.JSONDecoder().raw_decode


def encode_plainly(value: Any) -> bytes:
    """Lone surrogates, which no store should contain, are replaced by a replacement character."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


def parse_plainly(data: str | bytes) -> Any:
    return json.loads(data)


def decode_plainly(data: str | bytes) -> Any:
    # Five times as fast as `json.loads`, which checks for white space, byte order marks and
    # trailing data.
    return _decode(data if isinstance(data, str) else str(data, "utf-8"))[0]


try:
    import orjson
except ImportError:  # there is no wheel for this platform
    encode, decode, parse = encode_plainly, decode_plainly, parse_plainly
else:
    # As `times.wire` writes times. Data classes are errors, as in the standard library.
    _OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATACLASS

    def encode(value: Any) -> bytes:
        """UTF-8."""
        try:
            data: bytes = orjson.dumps(value, None, _OPTIONS)
        except TypeError:  # lone surrogates, integers beyond 64 bits, keys that are not text
            return encode_plainly(value)
        return data

    def decode(data: str | bytes) -> Any:
        """The value of stored JSON, which was valid when it was written."""
        try:
            return orjson.loads(data)
        except ValueError:
            return decode_plainly(data)

    def parse(data: str | bytes) -> Any:
        """The value of JSON from elsewhere. Integers beyond 64 bits become floats. Raises
        ValueError for what is not JSON, and RecursionError for lists in too many others."""
        try:
            return orjson.loads(data)
        except ValueError:  # also for lone surrogates, and for numbers that are infinite
            return parse_plainly(data)
