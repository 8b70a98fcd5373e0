"""The table of choices that the command `export` writes: its form, and the rule by which a shape gets its core.

This module imports no torch; `nearest` is also the text of the function that `export --format python` writes.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT, VERSION = "attention-bench table", 1
"""What a table says of itself. `docs/table.schema.json` is its JSON schema."""

SDPA = "sdpa"

MODES = {"inference": False, "train": True}
"""The modes of points that a call can be in, with whether gradients are wanted."""

Kind = tuple[str, str, bool, str]
"""The device type, the dtype, whether gradients are wanted, and the mask: "none" or "causal"."""

Sizes = tuple[int, int, int]
"""The number of tokens, the width of a head, and the items of the batch times the heads."""

Choice = tuple[Kind, Sizes, str]
"""A measured point and the core to use there."""


class WrongTable(ValueError):  # noqa: N818 - the name of the rule that it breaks
    """A file is no table of choices; the message says where and why."""


@dataclass(frozen=True)
class ChoiceTable:
    """A table of choices: `cpu`, `gpus`, `torch` and `threads` are those with which it was measured.

    `checked` says in words what following it cost at shapes between the measured ones.
    """

    cpu: str
    gpus: frozenset[str]
    torch: str
    choices: tuple[Choice, ...]
    threads: frozenset[int]
    checked: str


def load(path: str | Path, threads: int = 0) -> ChoiceTable:
    """Return the table in a file, only its points with so many threads if there are some.

    Raises WrongTable if it can't be read, or was not written by `export`.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise WrongTable(f"the table {path} can't be read: {error.strerror}") from None
    except ValueError:
        raise WrongTable(f"the table {path} is not JSON; the command export writes one") from None
    form = (content.get("format"), content.get("schema_version")) if isinstance(content, dict) else (None, None)
    if form != (FORMAT, VERSION):
        raise WrongTable(f"the table {path} must have format {FORMAT!r} and schema_version {VERSION}, got {form}")
    try:
        measured, points = content["environment"], with_threads(content["points"], threads)
        return ChoiceTable(
            str(measured["cpu"]),
            frozenset(map(str, measured["gpus"].values())),
            str(measured["torch"]),
            tuple(choice for point in points for choice in choices_of(point)),
            frozenset(int(point["threads"]) for point in points),
            checked(content.get("check")),
        )
    except KeyError as error:
        raise WrongTable(f"the table {path} lacks {error.args[0]}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise WrongTable(f"the table {path} has a value of another type: {error}") from None


def with_threads(points: list[dict[str, Any]], threads: int) -> list[dict[str, Any]]:
    """Return the points that were measured with so many threads, all of them if there are none."""
    return [point for point in points if point["threads"] == threads] or points


def checked(check: dict[str, Any] | None) -> str:
    """Return in words what the check of a table says: how it is beside sdpa between its points."""
    if check is None:
        return "the table was not checked between its points"
    number = int(check["shapes"])
    where = f"{number} {'shape' if number == 1 else 'shapes'}"
    if "regret" in check:  # as earlier versions wrote it
        return f"the table, checked at {where}, cost {100 * check['regret']['table']['mean']:.1f} % on average there"
    verdicts = ", ".join(f"{verdict} at {count}" for verdict, count in check["verdicts"].items())
    return f"the table, checked at {where} beside sdpa: {verdicts}"


def choices_of(point: dict[str, Any]) -> list[Choice]:
    """Return the choice of a point; none if calls are never in its mode."""
    if point["mode"] not in MODES:
        return []
    batch, heads = _size(point, "batch"), _size(point, "num_heads")
    sizes = _size(point, "num_tokens"), _size(point, "head_width"), batch * heads
    kind = str(point["device"]).partition(":")[0], str(point["dtype"]), MODES[point["mode"]], str(point["mask"])
    return [(kind, sizes, str(point["implementation"]))]


def _size(point: dict[str, Any], name: str) -> int:
    value = point[name]
    if type(value) is not int or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return value


def nearest(choices: tuple[Choice, ...], kind: Kind, sizes: Sizes) -> str:
    """Return the core of the nearest choice of a kind, sdpa if none is within a factor of 2 in each size.

    `kind` is (device type, dtype, whether gradients are wanted, mask), `sizes` are (number of tokens, width of a head,
    batch times heads). The distance is that of the logarithms of the sizes.
    """
    near = []
    for of, at, name in choices:
        if of != kind or not all(sizes):  # an empty call is near to none
            continue
        steps = [abs(math.log2(size / other)) for size, other in zip(sizes, at, strict=True)]
        if max(steps) <= 1:
            near.append((sum(step**2 for step in steps), name != SDPA, name))
    return min(near)[2] if near else SDPA


def is_near(sizes: Sizes, at: Sizes) -> bool:
    """Return whether sizes are near to a measured point: within a factor of 2 in each."""
    return all(size <= 2 * other and other <= 2 * size for size, other in zip(sizes, at, strict=True))
