"""The definition of a column of a point: its kind, its values, its form in file names and in descriptions.

The fields of `bench.plan.case.Point` declare the columns. From them follow the checks of sweep files, the options of
the command line, the types in results.csv, file names, descriptions of points, and the documentation's table.
"""

import dataclasses
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from bench.plan.errors import WrongRequest, suggestion


class ValueKind(Enum):
    """The kind of the values of a column or a setting; the text is the rule that users see."""

    TEXT = "text"
    COUNT = "a whole number of at least 1 and at most 1,000,000,000"
    NUMBER = "a number"
    TRUTH = "true or false"
    SECONDS = "a number above 0"
    SHARE = "a share above 0 and below 1, such as 0.02 for 2 %"


MOST_COUNT = 10**9
"""The largest whole number of a column or a setting: products of some of them stay far below what torch can count."""

KINDS = {
    str: ValueKind.TEXT,
    int: ValueKind.COUNT,
    int | None: ValueKind.COUNT,
    float | None: ValueKind.NUMBER,
    bool: ValueKind.TRUTH,
}
"""The kind of a column by the type of its field."""


class Role(Enum):
    """What a column says of a call; whatever depends on the kind of a column asks for its role."""

    LAYER = "the layer"
    X = "a size of the input x"
    IMAGE = "a size of an image, whose parts are the tokens"
    CONTEXT = "a size of the context, a second input"
    CORE = "what changes the attention core"
    QUERIES = "what changes queries and keys before the core"
    FUNCTION = "what else changes the function"
    EXECUTION = "how the function is computed"


class _NoValue(Enum):
    REQUIRED = "a sweep or the machine must give it"
    DERIVED = "it follows from other columns, or the layer does not use it"


REQUIRED, DERIVED = _NoValue
"""Markers in place of a default value."""


@dataclass(frozen=True, kw_only=True)
class PointColumn:
    """One column of a point.

    `meaning` explains the value in one line; `choices` maps each allowed value to its meaning.
    `default` is the value if a sweep gives none, or DERIVED, or REQUIRED. `absent` is the value in lines of a journal
    and of plans that lack the column, REQUIRED if they all have it.
    `short` is the value in a file name and `words` the value for people, as a format or a function of the value.
    `usual` is a value, or a function from a point to it, that both leave out.
    `described_with` names the column whose `words` include this one.
    `is_ok` is an additional check of a value; `rule` is the text that users see if it fails.
    """

    name: str = ""
    kind: ValueKind = ValueKind.TEXT
    meaning: str
    role: Role
    default: Any = DERIVED
    absent: Any = REQUIRED
    choices: Mapping[str, str] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    short: str | Callable[[Any], str] = "{}"
    words: str | Callable[[Any], str] = "{}"
    usual: Any = REQUIRED
    described_with: str = ""
    is_ok: Callable[[Any], object] = lambda _value: True
    rule: str = ""

    @property
    def option(self) -> str:
        """The group of the command-line option of this name."""
        return "execution" if self.role is Role.EXECUTION else "shape"

    @property
    def changes_function(self) -> bool:
        """Whether a layer without the column computes another function than a point means whose value isn't usual.

        Such a layer is unsupported.
        """
        return self.role in (Role.CONTEXT, Role.CORE, Role.QUERIES, Role.FUNCTION)

    def check(self, value: object) -> None:
        """Raise WrongRequest with the rule and the value if the column can't have this value."""
        if not self.is_possible(value):
            choices = f"one of {', '.join(self.choices)}{suggestion(value, self.choices)}"
            rule = choices if self.choices else self.rule or self.kind.value
            raise WrongRequest(f"{self.name} = {value!r} must be {rule}")

    def is_possible(self, value: object) -> bool:
        """Return whether the column can have this value."""
        return bool(is_of_kind(self.kind, value) and (not self.choices or value in self.choices) and self.is_ok(value))

    def is_usual(self, point: Any) -> bool:
        """Return whether a point's value is the usual one, or None because the layer doesn't use the column."""
        value = getattr(point, self.name)
        return value is None or value == (self.usual(point) if callable(self.usual) else self.usual)

    def shortened(self, value: Any) -> str:
        """Return a value's form in a file name."""
        return self.short.format(value) if isinstance(self.short, str) else self.short(value)

    def described(self, value: Any) -> str:
        """Return a value's description for people; empty if the layer doesn't use the column."""
        if isinstance(self.words, str):
            return "" if value is None else self.words.format(value)
        return self.words(value)


TRUTHS = {"true": True, "false": False}
"""The values of a truth by their texts."""

SECONDS_OF = {"s": 1, "m": 60, "h": 3600}
"""The units of a duration."""


def _seconds(text: str) -> float:
    number, unit = (text[:-1], text[-1]) if text[-1:] in SECONDS_OF else (text, "s")
    return float(number) * SECONDS_OF[unit]


def _share(text: str) -> float:
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


READERS: Mapping[ValueKind, Callable[[str], Any]] = {
    ValueKind.TEXT: str,
    ValueKind.COUNT: int,
    ValueKind.NUMBER: float,
    ValueKind.TRUTH: TRUTHS.__getitem__,
    ValueKind.SECONDS: _seconds,
    ValueKind.SHARE: _share,
}
"""How a text of the command line becomes a value of a kind; one that has none raises ValueError or KeyError."""

FORMS = {ValueKind.SECONDS: "a duration such as 90s, 30m or 1h", ValueKind.SHARE: "a share such as 2% or 0.02"}
"""The form of a text that becomes a value, where it isn't the rule of the kind."""


def read(kind: ValueKind, option: str, text: str) -> Any:
    """Return the value of an option's text; raises WrongRequest if it has none."""
    try:
        return READERS[kind](text)
    except (ValueError, KeyError):
        raise WrongRequest(f"{option} {text} must be {FORMS.get(kind, kind.value)}") from None


def written(value: Any) -> str:
    """Return a value as a sweep file and the command line have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def flag(name: str) -> str:
    """Return the option for a column or a setting: `--num-tokens`."""
    return "--" + name.replace("_", "-")


def column(meaning: str, role: Role, **facts: Any) -> Any:
    """Return a dataclass field that declares a column; the field's name and type are the column's name and kind.

    The field has a default if the column has an `absent` value.
    """
    declared = PointColumn(meaning=meaning, role=role, **facts)
    if declared.absent is REQUIRED:
        return dataclasses.field(metadata={"column": declared})
    return dataclasses.field(default=declared.absent, metadata={"column": declared})


def columns_of(point_type: type) -> dict[str, PointColumn]:
    """Return the columns that a dataclass declares by name, in order."""
    types = typing.get_type_hints(point_type)
    return {
        field.name: dataclasses.replace(field.metadata["column"], name=field.name, kind=KINDS[types[field.name]])
        for field in dataclasses.fields(point_type)
    }


def is_of_kind(kind: ValueKind, value: object) -> bool:
    """Return whether a value is of a kind."""
    if kind is ValueKind.TRUTH or isinstance(value, bool):
        return kind is ValueKind.TRUTH and isinstance(value, bool)
    if kind is ValueKind.COUNT:
        return isinstance(value, int) and 1 <= value <= MOST_COUNT
    if kind is ValueKind.TEXT:
        return isinstance(value, str)
    above = -math.inf if kind is ValueKind.NUMBER else 0
    below = 1 if kind is ValueKind.SHARE else math.inf
    return isinstance(value, int | float) and above < value < below


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
