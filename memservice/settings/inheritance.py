"""What each `MODEL_CONFIG` takes over from the `LLM_` section: the model, the transport and the
fallback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memservice.settings.declare import Leaf, Tree
from memservice.settings.families import CONNECTIONS, transport_key
from memservice.settings.models import DEFAULT_TRANSPORT

Path = tuple[str, ...]
Values = dict[Path, Any]

LLM: Path = ("llm",)
FALLBACK: Path = ("llm", "fallback")
SMALL, LARGE = "small_model", "large_model"
SIZES: Mapping[Path, str] = {
    ("deriver", "model_config"): SMALL,
    ("summary", "model_config"): SMALL,
    ("dream", "deduction_model_config"): LARGE,
    ("dream", "induction_model_config"): LARGE,
    ("dialectic", "levels", "high", "model_config"): LARGE,
    ("dialectic", "levels", "max", "model_config"): LARGE,
}
"""Tasks whose model may differ from LLM_MODEL."""


class Inheritance:
    """Fills in, among the values that were set, what tasks inherit. `origin` gets a line for each.

    `is_plugin` says whether a plugin of that name is installed.
    """

    def __init__(
        self,
        tree: Tree,
        values: Values,
        origin: dict[str, str],
        is_plugin: Callable[[str], bool],
    ) -> None:
        self._tree = tree
        self._values = values
        self._origin = origin
        self._is_plugin = is_plugin
        size = len(CONNECTIONS.path)
        self._configured = sorted(
            {path[size] for path in values if path[:size] == CONNECTIONS.path and values[path]}
        )
        """Transports with a key or a base URL."""

    def apply(self) -> None:
        for task in self._tasks():
            self._fallback(task)
            self._choice(task, SIZES.get(task))
            fallback = (*task, "fallback")
            if any(path[: len(fallback)] == fallback for path in self._values):
                self._choice(fallback, None)

    def _tasks(self) -> Iterator[Path]:
        """The groups of language models."""
        for path in self._tree.groups.values():
            if path[-1].endswith("model_config") and path[0] != "embedding":
                yield path

    def _fallback(self, task: Path) -> None:
        """Take over each part of LLM_FALLBACK that the task's own fallback does not set. One of
        another transport takes over nothing: a key must not go to another server."""
        own = self._values.get((*task, "fallback", "transport"))
        common = (
            self._values.get((*FALLBACK, "transport"))
            or self._values.get((*LLM, "transport"))
            or self._only()
            or DEFAULT_TRANSPORT
        )
        if own not in (None, common):
            return
        for path in [path for path in self._values if path[:2] == FALLBACK]:
            self._take((*task, "fallback", *path[2:]), path)

    def _choice(self, choice: Path, size: str | None) -> None:
        """The model and the transport of one choice."""
        is_fallback = choice[-1] == "fallback"
        own = self._values.get((*choice, "transport"))
        if not is_fallback and own in (None, self._values.get((*LLM, "transport"))):
            for name in (size, "model"):
                if name and self._values.get((*LLM, name)):
                    self._take((*choice, "model"), (*LLM, name))
                    break
        if self._values.get((*choice, "model")) and own is None:
            self._split(choice)
        if (*choice, "transport") not in self._values:
            self._transport(choice)

    def _split(self, choice: Path) -> None:
        """`MODEL = transport/name` names the transport too. Behind a base URL such names are
        models, unless the other transport has a place of its own."""
        name, slash, model = self._values[*choice, "model"].partition("/")
        if not slash or not (transport_key(name) in self._configured or self._is_plugin(name)):
            return
        if self._values.get((*choice, "overrides", "base_url")):
            return
        usual = self._values.get((*LLM, "transport")) or self._only() or DEFAULT_TRANSPORT
        has_url = self._values.get((*CONNECTIONS.path, transport_key(usual), "base_url"))
        if has_url and (name == usual or transport_key(name) not in self._configured):
            return
        self._values[*choice, "model"] = model
        self._values[*choice, "transport"] = name
        self._note((*choice, "transport"), f"follows {self._leaf((*choice, 'model')).name}")

    def _transport(self, choice: Path) -> None:
        """LLM_TRANSPORT; without it, for a model that is named and has no place of its own, the
        only transport that has one."""
        if self._values.get((*LLM, "transport")):
            self._take((*choice, "transport"), (*LLM, "transport"))
            return
        overrides = (*choice, "overrides")
        has_place = any(self._values.get((*overrides, part)) for part in ("api_key", "base_url"))
        only = self._only()
        if (
            only not in (None, DEFAULT_TRANSPORT)
            and not has_place
            and self._values.get((*choice, "model"))
        ):
            self._values[*choice, "transport"] = only
            self._note((*choice, "transport"), f"follows LLM_{str(only).upper()}_…")

    def _only(self) -> str | None:
        return self._configured[0] if len(self._configured) == 1 else None

    def _take(self, target: Path, source: Path) -> None:
        if target not in self._values:
            self._values[target] = self._values[source]
            self._note(target, f"follows {self._leaf(source).name}")

    def _note(self, target: Path, origin: str) -> None:
        self._origin[self._leaf(target).name] = origin

    def _leaf(self, path: Path) -> Leaf:
        return self._tree.by_path[path]
