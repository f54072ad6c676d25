"""The settings of plugins as `memservice config show` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memservice.plugins.registry import Plugins
from memservice.plugins.schemas import variable
from memservice.settings import SettingRow, Settings
from memservice.settings.declare import Secrecy, tree
from memservice.settings.families import OPTIONS
from memservice.settings.values import show

if TYPE_CHECKING:
    from marshmallow.fields import Field

OF_CONNECTIONS = frozenset({"uri", "api_key", "base_url", "extra_body", "extra_headers"})
"""Fields that providers get from the section of their kind, beside those that it has itself."""


def setting_rows(
    settings: Settings, plugins: Plugins, everything: bool = False
) -> list[SettingRow]:
    """As `Settings.rows`, with the settings of the installed plugins in place of the masked ones.
    With `everything`, also those that are not set."""
    declared = {
        variable(name, part): (name, part, field)
        for name, fields in plugins.declared_settings().items()
        for part, field in fields.items()
    }
    core = {leaf.path[-1] for leaf in tree(Settings).leaves} | OF_CONNECTIONS
    rows = [row for row in settings.rows(everything) if row.name not in declared]
    for name, (plugin, part, field) in sorted(declared.items()):
        has_own_default = part not in core or plugin in plugins.settings_of_hooks
        if name in settings.sources or (everything and has_own_default):
            rows.append(_row(settings, name, plugin, part, field))
    return rows


def _row(settings: Settings, name: str, plugin: str, part: str, field: Field[Any]) -> SettingRow:
    table = settings.plugins.options.get(plugin, {})
    secrecy = _secrecy(field)
    return SettingRow(
        name,
        show(table[part] if part in table else _default(field), secrecy),
        settings.sources.get(name, "default"),
        secrecy == "secret",
        (),
        str(field.metadata.get("help", OPTIONS.help)),
        f"[plugins.{plugin}] {part}",
    )


def _secrecy(field: Field[Any]) -> Secrecy:
    """As for the settings of the core: numbers, switches and choices among words are public, all
    else is secret, unless the plugin says otherwise."""
    from marshmallow import fields, validate

    declared: Secrecy | None = field.metadata.get("secrecy")
    if declared in ("public", "secret", "uri"):
        return declared
    has_choices = any(isinstance(check, validate.OneOf) for check in field.validators)
    is_plain = isinstance(field, fields.Integer | fields.Float | fields.Boolean)
    return "public" if is_plain or has_choices else "secret"


def _default(field: Field[Any]) -> object:
    from marshmallow import missing

    default = field.metadata.get("default", field.load_default)
    return None if default is missing or callable(default) else default
