"""Settings of plugins, checked by what the plugin declares: a marshmallow schema or a dataclass."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin

from memservice.domain.errors import ConfigurationError
from memservice.settings.declare import hints, optional
from memservice.settings.families import OPTIONS, transport_key
from memservice.spi import providers as p

if TYPE_CHECKING:
    from marshmallow import Schema
    from marshmallow.fields import Field


def schema_of(declared: type[Any]) -> type[Schema]:
    """The schema that a plugin declares; for a dataclass, one with its fields. Raises `TypeError`
    for a field of a type that a setting cannot have."""
    if not dataclasses.is_dataclass(declared):
        return cast("type[Schema]", declared)
    kind: Any = declared
    return _schema_of_dataclass(kind)


@cache
def _schema_of_dataclass(declared: Any) -> type[Schema]:
    from marshmallow import Schema

    types = hints(declared)
    return Schema.from_dict(
        {part.name: _field(types[part.name], part) for part in dataclasses.fields(declared)},
        name=declared.__name__,
    )


def _field(hint: Any, part: dataclasses.Field[Any] | None = None) -> Field[Any]:
    """The field of one type. `part`: the dataclass's field, whose default and metadata count."""
    from marshmallow import fields, missing, validate

    kind, may_be_none = optional(hint)
    origin = get_origin(kind)
    options: dict[str, Any] = {"allow_none": may_be_none}
    if part is not None:
        has_default = (
            part.default is not dataclasses.MISSING
            or part.default_factory is not dataclasses.MISSING
        )
        options["required"] = not has_default
        options["validate"] = part.metadata.get("validate")
        options["metadata"] = {
            **part.metadata,
            "default": part.default if part.default is not dataclasses.MISSING else missing,
        }
    if dataclasses.is_dataclass(kind):
        return fields.Nested(schema_of(cast("type[Any]", kind)), **options)
    if origin is Literal:
        options["validate"] = validate.OneOf(get_args(kind))
        return fields.Raw(**options)
    if origin in (list, tuple) or kind in (list, tuple):
        return fields.List(_field((get_args(kind) or (str,))[0]), **options)
    if origin is dict or kind is dict:
        value = (get_args(kind) or (str, str))[1]
        return fields.Dict(keys=fields.String(), values=_field(value), **options)

    class Integer(fields.Integer):
        """Refuses 2.5 and true, of which marshmallow makes 2 and 1."""

        def _validated(self, value: Any) -> Any:
            if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
                raise self.make_error("invalid", input=value)
            return super()._validated(value)

    plain: dict[Any, type[Field[Any]]] = {
        str: fields.String,
        Path: fields.String,
        bool: fields.Boolean,
        int: Integer,
        float: fields.Float,
        Any: fields.Raw,
    }
    if kind not in plain:
        raise TypeError(f"a setting cannot be {kind}")
    return plain[kind](**options)


def fields_of(declared: type[Any] | None) -> dict[str, Field[Any]]:
    """The declared fields, by the names that settings have."""
    if declared is None:
        return {}
    return {field.data_key or name: field for name, field in schema_of(declared)().fields.items()}


