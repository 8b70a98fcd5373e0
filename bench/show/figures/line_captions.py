"""Texts around a line picture."""

import math

from bench.show.figures.line_data import Picture
from bench.show.point_text import counted, parts


def title(picture: Picture) -> str:
    """Return the title."""
    by = ", by allocator" if picture.by_allocator else ""
    return f"{_filled(picture.quantity.axis.title, picture)} against {picture.axis.name}{by}"


def facts(picture: Picture) -> list[str]:
    """Return the fixed values: layer, device, dtype, mode and so on."""
    names = dict.fromkeys(row["device_name"] for row in picture.rows if row["device_name"])
    fixed = [name for name in vars(picture.point) if name not in picture.varying]
    device, *others = [picture.point.device, *names]
    words = parts(picture.point, [name for name in fixed if name != "device"])
    return [words[0], f"{device} ({', '.join(others)})" if others else device, *words[1:]]


def x_label(picture: Picture) -> str:
    """Return the label of the horizontal axis."""
    follows = "  (token length = channels)" if "token_len" in picture.varying else ""
    return f"{picture.axis.name} {picture.axis.symbol}{follows}"


def y_label(picture: Picture) -> str:
    """Return the label of the vertical axis."""
    return _filled(picture.quantity.axis.label, picture)


def reference(picture: Picture) -> str:
    """Return the label of the rule at 1 in a picture of ratios to the baseline, empty in others."""
    return f"{picture.baseline or 'baseline'} = 1" if picture.quantity.axis.relative else ""


def notes(picture: Picture) -> list[str]:
    """Return the footnotes: what the bands are, and the origin of the numbers."""
    numbers = [row["processes"] for row in picture.rows if row["status"] == "ok" and row["processes"]]
    processes = counted(numbers, "process", "processes")
    versions = dict.fromkeys(f"torch {row['torch_version']}" for row in picture.rows if row["torch_version"])
    commits = dict.fromkeys(f"commit {row['commit']}" for row in picture.rows if row["commit"])
    if not picture.quantity.axis.low:
        return [*versions, *commits]
    band = f"band: 95 % interval over {processes}" if _has_band(picture) else f"{processes}, so no interval"
    return [band, *versions, *commits]


def _filled(text: str, picture: Picture) -> str:
    return text.format(baseline=picture.baseline or "the baseline")


def _has_band(picture: Picture) -> bool:
    return any(math.isfinite(low) for line in picture.lines for low in line.lows)
