"""Loading plugins and finding their providers.

`load_plugins` runs once, at startup. A plugin that cannot be loaded is recorded with the reason and
does not affect others. `Plugins.check` raises for what must prevent a start.
"""

from memservice.plugins.kinds import KINDS, Failure, Kind, Origin, Row
from memservice.plugins.loading import GROUP, load_plugins
from memservice.plugins.registry import Plugins
from memservice.plugins.setting_rows import setting_rows

__all__ = [
    "GROUP",
    "KINDS",
    "Failure",
    "Kind",
    "Origin",
    "Plugins",
    "Row",
    "load_plugins",
    "setting_rows",
]
