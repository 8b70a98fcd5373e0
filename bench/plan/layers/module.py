"""A module from any package, named `module:attribute`; little is known until a worker has made it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bench.plan.case import COLUMNS, Point, of_role
from bench.plan.columns import Role
from bench.plan.core import Core
from bench.plan.layers.layer import CHOICES, Layer, Values
from impls.catalogue import ALIASES, SOURCES, WIDTHS, Name, name_of


class Module(Layer):
    """The module with a name; its FLOPs and the size of its weights are unknown.

    `shown` are the columns that a call of it has shown, if its name has an input.
    """

    is_module = True
    takes = tuple(column for column in CHOICES if column != "lengths")

    def __init__(self, name: Name, shown: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.name = name.text
        self.is_users = name.module not in SOURCES
        self.fixed = {column: value for column, value in shown.items() if column != "batch"} or _in_name(name)
        self._shown = shown

    @property
    def path(self) -> str:
        """The name by which it is made."""
        return self.name

    def usable(self, usual: Mapping[str, Any]) -> Values:
        """Return the usable values, with the batch of its input in place of the usual one."""
        return {**super().usable(usual), **({"batch": self._shown["batch"]} if "batch" in self._shown else {})}

    def flops(self, point: Point) -> None:
        """Return None, for unknown."""

    def weights(self, point: Point) -> int:  # noqa: ARG002
        """Return 0, because they are unknown."""
        return 0


def _in_name(name: Name) -> dict[str, Any]:
    """Return the columns that arguments in a name give: `dim=64,heads=4` gives both widths and the heads.

    Only columns of the input x count, because an argument named like another column, such as `window_size`, may mean
    something else. An argument that isn't a value of its column, such as `(4, 4)`, is ignored.
    """
    columns = {ALIASES.get(key, key): value for key, value in name.options.items()}
    fixed = {key: columns[key] for key in of_role(Role.X) if key in columns and COLUMNS[key].is_possible(columns[key])}
    widths = [fixed[each] for each in WIDTHS if each in fixed]
    return {**dict.fromkeys(WIDTHS[: 2 * len(widths)], *widths[:1]), **fixed}


def of_core(core: Core, name: str) -> dict[str, Any]:
    """Return the columns that a module's core shows: tokens, heads and their total width.

    Arguments in the module's name take precedence, because a core may have its heads among the items.
    """
    _, heads, tokens, width = core.shapes[0]
    channels = heads * width
    shown = {"num_tokens": tokens, "token_len": channels, "channels": channels, "num_heads": heads}
    return {column: _in_name(name_of(name)).get(column, value) for column, value in shown.items()}
