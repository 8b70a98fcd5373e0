"""The declarations of columns and settings: kinds, values, and forms in file names and descriptions.

The fields of `bench.plan.case.Point` declare the columns, the fields of `bench.plan.sweep.Effort` the settings. The
checks of sweep files, command-line options, types in results.csv, file names, descriptions of points, and the
documentation's table are derived from them.
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
    COUNT = "a whole number from 1 to 1,000,000,000"
    NUMBER = "a number"
    TRUTH = "true or false"
    SECONDS = "a number above 0"
    SHARE = "a share above 0 and below 1, such as 0.02 for 2%"


MOST_COUNT = 10**9
"""The largest whole number in a column or a setting; it keeps their products far below torch's integer limit."""

KINDS = {
    str: ValueKind.TEXT,
    int: ValueKind.COUNT,
    int | None: ValueKind.COUNT,
    bool: ValueKind.TRUTH,
}
"""The kind of a column or a setting by the type of its field; a float field declares its kind."""

NONE = "none"
"""The text for no value, in a column whose absence is None, and the value that switches off one such as `mask`."""

DECLARED = "declared"
"""The key of a field's metadata."""


class Role(Enum):
    """What a column says about a call; code that treats columns differently asks for the role."""

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
class Declared:
    """The declaration of a field of a point or an effort; `meaning` explains its values in one line."""

    name: str = ""
    kind: ValueKind = ValueKind.TEXT
    meaning: str

    def is_possible(self, value: object) -> bool:
        """Return whether the field can have this value."""
        return is_of_kind(self.kind, value)

    def expected(self, value: object) -> str:  # noqa: ARG002
        """Return the rule that a value breaks."""
        return self.kind.value

    def mistake(self, value: object) -> str:
        """Return an error line with the rule that a value breaks; empty for a valid one."""
        return "" if self.is_possible(value) else f"{self.name} = {value!r} must be {self.expected(value)}"


@dataclass(frozen=True, kw_only=True)
class PointColumn(Declared):
    """One column of a point.

    `choices` maps each allowed value to its meaning.
    `default` is the value if a sweep gives none, or DERIVED, or REQUIRED. `absent` is the value for plans and journal
    lines that lack the column, REQUIRED if they all have it.
    `short` is the value in a file name and `words` the value for people, as a format or a function of the value.
    Both leave out the value `usual`, which may be a function of the point.
    `described_with` names the column whose `words` include this one.
    `is_ok` is an additional check of a value; `rule` is the text that users see if it fails.
    """

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
    def group(self) -> str:
        """The group of its command-line option."""
        return "execution" if self.role is Role.EXECUTION else "shape"

    @property
    def changes_function(self) -> bool:
        """Whether an unusual value changes the function, so that a layer without the column is unsupported."""
        return self.role in (Role.CONTEXT, Role.CORE, Role.QUERIES, Role.FUNCTION)

    def is_possible(self, value: object) -> bool:
        """Return whether the column can have this value."""
        is_valid = super().is_possible(value) and (not self.choices or value in self.choices)
        return self.is_none(value) or (is_valid and bool(self.is_ok(value)))

    def is_none(self, value: object) -> bool:
        """Return whether a value in a sweep is the text for no value."""
        return self.absent is None and value == NONE

    def expected(self, value: object) -> str:
        """Return the rule that a value breaks, with the nearest of the choices."""
        choices = f"one of {', '.join(self.choices)}{suggestion(value, self.choices)}"
        return choices if self.choices else (self.rule or self.kind.value) + ", or none" * (self.absent is None)

    def is_usual(self, point: Any) -> bool:
        """Return whether a point's value is usual, or is None because the layer doesn't use the column."""
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


@dataclass(frozen=True, kw_only=True)
class Setting(Declared):
    """One setting of an effort.

    Its option takes a value like `example`, or none for a boolean; `switch` is the option if it isn't the name.
    """

    example: str = ""
    switch: str = ""

    @property
    def option(self) -> str:
        """The command-line option; `--no-…` switches off a setting that is on by default."""
        return self.switch or flag(self.name)

    def add_to(self, add_option: Callable[..., object]) -> None:
        """Add the option to a parser."""
        if self.kind is ValueKind.TRUTH:
            action = "store_false" if self.switch.startswith("--no-") else "store_true"
            add_option(self.option, dest=self.name, action=action, default=None, help=self.meaning)
        else:
            add_option(self.option, dest=self.name, metavar=self.example, help=self.meaning)

    def read(self, text: str) -> Any:
        """Return the value of a command-line text; raises WrongRequest for an invalid one."""
        return read(self.kind, self.option, text)


TRUTHS = {"true": True, "false": False}
"""The booleans by their texts."""

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
"""The function for each kind that reads a command-line text; it raises ValueError or KeyError for an invalid one."""

FORMS = {ValueKind.SECONDS: "a duration such as 90s, 30m or 1h", ValueKind.SHARE: "a share such as 2% or 0.02"}
"""The form that a text must have, for kinds whose rule doesn't say it."""


def read(kind: ValueKind, option: str, text: str) -> Any:
    """Return the value of an option's text; raises WrongRequest for an invalid one."""
    try:
        return READERS[kind](text)
    except (ValueError, KeyError):
        raise WrongRequest(f"{option} {text} must be {FORMS.get(kind, kind.value)}") from None


def written(value: Any) -> str:
    """Return a value as written in a sweep file or on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def flag(name: str) -> str:
    """Return the option for a column or a setting: `--num-tokens`."""
    return "--" + name.replace("_", "-")


def column(meaning: str, role: Role, **facts: Any) -> Any:
    """Return a dataclass field that declares a column; its default is the column's `absent` value, if any."""
    declared = PointColumn(meaning=meaning, role=role, **facts)
    if declared.absent is REQUIRED:
        return dataclasses.field(metadata={DECLARED: declared})
    return dataclasses.field(default=declared.absent, metadata={DECLARED: declared})


def setting(default: Any, meaning: str, **facts: Any) -> Any:
    """Return a dataclass field that declares a setting."""
    return dataclasses.field(default=default, metadata={DECLARED: Setting(meaning=meaning, **facts)})


def declared_by(owner: type) -> dict[str, Any]:
    """Return the columns or settings that a dataclass declares, by name and in order; field types give the kinds."""
    types = typing.get_type_hints(owner)
    declared = {field.name: field.metadata[DECLARED] for field in dataclasses.fields(owner)}
    return {
        name: dataclasses.replace(each, name=name, kind=KINDS.get(types[name], each.kind))
        for name, each in declared.items()
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
