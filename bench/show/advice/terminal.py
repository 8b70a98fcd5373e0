"""An answer on one screen."""

from rich.console import Group, RenderableType
from rich.text import Text

from bench.analyse.advice import LITTLE, Advice
from bench.plan.case import AS_IS
from bench.show.advice import words
from bench.show.terminal.console import table
from bench.show.terminal.styles import GOOD, QUIET, WARNING
from bench.store import units


def head(advice: Advice) -> RenderableType:
    """Return what was found before anything is compared; its first line is the bound."""
    return Group(
        Text(words.bound(advice), "bold"),
        Text(words.about(advice)),
        *(Text(f"  {line}", QUIET) for line in words.found(advice)),
        *(Text(f"  {line}", WARNING) for line in advice.objections),
        *(Text(f"  {line}") for line in words.rewriting(advice)),
    )


def stopped(advice: Advice) -> RenderableType:
    """Return why nothing is compared."""
    return Text(
        f"That is below {units.ratio(LITTLE)}, so nothing was compared; --anyway compares the settings all the same. "
        f"A call takes {units.seconds(advice.call_s)}."
    )


def answer(advice: Advice) -> RenderableType:
    """Return the table of settings, the recommendation and its lines to paste."""
    cells = table("setting", ["measured", "predicted"], ["latency", "peak memory", "first compile", "output error"])
    as_is = advice.as_is
    cells.add_row(
        Text(AS_IS), "baseline", "", units.seconds(as_is.get("latency_s")), units.size(as_is.get("peak_bytes")), "", ""
    )
    for each in advice.alternatives:
        if each.status == "ok":
            cells.add_row(
                Text(each.name, GOOD if each.name == advice.recommendation else ""),
                words.gain(each.speedup),
                words.gain(each.predicted),
                units.seconds(each.latency_s),
                units.size(each.peak_bytes),
                units.duration(each.compile_s),
                "" if units.is_missing(each.error) else f"{each.error:.1g}",
            )
    lines = words.paste(advice.library, advice.recommendation) if advice.recommendation else []
    return Group(
        cells,
        *(Text(line, WARNING) for line in (*words.not_measured(advice), *words.differences(advice))),
        *(Text(line, QUIET) for line in (*words.agreements(advice), *words.unpredicted(advice))),
        Text(),
        Text(words.recommendation(advice), "bold"),
        *(Text(f"    {line}") for line in lines),
        *(Text(line, QUIET) for line in words.legend(advice.alternatives)),
    )
