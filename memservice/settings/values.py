"""From what was written to what is meant: one value, checked; and how a value is shown without
giving away a secret."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, get_origin

from memservice.settings.declare import Leaf, Meta, Secrecy, optional

MASK = "********"

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_KEYED = re.compile(r"(?i)([\w-]*(?:password|passwd|pwd|secret|token|key|sig)[\w-]*=)[^&\s]+")


def read(leaf: Leaf, raw: object) -> Any:
    """The value of `leaf` that `raw` stands for: text from a variable, or what TOML or JSON made of
    it.

    Raises `ValueError` with what is allowed.
    """
    kind, may_be_none = optional(leaf.type)
    if isinstance(raw, str):
        raw = raw.strip()
    if may_be_none and (raw is None or raw == ""):
        return None
    try:
        return _READERS[get_origin(kind) or kind](raw, leaf.meta)
    except (TypeError, ValueError) as error:
        raise ValueError(allowed(leaf)) from error


def allowed(leaf: Leaf) -> str:
    """What a setting may be, in words."""
    kind, _ = optional(leaf.type)
    meta = leaf.meta
    if meta.choices:
        several = "a list of any of " if get_origin(kind) is tuple else "one of "
        return several + ", ".join(meta.choices)
    words = _WORDS[get_origin(kind) or kind]
    if meta.low is not None and meta.high is not None:
        return f"{words} from {_number(meta.low)} to {_number(meta.high)}"
    if meta.low is not None:
        return f"{words} of {_number(meta.low)} or more"
    return words


def show(value: object, secrecy: Secrecy) -> str:
    """A value as text, masked as far as it is secret. Nothing set: an empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if secrecy == "secret":
        return MASK if value else ""
    if isinstance(value, (tuple, Mapping)):
        return json.dumps(
            list(value) if isinstance(value, tuple) else dict(value), ensure_ascii=False
        )
    return mask_uri(str(value)) if secrecy == "uri" else str(value)


def mask_uri(uri: str) -> str:
    """A URI without its password, nor any key or token in its query. When in doubt more is masked,
    never less."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return MASK if "@" in uri else _KEYED.sub(rf"\1{MASK}", uri)
    credentials, at, host = rest.rpartition("@")
    if at:
        user, colon, _ = credentials.partition(":")
        rest = f"{user}:{MASK}@{host}" if colon else f"{MASK}@{host}"
    return scheme + separator + _KEYED.sub(rf"\1{MASK}", rest)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _bool(raw: object, meta: Meta) -> bool:
    if isinstance(raw, bool):
        return raw
    word = _text(raw, meta).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(word)


def _int(raw: object, meta: Meta) -> int:
    if isinstance(raw, bool) or not isinstance(raw, (int, str)):
        raise TypeError(raw)
    return int(_bounded(int(raw), meta))


def _float(raw: object, meta: Meta) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise TypeError(raw)
    return float(_bounded(float(raw), meta))


def _bounded(value: float, meta: Meta) -> float:
    if (
        not math.isfinite(value)
        or (meta.low is not None and value < meta.low)
        or (meta.high is not None and value > meta.high)
    ):
        raise ValueError(value)
    return value


def _text(raw: object, meta: Meta) -> str:
    if not isinstance(raw, str):
        raise TypeError(raw)
    if not raw or "\x00" in raw:
        raise ValueError("empty, or with a NUL byte")
    return raw


def _str(raw: object, meta: Meta) -> str:
    text = _text(raw, meta)
    if not meta.choices:
        return text
    if text.lower() not in meta.choices:
        raise ValueError(text)
    return text.lower()


def _list(raw: object, meta: Meta) -> tuple[str, ...]:
    if isinstance(raw, str):
        raw = json.loads(raw) if raw.startswith("[") else [part.strip() for part in raw.split(",")]
    if not isinstance(raw, list):
        raise TypeError(raw)
    return tuple(_str(item, meta) for item in raw)


def _any(raw: object, meta: Meta) -> object:
    return raw


def _object(raw: object, meta: Meta) -> Mapping[str, Any]:
    if isinstance(raw, str):
        raw = json.loads(raw)
    if not isinstance(raw, dict):
        raise TypeError(raw)
    return raw


_READERS: dict[Any, Any] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: _str,
    tuple: _list,
    Mapping: _object,
    Any: _any,
}
_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text that is not empty",
    tuple: 'a list of texts (as a variable: JSON such as ["a", "b"], or a,b)',
    Mapping: "an object (as a variable: JSON)",
    Any: "a value that is not empty",
}
