"""The definition of a setting of an effort: its kind of values, its option, and how texts become values.

The fields of `bench.plan.sweep.Effort` declare the settings, as those of `Point` declare columns.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.plan.columns import ValueKind, flag, is_of_kind, read


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of an effort.

    `meaning` is the help of its option, which takes a value like `example`; one of a truth takes none. The option is
    that of the name without a unit, `no_race` for one that is on `unless` it is given.
    """

    name: str = ""
    kind: ValueKind
    meaning: str
    example: str = ""
    option: str = ""
    unless: bool = False

    def add_to(self, add_option: Callable[..., object]) -> None:
        """Add the option to a parser."""
        if self.kind is ValueKind.TRUTH:
            action = "store_false" if self.unless else "store_true"
            add_option(self.option, dest=self.name, action=action, default=None, help=self.meaning)
        else:
            add_option(self.option, dest=self.name, metavar=self.example, help=self.meaning)

    def read(self, text: str) -> Any:
        """Return the value of a text of the command line; raises WrongRequest if it has none."""
        return read(self.kind, self.option, text)

    def mistake(self, value: object) -> str:
        """Return what is wrong with a value, empty if nothing is."""
        return "" if is_of_kind(self.kind, value) else f"{self.name} = {value!r} must be {self.kind.value}"


def setting(default: Any, kind: ValueKind, meaning: str, example: str = "", option: str = "") -> Any:
    """Return a dataclass field that declares a setting; the field's name is the setting's name."""
    declared = Setting(kind=kind, meaning=meaning, example=example, option=option, unless=option.startswith("--no-"))
    return dataclasses.field(default=default, metadata={"setting": declared})


def settings_of(effort_type: type) -> dict[str, Setting]:
    """Return the settings that a dataclass declares by name, in order."""
    declared = {field.name: field.metadata["setting"] for field in dataclasses.fields(effort_type)}
    return {
        name: dataclasses.replace(each, name=name, option=each.option or flag(name)) for name, each in declared.items()
    }