def own_values(declared: type[Any] | None, table: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the table `[plugins.NAME]` that the declaration has. A text from a variable
    stands for JSON where a list or an object is declared."""
    fields = fields_of(declared)
    return {part: _decoded(value, fields[part]) for part, value in table.items() if part in fields}


def wrong_values(name: str, declared: type[Any] | None, own: Mapping[str, Any]) -> list[str]:
    """A sentence for each value of `[plugins.NAME]` that its own field refuses."""
    from marshmallow import ValidationError

    fields = fields_of(declared)
    problems = []
    for part, value in own.items():
        try:
            fields[part].deserialize(value)
        except ValidationError as error:
            problems += [_sentence(name, path, text) for path, text in _flat(error.messages, part)]
    return problems


def load(declared: type[Any], values: Mapping[str, Any]) -> Any:
    """The settings as the plugin gets them: what its schema makes of them, or an instance of its
    dataclass. Names that are not declared are left out.

    Raises marshmallow's `ValidationError`, and whatever the dataclass itself raises.
    """
    from marshmallow import EXCLUDE

    loaded = schema_of(declared)().load(values, unknown=EXCLUDE)
    return _instance(declared, loaded) if dataclasses.is_dataclass(declared) else loaded


def _instance(declared: Any, loaded: Mapping[str, Any]) -> Any:
    """An instance of a dataclass, with what JSON cannot express restored."""
    types = hints(declared)
    values = dict(loaded)
    for name, value in loaded.items():
        kind, _ = optional(types[name])
        if value is None:
            continue
        if dataclasses.is_dataclass(kind):
            values[name] = _instance(kind, value)
        elif get_origin(kind) is tuple or kind is tuple:
            values[name] = tuple(value)
        elif kind is Path:
            values[name] = Path(value)
    return declared(**values)


def load_own(declared: p.PluginSettings, table: Mapping[str, Any]) -> Any:
    """The settings of a plugin's hooks. Raises `ConfigurationError` that names every wrong one."""
    from marshmallow import ValidationError

    own = own_values(declared.settings, table)
    try:
        return load(declared.settings, own)
    except ValidationError as error:
        problems = [
            _sentence(declared.name, path, text) for path, text in _flat(error.messages, "")
        ]
    except (TypeError, ValueError) as error:  # of the dataclass's own check
        problems = [_sentence(declared.name, (), str(error))]
    raise ConfigurationError("; ".join(sorted(problems)))


def load_of_provider(
    provider: p.Provider, settings: Mapping[str, Any], section: str, table: Mapping[str, Any]
) -> Any:
    """The settings of a provider; unchanged if it declares none. `table`: `[plugins.NAME]`, which
    takes precedence over the section's. Raises `ConfigurationError` that names every wrong one."""
    options = dict(settings.get("options") or {})
    common = {name: value for name, value in settings.items() if name != "options"}
    if provider.settings is None:
        return common | options
    from marshmallow import ValidationError

    own = own_values(provider.settings, table)
    fields = fields_of(provider.settings)
    problems = [
        f"{section}.options.{name}: there is no such setting; {nearest(name, fields)}"
        for name in options.keys() - fields
    ]
    loaded: Any = {}
    try:
        loaded = load(provider.settings, {**common, **options, **own})
    except ValidationError as error:
        for path, message in _flat(error.messages, ""):
            if path and path[0] in own:
                problems.append(_sentence(provider.name, path, message))
            else:
                inner = ("options", *path) if path and path[0] in options else path
                problems.append(f"{'.'.join((section, *inner))}: {message}")
    except (TypeError, ValueError) as error:  # of the dataclass's own check
        problems.append(f"{section}: {error}")
    if problems:
        raise ConfigurationError(
            f"the settings of {provider.name!r} cannot be used: " + "; ".join(sorted(problems))
        )
    return loaded


def nearest(name: str, candidates: Iterable[str]) -> str:
    """What to write instead of an unknown name."""
    names = sorted(candidates)
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(names) or 'none'}"


def variable(name: str, part: str) -> str:
    """The variable of one setting: `PLUGIN_NAME__FIELD`."""
    return f"{OPTIONS.prefix}{transport_key(name).upper()}{OPTIONS.separator}{part.upper()}"


def _sentence(name: str, path: tuple[str, ...], text: str) -> str:
    setting = ".".join(("plugins", transport_key(name), *path))
    hint = f" (variable: {variable(name, path[0])})" if len(path) == 1 else ""
    return f"{setting}: {text}{hint}"


def _decoded(value: Any, field: Any) -> Any:
    from marshmallow import fields as kinds

    if isinstance(value, str) and isinstance(field, kinds.List | kinds.Mapping | kinds.Nested):
        try:
            return json.loads(value)
        except ValueError:
            return value  # the schema says what is wrong with it
    return value


def _flat(messages: Any, *start: str) -> Iterable[tuple[tuple[str, ...], str]]:
    """Each message with its path. The messages of a whole schema have the path of the schema."""
    path = tuple(part for part in start if part and part != "_schema")
    if isinstance(messages, Mapping):
        for key, value in messages.items():
            yield from _flat(value, *path, str(key))
    elif isinstance(messages, list):
        for message in messages:
            yield from _flat(message, *path)
    else:
        yield path, str(messages)
